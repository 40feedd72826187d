// Agreements as dots and whiskers; accuracy, agreement and entropy over training.

/** Own and cross of each pair beside one another, with chance and the paper. */
function drawAgreements(holder, width) {
  const keys = [...new Set(page.agreements.map((a) => a.key))];
  const conventions = [...new Set(page.agreements.map((a) => a.convention))];
  const called = (a) => (conventions.length > 1 ? `${a.convention}  ` : "");
  const wide = width > 640;
  const left = 98, right = wide ? 168 : 12, top = 56, row = wide ? 46 : 42;
  const height = top + row * keys.length + 42;
  const highest = Math.max(...page.agreements.map((a) => a.high), ...Object.values(page.paper), page.random);
  const most = Math.min(1, Math.ceil(highest * 10 + 0.2) / 10);
  const x = (share) => left + (share / most) * (width - left - right);
  const svg = picture(holder, width, height, `Agreements${conventions.length > 1 ? ", own and cross," : ""} with their intervals and chance; the table below has the numbers`);
  for (let tick = 0; tick <= most + 1e-9; tick += most > 0.5 && !wide ? 0.2 : 0.1) {
    shape(svg, "line", { class: "grid", x1: x(tick), x2: x(tick), y1: top - 8, y2: height - 38 });
    shape(svg, "text", { class: "soft", x: x(tick), y: height - 20, "text-anchor": "middle" }, `${Math.round(100 * tick)}`);
  }
  shape(svg, "text", { class: "soft", x: x(most / 2), y: height - 4, "text-anchor": "middle" }, `% of ${TERMS.rows} that agree`);
  shape(svg, "line", { class: "random", x1: x(page.random), x2: x(page.random), y1: top - 8, y2: height - 38 });
  keys.forEach((key, i) => {
    const y = top + row * (i + 0.5);
    const pair = page.agreements.filter((a) => a.key === key);
    shape(svg, "text", { x: left - 12, y: y + 4, "text-anchor": "end" }, pair[0].symbol);
    pair.forEach((a, j) => {
      const at = y + (pair.length > 1 ? (j - 0.5) * 16 : 0);
      const group = shape(svg, "g");
      shape(group, "title", {}, `${a.symbol} ${a.convention}: ${percent(a.value)} (${range(a.low, a.high)})`);
      shape(group, "line", { class: `whisker ${a.convention}`, x1: x(a.low), x2: x(a.high), y1: at, y2: at });
      if (a.shuffle !== null) shape(group, "line", { class: "shuffle", x1: x(a.shuffle), x2: x(a.shuffle), y1: at - 6, y2: at + 6 });
      dot(group, a.convention, x(a.value), at);
      if (wide) shape(svg, "text", { class: "soft", x: width - right + 14, y: at + 4 }, `${called(a)}${percent(a.value)} (${range(a.low, a.high)})`);
    });
    if (key in page.paper) cross(svg, x(page.paper[key]), y);
  });
  const entries = [...(conventions.length > 1 ? conventions.map((name) => [name, (g) => dot(g, name, 6, -4)]) : []),
    ["shuffle", (g) => shape(g, "line", { class: "shuffle", x1: 6, x2: 6, y1: -10, y2: 2 })],
    ["random Â", (g) => shape(g, "line", { class: "random", x1: 6, x2: 6, y1: -12, y2: 4 })]];
  if (Object.keys(page.paper).length) entries.push(["the paper’s", (g) => cross(g, 6, -4)]);
  let at = wide ? left : 2, down = 14;
  for (const [name, mark] of entries) {
    const group = shape(svg, "g");
    mark(group);
    const text = shape(group, "text", { class: "soft", x: 17, y: 0 }, name);
    const size = 17 + text.getComputedTextLength() + 20;
    if (at + size > width) [at, down] = [wide ? left : 2, down + 20];
    group.setAttribute("transform", `translate(${at} ${down})`);
    at += size;
  }
}

function dot(parent, convention, x, y) {
  if (convention === "own") shape(parent, "circle", { class: "dot own", cx: x, cy: y, r: 4.5 });
  else shape(parent, "rect", { class: "dot cross", x: x - 4, y: y - 4, width: 8, height: 8, transform: `rotate(45 ${x} ${y})` });
}

function cross(parent, x, y) {
  shape(parent, "path", { class: "paper", d: `M${x - 5} ${y - 5}l10 10m0-10l-10 10` });
}

