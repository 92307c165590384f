// A replay: which episode, step and seat is shown, the controls, and drawing it all.

const KEYS = [[["←", "→"], "step"], [["space"], "play"], [["Home", "End"], "first and last step"],
  [["[", "]"], "episode"], [["0", "…", "9"], "seat"]];

async function readData() {
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent.trim()),
    (letter) => letter.charCodeAt(0));
  const plain = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(plain).text());
}

function start(replay) {
  // More surprising than to somebody who expects every action alike.
  replay.surprising = Math.log(replay.actions.length);
  const thinks = replay.seats.findIndex((_, seat) =>
    ["predicted", "belief", "q", "context"].some((part) => tells(replay, seat, part)));
  const shown = { episode: 0, at: 0, seat: Math.max(0, thinks), timer: null, speed: 2,
    predictions: true, plan: true, all: false, open: new Set() };
  const page = document.getElementById("replay");
  const parts = frame(replay, shown, () => draw(replay, shown, parts));
  page.append(parts.title, html("div", { class: "columns" }, parts.stage, parts.cards));
  document.addEventListener("keydown", (event) => onKey(event, replay, shown, parts));
  draw(replay, shown, parts);
}

// Whether a seat ever tells a part of what it thinks.
function tells(replay, seat, part) {
  return replay.episodes.some((episode) =>
    episode.steps.some((step) => step.seats[seat][part] !== undefined));
}

// --- the parts that stay --------------------------------------------------------------------------

function frame(replay, shown, redraw) {
  const players = replay.seats.map((seat) => seat.player).join(", ");
  const parts = {
    title: html("h1", {}, `${replay.game}: ${players}`),
    board: html("div", { class: "board" }),
    marks: svg("svg", { class: "marks", preserveAspectRatio: "none", role: "img",
      "aria-label": "surprising steps" }),
    time: html("input", { type: "range", class: "time", min: 0, value: 0, "aria-label": "step",
      oninput: (event) => { shown.at = Number(event.target.value); redraw(); } }),
    clock: html("p", { role: "status", id: "clock" }),
    seats: html("table", { class: "seats" }),
    cards: html("div", { class: "cards", id: "cards" }),
  };
  const move = (by) => () => { stop(shown, parts); goTo(replay, shown, shown.at + by); redraw(); };
  parts.play = html("button", { id: "play", onclick: () => toggle(replay, shown, parts) });
  stop(shown, parts);
  const buttons = html("div", { class: "controls" },
    html("button", { "aria-label": "first step", onclick: move(-Infinity) }, sign("first")),
    html("button", { "aria-label": "step back", onclick: move(-1) }, sign("back")),
    parts.play,
    html("button", { "aria-label": "step on", id: "on", onclick: move(1) }, sign("on")),
    html("button", { "aria-label": "last step", onclick: move(Infinity) }, sign("last")),
    html("label", {}, "speed", choice([1, 2, 4, 8].map((speed) => [speed, `${speed}/s`]), shown.speed,
      (value) => { shown.speed = Number(value); restart(replay, shown, parts); })));
  parts.episode = choice(replay.episodes.map((one, index) => [index, episodeName(one)]), 0, (value) => {
    shown.episode = Number(value);
    shown.at = 0;
    redraw();
  });
  const anyone = (part) => replay.seats.some((_, seat) => tells(replay, seat, part));
  const options = html("div", { class: "controls" },
    html("label", {}, "episode", parts.episode),
    anyone("predicted") ? check("predictions", shown, "predictions", redraw) : null,
    anyone("variation") ? check("plan", shown, "plan", redraw) : null,
    replay.episodes.length > 1 ? check("curves over all episodes", shown, "all", redraw) : null);
  parts.stage = html("div", { class: "stage" },
    html("div", { class: "card" }, parts.board, parts.marks, parts.time, buttons, parts.clock, options),
    html("div", { class: "card" }, parts.seats,
      html("p", { class: "faint" }, "Keys: ", KEYS.map(([names, words], index) =>
        html("span", {}, index ? ", " : "", html("span", { class: "keys" },
          names.map((name) => html("kbd", {}, name)), " " + words))), ".")));
  return parts;
}

