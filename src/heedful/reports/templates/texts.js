// Texts whose words are shaded by α, β and Δ at the slider's step.

const QUANTITIES = [
  { name: "alpha", array: "alpha", letter: "α" },
  { name: "beta", array: "beta_logit", letter: "β" },
  { name: "delta", array: "delta", letter: "Δ" },
  { name: "counting", array: "counting", letter: "αᴵᴮᴹ" }, // it does not move, and no model has it
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
    const readout = element("p", { class: "readout" });
    const table = emptyTable(["place", "word", ...sides.flatMap(() => ["α", "β", "Δ"])]);
    const picture = element("span", { class: "save" }), file = element("p", { class: "save" });
    const numbers = element("details", {}, element("summary", { text: "Numbers" }),
      element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": `Numbers of text ${text.index + 1}` }, table), file);
    offerPicture(picture, `text-${text.index + 1}`, () => stripsPicture(node));
    offerTable(file, `text-${text.index + 1}`, () => this.rows(text));
    node.append(head, holder, readout, element("div", { class: "foot" }, numbers, picture));
    const card = { node, text, sides, readout, table, numbers, hovered: null };
    numbers.addEventListener("toggle", () => this.tabulate(card));
    node.addEventListener("pointerover", (event) => this.hover(card, event.target.dataset?.place));
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
      attends ? element("span", {}, "α and β ", whether, where) : element("span", { text: "attention is frozen uniform" })));
    const strips = this.quantities.map((quantity) => {
      const words = element("p", { class: "words", dir: "auto" });
      const spans = text.places.map((place, l) => {
        const special = page.special[place];
        const span = element("span", { class: special ? (special === "unknown" ? "w rare" : "w mark") : "w", "data-place": l, text: spelt(page.words[place], special) });
        if (special) span.setAttribute("dir", "ltr");
        if (this.isFound(page.words[place])) span.classList.add("found");
        words.append(span, " ");
        return span;
      });
      node.append(element("div", { class: "strip" }, element("span", { class: "q", text: quantity.letter }), words));
      return { quantity, spans, levels: new Int16Array(text.length).fill(-999), shades: Array(text.length).fill({}), ringed: -1 };
    });
    return { node, model, mark, guess, whether, where, spark, strips };
  }

  showCard(card, place) {
    for (const side of card.sides) this.showSide(card.text, side, place);
    this.tabulate(card);
    if (card.hovered !== null) this.read(card);
  }

  showSide(text, { model, mark, guess, whether, where, spark, strips }, place) {
    const predicted = this.at(model, "prediction", place, text), known = text.label !== null;
    const right = !known || predicted === text.label, sure = percent(this.probability(model, place, text), 0);
    if (known) say(mark, right ? "✓ right" : "✗ wrong", right ? "right" : "wrong");
    say(guess, `${known ? ": " : ""}predicts ${page.labels[predicted]}${right ? " with" : `, gives ${page.labels[text.label]}`} ${sure}`);
    spark(place);
    let top = -1;
    if (this.attends(model)) {
      top = this.at(model, "top", place, text);
      const higher = this.at(model, "higher", place, text);
      say(whether, 100 * higher < 5 * text.length ? "agree" : "differ");
      say(where, `: α’s top word is number ${higher + 1} of ${text.length} by β`);
    }
    for (const strip of strips) {
      const counted = strip.quantity.name === "counting";
      const name = `${counted ? "lexicon" : model.name}/${strip.quantity.array}`;
      const values = this.arrays[name]?.values;
      const table = shades[name] ?? shades.even;
      const even = Math.round(255 / Math.sqrt(text.length));
      const signed = counted || strip.quantity.name === "alpha" ? 0 : 127;
      const from = (counted ? 0 : this.own(model, place) * this.positions) + text.start;
      const ringed = counted ? this.arrays["lexicon/counting_top"].values[text.i] : top;
      for (let l = 0; l < text.length; l++) {
        const level = values ? values[from + l] + signed : even;
        if (level === strip.levels[l]) continue;
        strip.levels[l] = level;
        const { ground, ink, against } = table[level], span = strip.spans[l], before = strip.shades[l];
        strip.shades[l] = table[level];
        if (ground !== before.ground) span.style.backgroundColor = ground;
        if (ink !== before.ink) span.style.color = ink;
        if (against !== before.against) span.classList.toggle("against", against);
      }
      if (strip.ringed !== ringed) {
        strip.spans[strip.ringed]?.classList.remove("ring");
        strip.spans[ringed]?.classList.add("ring");
        strip.ringed = ringed;
      }
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

  /** A text of middling length in which attention has come to a word that the model knows. */
  film() {
    const model = page.models[0], last = page.steps.length - 1;
    const level = (text, place, l) => this.arrays[`${model.name}/alpha`].values[place * this.positions + text.start + l];
    const come = (text) => level(text, last, this.at(model, "top", last, text)) - level(text, 0, this.at(model, "top", last, text));
    const fits = (text) => text.length >= 8 && text.length <= 22 && !page.special[text.places[this.at(model, "top", last, text)]]
      && 100 * this.at(model, "higher", last, text) < 5 * text.length && (text.label === null || this.at(model, "prediction", last, text) === text.label)
      && text.places.every((p) => page.words[p].length < 18);
    const best = this.items.filter(fits).sort((a, b) => come(b) - come(a))[0];
    return best ? {
      columns: best.places.map((p) => spelt(page.words[p], page.special[p])),
      levels: (place) => best.places.map((_, l) => level(best, place, l)),
      sure: (place) => this.probability(model, place, best),
      caption: [element("b", { text: "Attention being learned." }), ` Text ${best.index + 1}, one in which α has come far: a row is a step of training, a column a word, stronger is more attention; p is the probability of the ${asked} label. Click a row to go there.`],
    } : null;
  }

  hover(card, place) {
    card.hovered = place === undefined ? null : Number(place);
    for (const side of card.sides) {
      for (const { spans } of side.strips) spans.forEach((span, l) => span.classList.toggle("hover", l === card.hovered));
    }
    if (card.hovered === null) card.readout.textContent = "";
    else this.read(card);
  }

  read(card) {
    const place = card.text.places[card.hovered];
    const parts = card.sides.map(({ model }) => {
      const { alpha, beta, delta } = this.values(model, card.text, card.hovered);
      return `α ${percent(alpha)}  β ${beta.toFixed(2)}  Δ ${signed(delta)}`;
    });
    card.readout.textContent = `“${spelt(page.words[place], page.special[place])}”  ${parts.join("  |  ")}`;
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
    this.show(state.step);
  }
}

/** What the shades mean. */
function drawKey(dark) {
  const levels = [0, 0.25, 0.5, 0.75, 1];
  document.getElementById("key").replaceChildren(
    element("span", {}, "α: no weight", rampStrip(dark, levels.map((a) => ["alpha", a])), "all the weight"),
    element("span", {}, `β, Δ: against the ${asked} label (underlined)`,
      rampStrip(dark, [...levels.slice(1).reverse().map((a) => ["against", a]), ...levels.map((a) => ["for", a])]), "for it"),
    element("span", {}, element("span", { class: "ring", text: "word" }), " the word of highest α"),
    ...(page.special.includes("unknown") ? [element("span", {}, element("span", { class: "w rare", text: "word" }), " a rare word, unknown to the model")] : []));
}

function showExamples(arrays) {
  const n = page.texts.index.length, all = page.texts.of;
  const list = new Texts(arrays);
  list.start(
    (n < all ? `${n} of the ${steps(all)} ${TERMS.shown}, chosen for variety, so that rare cases are over-represented. ` : `All ${n} ${TERMS.shown}, unlike ones beside one another. `) +
    "Words are shaded by attention α, word knowledge β and saliency Δ at the slider’s step; the scales stay the same through training and for all models. Orders are taken at the last step.");
  if (!page.runs) showFilm(list.film());
}
