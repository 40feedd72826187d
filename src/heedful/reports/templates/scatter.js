// Words as dots: the attention each draws against what it predicts by itself, moving with the slider; and one word's course.

const MOST_DOTS = 250, NAMED = 6, LEAST = 0.125; // attention below an eighth of an equal share is drawn there

/** What is drawn: names, sizes, and of every word its two values at a recorded place. */
function scatterOf(arrays) {
  if (page.translations) {
    const { source, counts, words } = page.translations, to = arrays["translations/model_1"].values, best = page.translations.best;
    const word = (place) => piece(place, LETTERS, page.translations);
    const name = (i) => `${word(source[i])} → ${to[i * best] < words.length ? word(to[i * best]) : "?"}`;
    const values = (array) => (place, i) => arrays[`translations/${array}`].values[place * source.length + i];
    return {
      names: source.map((_, i) => name(i)), counts,
      x: { title: "word knowledge: log-odds that the word alone adds to its translation", short: "word knowledge", of: values("raised"), spell: signedOdds, ends: ["", "knows it →"] },
      y: { title: "attention: how much of it the translation gives to this word", short: "attention", of: values("course"), spell: (v) => percent(v, 0), low: 0, high: 1, ticks: [0, 0.25, 0.5, 0.75, 1] },
    };
  }
  const { words, special, counts } = page.tokens, polar = "tokens/polarity" in arrays;
  const values = (array) => (place, i) => arrays[`tokens/${array}`].values[place * words.length + i];
  const attention = values("attention"), high = Math.max(2, ...arrays["tokens/attention"].values);
  const [no, yes] = page.labels;
  return {
    names: words.map((word, i) => spelt(word, special[i])), counts,
    x: polar
      ? { title: `polarity: the log-odds of “${yes}” if the model sees this word alone`, short: "polarity", of: values("polarity"), spell: signedOdds, ends: [`← ${no}`, `${yes} →`] }
      : { title: `word knowledge: how surely the word alone gives the ${asked} label`, short: "word knowledge", of: values("beta"), spell: (v) => percent(v, 0), low: 0, high: 1, ends: ["", "sure →"] },
    y: { title: "attention: times an equal share", short: "attention", of: (place, i) => Math.log2(Math.max(attention(place, i), LEAST)), spell: (v) => `${2 ** v < 1 ? (2 ** v).toFixed(2) : (2 ** v).toFixed(1)}×`,
      low: Math.log2(LEAST), high: Math.ceil(Math.log2(high)), ticks: [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6].filter((t) => 2 ** t <= 2 * high), tick: (t) => `${t < 0 ? `1/${2 ** -t}` : 2 ** t}×`, even: 0 },
  };
}

