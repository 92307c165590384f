// A person in a seat: taking it, choosing actions by keys or buttons, and how the game ended.

const page = document.getElementById("play");
const shown = { about: null, who: null, seat: null, game: null, seen: null, thinking: false,
  chosen: null, end: null, references: null, trouble: "", open: new Set() };

// A browser window is one person. It gets its seat back after a broken connection.
const key = sessionStorage.getItem("key") ?? crypto.getRandomValues(new Uint32Array(4)).join("-");
sessionStorage.setItem("key", key);

const connection = new Connection("/seat", take);
document.addEventListener("keydown", onKey);
document.addEventListener("keyup", (event) => {
  if (event.key === " " && event.target.dataset?.action !== undefined) event.preventDefault();
});

function take(news) {
  const way = { about: takeAbout, who: takeWho, sat: takeSat, refused: takeRefused, begin: takeBegin,
    step: takeStep, end: (one) => { shown.end = one; }, references: (one) => { shown.references = one; },
    elsewhere: takeElsewhere, failed: (one) => { shown.trouble = one.words; } };
  way[news.kind]?.(news);
  draw();
}

function takeAbout(news) {
  shown.about = news;
  const before = sessionStorage.getItem("seat");
  if (before !== null) connection.say({ kind: "sit", seat: Number(before), key });
}

function takeWho(news) { shown.who = news; }

function takeSat(news) {
  shown.seat = news.seat;
  shown.trouble = "";
  sessionStorage.setItem("seat", String(news.seat));
  shown.seen ??= shown.about.seats.findIndex((seat) => !seat.person);
}

function takeElsewhere() {
  connection.end();
  shown.trouble = "Your seat is played in another window. Reload this page to play here.";
}

function takeRefused(news) {
  sessionStorage.removeItem("seat");
  shown.seat = null;
  shown.trouble = news.words;
}

function takeBegin(news) {
  const { about } = shown;
  shown.end = null;
  shown.chosen = null;
  shown.game = { ...about, surprising: Math.log(about.actions.length),
    episodes: [{ number: 0, surprise: null, steps: [stepOf(news)], end: null }] };
}

function stepOf({ board, thoughts }) {
  const { drawn, ...shared } = board;
  return { board: drawn, shared, seats: thoughts };
}

function takeStep(news) {
  const [episode] = shown.game.episodes;
  const last = episode.steps.at(-1);
  last.seats = last.seats.map((seat, number) => ({ ...seat, ...news.seats[number] }));
  last.done = true;
  shown.chosen = null;
  if (news.over) {
    const { drawn, ...shared } = news.board;
    episode.end = { board: drawn, shared };
  } else {
    episode.steps.push(stepOf(news));
  }
}

// --- choosing -------------------------------------------------------------------------------------

function pending() {
  const step = shown.game?.episodes[0].steps.at(-1);
  return step && !step.done ? step : null;
}

function mine() {
  const record = pending()?.seats[shown.seat];
  return record?.alive ? record : null;
}

function choose(action) {
  const record = mine();
  if (!record || !record.legal.includes(action)) return;
  shown.chosen = action;
  connection.say({ kind: "choose", step: shown.game.episodes[0].steps.length - 1, action });
  draw();
}

const ARROWS = { "1,0": "ArrowRight", "-1,0": "ArrowLeft", "0,1": "ArrowDown", "0,-1": "ArrowUp", "0,0": " " };
const NAMES = { ArrowRight: "→", ArrowLeft: "←", ArrowDown: "↓", ArrowUp: "↑", " ": "space" };

// [action] the key that chooses it: arrows for moves, else a digit or a letter.
function keysOf(about) {
  const taken = new Set();
  const free = [..."123456789abcdefghijklmnopqrstuvwxyz"];
  const first = about.moves.map((move) => {
    const name = move ? ARROWS[move.join()] : undefined;
    if (!name || taken.has(name)) return null;
    taken.add(name);
    return name;
  });
  return first.map((name) => name ?? free.shift() ?? null);
}

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || !shown.about || shown.seat === null) return;
  const pressable = ["BUTTON", "SUMMARY", "SELECT", "INPUT", "A"].includes(event.target.tagName);
  // On an action's button the space bar is a key like others; Enter presses the button.
  const acts = event.target.dataset?.action !== undefined;
  if (pressable && (event.key === "Enter" || (event.key === " " && !acts))) return;
  if (event.key === "Enter" && shown.end) {
    again();
  } else {
    const action = keysOf(shown.about).indexOf(event.key);
    if (action < 0) return;
    choose(action);
  }
  event.preventDefault();
}

