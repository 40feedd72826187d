// The page of an audit: choose a head, choose examples, save. All else stands in the page already.

const page = JSON.parse(document.getElementById("payload").textContent);
const byId = (id) => document.getElementById(id);
const MANY = 10;
const FULL = 0.4; // a share of attention that fills a bar: single heads may give one word nearly all

/** A number with a true minus sign; a dash where there is none. */
function decimal(value, digits = 3) {
  if (value === null || value === undefined) return "–";
  const text = value.toFixed(digits);
  return Number(text) === 0 ? text.replace("-", "") : text.replace("-", "−");
}

/** A score with its interval. */
function withEnds(score) {
  if (!score || score.value === null) return "–";
  const [low, high] = [decimal(score.low), decimal(score.high)];
  return `${decimal(score.value)} (${low}${`${low}${high}`.includes("−") ? " to " : "–"}${high})`;
}

function tableOf(columns, rows) {
  const head = element("tr", {}, ...columns.map((text, i) => element("th", { scope: "col", class: i ? "number" : "", text })));
  const body = rows.map(([name, ...cells]) =>
    element("tr", {}, element("th", { scope: "row", text: name }), ...cells.map((text) => element("td", { class: "number", text }))));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;

// Links: the address ends in #example=12 or #head=layer+2+head+3, so that a text or a head can be sent to someone.

const linked = () => new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
const address = (name, value) => `#${new URLSearchParams({ [name]: value })}`;

/** The step of a share on the square-root scale that all pages have. */
const step = (share) => Math.round(page.steps * Math.sqrt(Math.min(Math.abs(share), 1)));

/** Words shaded by a map of shares; `fixed` stands before each without being explained. */
function shadedByMap(words, values, fixed) {
  return words.flatMap((word, i) => [
    ...(fixed[i] ? [`${fixed[i]} `] : []),
    element("span", { class: `w a${step(values[i])}`, title: percent(values[i]), text: word }), " ",
  ]);
}

// Heads

/** One bar for each word; the highest possible bar stands for `largest`. */
function bars(values, largest) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", `0 0 ${values.length} 20`);
  svg.setAttribute("preserveAspectRatio", "none");
  svg.setAttribute("class", "bars");
  svg.setAttribute("aria-hidden", "true");
  const path = values.map((value, i) => `M${i + 0.1} 20h.8v${(-20 * Math.min(value / largest, 1)).toFixed(2)}h-.8z`).join("");
  shape(svg, "path", { d: path });
  return svg;
}

/** The example whose maps are drawn, its words, and its highest weight. */
function chosenText() {
  const number = byId("head-text")?.value;
  const i = page.examples.findIndex((one) => String(one.text) === number);
  if (i < 0) return null;
  const maps = page.examples[i].maps;
  return { number, maps, words: page.examples[i].words, fixed: page.examples[i].fixed, largest: Math.min(FULL, Math.max(...Object.values(maps).flat())) };
}

