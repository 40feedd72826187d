// Sentence pairs as matrices, output words by source words, of α, β, Δ and α^IBM at the slider's step.

const QUANTITIES = [
  { name: "alpha", letter: "α", title: "attention" },
  { name: "beta", letter: "β", title: "word knowledge" },
  { name: "counting", letter: "α^IBM", title: "word counts" },
  { name: "delta", letter: "Δ", title: "influence" },
  { name: "model_1", letter: "", title: "IBM Model 1" },
];
const FULL_SPAN = 2; // log-odds between the lowest and the highest β of a row from which on the highest is fully shaded
const HINT = "Point at a cell for its numbers, or go to the matrices with Tab and walk with the arrow keys.";

class Pairs extends ExampleList {
  constructor(arrays) {
    let column = 0, row = 0, cell = 0;
    const pairs = page.pairs.index.map((index, i) => {
      const L = page.pairs.length[i], T = page.pairs.outputs[i];
      const source = [...arrays.source.values.subarray(column, column + L)];
      const target = [...arrays.target.values.subarray(row, row + T)];
      const pair = { i, index, L, T, source, target, row, cell, sentences: [sentence(source), sentence(target)] };
      pair.search = pair.sentences.join("\n").toLowerCase();
      column += L;
      row += T;
      cell += L * T;
      return pair;
    });
    super(arrays, pairs, 5);
    this.columns = page.languages;
    this.rows = row;
    this.cells = cell;
    whenSized(this.list, () => { for (const card of this.cards) this.lay(card); this.show(state.at); });
  }

  /** A value kept once per output word and step. */
  at(model, array, place, pair, t) {
    return this.arrays[`${model.name}/${array}`].values[this.own(model, place) * this.rows + pair.row + t];
  }

  attends(model) {
    return `${model.name}/alpha` in this.arrays;
  }

  /** The probability of the right word at one place, or its mean over the sentence. */
  probability(model, place, pair, t) {
    const one = (at) => 1 / (1 + Math.exp(-this.at(model, "log_odds", place, pair, at) / 1000));
    return t === undefined ? mean(pair.target.map((_, at) => one(at))) : one(t);
  }

  isRight(model, place, pair, t) {
    return this.at(model, "prediction", place, pair, t) === pair.target[t];
  }

  agrees(model, place, pair, t) {
    return 100 * this.at(model, "higher", place, pair, t) < 5 * pair.L;
  }

  alignmentError(model, place, pair) {
    const value = this.arrays[`${model.name}/aer`]?.values[this.own(model, place) * this.items.length + pair.i];
    return value === undefined || Number.isNaN(value) ? null : value;
  }

  gold(pair, t, l) {
    return this.arrays.gold ? this.arrays.gold.values[pair.cell + t * pair.L + l] : 0;
  }

  /** What each order sorts by. */
  keys() {
    const last = page.steps.length - 1, { ranker, model } = this;
    const share = (pair, holds) => mean(pair.target.map((_, t) => Number(holds(t))));
    const together = (p) => share(p, (t) => this.agrees(ranker, last, p, t));
    const changes = (p) => mean(p.target.map((_, t) => {
      let count = 0;
      for (let k = 1; k <= last; k++) count += this.at(model, "prediction", k, p, t) !== this.at(model, "prediction", k - 1, p, t);
      return count;
    }));
    const loss = (p) => mean(p.target.map((_, t) => Math.log1p(Math.exp(-this.at(model, "log_odds", last, p, t) / 1000))));
    const error = (p) => this.alignmentError(ranker, last, p) ?? 0.5;
    return {
      varied: (p) => [p.i],
      agree: (p) => [-together(p)],
      disagree: (p) => [together(p)],
      changed: (p) => [-changes(p)],
      wrong: (p) => [-loss(p)],
      aligned: (p) => [error(p)],
      misaligned: (p) => [-error(p)],
    };
  }

