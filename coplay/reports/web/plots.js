// Curves over training. The chart is uPlot's; legend, keys and colours are ours. Lines differ in
// colour and in dashes, so colours are never needed to tell them apart.

const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3], [14, 5], [5, 3, 1, 3], [1, 3], [16, 3, 4, 3]];

function dashOf(index) { return DASHES[index % DASHES.length]; }

function cssColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// A colour as it is or, of the form --name, as the page's light or dark style says.
function inkOf(colour) { return colour.startsWith("--") ? cssColour(colour) : colour; }

function withAlpha(colour, alpha) {
  return inkOf(colour) + Math.round(255 * alpha).toString(16).padStart(2, "0");
}

function shortStep(value) {
  for (const [size, sign] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= size) return String(Math.round((value / size) * 100) / 100) + sign;
  }
  return String(Math.round(value * 100) / 100);
}

function shortValue(value) {
  if (value === null || value === undefined) return "–";
  if (value !== 0 && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3)) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

// series: {label, colour, dash, width, mean, low, high, band, hidden}. low and high make a band, as
// dense as `band` says. Series of the same label share a button of the legend, without numbers.
class Plot {
  constructor(title, height) {
    this.height = height;
    this.hidden = new Map();
    this.at = html("span", { class: "at", "aria-live": "polite" });
    this.legend = html("div", { class: "legend" });
    this.canvas = html("div", { class: "canvas", tabindex: 0, role: "group",
      style: `min-height: ${height}px`,
      "aria-label": `${title}: curves over the steps; left and right arrows show the numbers` });
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => this.chart?.setCursor({ left: -10, top: -10 }));
    this.node = html("div", {}, this.canvas, this.legend);
    new ResizeObserver(() => this.resize()).observe(this.canvas);
    PLOTS.add(this);
  }

  show(steps, series) {
    const shape = JSON.stringify(series.map((one) => [one.label, one.colour, one.low !== undefined]));
    this.steps = steps;
    this.series = series;
    if (shape !== this.shape) {
      this.shape = shape;
      this.chart?.destroy();
      this.chart = null;
      this.makeLegend();
    }
    if (this.chart) this.chart.setData(this.columns());
    else this.resize();
    this.tell();
  }

  columns() {
    const found = [this.steps];
    for (const one of this.series) {
      found.push(one.mean);
      if (one.low) found.push(one.high, one.low);
    }
    return found;
  }

  resize() {
    const width = Math.floor(this.canvas.clientWidth);
    if (width < 50 || !this.series) return;
    if (this.chart) this.chart.setSize({ width, height: this.height });
    else drawSoon(this);
  }

  // Draw for the first time.
  begin() {
    const width = Math.floor(this.canvas.clientWidth);
    if (width >= 50 && !this.chart) this.chart = new uPlot(this.options(width), this.columns(), this.canvas);
  }

  options(width) {
    const series = [{}], bands = [];
    this.series.forEach((one) => {
      const alone = this.steps.length < 3;
      const show = !this.isHidden(one);
      series.push({ label: one.label, show, stroke: () => inkOf(one.colour), width: one.width ?? 1.6,
        dash: one.dash ?? [], points: { show: alone }, spanGaps: true });
      if (!one.low) return;
      const limit = { show, stroke: "transparent", points: { show: false }, spanGaps: true };
      series.push({ ...limit, label: "high" }, { ...limit, label: "low" });
      bands.push({ series: [series.length - 2, series.length - 1],
        fill: () => withAlpha(one.colour, one.band ?? 0.14) });
    });
    const axis = { stroke: () => cssColour("--faint"), font: "11px system-ui, sans-serif",
      grid: { stroke: () => cssColour("--line"), width: 1 },
      ticks: { stroke: () => cssColour("--line"), width: 1, size: 4 } };
    return {
      width, height: this.height, series, bands,
      padding: [8, 14, 0, 0],
      scales: { x: { time: false } },
      axes: [
        { ...axis, size: 26, values: (_, ticks) => ticks.map(shortStep) },
        { ...axis, size: 48, values: (_, ticks) => ticks.map(shortValue) },
      ],
      legend: { show: false },
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      hooks: { setCursor: [() => this.tell()] },
    };
  }

  isHidden(one) { return this.hidden.get(one.label) ?? one.hidden ?? false; }

  makeLegend() {
    this.values = this.series.map(() => html("span", { class: "value" }));
    const first = this.series.filter((one, index) => this.firstOf(one.label) === index);
    const buttons = first.map((one) => html("button",
      { type: "button", "aria-pressed": String(!this.isHidden(one)),
        onclick: (event) => this.toggle(one, event.currentTarget) },
      svg("svg", { viewBox: "0 0 22 8", "aria-hidden": "true" },
        svg("line", { x1: 0, x2: 22, y1: 4, y2: 4, "stroke-width": (one.width ?? 1.6) + 0.9,
          style: `stroke: ${one.colour.startsWith("--") ? `var(${one.colour})` : one.colour}`,
          "stroke-dasharray": (one.dash ?? []).join(" ") || null })),
      html("span", {}, one.label), this.isAlone(one) ? this.values[this.firstOf(one.label)] : null));
    this.legend.replaceChildren(this.at, ...buttons);
  }

  firstOf(label) { return this.series.findIndex((one) => one.label === label); }

  isAlone(one) { return this.series.filter((other) => other.label === one.label).length === 1; }

  toggle({ label }, button) {
    const hide = !this.isHidden(this.series[this.firstOf(label)]);
    this.hidden.set(label, hide);
    button.setAttribute("aria-pressed", String(!hide));
    let place = 1;
    for (const one of this.series) {
      const columns = one.low ? 3 : 1;
      for (let each = place; one.label === label && each < place + columns; each++) {
        this.chart?.setSeries(each, { show: !hide });
      }
      place += columns;
    }
    this.tell();
  }

  // The numbers at the cursor, or the last ones.
  tell() {
    const at = this.chart?.cursor.idx ?? null;
    const last = this.steps.length - 1;
    this.at.textContent = this.steps.length ? `step ${shortStep(this.steps[at ?? last])}` : "no rows yet";
    this.series.forEach((one, index) => {
      const place = at ?? one.mean.findLastIndex((value) => value !== null);
      const low = one.low?.[place], high = one.high?.[place];
      const range = low === undefined || low === null ? "" : ` (${shortValue(low)} to ${shortValue(high)})`;
      this.values[index].textContent = this.isHidden(one) ? "" : shortValue(one.mean[place]) + range;
    });
  }

  key(event) {
    const last = this.steps.length - 1, now = this.chart?.cursor.idx ?? last + 1;
    const places = { ArrowLeft: now - 1, ArrowRight: now + 1, Home: 0, End: last };
    if (!this.chart || !(event.key in places)) return;
    event.preventDefault();
    const place = Math.max(0, Math.min(last, places[event.key]));
    this.chart.setCursor({ left: this.chart.valToPos(this.steps[place], "x"), top: 10 });
  }
}

const PLOTS = new Set();

// Plots are drawn one after the other, the uppermost first, each in a task of its own: a page of many
// curves shows its first ones at once and can be used while the others come.
const WAITING = new Set();

function drawSoon(plot) {
  if (!WAITING.size) setTimeout(drawNext);
  WAITING.add(plot);
}

function drawNext() {
  const [first] = [...WAITING].sort((one, other) =>
    one.canvas.getBoundingClientRect().top - other.canvas.getBoundingClientRect().top);
  WAITING.delete(first);
  first.begin();
  if (WAITING.size) setTimeout(drawNext);
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const plot of PLOTS) plot.chart?.redraw(false);
});
