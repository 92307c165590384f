// What a seat thought at a step. A player that lacks a part gets no panel for it.

function panels(replay, view) {
  const { record } = view;
  if (!record) return [html("section", { class: "card" }, html("p", {}, "The episode is over."))];
  if (!record.alive) {
    const words = `Seat ${view.seat} has left the game.`;
    return [html("section", { class: "card" }, html("p", {}, words))];
  }
  const all = [beliefs, predictions, plan, imagined, world, policy, context, ownView];
  const made = all.map((panel) => panel(replay, view));
  return made.filter((panel) => panel !== null);
}

function card(name, title, ...children) {
  return html("section", { class: "card", id: name, "aria-label": title },
    html("h2", {}, title), ...children);
}

// [index, seat] of the co-players, the next seat first, as records have them.
function coPlayers(replay, seat) {
  const seats = replay.seats.length;
  return Array.from({ length: seats - 1 }, (_, index) => [index, (seat + 1 + index) % seats]);
}

function who(replay, seat, gone) {
  return [disc(seat, replay.seats[seat].colour, gone), replay.seats[seat].player,
    gone ? html("span", { class: "faint" }, "has left") : null];
}

function beliefs(replay, view) {
  const { seat, record, step } = view, names = replay.seats[seat].candidates;
  if (!record.belief || !names) return null;
  const known = replay.goals ? names.map((name) => replay.goals.indexOf(name)) : names.map(() => -1);
  const parts = [];
  for (const [index, other] of coPlayers(replay, seat)) {
    const theirs = step.seats[other], gone = !theirs.alive;
    const truth = theirs.goal ?? -1;
    parts.push(html("h3", {}, who(replay, other, gone), truth >= 0 ? html("span", { class: "faint" },
      `was after: ${replay.goals[truth]}`) : null));
    if (gone) continue;
    parts.push(bars(likeliest(names.map((name, candidate) => {
      const share = record.belief[index][candidate];
      return { name, share, text: number(share), colour: candidateColour(candidate),
        chosen: truth >= 0 && known[candidate] === truth };
    }))));
    const series = names.map((label, candidate) => ({ label, colour: candidateColour(candidate),
      dash: dash(candidate), values: view.timeline.map((one) =>
        one.seats[other].alive ? one.seats[seat].belief?.[index][candidate] ?? null : null) }));
    const strip = view.timeline.map((one) => {
      const goal = one.seats[other].goal ?? -1, candidate = goal < 0 ? -1 : known.indexOf(goal);
      return candidate < 0 ? null : candidateColour(candidate);
    });
    parts.push(curve({ label: `belief about seat ${other} over the steps`, series, at: view.at,
      low: 0, high: 1, strip: strip.some((one) => one) ? strip : null, breaks: view.breaks,
      pick: view.pick }));
  }
  const lines = names.map((label, candidate) => ({ label, colour: candidateColour(candidate),
    dash: dash(candidate) }));
  const marked = known.some((goal) => goal >= 0);
  return card("beliefs", "Beliefs", ...parts, legend(lines), codeMap(replay, view),
    marked ? html("p", { class: "faint" }, "▸ and the strip below a curve: what it was after, known " +
      "in hindsight.") : null);
}

// Of many candidates the most probable ones, and the rest as one.
function likeliest(rows, most = 5) {
  if (rows.length <= most) return rows;
  const sorted = [...rows].sort((one, other) => other.share - one.share);
  const rest = sorted.slice(most - 1).reduce((sum, row) => sum + row.share, 0);
  const name = `the other ${rows.length - most + 1}`;
  return [...sorted.slice(0, most - 1), { name, share: rest, text: number(rest),
    colour: "var(--faint)" }];
}