  /** The number in a cell, how dark it is (−1 to 1), and which cell of its row is the highest. */
  read(model, quantity, place, pair, t) {
    const from = pair.cell + t * pair.L, own = this.own(model, place);
    const level = (array, l, many) => this.arrays[array].values[many * this.cells + from + l];
    if (quantity === "counting" || quantity === "model_1") {
      const array = `lexicon/${quantity}`;
      return { top: this.arrays[`${array}_top`].values[pair.row + t], of: (l) => weight(level(array, l, 0)) };
    }
    if (quantity === "alpha") {
      if (!this.attends(model)) return { top: -1, of: () => ({ value: 1 / pair.L, amount: 1 / Math.sqrt(pair.L) }) };
      return { top: this.at(model, "alpha_top", place, pair, t), of: (l) => weight(level(`${model.name}/alpha`, l, own)) };
    }
    const top = this.at(model, `${quantity}_top`, place, pair, t);
    if (quantity === "beta") {
      const low = this.at(model, "beta_low", place, pair, t) / 1000, span = this.at(model, "beta_high", place, pair, t) / 1000 - low;
      return { top, of: (l) => {
        const share = level(`${model.name}/beta`, l, own) / 255;
        return { value: low + share * span, amount: share ** 2 * Math.min(1, span / FULL_SPAN) };
      } };
    }
    const peak = this.at(model, "delta_peak", place, pair, t);
    return { top, of: (l) => {
      const share = level(`${model.name}/delta`, l, own) / 127;
      return { value: Math.sign(share) * share ** 2 * peak, amount: share };
    } };
  }

