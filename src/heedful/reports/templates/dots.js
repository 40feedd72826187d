// Dots and whiskers: values with their intervals, and beside them chance, a control and what was published.

const MARKS = [
  "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z", "M0-5.5L5.5 0L0 5.5L-5.5 0z", "M-4-4h8v8h-8z",
  "M0-5.5L5.5 4.5h-11z", "M0 5.5L5.5-4.5h-11z", "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
];

function dot(parent, mark, x, y) {
  const which = mark % MARKS.length;
  shape(parent, "path", { class: `dot m${which}`, d: MARKS[which], transform: `translate(${x} ${y})` });
}

function cross(parent, x, y) {
  shape(parent, "path", { class: "paper", d: `M${x - 5} ${y - 5}l10 10m0-10l-10 10` });
}

/**
 * Shares from 0 to 1. series: the names of the marks; rows: [{ label, published, dots: [{ mark, value, low, high, control }] }];
 * chance: the share that a random choice would have, the same for all rows, or null; control: what the short lines are called; unit: what
 * the axis counts.
 */
function dotsAndWhiskers(holder, width, { title, unit, series, rows, chance, control }) {
  const several = series.length > 1, wide = width > 640;
  const most = Math.max(...rows.map((row) => row.dots.length)), gap = 16;
  const left = wide ? 270 : 98, right = wide ? 168 + (several ? 8 * Math.max(0, Math.max(...series.map((name) => name.length)) - 5) : 0) : 12;
  const broken = !wide && rows.some((row) => row.title.length * 7 > width);
  const top = 56, row = wide ? Math.max(gap * most + 14, 58) : gap * most + (broken ? 44 : 30), height = top + row * rows.length + 42;
  const values = rows.flatMap((r) => [...r.dots.flatMap((d) => [d.value, d.high]), r.published ?? 0]).filter(Number.isFinite);
  const end = Math.min(1, Math.ceil(Math.max(...values, chance ?? 0) * 10 + 0.2) / 10);
  const x = (share) => left + (share / end) * (width - left - right);
  const svg = picture(holder, width, height, title);
  for (let tick = 0; tick <= end + 1e-9; tick += end > 0.5 && !wide ? 0.2 : 0.1) {
    shape(svg, "line", { class: "grid", x1: x(tick), x2: x(tick), y1: top - 8, y2: height - 38 });
    shape(svg, "text", { class: "soft", x: x(tick), y: height - 20, "text-anchor": "middle" }, `${Math.round(100 * tick)}`);
  }
  shape(svg, "text", { class: "soft", x: x(end / 2), y: height - 4, "text-anchor": "middle" }, unit);
  if (chance !== null) shape(svg, "line", { class: "random", x1: x(chance), x2: x(chance), y1: top - 8, y2: height - 38 });
  rows.forEach(({ label, title, published, dots }, i) => {
    const y = top + row * (i + 0.5) + (wide ? 0 : broken ? 15 : 8), [one, other] = title.split(" ↔ ");
    if (wide) {
      shape(svg, "text", { x: left - 12, y: y - 9, "text-anchor": "end" }, one);
      if (other) shape(svg, "text", { x: left - 12, y: y + 6, "text-anchor": "end" }, `↔ ${other}`);
      shape(svg, "text", { class: "soft", x: left - 12, y: y + (other ? 21 : 6), "text-anchor": "end" }, label);
    } else {
      const lines = broken && other ? [one, `↔ ${other}`] : [title];
      lines.forEach((line, k) => shape(svg, "text", { x: 2, y: y - (gap * dots.length) / 2 - 5 - 14 * (lines.length - 1 - k) }, line));
      shape(svg, "text", { class: "soft", x: left - 12, y: y + 4, "text-anchor": "end" }, label);
    }
    dots.forEach((d, j) => {
      const at = y + (j - (dots.length - 1) / 2) * gap, name = several ? `${series[d.mark]}  ` : "";
      const said = `${percent(d.value)} (${range(d.low, d.high)})`, group = shape(svg, "g");
      shape(group, "title", {}, `${title} ${name}${said}`);
      shape(group, "line", { class: `whisker m${d.mark % MARKS.length}`, x1: x(d.low), x2: x(d.high), y1: at, y2: at });
      if (d.control !== null) shape(group, "line", { class: "control", x1: x(d.control), x2: x(d.control), y1: at - 6, y2: at + 6 });
      dot(group, d.mark, x(d.value), at);
      if (wide) shape(svg, "text", { class: "soft", x: width - right + 14, y: at + 4 }, name + said);
    });
    if (published !== undefined) cross(svg, x(published), y);
  });
  const entries = several ? series.map((name, i) => [name, (g) => dot(g, i, 6, -4)]) : [];
  entries.push([control, (g) => shape(g, "line", { class: "control", x1: 6, x2: 6, y1: -10, y2: 2 })]);
  if (chance !== null) entries.push(["random word", (g) => shape(g, "line", { class: "random", x1: 6, x2: 6, y1: -12, y2: 4 })]);
  if (rows.some((r) => r.published !== undefined)) entries.push(["the paper’s", (g) => cross(g, 6, -4)]);
  legend(svg, entries, wide ? left : 2, width);
}

/** Marks and what they are called, from left to right, on as many lines as they need. */
function legend(svg, entries, left, width) {
  let at = left, down = 14;
  for (const [name, mark] of entries) {
    const group = shape(svg, "g");
    mark(group);
    const text = shape(group, "text", { class: "soft", x: 17, y: 0 }, name);
    const size = 17 + text.getComputedTextLength() + 20;
    if (at > left && at + size > width) [at, down] = [left, down + 20];
    group.setAttribute("transform", `translate(${at} ${down})`);
    at += size;
  }
}