/** What is known of one map: τ and, where it was asked, agreement with each importance; entropy; alignment error. */
function showHead(map) {
  const own = page.scores.filter((score) => score.of === map);
  const one = (quantity, against) => own.find((score) => score.quantity === quantity && score.against === against);
  const against = [...byId("against").options].map((option) => option.value).filter((name) => one("tau", name));
  const agreed = own.some((score) => score.quantity === "agreement");
  const columns = ["importance", "τ (95 %)", ...(agreed ? ["agreement", "shuffled"] : [])];
  const rows = against.map((name) => [
    name,
    withEnds(one("tau", name)),
    ...(agreed ? [withEnds(one("agreement", name)), withEnds(one("shuffled agreement", name))] : []),
  ]);
  const facts = [["entropy", "entropy over its maximum"], ["aer", "alignment error rate"]]
    .filter(([quantity]) => one(quantity, ""))
    .map(([quantity, words]) => element("p", { text: `${words}: ${withEnds(one(quantity, ""))}` }));
  const text = chosenText();
  const values = text?.maps[map];
  const large = [];
  if (values) {
    large.push(
      element("p", { class: "words", dir: "auto", role: "group", tabindex: "0", "aria-label": `Words of text ${text.number} shaded by ${map}` }, ...shadedByMap(text.words, values, text.fixed)),
    );
  }
  byId("head").replaceChildren(
    element("h3", {}, element("a", { href: address("head", map), text: map }), ...(values ? [` on text ${text.number}`] : [])),
    ...large,
    element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Numbers of ${map}` }, tableOf(columns, rows)),
    ...facts,
  );
}

function offerHeads() {
  const grids = [...document.querySelectorAll("details.grid")];
  if (!grids.length) return;
  const against = byId("against");
  let chosen;

  const choose = (map, focus = false) => {
    chosen = map;
    if (focus || document.activeElement?.closest("details.grid")) history.replaceState(null, "", address("head", map));
    pressHead(map, focus);
    showHead(map);
  };

  for (const cell of document.querySelectorAll("details.grid td.cell")) {
    headButton(cell, `${cell.dataset.map}: ${cell.textContent}`, element("span", { class: "tau", text: cell.textContent }), choose);
  }
  const draw = () => {
    const text = chosenText();
    if (!text) return;
    byId("tallest").textContent = `a full bar: ${percent(text.largest)} of the attention${text.largest === FULL ? " or more" : ""}`;
    for (const button of document.querySelectorAll("details.grid td.cell button")) {
      button.querySelector(".bars")?.remove();
      const values = text.maps[button.parentElement.dataset.map];
      if (values) button.prepend(bars(values, text.largest));
    }
    if (chosen) showHead(chosen);
  };
  byId("head-text")?.addEventListener("change", draw);
  const show = () => {
    for (const grid of grids) {
      grid.hidden = grid.dataset.against !== against.value;
      grid.open = true;
      grid.classList.add("alone");
    }
  };
  for (const grid of grids) walkHeads(grid, choose);
  against.addEventListener("change", show);
  byId("head-tools").addEventListener("submit", (event) => event.preventDefault());
  show();
  draw();
  const taus = page.scores.filter((s) => s.quantity === "tau" && s.against === against.value && document.querySelector(`td[data-map="${s.of}"]`));
  choose(taus.reduce((best, s) => ((s.value ?? -2) > (best.value ?? -2) ? s : best), taus[0])?.of ?? grids[0].querySelector("td").dataset.map);
  const follow = () => {
    const map = linked().get("head");
    if (!map || !document.querySelector(`details.grid td[data-map="${CSS.escape(map)}"]`)) return;
    choose(map);
    byId("heads").scrollIntoView();
  };
  addEventListener("hashchange", follow);
  follow();
}

// Examples

/** The words of an example once more, shaded by an importance; other colours for words that speak against the output. */
function shadedWords(words, values) {
  const copy = words.cloneNode(true);
  [...copy.children].forEach((word, i) => {
    word.className = `w ${values[i] < 0 ? "n" : "p"}${step(values[i])}`;
    word.title = `${values[i] < 0 ? "against the prediction" : "for the prediction"}: ${percent(Math.abs(values[i]))}`;
  });
  return copy;
}

const ORDERS = {
  text: (item) => item.i,
  apart: (item, name) => item.tau[name] ?? 2,
  together: (item, name) => -(item.tau[name] ?? -2),
  unsure: (item) => item.probability,
  sure: (item) => -item.probability,
  wrong: (item) => (item.right === false ? 0 : 1),
};

function offerExamples() {
  const list = byId("example-list");
  if (!list) return;
  const cards = [...list.children];
  const items = page.examples.map((item, i) => {
    const words = cards[i].querySelector(".words");
    return { ...item, i, card: cards[i], words, search: words.textContent.toLowerCase() };
  });
  let from = 0;

  const compare = (item, name) => {
    item.card.querySelectorAll(".beside").forEach((node) => node.remove());
    if (name === "other" && item.other.length) {
      const names = [...item.words.children].map((word) => word.textContent);
      const other = element("p", { class: "words beside", dir: "auto", role: "group", tabindex: "0", "aria-label": "Words shaded by a different map" }, ...shadedByMap(names, item.other, item.fixed));
      item.words.after(element("p", { class: "by beside" }, element("b", { text: "a different map, same prediction" })), other);
    }
    if (!item.importances[name]) return;
    const words = shadedWords(item.words, item.importances[name]);
    words.setAttribute("aria-label", `Words shaded by ${name}`);
    words.classList.add("beside");
    const by = element("p", { class: "by beside" }, element("b", { text: name }), ` · rank correlation with attention, τ, ${decimal(item.tau[name], 2)}`);
    item.words.after(by, words);
  };

  const show = () => {
    const name = byId("beside").value;
    const order = ORDERS[byId("order").value];
    const wanted = byId("find").value.trim().toLowerCase();
    const found = items.filter((item) => item.search.includes(wanted));
    found.sort((a, b) => order(a, name) - order(b, name) || a.i - b.i);
    from = Math.max(0, Math.min(from, MANY * Math.floor((found.length - 1) / MANY)));
    const shown = found.slice(from, from + MANY);
    for (const item of items) item.card.hidden = true;
    for (const item of shown) {
      item.card.hidden = false;
      compare(item, name);
    }
    list.prepend(...shown.map((item) => item.card));
    byId("found").textContent = found.length === items.length ? `${items.length} examples` : `${found.length} of ${items.length} found`;
    byId("place").textContent = found.length ? `${from + 1}–${from + shown.length} of ${found.length}` : "none";
    byId("previous").disabled = from === 0;
    byId("next").disabled = from + MANY >= found.length;
  };

  const anew = () => {
    from = 0;
    show();
  };
  const turn = (by) => {
    from += by;
    show();
    byId("examples").scrollIntoView();
  };
  byId("beside").addEventListener("change", show);
  byId("order").addEventListener("change", anew);
  byId("find").addEventListener("input", anew);
  byId("previous").addEventListener("click", () => turn(-MANY));
  byId("next").addEventListener("click", () => turn(MANY));
  byId("example-tools").addEventListener("submit", (event) => event.preventDefault());
  tables.words = () => items.flatMap((item) => [...item.words.children].map((word, k) => ({
    text: item.text, place: k + 1, word: word.textContent, attention: item.map[k],
    ...Object.fromEntries(Object.entries(item.importances).map(([name, values]) => [name, values[k]])),
    marked: word.tagName === "U" ? 1 : 0,
  })));
  const follow = () => {
    const i = items.findIndex((item) => `#${item.card.id}` === location.hash);
    for (const item of items) item.card.classList.toggle("linked", item.i === i);
    if (i < 0) return;
    byId("find").value = "";
    byId("order").value = "text";
    from = MANY * Math.floor(i / MANY);
    show();
    items[i].card.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  show();
  follow();
}

tables.scores = () => page.scores;
tables.contrasts = () => page.contrasts;
for (const node of document.querySelectorAll("[data-script]")) node.hidden = false;
offerHeads();
offerExamples();
offerSaving();
document.body.dataset.ready = "yes";