  card(pair) {
    const name = `pair-${pair.i}`;
    const node = element("article", { class: "example pair", "aria-labelledby": name });
    node.append(element("h3", { id: name, text: `Pair ${pair.index + 1}` }));
    node.append(element("dl", { class: "sentences" }, ...page.languages.flatMap((language, k) => [
      element("dt", { dir: "auto", text: language }), element("dd", { dir: "auto", text: pair.sentences[k] })])));
    const card = { node, pair, picked: null };
    card.sides = this.models.map((model) => this.side(card, model));
    card.readout = element("p", { class: "numbers", text: HINT });
    card.table = emptyTable(["place", "output word",
      ...card.sides.flatMap(() => ["would say", "right word", ...this.quantities.map((q) => `most ${q.title}`)]), ...(this.arrays.gold ? ["gold"] : [])]);
    card.numbers = element("details", {}, element("summary", { text: "Numbers" }),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Numbers of pair ${pair.index + 1}` }, card.table));
    const file = element("p", { class: "save" });
    offerTable(file, `pair-${pair.index + 1}`, () => this.cellRows(pair));
    card.numbers.append(file);
    node.append(...card.sides.map((side) => side.node), card.readout, element("div", { class: "foot" }, card.numbers, linkTo("pair", pair.index + 1)));
    card.numbers.addEventListener("toggle", () => this.tabulate(card));
    return card;
  }

  side(card, model) {
    const { pair } = card;
    const node = element("div", { class: "side" });
    if (this.beside) node.append(element("h4", { text: model.title }));
    const right = element("span"), course = element("span"), agree = element("span"), error = element("span");
    const save = element("span", { class: "save" });
    node.append(element("p", { class: "state" }, right, course, agree, error, save));
    const spark = this.spark(course, model, pair, "Mean probability of the right words over training");
    const holder = element("div", { class: "matrices", tabindex: "0", role: "group",
      "aria-label": `Matrices of pair ${pair.index + 1}, ${model.title}; arrow keys walk through the cells, the numbers are read below` });
    const lines = element("div", { class: "links" });
    node.append(element("div", { class: "both" }, lines, holder));
    const side = { node, model, right, agree, error, spark, matrices: new Matrices(this, pair, model, holder), links: new Links(this, pair, model, lines), place: -1 };
    side.drawn = () => this.attends(model);
    lines.hidden = !side.drawn();
    offerPicture(save, `pair-${pair.index + 1}-${model.name}`, () => holder.querySelector("svg"));
    holder.addEventListener("pointerover", (event) => this.pick(card, event.target.dataset?.cell));
    holder.addEventListener("pointerleave", () => this.pick(card, undefined));
    holder.addEventListener("mousedown", (event) => event.preventDefault()); // a click is not to take the arrow keys from the slider
    holder.addEventListener("focus", () => { card.readout.setAttribute("aria-live", "polite"); this.pick(card, card.picked ?? 0); });
    holder.addEventListener("blur", () => { card.readout.removeAttribute("aria-live"); this.pick(card, undefined); });
    holder.addEventListener("keydown", (event) => {
      const move = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
      const inside = (value, size) => Math.min(Math.max(value, 0), size - 1);
      const t = inside(Math.floor((card.picked ?? 0) / pair.L) + move[0], pair.T), l = inside(((card.picked ?? 0) % pair.L) + move[1], pair.L);
      this.pick(card, t * pair.L + l);
      event.preventDefault();
      event.stopPropagation();
    });
    return side;
  }

  /** After the cards have been put on the page: their widths are known. */
  placed() {
    this.drawKey();
    for (const card of this.cards) this.lay(card);
  }

  lay(card) {
    for (const side of card.sides) {
      side.matrices.lay();
      if (side.drawn()) side.links.lay();
      side.place = -1;
    }
  }

  showCard(card, at) {
    const { pair } = card, place = state.step;
    for (const side of card.sides) {
      const { model, right, agree, error, spark, matrices, links } = side;
      matrices.show(at);
      if (side.drawn()) links.show(at);
      if (side.place === place) continue;
      side.place = place;
      const many = pair.target.filter((_, t) => this.isRight(model, place, pair, t)).length;
      right.replaceChildren(element("b", { text: `${many} of ${pair.T}` }), " words right");
      spark(place);
      if (this.attends(model)) {
        const together = pair.target.filter((_, t) => this.agrees(model, place, pair, t)).length;
        agree.replaceChildren("attention and word knowledge agree for ", element("b", { text: `${together} of ${pair.T}` }));
      } else agree.textContent = "attention is frozen uniform";
      const wrong = this.alignmentError(model, place, pair);
      if (wrong !== null) error.replaceChildren("alignment error ", element("b", { text: percent(wrong, 0) }));
    }
    this.tabulate(card);
    if (card.picked !== null) this.spell(card);
  }

  pick(card, cell) {
    card.picked = cell === undefined ? null : Number(cell);
    for (const { matrices, links } of card.sides) {
      matrices.pick(card.picked);
      links.pick(card.picked === null ? null : Math.floor(card.picked / card.pair.L));
    }
    if (card.picked === null) card.readout.textContent = HINT;
    else this.spell(card);
  }

  /** The numbers of the cell that is pointed at. */
  spell(card) {
    const { pair } = card, t = Math.floor(card.picked / pair.L), l = card.picked % pair.L;
    const parts = card.sides.map(({ model }) => {
      const numbers = QUANTITIES.map(({ name, title }) => `${title} ${spelled(name, this.read(model, name, state.step, pair, t).of(l).value)}`);
      const said = this.at(model, "prediction", state.step, pair, t);
      const guess = `would say ${quoted(said)}, gives ${quoted(pair.target[t])} ${percent(this.probability(model, state.step, pair, t), 0)}`;
      return `${card.sides.length > 1 ? `${model.title}: ` : ""}${numbers.join("   ")}   ${guess}`;
    });
    const link = ["", "   possible gold link", "   gold link"][this.gold(pair, t, l)];
    card.readout.textContent = `${quoted(pair.source[l])} → ${quoted(pair.target[t])}${link}   ${parts.join("   |   ")}`;
  }

  /** The numbers of a card whose table is open: for each output word, where each quantity is highest. */
  tabulate({ pair, sides, table, numbers }) {
    if (!numbers.open) return;
    const shown = this.quantities;
    table.tBodies[0].replaceChildren(...pair.target.map((word, t) => element("tr", {},
      element("td", { text: t + 1 }), element("td", { dir: "auto", text: piece(word, 40) }),
      ...sides.flatMap(({ model }) => [
        element("td", { dir: "auto", text: piece(this.at(model, "prediction", state.step, pair, t), 40) }),
        element("td", { text: percent(this.probability(model, state.step, pair, t), 0) }),
        ...shown.map(({ name }) => {
          const { top, of } = this.read(model, name, state.step, pair, t);
          return element("td", { dir: "auto", text: top < 0 ? "–" : `${piece(pair.source[top], 40)} ${spelled(name, of(top).value)}` });
        })]),
      ...(this.arrays.gold ? [element("td", { dir: "auto", text: pair.source.filter((_, l) => this.gold(pair, t, l)).map((w) => piece(w, 40)).join(" ") || "–" })] : []))));
  }

  /** Every cell of a pair at the slider's step, one row for each model, as a file has them. */
  cellRows(pair) {
    return this.models.flatMap((model) => pair.target.flatMap((word, t) => {
      const read = QUANTITIES.map(({ name }) => [name === "beta" ? "beta_log_odds" : name, this.read(model, name, state.step, pair, t)]);
      return pair.source.map((from, l) => ({ step: page.steps[state.step], model: model.title, output: t + 1, output_word: piece(word), source: l + 1, source_word: piece(from),
        ...Object.fromEntries(read.map(([name, { of }]) => [name, of(l).value])), gold: ["", "possible", "sure"][this.gold(pair, t, l)] }));
    }));
  }

  /** A pair that moves with the slider on the first screen: a line from each output word to where it attends. */
  live(pair) {
    const model = page.models[0], holder = element("div", { class: "links" }), right = element("span");
    const links = new Links(this, pair, model, holder);
    const node = element("div", {}, holder, element("p", { class: "state" }, element("span", { text: `Pair ${pair.index + 1}` }), right));
    pointAt(holder, (target) => {
      const t = target.dataset?.row === undefined ? null : Number(target.dataset.row);
      links.pick(t);
      if (t === null) return null;
      const { top, of } = this.read(model, "alpha", state.step, pair, t);
      return `${quoted(pair.target[t])} looks most at ${quoted(pair.source[top])}: ${percent(of(top).value, 0)}`;
    });
    holder.addEventListener("pointerleave", () => links.pick(null));
    return {
      node, key: "pair", number: pair.index + 1,
      placed: () => whenSized(holder, () => { links.lay(); links.show(state.at); }),
      show: (at) => {
        links.show(at);
        const many = pair.target.filter((_, t) => this.isRight(model, state.step, pair, t)).length;
        say(right, `${many} of ${pair.T} words right, each given the right words before it`);
      },
      recolour: () => {},
      legend: [`thicker line = more attention; lines below ${percent(FAINT, 0)} are left out`],
    };
  }

  colour(dark) {
    Matrices.colour(dark);
    this.dark = dark;
    this.drawKey();
    for (const card of this.cards) for (const { matrices } of card.sides) matrices.forget();
    this.show(state.at);
  }

  /** What the shades and marks mean. */
  drawKey() {
    const shown = (name) => this.quantities?.some((q) => q.name === name);
    const levels = [0, 0.25, 0.5, 0.75, 1], ramp = (ramps, ends) => numberedRamp(this.dark, ramps, ramps.map((_, i) => (i === 0 ? ends[0] : i === ramps.length - 1 ? ends[1] : "")));
    const mark = (tag, attributes) => {
      const svg = document.createElementNS(SVG, "svg");
      for (const [name, value] of Object.entries({ viewBox: "0 0 18 18", width: 18, height: 18, class: "mark", "aria-hidden": "true" })) svg.setAttribute(name, value);
      shape(svg, tag, attributes);
      return svg;
    };
    const entries = [
      [...alphaKey(this.dark)],
      shown("beta") && ["word knowledge: lowest", ramp(levels.map((a) => ["for", a]), ["", ""]), `highest log-odds of its row; pale where they differ by less than ${FULL_SPAN}`],
      shown("delta") && ["influence: against the right word", ramp([...levels.slice(1).reverse().map((a) => ["against", a]), ...levels.map((a) => ["for", a])], ["−", "+"]), "for it, each row on its own scale"],
      [mark("rect", { class: "best", x: 2, y: 2, width: 14, height: 14, rx: 2 }), " highest of its row"],
      page.pairs.gold && [mark("circle", { class: "gold", cx: 9, cy: 9, r: 4.5 }), " gold link"],
      [element("span", { class: "tick", text: "✓" }), " the model would say this word"],
      page.joined.some(Boolean) && ["‑ continues the word before it"],
    ];
    document.getElementById("key").replaceChildren(...entries.filter(Boolean).map((parts) => element("span", {}, ...parts)));
  }
}

function mean(numbers) {
  return numbers.reduce((a, b) => a + b, 0) / numbers.length;
}

function spelled(quantity, value) {
  if (quantity === "beta") return probabilityOf(value);
  return quantity === "delta" ? signed(value) : percent(value);
}

/** A probability from its log-odds, with as many digits as it needs. */
function probabilityOf(odds) {
  const p = 1 / (1 + Math.exp(-odds));
  if (p >= 0.1) return p.toFixed(p > 0.99 ? 3 : 2);
  return p < 0.0001 ? "< 0.0001" : p.toPrecision(2);
}

function quoted(place) {
  return `“${piece(place, 60)}”`;
}

/** The words of a sentence, its parts joined, its ends left out. */
function sentence(places) {
  return places.filter((p) => !["start", "end", "pad"].includes(page.special[p]))
    .map((p) => (page.joined[p] ? "" : " ") + spelt(page.words[p], page.special[p])).join("").trim();
}

function showExamples(arrays) {
  const n = page.pairs.index.length, all = page.pairs.of;
  const list = new Pairs(arrays);
  list.start(
    (n < all ? `${n} of the ${steps(all)} validation pairs, chosen for variety, so rare cases are over-represented. ` : `All ${n} validation pairs, unlike ones next to each other. `) +
    "A row is an output word, given the right words before it; a column is a source word. Attention and word knowledge move with the slider; word counts, what counting alone would attend to, do not. Lines lead from each output word to the source words it attends to. Sorting uses the last step.");
  showStage(list);
  if (page.heads) showHeads(arrays, list);
}
