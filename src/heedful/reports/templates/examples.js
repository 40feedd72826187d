// A list of examples that can be searched, sorted and looked at through the eyes of any model; texts.js and pairs.js fill it.

class ExampleList {
  /** items: objects with `i`, `index` and `search`, one for each example; many: how many to show at a time. */
  constructor(arrays, items, many) {
    this.arrays = arrays;
    this.items = items;
    this.many = this.visible = many;
    this.model = page.models[0];
    this.beside = null;
    this.cards = [];
    this.list = document.getElementById("example-list");
  }

  /** The models to show, one or two. */
  get models() {
    return this.beside ? [this.model, this.beside] : [this.model];
  }

  /** The place of a model's own record that is shown at a place of the slider: where runs are compared, the last before it. */
  own(model, place) {
    return model.places ? model.places[place] : place;
  }

  /** The model whose attention decides an order: the one chosen, or the first where that one has none. */
  get ranker() {
    return this.attends(this.model) ? this.model : page.models[0];
  }

  /** The examples that hold what is looked for, in the order asked. */
  selected() {
    const order = this.keys()[document.getElementById("order").value];
    return this.items
      .filter((item) => !this.wanted || item.search.includes(this.wanted))
      .map((item) => [...order(item), item.i, item])
      .sort((a, b) => { for (let k = 0; k < a.length - 1; k++) if (a[k] !== b[k]) return a[k] - b[k]; return 0; })
      .map((sorted) => sorted[sorted.length - 1]);
  }

  /** Build the cards anew. */
  render() {
    this.wanted = document.getElementById("find").value.trim().toLowerCase();
    this.quantities = QUANTITIES.filter((q) => document.querySelector(`[name=quantity][value=${q.name}]`)?.checked);
    const items = this.selected();
    const shown = items.slice(0, this.visible);
    for (const card of this.cards) offStep(card.node);
    this.cards = shown.map((item) => this.card(item));
    this.list.replaceChildren(...this.cards.map((card) => card.node));
    document.getElementById("found").textContent = `${shown.length} of ${items.length} shown`;
    document.getElementById("more").hidden = shown.length === items.length;
    this.placed?.();
    for (const card of this.cards) onStep((at) => this.showCard(card, at), card.node, true);
  }

  /** All cards as they are at a place of the slider. */
  show(at) {
    for (const card of this.cards) this.showCard(card, at);
  }

  /** Whether any of the words looked for is in this one. */
  isFound(word) {
    return this.wanted && this.wanted.split(/\s+/).some((w) => word.toLowerCase().includes(w));
  }

  /** How surely the right answer is given over training, small. */
  spark(holder, model, item, title) {
    const svg = shape(holder, "svg", { viewBox: "0 0 84 22", role: "img", "aria-label": title });
    const last = page.steps[page.steps.length - 1] || 1;
    const spot = (k) => [2 + 80 * Math.sqrt(page.steps[k] / last), 20 - 18 * this.probability(model, k, item)];
    shape(svg, "line", { class: "grid", x1: 2, x2: 82, y1: 11, y2: 11 });
    shape(svg, "polyline", { class: "line c0", points: page.steps.map((_, k) => spot(k).join(",")).join(" ") });
    const mark = shape(svg, "circle", { class: "point c0", r: 3.5 });
    return (k) => { const [x, y] = spot(k); mark.setAttribute("cx", x); mark.setAttribute("cy", y); };
  }

  /** Connect the list with its tools, and show it. */
  start(intro) {
    const choose = (id, models) => {
      const select = document.getElementById(id);
      select.append(...models.map((m) => element("option", { value: m.name, text: m.title })));
      return select;
    };
    const model = choose("model", page.models);
    const beside = choose("beside", [{ name: "", title: "nothing" }, ...page.models]);
    if (page.beside) beside.value = page.beside;
    this.beside = page.models.find((m) => m.name === page.beside) ?? null;
    const named = (name) => page.models.find((m) => m.name === name) ?? null;
    const again = () => {
      [this.model, this.beside, this.visible] = [named(model.value), named(beside.value), this.many];
      this.render();
    };
    for (const select of [model, beside]) select.parentElement.hidden = page.models.length === 1;
    const tools = document.getElementById("example-tools");
    tools.addEventListener("submit", (event) => event.preventDefault());
    tools.addEventListener("change", again);
    document.getElementById("find").addEventListener("input", again);
    document.getElementById("more").addEventListener("click", () => {
      const before = this.visible;
      this.visible += this.many;
      this.render();
      const first = this.cards[before]?.node;
      first?.setAttribute("tabindex", "-1");
      first?.focus({ preventScroll: true });
    });
    document.getElementById("examples-intro").textContent = intro;
    darkness.addEventListener("change", () => this.colour(darkness.matches));
    addEventListener("beforeprint", () => this.colour(false));
    addEventListener("afterprint", () => this.colour(darkness.matches));
    this.colour(darkness.matches);
    this.render();
  }
}
