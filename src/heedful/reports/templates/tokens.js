// The words that draw most attention at the slider's step.

const PAGE_OF_WORDS = 20;

/** A row of the table, which stays while its words change: the slider moves many times a second. */
function tokenLine() {
  const cells = [element("th", { scope: "row", dir: "auto" }), ...Array.from({ length: 3 }, () => element("td", { class: "number" }))];
  const texts = cells.map((cell) => cell.appendChild(document.createTextNode("")));
  const bar = element("span", { class: "bar" });
  const node = element("tr", {}, ...cells.slice(0, 3), element("td", { class: "barcell", "aria-hidden": "true" }, bar), cells[3]);
  const write = ({ word, count, attention, beta }, share) => {
    [word, steps(count), attention.toFixed(2), beta.toFixed(2)].forEach((text, i) => { if (texts[i].data !== text) texts[i].data = text; });
    bar.style.width = `${100 * share}%`;
  };
  return { node, write };
}

function showTokens(arrays) {
  const { words, special, counts, least, seeds } = page.tokens;
  const attention = arrays["tokens/attention"].values, beta = arrays["tokens/beta"].values;
  const columns = [
    { key: "word", title: "word", first: 1 },
    { key: "count", title: "count", first: -1 },
    { key: "attention", title: "n·α", first: -1 },
    { key: "beta", title: "mean β", first: -1 },
  ];
  const order = { key: "attention", direction: -1 };
  const table = document.getElementById("token-table");
  const more = document.getElementById("more-tokens");
  let all = false;
  document.getElementById("tokens-intro").textContent =
    `Words that occur ${least} times or more in the ${TERMS.shown}, at the slider’s step${seeds > 1 ? `, over ${seeds} seeds` : ""}. n·α is a word’s attention relative to an equal share: 1 under uniform attention, whatever the text’s length. Mean β is how surely the word alone gives the ${asked} label.`;

  const rows = () => words.map((word, i) => {
    const at = state.step * words.length + i;
    return { word: spelt(word, special[i]), count: counts[i], attention: attention[at], beta: beta[at] };
  });
  tables.words = () => sorted().map((row) => ({ step: page.steps[state.step], ...row }));
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  const sorted = () => rows().sort((a, b) => order.direction * compare(a[order.key], b[order.key]) || b.count - a.count);
  const largest = attention.reduce((a, b) => Math.max(a, b), 1);

  const heads = columns.map((column) => {
    const button = element("button", { type: "button", text: column.title });
    const head = element("th", { scope: "col" }, button);
    if (column.key !== "word") head.className = "number";
    button.addEventListener("click", () => {
      order.direction = order.key === column.key ? -order.direction : column.first;
      order.key = column.key;
      show();
    });
    return head;
  });
  heads.splice(3, 0, element("th", { class: "barcell", "aria-hidden": "true" }));
  table.tHead.rows[0].append(...heads);

  const lines = [];
  const show = () => {
    columns.forEach(({ key, title }, i) => {
      const head = heads[i < 3 ? i : i + 1];
      const active = key === order.key;
      head.setAttribute("aria-sort", active ? (order.direction > 0 ? "ascending" : "descending") : "none");
      head.firstChild.textContent = title + (active ? (order.direction > 0 ? " ▲" : " ▼") : "");
    });
    const shown = sorted().slice(0, all ? Infinity : PAGE_OF_WORDS);
    while (lines.length > shown.length) lines.pop().node.remove();
    const added = Array.from({ length: shown.length - lines.length }, tokenLine);
    lines.push(...added);
    shown.forEach((row, i) => lines[i].write(row, row.attention / largest));
    table.tBodies[0].append(...added.map((line) => line.node));
    more.hidden = words.length <= PAGE_OF_WORDS;
    more.textContent = all ? "Show fewer words" : `Show all ${words.length} words`;
  };
  more.addEventListener("click", () => { all = !all; show(); });
  onStep(show, table);
}
