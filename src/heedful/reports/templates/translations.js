// What frequent source words are translated as, at the slider's step.

const PAGE_OF_WORDS = 15;
const share = (s) => percent(s, 0);

/** What the columns rank by: counting, which does not move; then knowledge and attention, or of several runs the attention of each. */
function waysOf(runs) {
  const counting = { name: "counting", title: "by counting", spell: share };
  if (runs.length > 1) return [counting, ...runs.map(({ name, places }) => ({ name: `${name}/attention`, title: `by attention, ${name}`, at: (step) => places[step], spell: share }))];
  return [
    counting, { name: "model_1", title: "by IBM Model 1", spell: share },
    { name: "knowledge", title: "by word knowledge", at: (step) => step, spell: signedOdds },
    { name: "attention", title: "by attention", at: (step) => step, spell: share },
  ];
}

function showTokens(arrays) {
  const book = page.translations, WAYS = waysOf(book.runs), { source, counts, least, meetings, seeds, best } = book;
  const table = document.getElementById("token-table"), more = document.getElementById("more-tokens");
  const find = document.getElementById("find-token");
  const order = source.map((_, i) => i).sort((a, b) => counts[b] - counts[a]);
  let all = false;
  document.getElementById("tokens-intro").textContent =
    `Source words that occur ${least === 1 ? "" : `${least} times or more `}in the validation pairs, each with the output words that rank highest. By counting: the share of co-occurrence in the training pairs, Trans(o|i). ` + (book.runs.length > 1
      ? "By attention of each run: the share of the attention that the source word drew, a mean over seeds at the slider’s step."
      : `By IBM Model 1: the same after five rounds of EM. By word knowledge: the log-odds that attending to the source word alone adds over attending to the sentence’s other words, where the two met ${meetings} times or more. By attention: the share of the attention that the source word drew. The last two are means over ${seeds} seeds at the slider’s step.`);
  const ranked = ({ name, at: placeAt }, i) => Array.from({ length: best }, (_, k) => {
    const at = ((placeAt ? placeAt(state.step) * source.length : 0) + i) * best + k;
    return { place: arrays[`translations/${name}`].values[at], score: arrays[`translations/${name}_score`].values[at] };
  }).filter(({ place }) => place < book.words.length);
  const chosen = () => {
    const wanted = find.value.trim().toLowerCase();
    return order.filter((i) => piece(source[i], Infinity, book).toLowerCase().includes(wanted));
  };
  tables.words = () => chosen().flatMap((i) => WAYS.flatMap((way) => ranked(way, i).map(({ place, score }, k) => ({
    step: page.steps[state.step], word: book.words[source[i]], count: counts[i], way: way.name, rank: k + 1, translation: book.words[place], score }))));
  table.tHead.rows[0].append(...["word", "count", ...WAYS.map((w) => w.title)].map((title, k) =>
    element("th", { scope: "col", class: k === 1 ? "number" : "", text: title })));
  const show = () => {
    const found = chosen();
    table.tBodies[0].replaceChildren(...found.slice(0, all ? Infinity : PAGE_OF_WORDS).map((i) => element("tr", {},
      element("th", { scope: "row", dir: "auto", text: piece(source[i], 30, book) }),
      element("td", { class: "number", text: steps(counts[i]) }),
      ...WAYS.map((way) => element("td", { class: "ranked" }, ...ranked(way, i).flatMap(({ place, score }) => [
        element("span", {}, element("b", { dir: "auto", text: piece(place, 30, book) }), ` ${way.spell(score)}`), " "]))))));
    more.hidden = found.length <= PAGE_OF_WORDS;
    more.textContent = all ? "Show fewer words" : `Show all ${found.length} words`;
  };
  find.addEventListener("input", show);
  document.getElementById("token-tools").addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => { all = !all; show(); });
  onStep(show, table);
}
