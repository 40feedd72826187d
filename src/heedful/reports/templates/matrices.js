// One picture of several matrices that share their rows and columns.

const CELL = { least: 13, good: 16, most: 26, lowest: 17, highest: 22 };
const LABEL = 13, SLANT = Math.PI / 3, LETTERS = 16;

class Matrices {
  /** The colours of levels 0 to 255 for each ramp. */
  static colour(dark) {
    const ramps = RAMPS[dark ? "dark" : "light"];
    Matrices.table = {};
    for (const name of ["alpha", "for", "against"]) {
      Matrices.table[name] = Array.from({ length: 256 }, (_, level) => shade(ramps[name], level / 255));
    }
  }

  /** How wide a label is. */
  static room(text) {
    Matrices.pen ??= Object.assign(document.createElement("canvas").getContext("2d"), { font: `${LABEL}px ${getComputedStyle(document.body).fontFamily}` });
    return Matrices.pen.measureText(text).width;
  }

  constructor(list, pair, model, holder) {
    Object.assign(this, { list, pair, model, holder, panels: [], picked: null, place: null });
    this.columns = pair.source.map((word) => piece(word, LETTERS));
    this.rows = pair.target.map((word) => piece(word, LETTERS));
  }

  /** Draw everything but what moves, as many matrices in a line as there is room for. */
  lay() {
    const width = this.holder.clientWidth - 6; // less its padding
    if (width <= 0) return;
    const { list, pair: { L, T, source, target } } = this, many = Math.max(list.quantities.length, 1);
    const left = Math.max(...this.rows.map(Matrices.room)) + 26;
    const above = Math.max(...this.columns.map(Matrices.room)) * Math.sin(SLANT) + 14;
    const beyond = (cell) => Math.max(...this.columns.map((text, l) => (l + 0.6) * cell + Matrices.room(text) * Math.cos(SLANT) - L * cell), 0) + 6;
    const gap = 20;
    const cellOf = (line) => (width - 3 - left - line * beyond(CELL.good) - (line - 1) * gap) / (line * L);
    let line = many;
    while (line > 1 && cellOf(line) < (line === 2 && L > 24 ? CELL.least : CELL.good)) line--; // long sentences go two by two
    line = Math.ceil(many / Math.ceil(many / line));
    const cell = Math.min(Math.max(cellOf(line), CELL.least), CELL.most), tall = Math.min(Math.max(cell, CELL.lowest), CELL.highest);
    const over = beyond(cell), step = L * cell + over + gap, head = 22, high = head + above + T * tall + 18;
    const total = left + line * step - gap + 2;
    const svg = picture(this.holder, Math.ceil(total), Math.ceil(high * Math.ceil(many / line) - 8),
      `${list.quantities.map((q) => q.title).join(", ")}: ${T} output words by ${L} source words`);
    this.panels = list.quantities.map((quantity, k) => {
      const first = k % line === 0;
      const group = shape(svg, "g", { transform: `translate(${left + (k % line) * step} ${Math.floor(k / line) * high})` });
      const name = shape(group, "text", { class: "name", x: 0, y: 14 });
      shape(name, "tspan", {}, quantity.title);
      if (quantity.letter) shape(name, "tspan", { class: "soft" }, ` ${quantity.letter}`);
      const grid = shape(group, "g", { transform: `translate(0 ${head + above})` });
      const columns = this.columns.map((text, l) => label(grid, source[l], text, list, {
        transform: `translate(${(l + 0.6) * cell} -7) rotate(${(-SLANT * 180) / Math.PI}) scale(${Math.min(1, cell / CELL.good)})` }));
      const rows = !first ? [] : this.rows.map((text, t) => label(grid, target[t], text, list, { x: -19, y: (t + 0.5) * tall + 4.5, "text-anchor": "end" }));
      const ticks = !first ? [] : this.rows.map((_, t) => shape(grid, "text", { class: "tick", x: -15, y: (t + 0.5) * tall + 4.5 }));
      shape(grid, "rect", { class: "frame", x: -0.5, y: -0.5, width: L * cell + 1, height: T * tall + 1 });
      const band = [shape(grid, "rect", { class: "band", height: tall, width: L * cell }), shape(grid, "rect", { class: "band", width: cell, height: T * tall })];
      const cells = [], gold = [];
      for (let t = 0; t < T; t++) for (let l = 0; l < L; l++) {
        cells.push(shape(grid, "rect", { class: "cell", fill: "none", "data-cell": t * L + l, x: l * cell + 0.5, y: t * tall + 0.5, width: cell - 1, height: tall - 1, rx: 1.5 }));
      }
      for (let t = 0; t < T; t++) for (let l = 0; l < L; l++) {
        const link = list.gold(this.pair, t, l);
        if (link) gold.push([t * L + l, shape(grid, "circle", { class: link === 1 ? "gold possible" : "gold", cx: (l + 0.5) * cell, cy: (t + 0.5) * tall, r: Math.min(cell, tall) * 0.27 })]);
      }
      const best = this.rows.map((_, t) => shape(grid, "rect", { class: "best", y: t * tall + 0.5, width: cell - 1, height: tall - 1, rx: 2 }));
      const picked = shape(grid, "rect", { class: "picked", width: cell + 3, height: tall + 3, rx: 3, visibility: "hidden" });
      for (const node of band) node.setAttribute("visibility", "hidden");
      return { quantity, cells, gold, best, rows, columns, ticks, band, picked, levels: new Int16Array(L * T).fill(-999), tops: [] };
    });
    this.size = { cell, tall };
    this.pick(this.picked);
  }