// Prototypes where their codes lie; the co-players at the mean of the belief about them.
function codeMap(replay, { seat, record, step }) {
  const places = replay.seats[seat].map;
  if (!places) return null;
  const reach = Math.max(1e-9, ...places.flat().map(Math.abs)) * 1.2;
  const x = (value) => 100 + (95 * value) / reach, y = (value) => 70 - (65 * value) / reach;
  const drawn = svg("svg", { viewBox: "0 0 200 140", class: "chart map", role: "img",
    "aria-label": "map of the prototypes' codes" });
  drawn.append(svg("rect", { x: 0.5, y: 0.5, width: 199, height: 139, fill: "none",
    stroke: "var(--line)" }));
  places.forEach(([a, b], index) => drawn.append(
    svg("circle", { cx: x(a), cy: y(b), r: 3.5, fill: candidateColour(index) }),
    svg("text", { x: x(a) + 5, y: y(b) + 3 }, String(index))));
  const taken = [];
  for (const [index, other] of coPlayers(replay, seat)) {
    if (!step.seats[other].alive) continue;
    const mean = [0, 1].map((axis) =>
      record.belief[index].reduce((sum, share, at) => sum + share * places[at][axis], 0));
    const colour = replay.seats[other].colour, cy = y(mean[1]);
    // Those that are believed alike stand side by side.
    let cx = x(mean[0]);
    while (taken.some(([a, b]) => Math.hypot(cx - a, cy - b) < 11)) cx += 4;
    taken.push([cx, cy]);
    drawn.append(svg("circle", { cx, cy, r: 6, fill: colour, stroke: "var(--card)" }),
    svg("text", { x: cx, y: cy + 3, "text-anchor": "middle",
      style: `fill: ${inkOn(colour)}; font-size: 8px; font-weight: 700` }, String(other)));
  }
  return html("div", {}, html("h3", {}, "Map of the codes"), drawn,
    html("p", { class: "faint" }, "Small dots: prototypes on two principal axes. Discs: co-players " +
      "at the mean of the belief."));
}

function predictions(replay, view) {
  const { seat, record, step } = view;
  if (!record.predicted) return null;
  const parts = [];
  for (const [index, other] of coPlayers(replay, seat)) {
    const theirs = step.seats[other];
    if (!theirs.alive) continue;
    // A step that is not played yet has surprised nobody.
    const surprise = record.surprise?.[index] ?? null;
    parts.push(html("h3", {}, who(replay, other, false), surprise === null ? null : html("span", {
      class: surprise > replay.surprising ? "" : "faint" },
    `surprise ${number(surprise)}` + (surprise > replay.surprising ? " ⚠" : ""))));
    const rows = record.predicted[index].map((share, action) => ({ name: replay.actions[action],
      share, text: number(share), colour: replay.seats[other].colour,
      chosen: action === theirs.action }));
    parts.push(bars(rows.filter((row) => row.chosen || row.share >= 0.01)));
  }
  const series = coPlayers(replay, seat).map(([index, other]) => ({
    label: `seat ${other}`, colour: replay.seats[other].colour, dash: dash(index),
    values: view.timeline.map((one) => one.seats[seat].surprise?.[index] ?? null) }));
  const most = Math.max(replay.surprising * 1.2,
    ...series.flatMap((one) => one.values.filter((value) => value !== null)));
  return card("predictions", "Predictions", ...parts,
    html("h3", {}, "Surprise ", html("span", { class: "faint" }, "−log p of what was done")),
    curve({ label: "surprise over the steps", series, at: view.at, low: 0, high: most,
      line: replay.surprising, breaks: view.breaks, pick: view.pick }),
    legend(series), html("p", { class: "faint" }, "▸ what it then did. Dotted line: the surprise of " +
      "who expects every action alike."));
}

function plan(replay, view) {
  const { record } = view;
  if (!record.q) return null;
  const most = Math.max(1, ...record.visits);
  const rows = record.legal.map((action) => ({ name: replay.actions[action],
    share: record.visits[action] / most, text: String(record.visits[action]),
    more: number(record.q[action]), colour: "var(--plan)", chosen: action === record.action }));
  const best = record.variation.map((action) => replay.actions[action]).join(" → ");
  return card("plan", "Plan", bars(rows, ["action", "visits", "", "Q"]),
    best ? html("p", {}, html("strong", {}, "Tried most: "), best) : null,
    record.tree.length ? html("details", { class: "tree", open: view.open.has("tree"),
      ontoggle: (event) => view.remember("tree", event.target.open) },
    html("summary", {}, "The tree"), record.tree.map((node) => branch(replay, node))) : null);
}

