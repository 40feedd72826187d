// The words that draw most attention at the slider's step.

const PAGE_OF_WORDS = 20;

/** A row of the table, which stays while its words change: the slider moves many times a second. */
function tokenLine(columns) {
  const cells = columns.map(({ key }) => (key === "word" ? element("th", { scope: "row", dir: "auto" }) : element("td", { class: "number" })));
  const texts = cells.map((cell) => cell.appendChild(document.createTextNode("")));
  const bars = columns.map(({ bar }) => bar && element("span", { class: "bar" }));
  const node = element("tr", {}, ...cells.flatMap((cell, i) => (bars[i] ? [cell, element("td", { class: "barcell", "aria-hidden": "true" }, bars[i])] : [cell])));
  const write = (row, largest) => columns.forEach(({ key, spell }, i) => {
    const text = spell(row[key]);
    if (texts[i].data !== text) texts[i].data = text;
    if (bars[i]) bars[i].style.width = `${(100 * row[key]) / largest}%`;
  });
  return { node, write };
}

function showTokens(arrays) {
  const { words, special, counts, least, seeds, runs } = page.tokens;
  const read = runs.map(({ name, places }) => {
    const of = (what) => arrays[`${name ? `${name}/` : ""}tokens/${what}`].values;
    return { name, places, attention: of("attention"), beta: of("beta") };
  });
  const two = (value) => value.toFixed(2), alone = runs.length === 1;
  const columns = [
    { key: "word", title: "word", first: 1, spell: (word) => word },
    { key: "count", title: "count", first: -1, spell: steps },
    ...read.flatMap(({ name }, i) => [
      { key: `attention ${i}`, title: alone ? "attention" : `attention, ${name}`, first: -1, spell: two, bar: alone },
      { key: `beta ${i}`, title: alone ? "word knowledge" : `word knowledge, ${name}`, first: -1, spell: two },
    ]),
  ];
  const order = { key: "attention 0", direction: -1 };
  const table = document.getElementById("token-table");
  const more = document.getElementById("more-tokens");
  let all = false;
  document.getElementById("tokens-intro").textContent =
    `Words that occur ${least} times or more in the ${TERMS.shown}, at the slider’s step${seeds > 1 ? `, over ${alone ? `${seeds} seeds` : "the seeds of each run"}` : ""}. Attention is relative to an equal share (n·α): 1 under uniform attention, whatever the text’s length. Word knowledge (mean β) is how surely the word alone gives the ${asked} label.`;

  const values = ({ places, attention, beta }, i) => {
    const at = (places ? places[state.step] : state.step) * words.length + i;
    return { attention: attention[at], beta: beta[at] };
  };
  const rows = () => words.map((word, i) => {
    const row = { i, word: spelt(word, special[i]), count: counts[i] };
    read.forEach((run, k) => { for (const [what, value] of Object.entries(values(run, i))) row[`${what} ${k}`] = value; });
    return row;
  });
  tables.words = () => sorted().flatMap(({ i, word, count }) => read.map((run) => ({
    step: page.steps[state.step], ...(alone ? {} : { run: run.name }), word, count, ...values(run, i) })));
  const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
  const sorted = () => rows().sort((a, b) => order.direction * compare(a[order.key], b[order.key]) || b.count - a.count);
  const largest = read[0].attention.reduce((a, b) => Math.max(a, b), 1);

  const heads = columns.map((column) => {
    const button = element("button", { type: "button", text: column.title });
    const head = element("th", { scope: "col" }, button);
    if (column.key !== "word") head.className = "number";
    button.setAttribute("dir", "auto");
    button.addEventListener("click", () => {
      order.direction = order.key === column.key ? -order.direction : column.first;
      order.key = column.key;
      show();
    });
    return head;
  });
  table.tHead.rows[0].append(...heads.flatMap((head, i) => (columns[i].bar ? [head, element("th", { class: "barcell", "aria-hidden": "true" })] : [head])));

  const lines = [];
  const show = () => {
    columns.forEach(({ key, title }, i) => {
      const head = heads[i];
      const active = key === order.key;
      head.setAttribute("aria-sort", active ? (order.direction > 0 ? "ascending" : "descending") : "none");
      head.firstChild.textContent = title + (active ? (order.direction > 0 ? " ▲" : " ▼") : "");
    });
    const shown = sorted().slice(0, all ? Infinity : PAGE_OF_WORDS);
    while (lines.length > shown.length) lines.pop().node.remove();
    const added = Array.from({ length: shown.length - lines.length }, () => tokenLine(columns));
    lines.push(...added);
    shown.forEach((row, i) => lines[i].write(row, largest));
    table.tBodies[0].append(...added.map((line) => line.node));
    more.hidden = words.length <= PAGE_OF_WORDS;
    more.textContent = all ? "Show fewer words" : `Show all ${words.length} words`;
  };
  more.addEventListener("click", () => { all = !all; show(); });
  onStep(show, table);
}
