// All runs of a folder: a filter, ticks, and the curves of the ticked runs over each other.

// Okabe and Ito's colours, without yellow: all readers can tell them apart.
const LINES = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#B8860B", "#7F7F7F", "#8B3FBF"];
const MOST = 12;

const place = document.getElementById("list");
const shown = { runs: [], pages: [], filter: "", ticked: [], metric: "team_mean", curves: new Map() };

const filter = html("input", { type: "search", id: "filter", placeholder: "name, player, game, state …",
  oninput: (event) => { shown.filter = event.target.value; drawRows(); } });
const count = html("p", { class: "faint", role: "status" });
const rows = html("tbody", {});
const metric = html("select", { id: "metric", onchange: (event) => {
  shown.metric = event.target.value;
  shown.curves.clear();
  ask();
} });
const plot = new Plot("Curves of the ticked runs", 340);
const compared = html("section", { class: "card", id: "compared", hidden: true },
  html("h2", {}, "The ticked runs"),
  html("p", {}, html("label", { for: "metric" }, "Metric "), metric),
  plot.node,
  html("p", { class: "faint" }, "Means over the seeds. Bands: from the lowest to the highest seed."));
const others = html("section", { class: "card", id: "pages", hidden: true });
const connection = new Connection("/live", take, wanted);

const HEADS = ["compare", "run", "player", "game", "seating", "seeds", "steps", "state", "team mean"];
const NUMBERS = ["seeds", "steps", "team mean"];
place.append(
  html("h1", {}, `Runs in ${place.dataset.folder}`), connection.sign, compared,
  html("section", { class: "card" },
    html("p", { class: "filter" }, html("label", { for: "filter" }, "Show only "), filter), count,
    html("table", { class: "runs" }, html("thead", {}, html("tr", {},
      HEADS.map((head) => html("th", { scope: "col", class: NUMBERS.includes(head) ? "number" : null }, head)))),
    rows)),
  others);

function wanted() { return { ticked: shown.ticked, metric: shown.metric, page: null }; }

function ask() {
  connection.say(wanted());
  drawCompared();
}

function take(news) {
  if (news.kind === "runs") {
    shown.runs = news.runs;
    shown.pages = news.pages;
    drawRows();
    drawPages();
  } else if (news.kind === "curve" && news.metric === shown.metric) {
    shown.curves.set(news.run, news);
    drawCompared();
  }
}

function drawRows() {
  const words = shown.filter.toLowerCase().split(/\s+/).filter((word) => word);
  const text = (run) => [run.run, run.player, run.game, run.seating, run.state].join(" ").toLowerCase();
  const found = shown.runs.filter((run) => words.every((word) => text(run).includes(word)))
    .sort((one, other) => (other.state === "running") - (one.state === "running"));
  count.textContent = shown.runs.length === 0 ? "There is no run here yet."
    : `${found.length} of ${shown.runs.length} runs`;
  const made = found.map(row);
  const same = made.length === rows.childNodes.length && made.every((one, at) => one === rows.childNodes[at]);
  if (!same) rows.replaceChildren(...made);
}

// Rows stay where they are, and only what is different changes: nothing moves under a mouse.
const ROWS = new Map();

function row(run) {
  if (!ROWS.has(run.name)) {
    const tick = html("input", { type: "checkbox", "aria-label": `compare ${run.run}`,
      onchange: (event) => toggle(run.name, event.target.checked) });
    const cells = Object.fromEntries(HEADS.map((head) => [head, html("td", { "data-head": head,
      class: NUMBERS.includes(head) ? "number" : null })]));
    cells.compare.append(tick);
    ROWS.set(run.name, { tick, cells, told: {}, node: html("tr", {}, Object.values(cells)) });
  }
  const { tick, cells, told, node } = ROWS.get(run.name);
  const chosen = shown.ticked.includes(run.name);
  tick.checked = chosen;
  tick.disabled = (shown.ticked.length >= MOST && !chosen) || run.address === null || run.damaged !== null;
  for (const [head, [made, ...from]] of Object.entries(contents(run))) {
    const key = JSON.stringify(from);
    if (told[head] === key) continue;
    told[head] = key;
    cells[head].replaceChildren(made());
  }
  return node;
}

// What stands in each cell: how it is made, and what from.
function contents(run) {
  const amount = (value) => (value === null ? "" : value.toLocaleString("en-GB"));
  const plain = (value) => [() => value ?? "", value];
  const link = run.address && !run.damaged;
  return {
    run: [() => (link ? html("a", { href: run.address }, run.run) : run.run), run.run, link],
    player: plain(run.player), game: plain(run.game),
    seating: [() => (run.damaged ? html("span", { class: "note" }, run.damaged) : run.seating), run.damaged,
      run.seating],
    seeds: plain(amount(run.seeds)),
    steps: [() => (run.damaged ? "" : progress(run, amount)), run.step, run.steps, run.finished],
    state: [() => html("span", { class: `badge ${run.state}` }, run.state), run.state],
    "team mean": plain(run.team_mean === null ? "–" : run.team_mean.toFixed(3)),
  };
}

function progress(run, amount) {
  const words = run.finished ? amount(run.step) : `${amount(run.step)} of ${amount(run.steps)}`;
  const bar = run.finished ? null : html("progress", { max: run.steps, value: Math.min(run.step, run.steps),
    "aria-label": "done" });
  return html("span", { class: "progress" }, words, bar);
}

function toggle(name, on) {
  shown.ticked = shown.ticked.filter((one) => one !== name);
  if (on) shown.ticked.push(name);
  else shown.curves.delete(name);
  ask();
  drawRows();
}

function drawCompared() {
  compared.hidden = shown.ticked.length === 0;
  if (compared.hidden) return;
  const curves = shown.ticked.flatMap((name) => shown.curves.get(name) ?? []);
  const names = [...new Set([shown.metric, ...curves.flatMap((curve) => curve.metrics)])].sort();
  if (names.join() !== [...metric.options].map((option) => option.value).join()) {
    metric.replaceChildren(...names.map((name) => html("option", { value: name }, name)));
  }
  metric.value = shown.metric;
  // The runs have rows at different steps: each is drawn where it has them.
  const steps = [...new Set(curves.flatMap((curve) => curve.steps))].sort((one, other) => one - other);
  const at = new Map(steps.map((step, index) => [step, index]));
  const spread = (curve, values) => {
    const found = new Array(steps.length).fill(null);
    curve.steps.forEach((step, index) => { found[at.get(step)] = values[index]; });
    return found;
  };
  const single = curves.length > 4;
  plot.show(steps, curves.map((curve) => {
    const index = shown.ticked.indexOf(curve.run);
    const run = shown.runs.find((one) => one.name === curve.run);
    const line = { label: run?.run ?? curve.run, colour: LINES[index % LINES.length], dash: dashOf(index),
      mean: spread(curve, curve.mean) };
    // Many bands over each other can no longer be told apart.
    if (!curve.low || single) return line;
    return { ...line, low: spread(curve, curve.low), high: spread(curve, curve.high) };
  }));
}

function drawPages() {
  others.hidden = shown.pages.length === 0;
  others.replaceChildren(html("h2", {}, "Other pages in this folder"),
    html("ul", {}, shown.pages.map((page) => html("li", {}, html("a", { href: page.address }, page.name)))));
}
