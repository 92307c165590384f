// Uses the page of a run as a reader does, and writes what it saw into the page, for the test.
const find = (selector) => document.querySelector(selector);
const wait = (time) => new Promise((done) => setTimeout(done, time));
const frame = async () => { await wait(80); };

async function drive(data) {
  await frame();
  const told = { title: find("h1").textContent, charts: document.querySelectorAll("canvas").length };
  const chart = find("#curve .canvas"), at = () => find("#curve .at").textContent;
  const press = (key) => chart.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  const team = () => find("#curve .legend .value").textContent;
  Object.assign(told, { last: at(), final: team() });
  press("Home");
  await frame();
  Object.assign(told, { first: at(), begun: team() });
  press("ArrowRight");
  await frame();
  told.second = at();
  const seeds = [...document.querySelectorAll("#curve .legend button")].at(-1);
  told.before = seeds.getAttribute("aria-pressed");
  seeds.click();
  told.after = seeds.getAttribute("aria-pressed");
  const group = [...document.querySelectorAll("#metrics details")].find((one) =>
    one.textContent.startsWith("Updates of the policy"));
  told.closed = group.querySelectorAll("canvas").length;
  group.querySelector("summary").click();
  await frame();
  told.opened = group.querySelectorAll("canvas").length;
  told.words = group.querySelector(".plot p").textContent;
  const newer = JSON.parse(JSON.stringify(data));
  newer.step = 999;
  newer.curve.steps.push(2 * newer.curve.steps.at(-1));
  for (const curve of [newer.curve.team, ...newer.curve.seats]) {
    for (const values of Object.values(curve)) values.push(77);
  }
  for (const values of newer.curve.seeds) values.push(77);
  for (const one of newer.groups.flatMap((each) => each.metrics.flatMap((metric) => metric.curves))) {
    for (const name of ["mean", "low", "high"]) one[name]?.push(1);
  }
  document.activeElement?.blur();
  chart.dispatchEvent(new Event("blur"));
  draw(newer);
  await frame();
  Object.assign(told, { newest: at(), grown: team(), header: find("header").textContent,
    still: group.open && group.isConnected, seeds: seeds.getAttribute("aria-pressed"),
    redrawn: document.querySelectorAll("canvas").length });
  for (const one of document.querySelectorAll("details")) one.open = true;
  await frame();
  told.everything = document.querySelectorAll("canvas").length;
  told.nameless = [...document.querySelectorAll("button, a, .canvas")].filter((one) =>
    !(one.textContent.trim() || one.getAttribute("aria-label"))).length;
  told.links = [...document.links].map((link) => link.getAttribute("href"));
  told.scripts = document.scripts.length;
  told.wide = document.documentElement.scrollWidth - innerWidth;
  const result = document.createElement("pre");
  result.id = "result";
  result.hidden = true;
  result.textContent = JSON.stringify(told);
  document.body.append(result);
}

drive(JSON.parse(document.getElementById("data").textContent));
