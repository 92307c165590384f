// Steps through a replay as a reader does, and writes what it saw into the page, for the test.
(async () => {
  const until = async (ready) => {
    for (let tries = 0; tries < 200 && !ready(); tries++) await new Promise((r) => setTimeout(r, 20));
  };
  const find = (selector) => document.querySelector(selector);
  const words = (selector) => find(selector)?.textContent ?? null;
  const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  await until(() => find("#beliefs"));
  const told = { title: words("h1"), scripts: document.scripts.length, first: words("#beliefs"),
    icons: document.querySelectorAll(".board svg g[transform]").length,
    arrows: document.querySelectorAll(".board .arrow").length,
    variation: document.querySelectorAll(".board .variation").length,
    names: document.querySelectorAll(".seats b, .seats script, h3 script").length };
  press("ArrowRight");
  told.clock = words("#clock");
  told.second = words("#beliefs");
  const tree = find("#plan details");
  tree.querySelector("summary").click();
  await new Promise((done) => setTimeout(done, 100)); // the event of unfolding comes later
  told.tree = tree.textContent;
  told.open = tree.open;
  told.imagined = document.querySelectorAll("#imagined .pair").length;
  told.plans = words("#imagined");
  [told.predicted, told.came] = [...document.querySelectorAll("#world .planes-board")].map((one) =>
    one.querySelectorAll("g[opacity]").length);
  told.facts = words("#world table");
  told.context = document.querySelectorAll("#context svg.chart rect[opacity]").length;
  told.clipped = [...document.querySelectorAll("svg.chart text")].filter((text) => {
    const box = text.getBBox();
    return box.y + box.height > text.ownerSVGElement.viewBox.baseVal.height - 1;
  }).length;
  find(".seats th:nth-child(2)").textContent = "";
  find(".seats").style.width = "1rem"; // narrower than in any window
  told.broken = [...document.querySelectorAll(".seats td:nth-child(2)")].filter((cell) => {
    const words = document.createRange();
    words.selectNodeContents(cell);
    return words.getClientRects().length > cell.textContent.split(" ").length;
  }).length;
  find(".seats").style.width = null;
  told.columns = Number(find(".time").max);
  find('.board [data-seat="1"]').dispatchEvent(new MouseEvent("click", { bubbles: true }));
  told.scripted = [...document.querySelectorAll("#cards .card")].map((card) => card.id);
  find('.seats [data-seat="0"]').click();
  told.thinker = [...document.querySelectorAll("#cards .card")].map((card) => card.id);
  told.kept = find("#plan details").open;
  press("End");
  told.end = words("#clock");
  press("]");
  told.episode = find(".controls select option:checked") && words("#clock");
  told.wide = document.documentElement.scrollWidth;
  const result = document.createElement("pre");
  result.id = "result";
  result.textContent = JSON.stringify(told);
  document.body.append(result);
})();
