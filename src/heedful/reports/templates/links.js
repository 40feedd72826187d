// One sentence pair as two columns of words, with a line from each output word to the source words it attends to.

const FAINT = 0.04; // weights below this have no line

class Links {
  constructor(list, pair, model, holder) {
    Object.assign(this, { list, pair, model, holder, lines: [], picked: null });
  }

  /** Draw everything but what moves. */
  lay() {
    const width = Math.min(Math.round(this.holder.clientWidth), 560);
    if (width <= 0) return;
    const { list, pair: { L, T, source, target } } = this, tall = 21, size = Math.max(L, T) * tall + 26;
    const left = source.map((word) => piece(word, LETTERS)), right = target.map((word) => piece(word, LETTERS));
    const svg = picture(this.holder, width, size, `Attention from each of ${T} output words to ${L} source words, as lines`);
    const room = Math.max(...left.map(Matrices.room)) + 8, other = Math.max(...right.map(Matrices.room)) + 8;
    const from = Math.min(room, width * 0.36), to = width - Math.min(other, width * 0.36);
    const y = (i, many) => 20 + ((i + 0.5) * (size - 26)) / many;
    shape(svg, "text", { class: "soft", x: from - 8, y: 12, "text-anchor": "end" }, list.columns[0]);
    shape(svg, "text", { class: "soft", x: to + 8, y: 12 }, list.columns[1]);
    const bundle = shape(svg, "g");
    this.lines = Array.from({ length: T * L }, (_, at) => shape(bundle, "path", { class: "tie", visibility: "hidden",
      d: `M${from} ${y(at % L, L)}C${(from + to) / 2} ${y(at % L, L)} ${(from + to) / 2} ${y(Math.floor(at / L), T)} ${to} ${y(Math.floor(at / L), T)}` }));
    left.forEach((text, l) => label(svg, source[l], text, list, { x: from - 8, y: y(l, L) + 4, "text-anchor": "end" }));
    this.words = right.map((text, t) => label(svg, target[t], text, list, { x: to + 8, y: y(t, T) + 4, "data-row": t }));
  }

  show(at) {
    const { list, model, pair, pair: { L, T } } = this, [from, to, share] = around(at);
    if (!this.lines.length) return;
    for (let t = 0; t < T; t++) {
      const before = list.read(model, "alpha", from, pair, t), after = share ? list.read(model, "alpha", to, pair, t) : before;
      for (let l = 0; l < L; l++) {
        const weight = before.of(l).value * (1 - share) + after.of(l).value * share, line = this.lines[t * L + l];
        const seen = weight >= FAINT && (this.picked === null || this.picked === t);
        line.setAttribute("visibility", seen ? "visible" : "hidden");
        if (!seen) continue;
        line.setAttribute("stroke-width", (0.6 + 5 * weight).toFixed(2));
        line.setAttribute("stroke-opacity", Math.min(1, 0.15 + weight).toFixed(2));
      }
    }
  }

  /** Only the lines of one output word; all where it is null. */
  pick(t) {
    if (this.picked === t) return;
    this.picked = t;
    this.words?.forEach((node, i) => node.classList.toggle("lit", i === t));
    this.show(state.at);
  }
}
