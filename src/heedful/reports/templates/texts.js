// Texts whose words are shaded by α, β and Δ at the slider's step.

const QUANTITIES = [
  { name: "alpha", array: "alpha", letter: "α", title: "attention" },
  { name: "beta", array: "beta_logit", letter: "β", title: "word knowledge" },
  { name: "delta", array: "delta", letter: "Δ", title: "influence" },
  { name: "counting", array: "counting", letter: "αᴵᴮᴹ", title: "word counts" }, // it does not move, and no model has it
];

/** Which label β, Δ and the probabilities speak of. */
const asked = page.texts?.label.includes(null) ? "predicted" : "correct";

let shades = {};

/** The colour of every level a quantity can have, for one model, on scales that all models share. */
function makeShades(arrays, dark) {
  const ramps = RAMPS[dark ? "dark" : "light"];
  const neutral = Math.log(Math.max(page.labels.length - 1, 1));
  shades = {};
  for (const { name, array } of QUANTITIES.slice(0, 3)) {
    const held = page.models.filter((m) => `${m.name}/${array}` in arrays);
    const largest = Math.max(...held.map((m) => arrays[`${m.name}/${array}`].largest ?? 1));
    for (const model of held) {
      const own = arrays[`${model.name}/${array}`].largest;
      const table = (shades[`${model.name}/${array}`] = []);
      for (let level = name === "alpha" ? 0 : -127; level <= (name === "alpha" ? 255 : 127); level++) {
        if (name === "alpha") table[level] = shade(ramps.alpha, level / 255);
        else {
          const value = meaning.signed(level, own) + (name === "beta" ? neutral : 0);
          const amount = Math.sqrt(Math.abs(value) / largest);
          table[level + 127] = shade(value < 0 ? ramps.against : ramps.for, amount ** (name === "beta" ? 1.4 : 1), value < 0);
        }
      }
    }
  }
  shades.even = Array.from({ length: 256 }, (_, level) => shade(ramps.alpha, level / 255));
}

class Texts extends ExampleList {
  constructor(arrays) {
    let start = 0;
    const texts = page.texts.index.map((index, i) => {
      const length = page.texts.length[i];
      const places = [...arrays.places.values.subarray(start, start + length)];
      const text = { i, index, length, start, label: page.texts.label[i], places };
      text.search = places.map((p) => page.words[p]).join(" ").toLowerCase();
      start += length;
      return text;
    });
    super(arrays, texts, 10);
    this.positions = start;
  }

  /** A value kept once per text and step. */
  at(model, array, place, text) {
    return this.arrays[`${model.name}/${array}`].values[this.own(model, place) * this.items.length + text.i];
  }

  probability(model, place, text) {
    return 1 / (1 + Math.exp(-this.at(model, "log_odds", place, text) / 1000));
  }

  attends(model) {
    return `${model.name}/top` in this.arrays;
  }

  changes(model, text) {
    let count = 0;
    for (let k = 1; k < page.steps.length; k++) {
      count += this.at(model, "prediction", k, text) !== this.at(model, "prediction", k - 1, text);
    }
    return count;
  }

  /** What each order sorts by. */
  keys() {
    const last = page.steps.length - 1, ranker = this.ranker;
    const apart = (t) => this.at(ranker, "higher", last, t) / t.length;
    return {
      varied: (t) => [t.i],
      agree: (t) => [apart(t)],
      disagree: (t) => [-apart(t)],
      changed: (t) => [-this.changes(this.model, t), -this.arrays[`${ranker.name}/moved`].values[t.i]],
      wrong: (t) => [this.at(this.model, "log_odds", last, t)],
    };
  }

