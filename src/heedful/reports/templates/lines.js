// Lines over training, with a cursor at the slider's step.

/**
 * Lines over training with a cursor at the slider's step.
 * series: [{ label, symbol, colour, lines: [{ steps, values }], ends }], references: [{ title, value, low, high }], each
 * with an interval where it has one (`ends` are those of a line's first and last value); format spells a value. The names
 * stand at the ends of the lines, or below the chart where there is no room for them.
 */
function lineChart(holder, title, { series, references = [], low, high, format = percent }) {
  const drawn = { cursor: null, labels: [] };
  const last = page.steps[page.steps.length - 1] || 1;
  const draw = (width) => {
    const longest = Math.max(...references.map((r) => r.title.length + 5), ...series.map((one) => `${one.label}${one.symbol ?? ""}`.length + 8));
    const below = width < 480 || 22 + 6.8 * longest > 0.5 * width;
    const left = 36, right = below ? 70 : Math.max(22 + 6.8 * longest, 130), top = 10, height = 290, bottom = 34;
    const x = (step) => left + Math.sqrt(step / last) * (width - left - right);
    const y = (value) => top + (1 - (value - low) / (high - low)) * (height - top - bottom);
    const isFolded = (name, symbol) => 36 + 6.8 * `${name} ${symbol ?? ""}`.length > width && name.includes(" ↔ "); // onto a second line
    const names = below ? references.length + series.reduce((many, one) => many + (isFolded(one.label, one.symbol) ? 2 : 1), 0) : 0;
    const svg = picture(holder, width, height + (names && 12 + 18 * names), title);
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
      labels.push({ at: y(value), name, line: "reference", text: () => format(value, 0), colour: "soft" });
    });
    for (const { label, symbol, colour, lines, ends: [first, final] = [] } of series) {
      if (first) whisker(svg, `c${colour}`, x(lines[0].steps[0]), y(first.low), y(first.high));
      if (final) whisker(svg, `c${colour}`, width - right + 7, y(final.low), y(final.high));
      for (const line of lines) {
        const points = line.steps.map((step, i) => [step, line.values[i]]).filter(([, value]) => value !== null);
        shape(svg, "polyline", { class: `line c${colour}`, points: points.map(([s, v]) => `${x(s)},${y(v)}`).join(" ") });
      }
      const ends = lines.map((line) => line.values[line.values.length - 1] ?? low);
      const spots = lines.map(() => shape(svg, "circle", { class: `point c${colour}`, r: 3.5 }));
      for (const line of lines) for (const [step, said] of line.rings ?? []) {
        const value = line.values[line.steps.indexOf(step)];
        if (value === undefined || value === null) continue;
        shape(shape(svg, "circle", { class: `chosen c${colour}`, cx: x(step), cy: y(value), r: 7 }), "title", {}, said);
      }
      const courses = lines.map((line) => line.steps.map((step, i) => [x(step), y(line.values[i] ?? low), line.values[i]]).filter(([, , value]) => value !== null));
      labels.push({
        at: y(ends.reduce((a, b) => a + b) / ends.length), colour: `c${colour}`, name: label, symbol, line: `line c${colour}`,
        move: (across) => courses.forEach((course, i) => {
          const [cx, cy] = along(course, across);
          spots[i].setAttribute("visibility", cx === null ? "hidden" : "visible");
          if (cx !== null) [["cx", cx], ["cy", cy]].forEach(([k, v]) => spots[i].setAttribute(k, v));
        }),
        text: (step) => {
          const read = lines.map((line) => readAt(line, step)), found = read.map((r) => r.value).filter((v) => v !== null);
          return found.length ? format(found.reduce((a, b) => a + b) / found.length) : "";
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
      const text = shape(svg, "text", { class: label.colour, x: width - right + 15, y: label.y + 4 });
      if (!below) named(text, label);
      label.node = shape(text, "tspan");
      if (!below && label.symbol) shape(text, "tspan", { class: "soft" }, ` ${label.symbol}`);
    }
    let at = height + 10;
    if (below) for (const label of labels) {
      const [first, second] = isFolded(label.name, label.symbol) ? label.name.split(" ↔ ") : [label.name];
      shape(svg, "path", { class: label.line, d: `M2 ${at - 4}h26` });
      if (second) named(shape(svg, "text", { class: label.colour, x: 36, y: at }), { name: `${first} ↔` }, true);
      if (second) at += 16;
      named(shape(svg, "text", { class: label.colour, x: 36, y: at }), { name: second ?? first, symbol: label.symbol }, true);
      at += 18;
    }
    drawn.labels = labels;
    drawn.x = x;
    const hit = shape(svg, "rect", { class: "hit", "data-hit": "", x: left, y: top, width: width - left - right, height: height - top - bottom });
    const seek = (event) => {
      const box = svg.getBoundingClientRect();
      const at = ((event.clientX - box.left) / box.width) * width;
      const nearest = page.steps.reduce((best, step, i) => (Math.abs(x(step) - at) < Math.abs(x(page.steps[best]) - at) ? i : best), 0);
      stop();
      goTo(nearest);
      keepAddress();
    };
    hit.addEventListener("pointerdown", (event) => { hit.setPointerCapture(event.pointerId); seek(event); });
    hit.addEventListener("pointermove", (event) => { if (event.buttons) seek(event); });
    drawn.step = null;
    show(state.at);
  };
  const show = (at) => {
    if (!drawn.cursor) return;
    const [from, to, share] = around(at), across = drawn.x(page.steps[from]) * (1 - share) + drawn.x(page.steps[to]) * share;
    drawn.cursor.setAttribute("x1", across);
    drawn.cursor.setAttribute("x2", across);
    for (const label of drawn.labels) label.move?.(across);
    if (drawn.step === from) return;
    drawn.step = from;
    for (const label of drawn.labels) spell(label.node, label.text(page.steps[from]));
  };
  whenSized(holder, draw);
  onStep(show, holder, true);
  return (changed) => { ({ series, references = [], low, high } = changed); draw(Math.round(holder.clientWidth)); };
}

/** Write what a line is called into an SVG text; whole: with its symbol. */
function named(text, { name, symbol }, whole = false) {
  shape(text, "tspan", {}, whole ? name : `${name} `);
  if (whole && symbol) shape(text, "tspan", { class: "soft" }, ` ${symbol}`);
}

/** The point of a course of [x, y] at x: at its last point after its end, nowhere before its beginning. */
function along(course, across) {
  if (!course.length || across < course[0][0] - 1e-6) return [null, null];
  const next = course.findIndex(([x]) => x > across);
  if (next <= 0) return course[course.length - 1];
  const [x0, y0] = course[next - 1], [x1, y1] = course[next];
  return [across, y0 + ((across - x0) / (x1 - x0)) * (y1 - y0)];
}

/** An interval, upright. */
function whisker(parent, colour, x, from, to) {
  shape(parent, "path", { class: `upright ${colour}`, d: `M${x - 3} ${from}h6M${x} ${from}V${to}M${x - 3} ${to}h6` });
}

/** What a line has at a step, or at the last recorded one before it. */
function readAt(line, step) {
  let i = line.steps.length - 1;
  while (i >= 0 && line.steps[i] > step) i--;
  return { at: line.steps[i], value: line.values[i] ?? null };
}

/** One line for each seed of each kind of model. */
function byKind(curves) {
  return [...new Set(curves.map((m) => m.kind))].map((kind, i) => {
    const lines = curves.filter((m) => m.kind === kind);
    return { label: { "standard model": "with attention", "uniform twin": "without attention" }[lines[0].title] ?? lines[0].title, colour: i, lines };
  });
}