/**
 * Lines over training with a cursor at the slider's step.
 * series: [{ label, colour, lines: [{ steps, values }], ends }], references: [{ title, value, low, high }], each with an
 * interval where it has one (`ends` are those of a line's first and last value); format spells a value.
 */
function lineChart(holder, title, { series, references = [], low, high, format = percent }) {
  const drawn = { cursor: null, labels: [] };
  const last = page.steps[page.steps.length - 1] || 1;
  const draw = (width) => {
    const labelled = width > 430;
    const left = 36, right = labelled ? 176 : 148, top = 10, height = 290, bottom = 34;
    const x = (step) => left + Math.sqrt(step / last) * (width - left - right);
    const y = (value) => top + (1 - (value - low) / (high - low)) * (height - top - bottom);
    const svg = picture(holder, width, height, title);
    for (let tick = low; tick <= high + 1e-9; tick += high - low > 0.6 ? 0.2 : high - low > 0.15 ? 0.1 : 0.02) {
      shape(svg, "line", { class: "grid", x1: left, x2: width - right, y1: y(tick), y2: y(tick) });
      shape(svg, "text", { class: "soft", x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, `${Math.round(100 * tick)}`);
    }
    let free = -Infinity;
    for (const step of page.steps) {
      shape(svg, "line", { class: "axis", x1: x(step), x2: x(step), y1: height - bottom, y2: height - bottom + 4 });
      const room = 9 * steps(step).length;
      if (x(step) - room / 2 < free || (step !== last && x(step) + room > x(last) - 9)) continue;
      shape(svg, "text", { class: "soft", x: x(step), y: height - bottom + 18, "text-anchor": "middle" }, steps(step));
      free = x(step) + room / 2 + 4;
    }
    drawn.cursor = shape(svg, "line", { class: "cursor", y1: top, y2: height - bottom });
    const labels = [];
    references.forEach(({ title: name, value, low: from = null, high: to = null }, i) => {
      shape(svg, "line", { class: "reference", x1: left, x2: width - right, y1: y(value), y2: y(value) });
      if (from !== null) whisker(svg, "soft", width - right - 8 - 9 * i, y(from), y(to));
      labels.push({ at: y(value), text: () => `${name} ${format(value, 0)}`, colour: "soft" });
    });
    for (const { label, colour, lines, ends: [first, final] = [] } of series) {
      if (first) whisker(svg, `c${colour}`, x(lines[0].steps[0]), y(first.low), y(first.high));
      if (final) whisker(svg, `c${colour}`, width - right + 7, y(final.low), y(final.high));
      for (const line of lines) {
        const points = line.steps.map((step, i) => [step, line.values[i]]).filter(([, value]) => value !== null);
        shape(svg, "polyline", { class: `line c${colour}`, points: points.map(([s, v]) => `${x(s)},${y(v)}`).join(" ") });
      }
      const ends = lines.map((line) => line.values[line.values.length - 1] ?? low);
      const spots = lines.map(() => shape(svg, "circle", { class: `point c${colour}`, r: 3.5 }));
      labels.push({
        at: y(ends.reduce((a, b) => a + b) / ends.length), colour: `c${colour}`,
        text: (step) => {
          const found = lines.map((line) => line.values[line.steps.indexOf(step)]).filter((v) => v !== undefined && v !== null);
          lines.forEach((line, i) => {
            const value = line.values[line.steps.indexOf(step)] ?? null;
            spots[i].setAttribute("visibility", value === null ? "hidden" : "visible");
            if (value !== null) [["cx", x(step)], ["cy", y(value)]].forEach(([k, v]) => spots[i].setAttribute(k, v));
          });
          return found.length ? `${label} ${format(found.reduce((a, b) => a + b) / found.length)}` : label;
        },
      });
    }
    labels.sort((a, b) => a.at - b.at);
    const gap = 17, floor = height - bottom + 2;
    labels.forEach((label, i) => { label.y = Math.max(label.at, i ? labels[i - 1].y + gap : top); });
    for (let i = labels.length - 1; i >= 0; i--) {
      labels[i].y = Math.min(labels[i].y, i === labels.length - 1 ? floor : labels[i + 1].y - gap);
    }
    for (const label of labels) {
      shape(svg, "path", { class: "leader", d: `M${width - right + 3} ${label.at}L${width - right + 12} ${label.y}` });
      label.node = shape(svg, "text", { class: label.colour, x: width - right + 15, y: label.y + 4 });
    }
    drawn.labels = labels;
    drawn.x = x;
    const hit = shape(svg, "rect", { class: "hit", "data-hit": "", x: left, y: top, width: width - left - right, height: height - top - bottom });
    const seek = (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * width;
      const nearest = page.steps.reduce((best, step, i) => (Math.abs(x(step) - at) < Math.abs(x(page.steps[best]) - at) ? i : best), 0);
      goTo(nearest);
    };
    hit.addEventListener("pointerdown", (event) => { hit.setPointerCapture(event.pointerId); seek(event); });
    hit.addEventListener("pointermove", (event) => { if (event.buttons) seek(event); });
    show(state.step);
  };
  const show = (place) => {
    if (!drawn.cursor) return;
    const step = page.steps[place];
    drawn.cursor.setAttribute("x1", drawn.x(step));
    drawn.cursor.setAttribute("x2", drawn.x(step));
    for (const label of drawn.labels) spell(label.node, label.text(step));
  };
  whenSized(holder, draw);
  onStep(show);
  return (changed) => { ({ series, references = [], low, high } = changed); draw(Math.round(holder.clientWidth)); };
}

/** An interval, upright. */
function whisker(parent, colour, x, from, to) {
  shape(parent, "path", { class: `upright ${colour}`, d: `M${x - 3} ${from}h6M${x} ${from}V${to}M${x - 3} ${to}h6` });
}

/** One line for each seed of each kind of model. */
function byKind(curves) {
  return [...new Set(curves.map((m) => m.kind))].map((kind, i) => {
    const lines = curves.filter((m) => m.kind === kind);
    return { label: lines[0].title.replace(" model", ""), colour: i, lines };
  });
}

function drawCurves() {
  const accuracies = page.accuracy.flatMap((m) => m.values).concat(page.references.map((r) => r.value)).filter((v) => v !== null);
  if (page.accuracy.length) lineChart(document.getElementById("accuracy-chart"), `Validation ${TERMS.accuracy} of each model over training`, {
    series: byKind(page.accuracy),
    references: page.references.map((r) => ({ ...r, title: { "bag-of-words proxy": "proxy", "logistic regression": "logistic", "most frequent label": "majority" }[r.title] ?? r.title })),
    low: Math.floor(Math.min(...accuracies) * 10) / 10,
    high: Math.ceil(Math.max(...accuracies) * 10) / 10,
  });
  const keys = [...new Set(page.agreements.map((a) => a.key))];
  const highest = Math.max(...page.agreements.flatMap((a) => a.curve.values));
  const agreements = (convention) => ({
    series: page.agreements.filter((a) => a.convention === convention)
      .map((a) => ({ label: a.symbol, colour: keys.indexOf(a.key), lines: [a.curve] })),
    references: [{ title: "random Â", value: page.random }],
    low: 0,
    high: Math.min(1, Math.ceil(Math.max(highest, page.random) * 10) / 10),
  });
  const redraw = lineChart(document.getElementById("curve-chart"), "Agreement over training", agreements("own"));
  for (const choice of document.getElementsByName("convention")) {
    choice.addEventListener("change", () => redraw(agreements(choice.value)));
  }
  lineChart(document.getElementById("entropy-chart"), "Normalised entropy of attention over training", {
    series: [{ label: "H̃(α)", colour: 0, lines: [page.entropy] }], low: 0, high: 1,
  });
  if (page.special_share) {
    lineChart(document.getElementById("special-chart"), "Share of attention on special tokens over training", {
      series: [{ label: "special", colour: 0, lines: [page.special_share] }], low: 0, high: 1,
    });
  }
  if (page.bleu) {
    const most = Math.max(...page.bleu.flatMap((m) => m.values));
    lineChart(document.getElementById("bleu-chart"), "BLEU of each model over training", {
      series: byKind(page.bleu), low: 0, high: Math.max(0.1, Math.ceil(most * 10) / 10),
      format: (value) => (100 * value).toFixed(1),
    });
  }
  if (page.alignment) {
    lineChart(document.getElementById("alignment-chart"), "Alignment error rate over training; the text above has the numbers", {
      series: [{ label: "attention α", colour: 0, lines: [page.alignment.curve], ends: page.alignment.ends }],
      references: page.alignment.references, low: 0, high: 1,
    });
  }
}
