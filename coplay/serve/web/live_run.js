// The page of one run, drawn anew whenever the server has news of it.

const place = document.getElementById("run");
const name = place.dataset.name;
const wrong = html("p", { class: "note" });
const connection = new Connection("/live", (news) => {
  if (news.kind !== "page" || news.run !== name) return;
  wrong.textContent = news.wrong ?? "";
  if (news.data) draw(news.data, place);
}, () => ({ page: name }));
place.append(html("p", {}, html("a", { href: "/" }, "All runs")), connection.sign, wrong);
