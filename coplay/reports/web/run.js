// The page of a run. `draw(data)` shows what `run_data` of coplay/reports/run_page.py gives. Called
// again with newer data it changes what is different; what a reader has opened or hidden stays.

const MADE = new Map(); // key -> what was made for it: plots, unfolded groups, drawn parts

function kept(key, make) {
  if (!MADE.has(key)) MADE.set(key, make());
  return MADE.get(key);
}

function draw(data, place = document.getElementById("run")) {
  const parts = [
    ["top", topPart, [data.name, data.step, data.finished, data.notes, data.player, data.game]],
    ["curve", curvePart, null],
    ["models", (d) => groupsPart(d, "Models of others and of the world", true), null],
    ["next", nextPart, [data.commands, data.files.map((file) => file.name)]],
    ["metrics", (d) => groupsPart(d, "Metrics", false), null],
    ["made", madePart, data.made],
    ["files", filesPart, data.files],
  ];
  for (const [name, make, watched] of parts) {
    const section = kept(`section ${name}`, () => {
      const made = html("section", { id: name });
      place.append(made);
      return made;
    });
    const seen = watched === null ? null : JSON.stringify(watched);
    if (seen !== null && section.dataset.seen === seen) continue;
    if (seen !== null) section.dataset.seen = seen;
    const nodes = make(data).filter((node) => node !== null);
    if (nodes.some((node) => node.parentNode !== section) || nodes.length !== section.childNodes.length) {
      section.replaceChildren(...nodes);
    }
  }
}

function card(title, ...children) {
  return html("div", { class: "card" }, html("h2", {}, title), ...children);
}

function table(titles, rows, numbers = []) {
  const kind = (index) => ({ class: numbers.includes(index) ? "number" : null });
  return html("div", { class: "scroll" }, html("table", {},
    html("thead", {}, html("tr", {},
      titles.map((title, index) => html("th", { scope: "col", ...kind(index) }, title)))),
    html("tbody", {}, rows.map((row) => html("tr", {},
      row.map((cell, index) => html("td", kind(index), cell)))))));
}

function counted(value) { return value.toLocaleString("en-GB"); }

function plural(count, word) { return `${counted(count)} ${word}${count === 1 ? "" : "s"}`; }

// --- what it is -----------------------------------------------------------------------------------

function topPart(data) {
  const share = data.steps ? Math.min(1, data.step / data.steps) : 0;
  const state = data.finished ? "finished" : `${Math.floor(100 * share)} % done`;
  const summary = data.summary;
  const words = [`${data.player} on ${data.game}`, data.seating || `${data.player} in every seat`,
    `${counted(data.step)} of ${counted(data.steps)} steps`, plural(data.seeds.length, "seed")];
  if (summary) words.push(`${shortValue(summary.seconds)} s of training`);
  return [html("header", { class: "top" },
    html("h1", {}, data.name),
    html("p", {}, html("span", { class: data.finished ? "badge done" : "badge" }, state),
      words.join(" · ")),
    ...data.notes.map((note) => html("p", { class: "note" }, `Note: ${note}`)))];
}

// --- learning curve and results -------------------------------------------------------------------

function curvePart(data) {
  const halves = kept("halves", () => html("div", { class: "halves" }));
  const left = kept("left", () => html("div", {}));
  const right = kept("right", () => html("div", {}));
  if (!halves.childNodes.length) halves.append(left, right);
  const curves = learningCurve(data);
  if (!curves.parentNode) left.append(curves);
  const during = evaluationCurves(data);
  if (during && !during.parentNode) left.append(during);
  const seen = JSON.stringify([data.summary, data.evaluations]);
  if (right.dataset.seen !== seen) {
    right.dataset.seen = seen;
    right.replaceChildren(...resultCards(data));
  }
  return [halves];
}

function learningCurve(data) {
  const curve = data.curve, many = data.seeds.length > 1;
  const plot = kept("plot reward", () => new Plot("Reward per episode", 340));
  const words = many
    ? "Interquartile means over the seeds with 95 % bootstrap intervals."
    : "One seed: nothing is known of the chance in training.";
  const made = kept("card reward", () => card("Reward per episode over training",
    html("p", { class: "faint" }, words), plot.node));
  const series = [];
  curve.seats.forEach((seat, index) => {
    if (seat) series.push({ label: `seat ${index}`, colour: data.colours[index], dash: dashOf(index),
      band: 0.09, ...seat });
  });
  for (const mean of curve.seeds) {
    series.push({ label: "the team, seed by seed", colour: "--faint", width: 1, hidden: true, mean });
  }
  if (curve.team) series.unshift({ label: "team", colour: "--ink", width: 2.8, ...curve.team });
  plot.show(curve.steps, series);
  return made;
}

function evaluationCurves(data) {
  const found = data.evaluations;
  if (!found) return null;
  const grid = kept("evaluations", () => html("div", { class: "plots" }));
  for (const [name, values] of Object.entries(found.measures)) {
    const plot = kept(`plot evaluation ${name}`, () => {
      const made = new Plot(name, 180);
      grid.append(html("div", { class: "plot" }, html("h3", {}, name), made.node));
      return made;
    });
    plot.show(found.steps, [{ label: name, colour: "--bar", ...values }]);
  }
  return kept("card evaluations", () => card("Evaluations during training",
    html("p", { class: "faint" }, `${plural(found.episodes ?? 0, "episode")} each, for each seed.`), grid));
}