  /** All cells are to be drawn anew, whatever they show. */
  forget() {
    for (const panel of this.panels) panel.levels.fill(-999);
  }

  show(slider) {
    const { list, model, pair, pair: { L, T } } = this, [place, next, share] = around(slider);
    for (const panel of this.panels) {
      for (let t = 0; t < T; t++) {
        const { top, of } = list.read(model, panel.quantity.name, place, pair, t);
        const then = share ? list.read(model, panel.quantity.name, next, pair, t).of : of;
        for (let l = 0; l < L; l++) {
          const at = t * L + l, level = Math.round(255 * (of(l).amount * (1 - share) + then(l).amount * share));
          if (level === panel.levels[at]) continue;
          panel.levels[at] = level;
          panel.cells[at].setAttribute("fill", this.colourOf(panel, level).ground);
        }
        if (top !== panel.tops[t]) {
          panel.best[t].setAttribute("x", top * this.size.cell + 0.5);
          panel.best[t].setAttribute("visibility", top < 0 ? "hidden" : "visible");
          panel.tops[t] = top;
        }
        if (panel.ticks.length) panel.ticks[t].textContent = list.isRight(model, place, pair, t) ? "✓" : "";
      }
      for (const [at, ring] of panel.gold) ring.setAttribute("stroke", this.colourOf(panel, panel.levels[at]).ink);
    }
  }

  colourOf({ quantity }, level) {
    const ramp = quantity.name === "beta" || quantity.name === "delta" ? (level < 0 ? "against" : "for") : "alpha";
    return Matrices.table[ramp][Math.abs(level)];
  }

  /** Mark a cell, its row and its column in every matrix. */
  pick(cell) {
    const { L } = this.pair, t = cell === null ? -1 : Math.floor(cell / L), l = cell === null ? -1 : cell % L;
    this.picked = cell;
    for (const { rows, columns, band, picked } of this.panels) {
      rows.forEach((node, i) => node.classList.toggle("lit", i === t));
      columns.forEach((node, i) => node.classList.toggle("lit", i === l));
      for (const node of [...band, picked]) node.setAttribute("visibility", cell === null ? "hidden" : "visible");
      if (cell === null) continue;
      band[0].setAttribute("y", t * this.size.tall);
      band[1].setAttribute("x", l * this.size.cell);
      picked.setAttribute("x", l * this.size.cell - 1.5);
      picked.setAttribute("y", t * this.size.tall - 1.5);
    }
  }
}

/** A row's or a column's word. */
function label(parent, place, text, list, attributes) {
  const node = shape(parent, "text", { class: page.special[place] ? "label mark" : "label", ...attributes });
  node.textContent = text;
  if (!page.special[place] && list.isFound(page.words[place])) node.classList.add("found");
  return node;
}

/** What a level of attention stands for, and how dark it is. */
function weight(level) {
  return { value: meaning.alpha(level), amount: level / 255 };
}

/** A word or a part of one, shortened to `most` characters; letters that go on with a word have a hyphen before them. */
function piece(place, most = Infinity, book = page) {
  const goesOn = book.joined?.[place] && /^[\p{L}\p{M}\p{N}]/u.test(book.words[place]);
  const text = (goesOn ? "‑" : "") + spelt(book.words[place], book.special[place]);
  if (text.length <= most) return text;
  const letters = [...new Intl.Segmenter().segment(text.slice(0, 8 * most))].map((s) => s.segment);
  return letters.length <= most ? text : letters.slice(0, most - 1).join("") + "…";
}
