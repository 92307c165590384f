// The board of a state: as shapes where the game says where things are, else as a picture or text.

const ARROW = 0.62; // length of an arrow of probability 1, in cells

function drawBoard(replay, board, overlay) {
  if (board === null) return html("p", { class: "faint" }, "This game cannot be drawn.");
  if (board.image !== undefined) {
    return html("img", { src: replay.images[board.image], alt: "the state of the game" });
  }
  if (board.text !== undefined) return html("pre", {}, board.text);
  const { width, height, grid } = replay.sheet, edge = 0.08;
  const sheet = svg("svg", { role: "group", "aria-label": "board",
    viewBox: `${-edge} ${-edge} ${width + 2 * edge} ${height + 2 * edge}` });
  sheet.append(svg("rect", { x: 0, y: 0, width, height, fill: "var(--floor)", stroke: "var(--wall)",
    "stroke-width": 0.04 }));
  if (grid) {
    let lines = "";
    for (let x = 1; x < width; x++) lines += `M${x} 0V${height}`;
    for (let y = 1; y < height; y++) lines += `M0 ${y}H${width}`;
    sheet.append(svg("path", { d: lines, stroke: "var(--grid)", "stroke-width": 0.02 }));
  }
  for (const [x, y] of board.walls ?? []) {
    sheet.append(svg("rect", { x, y, width: 1, height: 1, fill: "var(--wall)" }));
  }
  for (const [look, x, y, size] of board.things) sheet.append(drawThing(replay, look, x, y, size));
  if (overlay.plan) drawVariation(sheet, replay, board, overlay);
  if (overlay.predictions) drawPredictions(sheet, replay, board, overlay);
  board.players.forEach((place, seat) => {
    if (place) sheet.append(drawPlayer(replay, seat, place, overlay));
  });
  return sheet;
}

function drawThing(replay, look, x, y, size) {
  if (look.startsWith("#")) {
    // A game's own colour may be that of the floor, in light or in the dark.
    return svg("circle", { cx: x, cy: y, r: size / 2, fill: look, stroke: "var(--ink)",
      "stroke-width": 0.02 });
  }
  const thing = svg("g", { transform: `translate(${x} ${y}) scale(${size})` });
  for (const child of iconOf(replay, look).childNodes) thing.append(child.cloneNode(true));
  return thing;
}

const icons = new Map();

function iconOf(replay, name) {
  if (!icons.has(name)) {
    const text = `<svg xmlns="${SVG}">${replay.icons[name]}</svg>`;
    const read = new DOMParser().parseFromString(text, "image/svg+xml");
    icons.set(name, document.importNode(read.documentElement, true));
  }
  return icons.get(name);
}

function drawPlayer(replay, seat, [x, y, radius], overlay) {
  const { colour, player } = replay.seats[seat];
  const chosen = seat === overlay.seat;
  const drawn = svg("g", { role: "button", tabindex: 0, style: "cursor: pointer",
    "data-seat": seat, "aria-pressed": String(chosen), "aria-label": `seat ${seat}, ${player}`,
    onclick: () => overlay.choose(seat),
    onkeydown: (event) => {
      if (event.key === "Enter") overlay.choose(seat);
    } });
  if (chosen) {
    drawn.append(svg("circle", { cx: x, cy: y, r: radius * 1.12, fill: "none", stroke: "var(--ink)",
      "stroke-width": 0.05 }));
  }
  const size = radius * (seat < 10 ? 1.15 : 0.9);
  drawn.append(
    svg("circle", { cx: x, cy: y, r: radius * 0.95, fill: colour, stroke: "var(--card)",
      "stroke-width": 0.02 }),
    svg("text", { x, y: y + 0.36 * size, "text-anchor": "middle", "font-size": size,
      "font-weight": 700, fill: inkOn(colour) }, String(seat)));
  return drawn;
}

// What the chosen seat expects the others to do: an arrow for each move, as long as it is probable;
// a ring for all that does not move. What then happened is drawn full, the rest faint.
function drawPredictions(sheet, replay, board, { seat, record, step }) {
  if (!record?.predicted) return;
  record.predicted.forEach((probabilities, index) => {
    const who = (seat + 1 + index) % replay.seats.length, place = board.players[who];
    if (!place || !step.seats[who].alive) return;
    const did = step.seats[who].action;
    const [x, y, radius] = place, { colour } = replay.seats[who];
    let still = 0, stayed = false;
    probabilities.forEach((p, action) => {
      const move = replay.moves[action];
      if (!move) return;
      if (move[0] === 0 && move[1] === 0) {
        still += p;
        stayed ||= action === did;
        return;
      }
      // What was done is always to be seen, above all if it was not expected.
      const length = Math.max(ARROW * p, action === did ? 0.22 : 0);
      if (length > 0.02) sheet.append(arrow(x, y, move, radius, length, colour, action === did));
    });
    if (still > 0.02) {
      sheet.append(svg("circle", { cx: x, cy: y, r: radius + 0.05, fill: "none", stroke: colour,
        "stroke-width": 0.12 * still, opacity: stayed ? 1 : 0.45 }));
    }
  });
}