function resultCards(data) {
  const summary = data.summary;
  if (!summary) return [card("Final evaluation", html("p", {}, "The run is not finished yet."))];
  const fixed = (value, digits = 3) => Number(value).toFixed(digits);
  const rows = summary.seats.map((seat, index) => [disc(index, data.colours[index]),
    seat.player, fixed(seat.reward), `± ${fixed(seat.stderr)}`, fixed(seat.steps, 1)]);
  rows.push([html("b", {}, "team"), "", html("b", {}, fixed(summary.team_mean)), "", ""]);
  for (const [name, score] of Object.entries(summary.scores ?? {})) rows.push([name, "", fixed(score), "", ""]);
  const cards = [card("Final evaluation",
    html("p", { class: "faint" }, `${plural(summary.episodes, "episode")}; reward per episode, with its standard error.`),
    table(["seat", "player", "reward", "error", "steps"], rows, [2, 3, 4]))];
  if (summary.seeds) {
    const [low, high] = summary.interval;
    cards.push(card("Seeds",
      html("p", {}, `Interquartile mean ${fixed(summary.iqm)}, 95 % interval ${fixed(low)} to ${fixed(high)}.`),
      html("p", { class: "seeds" }, summary.seeds.map((one) => html("span", {},
        html("span", { class: "faint" }, `seed ${one.seed} `), fixed(one.team_mean))))));
  }
  return cards;
}

// --- metrics --------------------------------------------------------------------------------------

function groupsPart(data, title, model) {
  const groups = data.groups.filter((group) => group.model === model);
  if (!groups.length) return [];
  const made = kept(`card ${title}`, () => card(title, html("p", { class: "faint" },
    data.seeds.length > 1 ? "Means over the seeds. Bands: from the lowest to the highest seed."
      : "Curves over training, one for each seat.")));
  groups.forEach((group) => {
    const details = kept(`group ${group.title}`, () => {
      const grid = html("div", { class: "plots" });
      const one = html("details", { class: "group", open: model, ontoggle: () => one.fill() },
        html("summary", {}, group.title), grid);
      one.fill = () => { if (one.open) fillGroup(one.data, one.group, grid); };
      made.append(one);
      return one;
    });
    Object.assign(details, { data, group });
    details.fill();
  });
  return [made];
}

function fillGroup(data, group, grid) {
  for (const metric of group.metrics) {
    const plot = kept(`plot ${group.title} ${metric.name}`, () => {
      const made = new Plot(metric.name, 180);
      grid.append(html("div", { class: "plot" }, html("h3", {}, metric.name),
        html("p", {}, metric.words ?? ""), made.node));
      return made;
    });
    plot.show(data.curve.steps, metric.curves.map((one, index) => {
      const seat = /^seat (\d+)$/.exec(one.label);
      const number = seat ? Number(seat[1]) : index;
      return { ...one, colour: seat ? data.colours[number] ?? "--bar" : "--bar", dash: dashOf(number) };
    }));
  }
}

// --- how it was made, and how to go on ------------------------------------------------------------

function commandLine(command) {
  const code = html("code", {}, command);
  const copy = () => navigator.clipboard?.writeText(command).then(() => { button.textContent = "copied"; });
  const button = html("button", { type: "button", onclick: copy, "aria-label": `copy: ${command}` }, "copy");
  return html("div", { class: "command" }, code, navigator.clipboard ? button : null);
}

function fileLink(name, words = name) {
  return html("a", { href: name.split("/").map(encodeURIComponent).join("/") }, words);
}

function nextPart(data) {
  const names = data.files.map((file) => file.name);
  const looks = [["replay.html", "An episode of these players, step by step, with what they thought"],
    ["episode.gif", "an episode as a film"]].filter(([name]) => names.includes(name));
  return [card("Go on",
    looks.length ? html("p", {}, looks.flatMap(([name, words], index) =>
      [index ? " · " : "", fileLink(name, words)])) : null,
    ...data.commands.flatMap((one) => [html("p", { class: "faint" }, one.words), commandLine(one.command)]))];
}

function madePart(data) {
  const made = data.made, facts = Object.entries({ ...made.versions, ...made.machine });
  const value = (one) => html("code", {}, one === null ? "none" : one === "" ? "empty" : JSON.stringify(one));
  const known = made.fields.some((field) => field.default !== null);
  return [card("What was run",
    made.command ? commandLine(made.command) : null,
    made.fields.length ? html("div", {}, html("h3", {}, known ? "Fields that are not at their defaults" : "Fields"),
      table(["field", "value", ...(known ? ["default"] : [])], made.fields.map((field) =>
        [html("code", {}, field.path), value(field.value), ...(known ? [value(field.default)] : [])]))) : null,
    facts.length ? html("p", { class: "faint" }, facts.map(([name, word]) => `${name} ${word}`).join(" · ")) : null,
    made.history.length ? table(["time", "event", "step", "coplay", ""], made.history.map((row) =>
      [row.time, row.event, row.step, row.coplay, row.what].map((cell) => (cell === null ? ""
        : typeof cell === "object" ? JSON.stringify(cell) : String(cell)))), [2]) : null)];
}

function filesPart(data) {
  const size = (bytes) => (bytes < 1000 ? `${bytes} B` : bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB`
    : `${(bytes / 1e6).toFixed(1)} MB`);
  return [card("Files", table(["file", "size", "what"],
    data.files.map((file) => [fileLink(file.name), size(file.bytes), file.words]), [1]))];
}
