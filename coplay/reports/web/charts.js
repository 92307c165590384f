// Bars and curves. Lines differ in colour and in dashes, so colours are never needed to tell them.

const CANDIDATE_COLOURS =
  ["#4477AA", "#EE6677", "#228833", "#B39B1E", "#3FA7CC", "#AA3377", "#8A8A8A", "#E08A2E"];
const DASHES = ["", "6 3", "2 3", "8 3 2 3", "10 4", "4 2 1 2", "1 3", "12 3 3 3"];

function candidateColour(index) { return CANDIDATE_COLOURS[index % CANDIDATE_COLOURS.length]; }

function dash(index) { return DASHES[index % DASHES.length] || null; }

// rows: {name, share (0 to 1), text, colour, chosen, more}
function bars(rows, heads = null) {
  const wide = rows.some((row) => row.more !== undefined);
  const grid = html("div", { class: wide ? "bars wide" : "bars" });
  for (const head of heads ?? []) grid.append(html("span", { class: "head" }, head));
  for (const row of rows) {
    const chosen = row.chosen ? " chosen" : "";
    const width = `width: ${(100 * Math.max(0, Math.min(1, row.share))).toFixed(1)}%`;
    grid.append(
      html("span", { class: "name" + chosen }, (row.chosen ? "▸ " : "") + row.name),
      html("span", { class: "track" },
        html("span", { class: "fill",
          style: `display: block; ${width}; background: ${row.colour ?? "var(--bar)"}` })),
      html("span", { class: "value" + chosen }, row.text));
    if (wide) grid.append(html("span", { class: "value" + chosen }, row.more ?? ""));
  }
  return grid;
}

// A curve over the steps. series: {label, colour, dash, values (null: none)}. strip: colours of the
// steps beneath the curve (null: none). breaks: the first steps of later episodes.
function curve({ label, series, at, low, high, line = null, strip = null, breaks = [], pick }) {
  const width = 320, height = strip ? 92 : 80, left = 30, right = 6, top = 6, bottom = strip ? 26 : 16;
  const count = Math.max(2, ...series.map((one) => one.values.length));
  const x = (step) => left + (step / (count - 1)) * (width - left - right);
  const span = high - low || 1;
  const y = (value) => height - bottom - ((value - low) / span) * (height - bottom - top);
  const drawn = svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img",
    "aria-label": label });
  for (const value of [low, high]) {
    drawn.append(
      svg("line", { x1: left, x2: width - right, y1: y(value), y2: y(value), stroke: "var(--line)" }),
      svg("text", { x: left - 4, y: y(value) + 3, "text-anchor": "end" }, shortNumber(value)));
  }
  if (line !== null && line > low && line < high) {
    drawn.append(svg("line", { x1: left, x2: width - right, y1: y(line), y2: y(line),
      stroke: "var(--mark)", "stroke-dasharray": "2 4" }));
  }
  for (const step of breaks) {
    drawn.append(svg("line", { x1: x(step - 0.5), x2: x(step - 0.5), y1: top, y2: height - bottom,
      stroke: "var(--line)" }));
  }
  (strip ?? []).forEach((colour, step) => {
    if (!colour) return;
    // A cell around each step, within the axes.
    const from = Math.max(left, x(step - 0.5)), to = Math.min(width - right, x(step + 0.5));
    drawn.append(svg("rect", { x: from, width: to - from, y: height - bottom + 4, height: 6,
      fill: colour }));
  });
  for (const one of series) {
    drawn.append(svg("path", { d: path(one.values, x, y), fill: "none", stroke: one.colour,
      "stroke-width": 2, "stroke-dasharray": one.dash, "stroke-linejoin": "round" }));
    const here = one.values[at];
    if (here !== null && here !== undefined) {
      drawn.append(svg("circle", { cx: x(at), cy: y(here), r: 3, fill: one.colour }));
    }
  }
  drawn.append(svg("line", { x1: x(at), x2: x(at), y1: top, y2: height - bottom + 4,
    stroke: "var(--ink)", "stroke-width": 0.8 }));
  drawn.append(svg("text", { x: left + 2, y: height - 4 }, "0"),
    svg("text", { x: width - right, y: height - 4, "text-anchor": "end" }, `step ${count - 1}`));
  drawn.addEventListener("click", (event) => {
    const box = drawn.getBoundingClientRect();
    const place = ((event.clientX - box.left) / box.width) * width;
    const step = Math.round(((place - left) / (width - left - right)) * (count - 1));
    pick(Math.max(0, Math.min(count - 1, step)));
  });
  return drawn;
}

function path(values, x, y) {
  let text = "", drawing = false;
  values.forEach((value, step) => {
    if (value === null || value === undefined) { drawing = false; return; }
    text += `${drawing ? "L" : "M"}${x(step).toFixed(1)} ${y(value).toFixed(1)}`;
    if (!drawing) text += "h0.01"; // a single step is a dot
    drawing = true;
  });
  return text;
}

function shortNumber(value) {
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(Math.round(value * 100) / 100);
}

function legend(series) {
  return html("div", { class: "legend" }, series.map((one) => html("span", {},
    svg("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" },
      svg("line", { x1: 0, x2: 22, y1: 4, y2: 4, stroke: one.colour, "stroke-width": 2.5,
        "stroke-dasharray": one.dash })),
    " " + one.label)));
}
