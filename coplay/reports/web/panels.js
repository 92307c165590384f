// What a seat thought at a step. A player that lacks a part gets no panel for it.

function panels(replay, view) {
  const { record } = view;
  if (!record) return [html("section", { class: "card" }, html("p", {}, "The episode is over."))];
  if (!record.alive) {
    const words = `Seat ${view.seat} has left the game.`;
    return [html("section", { class: "card" }, html("p", {}, words))];
  }
  const made = [beliefs, predictions, plan, policy, ownView].map((panel) => panel(replay, view));
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
    gone ? html("span", { class: "faint" }, "left") : null];
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
  for (const [index, other] of coPlayers(replay, seat)) {
    if (!step.seats[other].alive) continue;
    const mean = [0, 1].map((axis) =>
      record.belief[index].reduce((sum, share, at) => sum + share * places[at][axis], 0));
    const colour = replay.seats[other].colour;
    drawn.append(svg("circle", { cx: x(mean[0]), cy: y(mean[1]), r: 6, fill: colour,
      stroke: "var(--card)" }),
    svg("text", { x: x(mean[0]), y: y(mean[1]) + 3, "text-anchor": "middle",
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