  card(text) {
    const node = element("article", { class: "example", "aria-labelledby": `text-${text.i}` });
    const head = element("h3", { id: `text-${text.i}`, text: `Text ${text.index + 1} ` });
    if (text.label !== null) head.append(element("span", { dir: "auto", text: `labelled ${page.labels[text.label]}` }));
    const sides = this.models.map((model) => this.side(text, model));
    const holder = element("div", { class: sides.length > 1 ? "sides two" : "sides" }, ...sides.map((s) => s.node));
    const table = emptyTable(["place", "word", ...sides.flatMap(() => ["α", "β", "Δ"])]);
    const picture = element("span", { class: "save" }), file = element("p", { class: "save" });
    const numbers = element("details", {}, element("summary", { text: "Numbers" }),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Numbers of text ${text.index + 1}` }, table), file);
    offerPicture(picture, `text-${text.index + 1}`, () => stripsPicture(node));
    offerTable(file, `text-${text.index + 1}`, () => this.rows(text));
    node.append(head, holder, element("div", { class: "foot" }, numbers, linkTo("text", text.index + 1), picture));
    const card = { node, text, sides, table, numbers, hovered: null, place: -1 };
    numbers.addEventListener("toggle", () => this.tabulate(card));
    pointAt(node, (target) => {
      this.hover(card, target.dataset?.place);
      return card.hovered === null ? null : this.read(card);
    });
    node.addEventListener("pointerleave", () => this.hover(card, undefined));
    return card;
  }

  side(text, model) {
    const node = element("div");
    if (this.beside) node.append(element("h4", { text: model.title }));
    const mark = element("span"), guess = element("span"), course = element("span");
    const whether = element("b"), where = element("span");
    const attends = this.attends(model);
    const spark = this.spark(course, model, text, `Probability of the ${asked} label over training`);
    node.append(element("p", { class: "state" }, element("span", {}, mark, guess), course,
      attends ? element("span", {}, "attention and word knowledge ", whether, where) : element("span", { text: "attention is frozen uniform" })));
    const strips = this.quantities.map((quantity) => {
      const strip = this.strip(text, quantity);
      node.append(element("div", { class: "strip" }, element("span", { class: "q", text: `${quantity.title} ` }, element("i", { text: quantity.letter })), strip.node));
      return strip;
    });
    return { node, model, mark, guess, whether, where, spark, strips, place: -1 };
  }

  /** The words of a text, to be shaded by a quantity. */
  strip(text, quantity) {
    const node = element("p", { class: "words", dir: "auto" });
    const spans = text.places.map((place, l) => {
      const special = page.special[place];
      const span = element("span", { class: special ? (special === "unknown" ? "w rare" : "w mark") : "w", "data-place": l, text: spelt(page.words[place], special) });
      if (special) span.setAttribute("dir", "ltr");
      if (this.isFound(page.words[place])) span.classList.add("found");
      node.append(span, " ");
      return span;
    });
    return { node, quantity, spans, levels: new Int16Array(text.length).fill(-999), shades: Array(text.length).fill({}), ringed: -1 };
  }

  showCard(card, at) {
    for (const side of card.sides) this.showSide(card.text, side, at);
    if (card.place === state.step) return;
    card.place = state.step;
    this.tabulate(card);
  }

  /** What a model predicts of a text at a recorded step, in words. */
  says(model, place, text) {
    const predicted = this.at(model, "prediction", place, text), known = text.label !== null;
    const right = !known || predicted === text.label, sure = surely(this.probability(model, place, text));
    if (right) return { right, known, words: `predicts ${page.labels[predicted]} with ${sure}` };
    return { right, known, words: `predicts ${page.labels[predicted]}; the label ${page.labels[text.label]} gets ${sure}` };
  }

  showSide(text, side, at) {
    const { model, mark, guess, whether, where, spark, strips } = side, place = state.step;
    for (const strip of strips) this.paint(strip, text, model, at);
    if (side.place === place) return;
    side.place = place;
    const { right, known, words } = this.says(model, place, text);
    if (known) say(mark, right ? "✓ " : "✗ ", right ? "right" : "wrong");
    say(guess, words);
    spark(place);
    if (this.attends(model)) {
      const higher = this.at(model, "higher", place, text);
      say(whether, 100 * higher < 5 * text.length ? "agree" : "differ");
      say(where, `: the word with most attention is number ${higher + 1} of ${text.length} by word knowledge`);
    }
  }

  /** Shade the words of a strip as they are at a place, mixed where it lies between two recorded steps. */
  paint(strip, text, model, at) {
    const counted = strip.quantity.name === "counting";
    const name = `${counted ? "lexicon" : model.name}/${strip.quantity.array}`;
    const values = this.arrays[name]?.values;
    const table = shades[name] ?? shades.even;
    const even = Math.round(255 / Math.sqrt(text.length));
    const signed = counted || strip.quantity.name === "alpha" ? 0 : 127;
    const [before, after, share] = around(at);
    const start = (place) => (counted ? 0 : this.own(model, place) * this.positions) + text.start;
    const from = start(before), to = start(after);
    for (let l = 0; l < text.length; l++) {
      const level = values ? Math.round(values[from + l] + share * (values[to + l] - values[from + l])) + signed : even;
      if (level === strip.levels[l]) continue;
      strip.levels[l] = level;
      const { ground, ink, against } = table[level], span = strip.spans[l], shown = strip.shades[l];
      strip.shades[l] = table[level];
      if (ground !== shown.ground) span.style.backgroundColor = ground;
      if (ink !== shown.ink) span.style.color = ink;
      if (against !== shown.against) span.classList.toggle("against", against);
    }
    const ringed = counted ? this.arrays["lexicon/counting_top"].values[text.i] : this.attends(model) ? this.at(model, "top", state.step, text) : -1;
    if (strip.ringed !== ringed) {
      strip.spans[strip.ringed]?.classList.remove("ring");
      strip.spans[ringed]?.classList.add("ring");
      strip.ringed = ringed;
    }
  }

  /** α, β and Δ of one word, as numbers. */
  values(model, text, l) {
    const at = this.own(model, state.step) * this.positions + text.start + l;
    const read = (array) => this.arrays[`${model.name}/${array}`];
    const alpha = this.attends(model) ? meaning.alpha(read("alpha").values[at]) : 1 / text.length;
    const odds = meaning.signed(read("beta_logit").values[at], read("beta_logit").largest);
    return { alpha, beta: 1 / (1 + Math.exp(-odds)), delta: meaning.signed(read("delta").values[at], read("delta").largest) };
  }

  /** A text's numbers at the slider's step, one row for each word and model, as a file has them. */
  rows(text) {
    return this.models.flatMap((model) => text.places.map((place, l) => ({
      step: page.steps[state.step], model: model.title, place: l + 1, word: spelt(page.words[place], page.special[place]), ...this.values(model, text, l) })));
  }

  /** A text that moves with the slider on the first screen. */
  live(text) {
    const model = page.models[0], strip = this.strip(text, QUANTITIES[0]), mark = element("span"), said = element("span");
    const title = `Text ${text.index + 1}`, label = text.label === null ? "" : `, labelled ${page.labels[text.label]}`;
    const node = element("div", {}, strip.node, element("p", { class: "state" }, element("span", { dir: "auto", text: `${title}${label}` }), element("span", {}, mark, said)));
    pointAt(strip.node, (target) => {
      const l = target.dataset?.place;
      return l === undefined ? null : `${percent(this.values(model, text, Number(l)).alpha)} of attention`;
    });
    return {
      node, key: "text", number: text.index + 1,
      show: (at) => {
        this.paint(strip, text, model, at);
        const { right, known, words } = this.says(model, state.step, text);
        if (known) say(mark, right ? "✓ " : "✗ ", right ? "right" : "wrong");
        say(said, words);
      },
      recolour: () => strip.levels.fill(-999),
    };
  }

  hover(card, place) {
    card.hovered = place === undefined ? null : Number(place);
    for (const side of card.sides) {
      for (const { spans } of side.strips) spans.forEach((span, l) => span.classList.toggle("hover", l === card.hovered));
    }
  }

  /** The numbers of the word that is pointed at. */
  read(card) {
    const word = spelt(page.words[card.text.places[card.hovered]], page.special[card.text.places[card.hovered]]);
    const parts = card.sides.map(({ model }) => {
      const { alpha, beta, delta } = this.values(model, card.text, card.hovered);
      return `attention α ${percent(alpha)}\nword knowledge β ${beta.toFixed(2)}\ninfluence Δ ${signed(delta)}`;
    });
    return `“${word}”\n${parts.join("\n")}`;
  }

  /** The numbers of a card whose table is open. */
  tabulate({ text, sides, table, numbers }) {
    if (!numbers.open) return;
    table.tBodies[0].replaceChildren(...text.places.map((place, l) => element("tr", {},
      element("td", { text: l + 1 }), element("td", { dir: "auto", text: spelt(page.words[place], page.special[place]) }),
      ...sides.flatMap(({ model }) => {
        const { alpha, beta, delta } = this.values(model, text, l);
        return [percent(alpha), beta.toFixed(2), signed(delta)].map((t) => element("td", { text: t }));
      }))));
  }

  colour(dark) {
    makeShades(this.arrays, dark);
    drawKey(dark);
    for (const card of this.cards) for (const side of card.sides) for (const strip of side.strips) strip.levels.fill(-999);
    this.show(state.at);
  }
}

/** A probability in percent, with a decimal where a whole percent would hide on which side of a half it lies. */
function surely(probability) {
  return percent(probability, Math.abs(probability - 0.5) < 0.005 ? 1 : 0);
}

/** What the shades mean, with numbers. */
function drawKey(dark) {
  const levels = [0, 0.25, 0.5, 0.75, 1], largest = page.scales;
  document.getElementById("key").replaceChildren(
    ...alphaKey(dark),
    element("span", {}, `word knowledge, influence: against the ${asked} label (underlined)`,
      numberedRamp(dark, [...levels.slice(1).reverse().map((a) => ["against", a]), ...levels.map((a) => ["for", a])],
        [...levels.slice(1).reverse().map((a) => -a), ...levels].map((a) => (a === 0 || Math.abs(a) === 1 ? signedOdds(Math.sign(a) * a * a * largest.beta) : ""))), "for it; numbers: log-odds of word knowledge"),
    element("span", {}, element("span", { class: "ring", text: "word" }), " the word with most attention"),
    ...(page.special.includes("unknown") ? [element("span", {}, element("span", { class: "w rare", text: "word" }), " a rare word, unknown to the model")] : []));
}

function showExamples(arrays) {
  const n = page.texts.index.length, all = page.texts.of;
  const list = new Texts(arrays);
  page.scales = { beta: Math.max(...page.models.filter((m) => `${m.name}/beta_logit` in arrays).map((m) => arrays[`${m.name}/beta_logit`].largest)) };
  list.start(
    (n < all ? `${n} of the ${steps(all)} ${TERMS.shown}, chosen for variety, so rare cases are over-represented. ` : `All ${n} ${TERMS.shown}, unlike ones next to each other. `) +
    "At the slider’s step, words are shaded by attention (how much weight the model gives a word), word knowledge (what the word predicts by itself) and influence (how much the prediction depends on it). The colours mean the same at every step and for every model. Sorting uses the last step.");
  showStage(list);
  if (page.heads) showHeads(arrays, list);
}
