// What every head attends to in a few examples at the slider's step: small maps, layers by heads, and one of them large.

class Heads {
  /** items: the examples that have maps, each with its length or its two lengths. */
  constructor(arrays, items) {
    const { layers, heads } = page.heads;
    let start = 0;
    this.values = arrays.heads.values;
    this.quantities = [{ name: "alpha", title: "attention", letter: "" }];
    this.columns = page.languages ?? ["attended to", "from"];
    this.examples = items.map((item) => {
      const pair = item.target ? item : { L: item.length, T: item.length, source: item.places, target: item.places };
      const example = { ...pair, key: item.target ? "Pair" : "Text", number: item.index + 1, start, size: pair.L * pair.T };
      start += layers * heads * example.size;
      return example;
    });
    this.perStep = start;
    this.chosen = 0; // a head: layer · heads + head
  }

  /** A cell of a head's map: how dark it is, and its share. */
  read(head, quantity, place, example, t) {
    const from = place * this.perStep + example.start + head * example.size + t * example.L;
    const row = this.values.subarray(from, from + example.L);
    return { top: row.indexOf(Math.max(...row)), of: (l) => weight(row[l]) };
  }

  gold() { return 0; }
  isRight() { return false; }
  isFound() { return false; }

  /** Draw a head's map, one pixel for each cell, mixed where the slider stands between two recorded steps. */
  paint(canvas, head, example, at) {
    const [place, next, share] = around(at), { L, T } = example;
    if (canvas.width !== L || canvas.height !== T) Object.assign(canvas, { width: L, height: T });
    const from = place * this.perStep + example.start + head * example.size, to = next * this.perStep + example.start + head * example.size;
    const pen = canvas.getContext("2d"), image = pen.createImageData(L, T);
    for (let i = 0; i < example.size; i++) {
      const level = Math.round(this.values[from + i] * (1 - share) + this.values[to + i] * share);
      image.data.set(Heads.colours[level], 4 * i);
    }
    pen.putImageData(image, 0, 0);
  }

  static colour(dark) {
    const ramp = RAMPS[dark ? "dark" : "light"].alpha;
    Heads.colours = Array.from({ length: 256 }, (_, level) => [...mix(ramp, level / 255), 255]);
    Matrices.colour(dark);
  }
}

/** list: of the page's examples. */
function showHeads(arrays, list) {
  const heads = new Heads(arrays, page.heads.items.map((place) => list.items[place]));
  const holder = document.getElementById("head-grid"), large = document.getElementById("head"), select = document.getElementById("head-text");
  const nameOf = (head) => `layer ${Math.floor(head / page.heads.heads) + 1} head ${(head % page.heads.heads) + 1}`;
  const cells = [...holder.querySelectorAll("td.cell")], names = cells.map((_, head) => nameOf(head));
  let example = heads.examples[0], drawn = null;
  select.append(...heads.examples.map(({ key, number }, i) => element("option", { value: i, text: `${key} ${number}` })));
  const canvases = cells.map((cell, head) => {
    const canvas = element("canvas", { "aria-hidden": "true" });
    headButton(cell, names[head], canvas, (map) => { choose(map); remember(); });
    return canvas;
  });

  const enlarge = () => {
    const lines = element("div", { class: "links" }), matrix = element("div", { class: "matrices", tabindex: "0", role: "group" });
    const name = names[heads.chosen], save = element("span", { class: "save" });
    matrix.setAttribute("aria-label", `Map of ${name}, a row for each word that attends`);
    const title = element("h3", { text: `${name} on ${example.key.toLowerCase()} ${example.number}` });
    large.replaceChildren(title, element("div", { class: "both" }, lines, matrix), save);
    drawn = { links: new Links(heads, example, heads.chosen, lines), matrices: new Matrices(heads, example, heads.chosen, matrix) };
    offerPicture(save, name.replaceAll(" ", "-"), () => matrix.querySelector("svg"));
    pointAt(matrix, (target) => {
      const cell = target.dataset?.cell === undefined ? null : Number(target.dataset.cell), { L, source, target: rows } = example;
      drawn.matrices.pick(cell);
      drawn.links.pick(cell === null ? null : Math.floor(cell / L));
      if (cell === null) return null;
      const share = heads.read(heads.chosen, "alpha", state.step, example, Math.floor(cell / L)).of(cell % L).value;
      return `${piece(rows[Math.floor(cell / L)], 40)} → ${piece(source[cell % L], 40)}\n${percent(share)} of its attention`;
    });
    matrix.addEventListener("pointerleave", () => { drawn.matrices.pick(null); drawn.links.pick(null); });
    lay();
  };
  const lay = () => {
    drawn.links.lay();
    drawn.matrices.lay();
    show(state.at);
  };
  const show = (at) => {
    canvases.forEach((canvas, head) => heads.paint(canvas, head, example, at));
    drawn?.links.show(at);
    drawn?.matrices.show(at);
  };
  const choose = (map, focus = false) => {
    heads.chosen = Math.max(names.indexOf(map), 0);
    pressHead(names[heads.chosen], focus);
    enlarge();
  };
  const remember = () => { shownNow.head = names[heads.chosen]; keepAddress(); };
  const colour = (dark) => {
    Heads.colour(dark);
    drawn?.matrices.forget();
    document.getElementById("head-key").replaceChildren(...alphaKey(dark));
    show(state.at);
  };
  select.addEventListener("change", () => { example = heads.examples[Number(select.value)]; enlarge(); });
  document.getElementById("head-tools").addEventListener("submit", (event) => event.preventDefault());
  walkHeads(holder, (map, focus) => { choose(map, focus); remember(); });
  darkness.addEventListener("change", () => colour(darkness.matches));
  addEventListener("beforeprint", () => colour(false));
  addEventListener("afterprint", () => colour(darkness.matches));
  colour(darkness.matches);
  choose(wanted.head ?? names[0]);
  if (wanted.head) {
    shownNow.head = names[heads.chosen];
    document.getElementById("heads").scrollIntoView();
  }
  whenSized(large, lay);
  onStep(show, holder, true);
}