function showScatter(arrays) {
  const { names, counts, x: across, y: up } = scatterOf(arrays);
  const holder = document.getElementById("scatter-chart"), course = document.getElementById("course"), find = document.getElementById("scatter-word");
  const end = (i) => (/^[‹‑]/.test(names[i]) ? -9 : Math.abs(across.of(last, i)) + 2 * up.of(last, i));
  const shown = names.map((_, i) => i).sort((a, b) => counts[b] - counts[a]).slice(0, MOST_DOTS);
  for (const i of names.map((_, k) => k).sort((a, b) => up.of(last, b) - up.of(last, a)).slice(0, 30)) if (!shown.includes(i)) shown.push(i);
  const top = (words) => words.sort((a, b) => end(b) - end(a)).slice(0, NAMED);
  const named = new Set([...top(shown.filter((i) => across.of(last, i) > 0)), ...top(shown.filter((i) => across.of(last, i) <= 0))]);
  if (across.low === undefined) {
    let most = 0.5;
    for (const i of shown) for (let k = 0; k <= last; k++) most = Math.max(most, Math.abs(across.of(k, i)));
    const least = Math.min(...shown.map((i) => Math.min(...page.steps.map((_, k) => across.of(k, i)))));
    Object.assign(across, { low: least < -0.1 * most ? -most : Math.min(least, 0), high: most });
  }
  document.getElementById("scatter-words").append(...shown.map((i) => element("option", { value: names[i] })));
  let chosen = null, view = null;
  const mixed = (axis, i, [from, to, share]) => axis.of(from, i) + share * (axis.of(to, i) - axis.of(from, i));

  const draw = (width) => {
    const tall = page.translations ? 520 : 340; // beside a sentence pair there is more room than beside a text
    const height = Math.round(Math.min(Math.max(width * (tall / 550), 260), tall)), left = 40, right = 14, top = 22, bottom = 42;
    const svg = picture(holder, width, height, `${shown.length} words: ${up.title}, against ${across.title}`);
    const x = (v) => left + ((v - across.low) / (across.high - across.low)) * (width - left - right);
    const y = (v) => top + (1 - (v - up.low) / (up.high - up.low)) * (height - top - bottom);
    for (const tick of up.ticks.filter((t) => t >= up.low && t <= up.high)) {
      shape(svg, "line", { class: tick === up.even ? "random" : "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) });
      shape(svg, "text", { class: "soft", x: left - 6, y: y(tick) + 4, "text-anchor": "end" }, up.tick ? up.tick(tick) : up.spell(tick));
    }
    if (across.low < 0) shape(svg, "line", { class: "axis", x1: x(0), x2: x(0), y1: top, y2: height - bottom });
    const fitting = (axis, room) => (axis.title.length * 6.2 < room ? axis.title : axis.short);
    shape(svg, "text", { class: "soft", x: 2, y: 12 }, `${fitting(up, width)}${up.even === 0 ? " (dashed: equal)" : ""}`);
    shape(svg, "text", { class: "soft", x: left, y: height - 24 }, across.ends[0]);
    shape(svg, "text", { class: "soft", x: width - right, y: height - 24, "text-anchor": "end" }, across.ends[1]);
    shape(svg, "text", { class: "soft", x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, fitting(across, width));
    const trail = shape(svg, "polyline", { class: "trail" });
    const most = Math.max(...counts);
    const dots = shown.map((i) => {
      const dot = shape(svg, "circle", { class: "word", r: (2.5 + 4 * Math.sqrt(counts[i] / most)).toFixed(1), "data-word": i });
      return { i, dot, side: 0 };
    });
    const labels = shown.filter((i) => named.has(i)).map((i) => ({ i, node: shape(svg, "text", { class: "name" }, "") }));
    for (const { i, node } of labels) node.textContent = names[i];
    const one = shape(svg, "text", { class: "name strong" });
    view = { x, y, dots, labels, trail, one, width };
    show(state.at);
  };

  const show = (at) => {
    if (!view) return;
    const mix = around(at), boxes = [];
    for (const each of view.dots) {
      const value = mixed(across, each.i, mix);
      each.dot.setAttribute("cx", view.x(value).toFixed(1));
      each.dot.setAttribute("cy", view.y(mixed(up, each.i, mix)).toFixed(1));
      const side = value < -0.3 ? -1 : value > 0.3 ? 1 : 0;
      if (side !== each.side) each.dot.setAttribute("class", `word${(each.side = side) < 0 ? " against" : side > 0 ? " for" : ""}`);
    }
    const place = (node, i, most) => {
      const x = view.x(mixed(across, i, mix)), y = view.y(mixed(up, i, mix)), wide = 7 * names[i].length + 8;
      const start = x + wide > view.width - 8 ? x - wide : x + 7;
      const box = [start, y - 8, start + wide, y + 8];
      const free = most || boxes.every((b) => box[2] < b[0] || box[0] > b[2] || box[3] < b[1] || box[1] > b[3]);
      node.setAttribute("visibility", free ? "visible" : "hidden");
      if (!free) return;
      boxes.push(box);
      node.setAttribute("x", start.toFixed(1));
      node.setAttribute("y", (y + 4).toFixed(1));
    };
    if (chosen !== null) place(view.one, chosen, true);
    else view.one.setAttribute("visibility", "hidden");
    for (const { i, node } of view.labels) if (i === chosen) node.setAttribute("visibility", "hidden"); else place(node, i, false);
  };

  const choose = (i) => {
    chosen = i;
    if (view) {
      view.one.textContent = i === null ? "" : names[i];
      view.trail.setAttribute("points", i === null ? "" : page.steps.map((_, k) => `${view.x(across.of(k, i)).toFixed(1)},${view.y(up.of(k, i)).toFixed(1)}`).join(" "));
      for (const { i: each, dot } of view.dots) dot.classList.toggle("chosen", each === i);
    }
    drawCourse(course, i, names, across, up);
    find.value = i === null ? "" : names[i];
    if (i === null) delete shownNow.word;
    else shownNow.word = names[i];
    show(state.at);
  };
  const picked = (target) => target.dataset?.word;
  pointAt(holder, (target) => {
    const i = picked(target);
    if (i === undefined) return null;
    const now = state.step;
    return `${names[i]}\n${up.short} ${up.spell(up.of(now, i))}\n${across.short} ${across.spell(across.of(now, i))}\n${steps(counts[i])} times; click for its course`;
  });
  holder.addEventListener("click", ({ target }) => {
    const i = picked(target);
    if (i !== undefined) { choose(Number(i)); keepAddress(); }
  });
  find.addEventListener("change", () => {
    const i = names.indexOf(find.value.trim());
    choose(i < 0 ? null : i);
    keepAddress();
  });
  find.closest("form").addEventListener("submit", (event) => event.preventDefault());
  whenSized(holder, (width) => { draw(width); if (chosen !== null) choose(chosen); });
  onStep(show, holder, true);
  const asked = wanted.word === null ? -1 : names.indexOf(wanted.word);
  if (asked >= 0) choose(asked);
}

/** A word's attention and what it predicts, over training: two small lines with their ends written out. */
function drawCourse(holder, i, names, across, up) {
  if (watchers.has(holder)) offStep(holder);
  holder.hidden = i === null;
  if (i === null) { holder.replaceChildren(); return; }
  const width = 208, height = 74, end = page.steps[last] || 1, marks = [];
  const x = (k) => 8 + Math.sqrt(page.steps[k] / end) * (width - 16);
  const line = (axis) => {
    const values = page.steps.map((_, k) => axis.of(k, i)), low = Math.min(...values, 0), high = Math.max(...values, low + 1e-6);
    const y = (v) => 24 + (1 - (v - low) / (high - low)) * (height - 34);
    const box = element("div"), svg = picture(box, width, height, `${axis.short} of ${names[i]} over training, from ${axis.spell(values[0])} to ${axis.spell(values[last])}`);
    shape(svg, "text", { class: "soft", x: 8, y: 12 }, `${axis.short}: ${axis.spell(values[0])} → ${axis.spell(values[last])}`);
    if (low < 0 && high > 0) shape(svg, "line", { class: "grid", x1: 8, x2: width - 8, y1: y(0), y2: y(0) });
    shape(svg, "polyline", { class: "line c0", points: values.map((v, k) => `${x(k)},${y(v)}`).join(" ") });
    const mark = shape(svg, "circle", { class: "point c0", r: 4 });
    marks.push((at) => {
      const [from, to, share] = around(at);
      mark.setAttribute("cx", x(from) + share * (x(to) - x(from)));
      mark.setAttribute("cy", y(values[from]) + share * (y(values[to]) - y(values[from])));
    });
    return box;
  };
  holder.replaceChildren(element("b", { dir: "auto", text: names[i] }), line(up), line(across));
  onStep((at) => { for (const move of marks) move(at); }, holder, true);
}