function again() {
  shown.chosen = null;
  connection.say({ kind: "again" });
}

// --- drawing --------------------------------------------------------------------------------------

function draw() {
  if (!shown.about) return;
  const focus = document.activeElement?.dataset?.focus;
  page.replaceChildren(
    html("h1", {}, `${shown.about.game}: ${shown.about.seats.map((seat) => seat.player).join(", ")}`),
    connection.sign, shown.trouble ? html("p", { class: "trouble", role: "alert" }, shown.trouble) : "",
    shown.seat === null ? welcome() : sitting());
  if (focus) page.querySelector(`[data-focus="${focus}"]`)?.focus();
}

function welcome() {
  const { about } = shown;
  const recorded = about.recorded === null ? "Nothing of the game is recorded."
    : `The game is recorded: boards, actions and rewards of whole games are kept in ${about.recorded}. ` +
      "No name and no address is kept.";
  const seats = shown.who?.seats ?? [];
  return html("section", { class: "card", id: "welcome" },
    html("h2", {}, "Take a seat"),
    html("p", { class: "recorded" }, html("strong", {}, recorded)),
    html("p", {}, "Everybody acts at the same time: the game waits for you, and you do not see what the " +
      "others are about to do."),
    html("p", { class: "controls" }, seats.map(({ seat, taken }) => html("button", { disabled: taken,
      "data-focus": `seat-${seat}`, onclick: () => connection.say({ kind: "sit", seat, key }) },
    disc(seat, about.seats[seat].colour), taken ? `seat ${seat} is taken` : `take seat ${seat}`))),
    html("h3", {}, "Who plays"), html("ul", {}, about.seats.map((seat, number) => html("li", {},
      disc(number, seat.colour), seat.player, seat.person ? " (a person)" : ""))),
    html("h3", {}, "Keys"), actionList());
}

function actionList() {
  const keys = keysOf(shown.about);
  return html("p", { class: "keys" }, shown.about.actions.map((name, action) => html("span", {},
    html("kbd", {}, NAMES[keys[action]] ?? keys[action] ?? "–"), ` ${name}`)));
}

function sitting() {
  const stage = html("div", { class: "stage" },
    html("div", { class: "card" }, html("div", { class: "board" }, boardNow()),
      html("p", { role: "status", id: "status" }, status()), actionButtons(), thinkingSwitch()),
    html("div", { class: "card" }, seatTable()));
  return html("div", { class: "columns" }, stage, html("div", { class: "cards" },
    shown.end ? endCard() : null, ...thoughts()));
}

function boardNow() {
  const [episode] = shown.game?.episodes ?? [];
  if (!episode) return html("p", { class: "faint" }, "The game has not begun.");
  const step = pending(), now = step ?? episode.end ?? episode.steps.at(-1);
  const own = step?.seats[shown.seat];
  if (now.board === null && own?.view?.planes) return drawOwnView(own.view);
  if (now.board === null && own?.view) {
    return html("p", {}, `What you see, as numbers: ${own.view.features.join(" ")}`);
  }
  const record = step?.seats[shown.seen];
  return drawBoard({ ...shown.game, ...now.shared }, now.board, { seat: shown.seat, record: null, step,
    plan: false, predictions: false, choose: see, ...overlay(step, record) });
}

// What the player that is looked at thinks, drawn on the board.
function overlay(step, record) {
  if (!shown.thinking || !step || !record) return {};
  return { seat: shown.seen, record, plan: true, predictions: true };
}

function see(seat) {
  shown.seen = seat;
  draw();
}