function branch(replay, [action, visits, q, prior, below]) {
  const words = html("span", {}, html("strong", {}, replay.actions[action]),
    html("span", { class: "faint" }, ` ${visits} visits · Q ${number(q)} · prior ${number(prior)}`));
  if (!below.length) return html("div", { class: "leaf" }, words);
  return html("details", {}, html("summary", {}, words), below.map((node) => branch(replay, node)));
}

// The boards that a planner over its world model imagines, over those that came.
function imagined(replay, view) {
  const boards = view.record.imagined, shape = view.record.view?.size;
  if (!boards?.length || !shape) return null;
  const rows = boards.map((planes, index) => {
    const later = view.later[index + 1]?.seats[view.seat].view?.planes;
    const right = later && JSON.stringify(planes) === JSON.stringify(later);
    return html("div", { class: "pair" },
      html("p", {}, `in ${index + 1}: ${replay.actions[view.record.variation[index]]}`,
        later ? html("span", { class: "faint" }, right ? " · so it came" : " · came otherwise") : null),
      planesBoard(replay, view.seat, shape, planes, "imagined board"),
      later ? planesBoard(replay, view.seat, shape, later, "true board")
        : html("p", { class: "faint" }, "did not come: the episode was over, or it had left"));
  });
  return card("imagined", "Imagined boards", html("div", { class: "pairs" }, rows),
    html("p", { class: "faint" }, "Above: what its world model makes of the plan, if the others do " +
      "what is most probable. Below: what came."));
}

// What the world model said of the step that was then played.
function world(replay, view) {
  const found = view.record.world, shape = view.record.view?.size;
  if (!found || !shape) return null;
  const errors = view.timeline.map((one) => one.seats[view.seat].world?.error ?? null);
  const faults = view.timeline.map((one) =>
    (one.seats[view.seat].world?.impossible.length ? "var(--mark)" : null));
  const fact = (name, words) => html("tr", {}, html("th", { scope: "row" }, name),
    html("td", {}, words));
  const leaves = view.later[1] ? !view.later[1].seats[view.seat].alive : null;
  return card("world", "World model",
    html("div", { class: "pairs" },
      html("div", { class: "pair" }, html("p", {}, "predicted"),
        planesBoard(replay, view.seat, shape, found.board, "predicted board")),
      html("div", { class: "pair" }, html("p", {}, "what came"),
        planesBoard(replay, view.seat, shape, found.true, "true board"))),
    html("table", { class: "facts" },
      fact("reward", `${number(found.reward)} predicted, ${number(view.record.reward)} came`),
      fact("it leaves", `${number(found.leaves)} predicted` +
        (leaves === null ? "" : leaves ? ", it left" : ", it stayed")),
      found.impossible.length ? fact("impossible", found.impossible.join(", ")) : null),
    html("h3", {}, "Squared error ", html("span", { class: "faint" }, found.error.toExponential(1))),
    curve({ label: "error of the world model over the steps", at: view.at, low: 0,
      high: Math.max(1e-6, ...errors.filter((one) => one !== null)),
      series: [{ label: "error", colour: replay.seats[view.seat].colour, dash: null, values: errors }],
      strip: faults.some((one) => one) ? faults : null, breaks: view.breaks, pick: view.pick }),
    html("p", { class: "faint" }, "The next board, from what everybody then did; fainter: less probable. " +
      (faults.some((one) => one) ? "Strip: the most probable board cannot happen." : "")));
}