// Signs are drawn, because few fonts have them.
const SIGNS = { play: "M3 1L15 8L3 15Z", pause: "M3 1h4v14h-4ZM9 1h4v14h-4Z",
  first: "M1 1h2.5v14h-2.5ZM15 1L4 8L15 15Z", last: "M12.5 1h2.5v14h-2.5ZM1 1L12 8L1 15Z",
  back: "M12 1L5 8L12 15L10 16L2 8L10 0Z", on: "M4 1L11 8L4 15L6 16L14 8L6 0Z" };

function sign(name) {
  return svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: SIGNS[name] }));
}

function choice(options, value, pick) {
  return html("select", { onchange: (event) => pick(event.target.value) }, options.map(([key, words]) =>
    html("option", { value: key, selected: key === value }, words)));
}

function check(words, shown, field, redraw) {
  return html("label", {}, html("input", { type: "checkbox", checked: shown[field],
    onchange: (event) => { shown[field] = event.target.checked; redraw(); } }), words);
}

function episodeName(episode) {
  const surprise = episode.surprise === null ? "" : `, surprise ${number(episode.surprise)}`;
  return `${episode.number} (${episode.steps.length} steps${surprise})`;
}

// --- moving ---------------------------------------------------------------------------------------

function goTo(replay, shown, at) {
  shown.at = Math.max(0, Math.min(replay.episodes[shown.episode].steps.length, at));
}

function toggle(replay, shown, parts) {
  if (shown.timer !== null) { stop(shown, parts); return; }
  if (shown.at >= replay.episodes[shown.episode].steps.length) shown.at = 0;
  shown.timer = setInterval(() => {
    goTo(replay, shown, shown.at + 1);
    if (shown.at >= replay.episodes[shown.episode].steps.length) stop(shown, parts);
    draw(replay, shown, parts);
  }, 1000 / shown.speed);
  parts.play.replaceChildren(sign("pause"));
  parts.play.setAttribute("aria-label", "pause");
  draw(replay, shown, parts);
}

function stop(shown, parts) {
  clearInterval(shown.timer);
  shown.timer = null;
  parts.play.replaceChildren(sign("play"));
  parts.play.setAttribute("aria-label", "play");
}

function restart(replay, shown, parts) {
  if (shown.timer === null) return;
  stop(shown, parts);
  toggle(replay, shown, parts);
}

function onKey(event, replay, shown, parts) {
  const target = event.target;
  if (event.ctrlKey || event.altKey || event.metaKey || target.tagName === "SELECT") return;
  const pressable = ["BUTTON", "SUMMARY"].includes(target.tagName) || target.type === "checkbox";
  const { key } = event, last = replay.episodes.length - 1;
  if (key === " ") {
    if (pressable) return;
    toggle(replay, shown, parts);
  } else if (key === "ArrowRight" || key === "ArrowLeft") {
    stop(shown, parts);
    goTo(replay, shown, shown.at + (key === "ArrowRight" ? 1 : -1));
  } else if (key === "Home" || key === "End") {
    stop(shown, parts);
    goTo(replay, shown, key === "Home" ? 0 : Infinity);
  } else if (key === "[" || key === "]") {
    shown.episode = Math.max(0, Math.min(last, shown.episode + (key === "]" ? 1 : -1)));
    shown.at = 0;
  } else if (/^[0-9]$/.test(key) && Number(key) < replay.seats.length) {
    shown.seat = Number(key);
  } else {
    return;
  }
  event.preventDefault();
  draw(replay, shown, parts);
}

// --- drawing --------------------------------------------------------------------------------------