// Where views are partial, a person sees what a player in that seat would see.
function drawOwnView({ planes, size: [rows, columns] }) {
  const { about } = shown, seats = about.seats.length, own = seats * about.seat_planes;
  const sheet = svg("svg", { viewBox: `-0.05 -0.05 ${columns + 0.1} ${rows + 0.1}`, role: "img",
    "aria-label": "what you see" });
  sheet.append(svg("rect", { width: columns, height: rows, fill: "var(--floor)", stroke: "var(--wall)",
    "stroke-width": 0.04 }));
  const legend = [];
  planes.forEach((cells, index) => {
    const seat = index < own ? (shown.seat + Math.floor(index / about.seat_planes)) % seats : null;
    const colour = seat === null ? candidateColour(index - own) : about.seats[seat].colour;
    if (seat === null) legend.push([about.planes[index] ?? `plane ${index}`, colour]);
    for (const [row, column, value = 1] of cells) {
      const opacity = Math.max(0.2, Math.min(1, Math.abs(value)));
      sheet.append(seat === null
        ? svg("rect", { x: column + 0.12, y: row + 0.12, width: 0.76, height: 0.76, fill: colour, opacity })
        : svg("circle", { cx: column + 0.5, cy: row + 0.5, r: 0.4, fill: colour, opacity }));
      if (seat !== null) {
        sheet.append(svg("text", { x: column + 0.5, y: row + 0.65, "text-anchor": "middle", "font-size": 0.45,
          "font-weight": 700, fill: inkOn(colour) }, String(seat)));
      }
    }
  });
  return html("div", {}, sheet, html("p", { class: "legend" }, legend.map(([name, colour]) =>
    html("span", {}, svg("svg", { viewBox: "0 0 22 8" }, svg("rect", { width: 22, height: 8, fill: colour })),
      ` ${name}`))));
}

function status() {
  const { who, end } = shown;
  if (!shown.game) {
    const empty = (who?.seats ?? []).filter((seat) => !seat.taken).map((seat) => seat.seat);
    return empty.length ? `Waiting for a person in seat ${empty.join(" and ")}.` : "The players get ready …";
  }
  if (end) return "The game is over.";
  const away = (who?.seats ?? []).filter((seat) => !seat.taken).map((seat) => seat.seat);
  if (away.length) return `The person in seat ${away.join(" and ")} is gone. The game waits.`;
  if (!pending()) return "The game ends …";
  if (!mine()) return "You have left the game. The others go on.";
  if (shown.chosen === null) return "Your move.";
  const others = (who?.awaited ?? []).filter((seat) => seat !== shown.seat);
  return others.length ? `Waiting for seat ${others.join(" and ")}.` : "All have chosen …";
}

function actionButtons() {
  const record = mine(), keys = keysOf(shown.about);
  return html("div", { class: "controls actions" }, shown.about.actions.map((name, action) => html("button", {
    "data-focus": `action-${action}`, "data-action": action, disabled: !record?.legal.includes(action),
    "aria-pressed": String(shown.chosen === action), onclick: () => choose(action) },
  name, " ", html("kbd", {}, NAMES[keys[action]] ?? keys[action] ?? ""))));
}

function thinkingSwitch() {
  if (!shown.about.thinking) return null;
  return html("p", {}, html("label", { class: "switch" }, html("input", { type: "checkbox",
    checked: shown.thinking, "data-focus": "thinking", onchange: (event) => {
      shown.thinking = event.target.checked;
      connection.say({ kind: "thinking", show: shown.thinking });
      draw();
    } }), "show what the others think"));
}