// What a hypernetwork makes weights from: a line of cells for each number, a column for each step.
function context(replay, view) {
  const now = view.record.context;
  if (!now) return null;
  const columns = view.timeline.map((one) => one.seats[view.seat].context ?? null);
  const reach = Math.max(1e-9, ...columns.flat().map((value) => Math.abs(value ?? 0)));
  const width = 320, height = 8 * now.length, wide = width / Math.max(2, columns.length);
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img",
    preserveAspectRatio: "none", style: `height: ${height}px`,
    "aria-label": "the context over the steps" });
  columns.forEach((values, step) => (values ?? []).forEach((value, row) => drawn.append(
    svg("rect", { x: step * wide, y: 8 * row, width: wide, height: 7,
      fill: value < 0 ? "var(--less)" : "var(--more)", opacity: Math.abs(value) / reach }))));
  if (view.at >= 0) {
    drawn.append(svg("rect", { x: view.at * wide, y: 0, width: wide, height, fill: "none",
      stroke: "var(--ink)", "stroke-width": 1, "vector-effect": "non-scaling-stroke" }));
  }
  drawn.addEventListener("click", (event) => {
    const box = drawn.getBoundingClientRect();
    const step = Math.floor(((event.clientX - box.left) / box.width) * width / wide);
    view.pick(Math.max(0, Math.min(columns.length - 1, step)));
  });
  return card("context", "Context", drawn, html("p", { class: "numbers" }, now.map((value) =>
    number(value)).join(" ")), html("p", { class: "faint" }, `A line for each number, a column for ` +
    `each step: blue above 0, orange below, full at ±${shortNumber(reach)}.`));
}

function policy(replay, view) {
  const { seat, record } = view;
  if (!record.policy) return null;
  const rows = record.legal.map((action) => ({ name: replay.actions[action],
    share: record.policy[action], text: number(record.policy[action]),
    chosen: action === record.action }));
  const parts = [bars(rows)];
  if (record.value !== undefined) {
    parts.push(...ownCurve(replay, view, "Value", record.value,
      view.timeline.map((one) => one.seats[seat].value ?? null)));
  }
  for (const [name, value] of Object.entries(record.figures ?? {})) {
    parts.push(...ownCurve(replay, view, name, value,
      view.timeline.map((one) => one.seats[seat].figures?.[name] ?? null)));
  }
  return card("policy", "Policy of the legal actions", ...parts);
}

function ownCurve(replay, view, name, value, values) {
  const known = values.filter((one) => one !== null);
  const series = [{ label: name, colour: replay.seats[view.seat].colour, dash: null, values }];
  return [html("h3", {}, name, html("span", { class: "faint" }, number(value, 3))),
    curve({ label: `${name} over the steps`, series, at: view.at, low: Math.min(0, ...known),
      high: Math.max(...known, 1e-9), breaks: view.breaks, pick: view.pick })];
}

function ownView(replay, view) {
  const seen = view.record.view;
  if (!seen) return null;
  const parts = [];
  if (seen.planes) {
    const [rows, columns] = seen.size;
    parts.push(html("div", { class: "planes" }, seen.planes.map((cells, index) => {
      const picture = svg("svg", { viewBox: `0 0 ${columns} ${rows}`, "aria-hidden": "true" },
        svg("rect", { x: 0, y: 0, width: columns, height: rows, fill: "var(--floor)",
          stroke: "var(--grid)", "stroke-width": 0.06 }),
        cells.map(([row, column, value = 1]) => svg("rect", { x: column, y: row, width: 1, height: 1,
          fill: "var(--bar)", opacity: Math.max(0.15, Math.min(1, Math.abs(value))) })));
      return html("div", { class: "plane" }, picture, replay.planes[index] ?? `plane ${index}`);
    })));
  }
  if (seen.features.length) {
    parts.push(html("p", { class: "numbers" }, "features: " + seen.features.join(" ")));
  }
  const words = replay.full_view ? "It sees everything; itself first." : "It sees only a part.";
  return card("own-view", "What it sees", html("p", { class: "faint" }, words),
    html("details", { open: view.open.has("own-view"),
      ontoggle: (event) => view.remember("own-view", event.target.open) },
    html("summary", {}, "Its own view"), ...parts));
}