function arrow(x, y, [right, down], radius, length, colour, full) {
  const size = Math.hypot(right, down), [u, v] = [right / size, down / size];
  const [x1, y1] = [x + u * radius * 0.9, y + v * radius * 0.9];
  const tip = Math.min(0.12, length);
  const [x2, y2] = [x1 + u * length, y1 + v * length];
  const [bx, by] = [x2 - u * tip, y2 - v * tip];
  const [px, py] = [-v * tip * 0.8, u * tip * 0.8];
  return svg("g", { opacity: full ? 1 : 0.5, class: "arrow" },
    svg("line", { x1, y1, x2: bx, y2: by, stroke: colour, "stroke-width": full ? 0.09 : 0.06 }),
    svg("polygon", { points: `${x2},${y2} ${bx + px},${by + py} ${bx - px},${by - py}`, fill: colour,
      stroke: full ? "var(--ink)" : "none", "stroke-width": 0.015 }));
}

// The principal variation as a path from the chosen seat.
function drawVariation(sheet, replay, board, { seat, record }) {
  const start = board.players[seat];
  if (!record?.variation?.length || !start) return;
  const { width, height } = replay.sheet;
  let [x, y] = start;
  let text = `M${x} ${y}`;
  const spots = [];
  for (const action of record.variation) {
    const move = replay.moves[action];
    if (!move) break;
    x = Math.max(0.1, Math.min(width - 0.1, x + move[0]));
    y = Math.max(0.1, Math.min(height - 0.1, y + move[1]));
    text += `L${x} ${y}`;
    spots.push([x, y, move[0] === 0 && move[1] === 0]);
  }
  const drawn = svg("g", { class: "variation" }, svg("path", { d: text, fill: "none",
    stroke: "var(--plan)", "stroke-width": 0.07, "stroke-dasharray": "0.16 0.1",
    "stroke-linejoin": "round", "stroke-linecap": "round" }));
  spots.forEach(([cx, cy, still]) => drawn.append(svg("circle", { cx, cy, r: still ? 0.16 : 0.08,
    fill: still ? "none" : "var(--plan)", stroke: "var(--plan)", "stroke-width": 0.05 })));
  sheet.append(drawn);
}

// A board as a seat sees it, from planes of [row, column, probability]: players as discs, the rest as
// the game draws it, else as a letter. What is less probable is fainter.
function planesBoard(replay, seat, [rows, columns], planes, label) {
  const seats = replay.seats.length, edge = 0.06;
  const sheet = svg("svg", { role: "img", "aria-label": label, class: "planes-board",
    viewBox: `${-edge} ${-edge} ${columns + 2 * edge} ${rows + 2 * edge}` });
  let lines = "";
  for (let x = 1; x < columns; x++) lines += `M${x} 0V${rows}`;
  for (let y = 1; y < rows; y++) lines += `M0 ${y}H${columns}`;
  sheet.append(svg("rect", { x: 0, y: 0, width: columns, height: rows, fill: "var(--floor)",
    stroke: "var(--wall)", "stroke-width": 0.05 }),
  svg("path", { d: lines, stroke: "var(--grid)", "stroke-width": 0.03 }));
  // Things lie below players.
  for (let index = planes.length - 1; index >= 0; index--) {
    for (const [row, column, p = 1] of planes[index]) {
      const mark = index < seats
        ? playerMark(replay, (seat + index) % seats)
        : thingMark(replay, replay.planes[index] ?? "?", index - seats);
      sheet.append(svg("g", { transform: `translate(${column + 0.5} ${row + 0.5})`,
        opacity: Math.max(0, Math.min(1, p)) }, mark, svg("title", {},
        `${replay.planes[index] ?? index}: ${number(p)}`)));
    }
  }
  return sheet;
}

function playerMark(replay, seat) {
  const { colour } = replay.seats[seat];
  return svg("g", {}, svg("circle", { r: 0.34, fill: colour, stroke: "var(--card)",
    "stroke-width": 0.03 }), svg("text", { y: 0.15, "text-anchor": "middle", "font-size": 0.42,
    "font-weight": 700, fill: inkOn(colour) }, String(seat)));
}

function thingMark(replay, plane, index) {
  if (plane === "walls") {
    return svg("rect", { x: -0.5, y: -0.5, width: 1, height: 1, fill: "var(--wall)" });
  }
  const stem = plane.replace(/s$/, "");
  const look = Object.keys(replay.icons).find((name) => name.replace(/_icon$/, "") === stem);
  if (look) {
    const thing = svg("g", { transform: "scale(0.8)" });
    for (const child of iconOf(replay, look).childNodes) thing.append(child.cloneNode(true));
    return thing;
  }
  const colour = candidateColour(index);
  return svg("g", {}, svg("rect", { x: -0.3, y: -0.3, width: 0.6, height: 0.6, rx: 0.1, fill: colour }),
    svg("text", { y: 0.15, "text-anchor": "middle", "font-size": 0.42, fill: inkOn(colour) },
      plane.slice(0, 1)));
}