function seatTable() {
  const steps = shown.game?.episodes[0].steps ?? [], last = steps.filter((step) => step.done).at(-1);
  const head = html("tr", {}, ["player", "did"].map((word) => html("th", {}, word)),
    ["got", "so far"].map((word) => html("th", { class: "number" }, word)));
  const rows = shown.about.seats.map(({ player, colour }, seat) => {
    const total = steps.reduce((sum, step) => sum + (step.done ? step.seats[seat].reward ?? 0 : 0), 0);
    const left = (pending() ?? last)?.seats[seat].alive === false;
    const did = last?.seats[seat];
    return html("tr", { class: left ? "gone" : "" },
      html("td", {}, html("button", { "data-focus": `see-${seat}`, "data-seat": seat,
        "aria-pressed": String(shown.thinking && seat === shown.seen), onclick: () => see(seat) },
      disc(seat, colour, left), seat === shown.seat ? "you" : player)),
      html("td", {}, did?.alive ? shown.about.actions[did.action] : left ? "has left" : ""),
      html("td", { class: "number" }, did?.reward ? number(did.reward) : ""),
      html("td", { class: "number" }, number(total)));
  });
  return html("table", { class: "seats" }, head, ...rows);
}

function thoughts() {
  if (!shown.thinking || !shown.game) return [];
  const { game, seen } = shown, [episode] = game.episodes;
  const at = episode.steps.length - 1, step = episode.steps[at];
  if (seen < 0 || seen === shown.seat || game.seats[seen].person) {
    return [html("section", { class: "card" }, html("p", {}, "Click on another player to see its thoughts."))];
  }
  const view = { seat: seen, record: step.seats[seen], step, breaks: [], open: shown.open,
    timeline: episode.steps, later: episode.steps.slice(at), at, pick: () => {},
    remember: (name, open) => { if (open) shown.open.add(name); else shown.open.delete(name); } };
  const who = html("section", { class: "card", id: "who" }, html("h2", { style: "display: flex; gap: 0.4rem" },
    disc(seen, game.seats[seen].colour), `Seat ${seen}: ${game.seats[seen].player}`));
  return [who, ...panels({ ...game, ...step.shared }, view)];
}

function games(count) { return `${count} game${count === 1 ? "" : "s"}`; }

function endCard() {
  const { end, about } = shown;
  const rows = about.seats.map((seat, index) => html("tr", {},
    html("td", { class: "named" }, disc(index, seat.colour), index === shown.seat ? "you" : seat.player),
    html("td", { class: "number" }, number(end.rewards[index])),
    html("td", { class: "number" }, number(end.means[index]))));
  const waits = (shown.who?.seats ?? []).find((seat) => seat.seat === shown.seat)?.ready;
  return html("section", { class: "card", id: "end" }, html("h2", {}, "How it went"),
    html("table", { class: "seats" }, html("tr", {}, html("th", {}, "player"),
      html("th", { class: "number" }, "this game"), html("th", { class: "number" }, `mean of ${games(end.number)}`)), ...rows),
    beside(), end.unrecorded ? html("p", { class: "trouble" }, end.unrecorded) : null,
    html("p", { class: "controls" },
      html("button", { id: "again", "data-focus": "again", disabled: waits, onclick: again },
        waits ? "waiting for the others" : "play again", waits ? null : html("kbd", {}, "Enter")),
      about.thinking ? html("a", { href: end.replay, target: "_blank", rel: "noopener" },
        "replay of this game, with what the others thought") : null));
}

// The mean reward of people in the seat beside that of players there, with the same co-players.
function beside() {
  const { references, end, seat } = shown;
  if (!references) return html("p", { class: "faint" }, "What other players get in your seat is being played …");
  const rows = [{ name: "people", value: end.means[seat], chosen: true },
    ...references.players.map((one) => ({ name: one.player, value: one.seats[seat].reward,
      error: one.seats[seat].stderr }))].sort((one, other) => other.value - one.value);
  const low = Math.min(0, ...rows.map((row) => row.value)), high = Math.max(1e-9, ...rows.map((row) => row.value));
  return html("div", { id: "beside" }, html("h3", {}, "In your seat, with the same co-players"),
    bars(rows.map((row) => ({ name: row.name, share: (row.value - low) / (high - low), text: number(row.value),
      more: row.error === undefined ? "" : `± ${number(row.error)}`, chosen: row.chosen })),
    ["player", "mean reward", "", "error"]),
    html("p", { class: "faint" }, `People: ${games(end.number)} since the server began. Others: ` +
      `${games(references.players[0]?.episodes ?? 0)} each, ` +
      "with the standard error." + (references.left ? ` ${references.left} more are being played …` : "")));
}
