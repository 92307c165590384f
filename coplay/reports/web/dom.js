// Elements are made from names, attributes and texts; no text of a run is ever read as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat()) if (child !== null) made.append(child);
  return made;
}

function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

function number(value, digits = 2) {
  return value === null || value === undefined ? "–" : value.toFixed(digits);
}

// A player as everywhere else: a disc in the colour of its seat, with its number.
function disc(seat, colour, faint = false) {
  return svg("svg", { viewBox: "0 0 20 20", class: "disc", "aria-hidden": "true" },
    svg("circle", { cx: 10, cy: 10, r: 9.5, fill: colour, opacity: faint ? 0.45 : 1 }),
    svg("text", { x: 10, y: 14, "text-anchor": "middle", "font-size": 11, "font-weight": 700,
      fill: inkOn(colour) }, String(seat)));
}

function inkOn(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue < 150 ? "#ffffff" : "#22262e";
}