function draw(replay, shown, parts) {
  const episode = replay.episodes[shown.episode], count = episode.steps.length;
  const step = shown.at < count ? episode.steps[shown.at] : null;
  const redraw = () => draw(replay, shown, parts);
  const choose = (seat) => { shown.seat = seat; redraw(); };
  const record = step ? step.seats[shown.seat] : null;
  const focused = document.activeElement?.closest?.("[data-seat]");
  const within = focused?.parentNode?.closest?.(".board") ? ".board" : ".seats";
  parts.board.replaceChildren(drawBoard(replay, step ? step.board : episode.end,
    { ...shown, record, step, choose }));
  parts.time.max = count;
  parts.time.value = shown.at;
  parts.episode.value = shown.episode;
  parts.clock.textContent = step ? `step ${shown.at} of ${count}` : `the end, after ${count} steps`;
  drawMarks(replay, shown, episode, parts.marks);
  drawSeats(replay, shown, episode, choose, parts.seats);
  parts.cards.replaceChildren(
    html("section", { class: "card", id: "who" }, html("h2", { style: "display: flex; gap: 0.4rem" },
      disc(shown.seat, replay.seats[shown.seat].colour),
      `Seat ${shown.seat}: ${replay.seats[shown.seat].player}`),
    html("p", { class: "faint" }, "What this player knew and thought before it acted. Click on " +
      "another player, or press its number.")),
    ...panels(replay, viewOf(replay, shown, record, step, redraw)));
  if (focused) document.querySelector(`${within} [data-seat="${focused.dataset.seat}"]`)?.focus();
}

// What the panels need. timeline: the steps that curves run over.
function viewOf(replay, shown, record, step, redraw) {
  const ordered = replay.episodes.map((_, index) => index)
    .sort((one, other) => replay.episodes[one].number - replay.episodes[other].number);
  const episodes = shown.all ? ordered : [shown.episode];
  const places = episodes.flatMap((episode) =>
    replay.episodes[episode].steps.map((_, at) => [episode, at]));
  const breaks = places.flatMap(([, at], index) => (at === 0 && index > 0 ? [index] : []));
  return {
    seat: shown.seat, record, step, breaks, open: shown.open,
    later: replay.episodes[shown.episode].steps.slice(shown.at),
    timeline: places.map(([episode, at]) => replay.episodes[episode].steps[at]),
    at: places.findIndex(([episode, at]) => episode === shown.episode && at === shown.at),
    pick: (index) => { [shown.episode, shown.at] = places[index]; redraw(); },
    remember: (name, open) => { if (open) shown.open.add(name); else shown.open.delete(name); },
  };
}

// Steps in which the chosen seat was surprised, above the slider.
function drawMarks(replay, shown, episode, marks) {
  const count = Math.max(1, episode.steps.length);
  marks.setAttribute("viewBox", `0 0 ${count} 10`);
  marks.replaceChildren();
  episode.steps.forEach((step, at) => {
    const surprises = step.seats[shown.seat].surprise ?? [];
    surprises.forEach((surprise, index) => {
      if (surprise === null || surprise <= replay.surprising) return;
      const other = (shown.seat + 1 + index) % replay.seats.length;
      const width = Math.min(0.5, count / 100);
      // The thumb of the slider has its middle half a thumb away from both ends.
      const x = 0.02 * count + (at / count) * 0.96 * count - width / 2;
      marks.append(svg("rect", { x, y: 0, width, height: 10, fill: replay.seats[other].colour },
        svg("title", {}, `step ${at}: seat ${other}, surprise ${number(surprise)}`)));
    });
  });
}

function drawSeats(replay, shown, episode, choose, table) {
  const head = html("tr", {}, html("th", {}, "player"), html("th", {}, "does"),
    html("th", { class: "number" }, "gets"), html("th", { class: "number" }, "so far"));
  const rows = replay.seats.map(({ player, colour }, seat) => {
    const record = episode.steps[shown.at]?.seats[seat];
    const left = record ? !record.alive : !episode.steps.at(-1)?.seats[seat].alive;
    const total = episode.steps.slice(0, shown.at)
      .reduce((sum, step) => sum + (step.seats[seat].reward ?? 0), 0);
    const does = record?.alive ? replay.actions[record.action] : left ? "has left" : "";
    return html("tr", { class: left ? "gone" : "" },
      html("td", {}, html("button", { "data-seat": seat, "aria-pressed": String(seat === shown.seat),
        onclick: () => choose(seat) }, disc(seat, colour, left), player)),
      html("td", {}, does),
      html("td", { class: "number" }, record?.reward ? number(record.reward) : ""),
      html("td", { class: "number" }, number(total)));
  });
  table.replaceChildren(head, ...rows);
}

readData().then(start).catch((error) => {
  document.getElementById("replay").append(html("p", {}, `This replay cannot be shown: ${error}`));
});
