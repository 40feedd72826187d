// One example through training at a glance: a row for each step, a column for each word, shaded by attention.

const FRAMES = 10;

/** film: { columns, levels(place), sure(place), caption }, of an example in which attention has come far; null where none has. */
function showFilm(film) {
  const figure = document.getElementById("film"), holder = document.getElementById("film-chart");
  if (!film || !figure || page.steps.length < 3) return;
  figure.hidden = false;
  document.getElementById("film-caption").append(...film.caption);
  const last = page.steps.length - 1, many = Math.min(FRAMES, page.steps.length);
  const places = [...new Set(Array.from({ length: many }, (_, i) => Math.round((i * last) / (many - 1))))];
  let dark = darkness.matches, frame = null, size = {};
  const show = (place) => {
    const at = places.findLastIndex((p) => p <= place);
    frame?.setAttribute("y", size.top + at * size.tall - 1);
  };
  const draw = (width) => {
    const narrow = width < 560, left = narrow ? 46 : 78, right = narrow ? 40 : 58, tall = narrow ? 20 : 25;
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `13px ${getComputedStyle(holder).fontFamily}`;
    const rooms = film.columns.map((word) => pen.measureText(word).width), n = film.columns.length;
    const cell = Math.min((width - left - right) / n, 46), top = Math.max(...rooms) * Math.sin(Math.PI / 3) + 14;
    const svg = picture(holder, Math.ceil(width), Math.ceil(top + places.length * tall + 6), `Attention to each word of one example at ${places.length} steps of training`);
    film.columns.forEach((word, l) => shape(svg, "text", { class: "label", transform: `translate(${left + (l + 0.55) * cell} ${top - 7}) rotate(-60) scale(${Math.min(1, cell / 14)})` }).append(word));
    shape(svg, "text", { class: "soft", x: left + n * cell + 8, y: top - 7 }, narrow ? "p" : "p(right)");
    const ramp = RAMPS[dark ? "dark" : "light"].alpha;
    places.forEach((place, r) => {
      const y = top + r * tall, row = shape(svg, "g", { class: "frame-row" });
      shape(row, "title", {}, `Go to step ${steps(page.steps[place])}`);
      shape(row, "rect", { class: "hit pick", "data-hit": "", x: 0, y, width, height: tall });
      shape(row, "text", { class: "soft", x: left - 10, y: y + tall / 2 + 4, "text-anchor": "end" }, (narrow ? "" : "step ") + steps(page.steps[place]));
      film.levels(place).forEach((level, l) => {
        shape(row, "rect", { class: "cell", x: left + l * cell + 0.75, y: y + 0.75, width: Math.max(cell - 1.5, 1), height: tall - 1.5, rx: 2.5, fill: shade(ramp, level / 255).ground });
      });
      shape(row, "text", { class: "soft", x: left + n * cell + 8, y: y + tall / 2 + 4 }, percent(film.sure(place), 0));
      row.addEventListener("click", () => goTo(place));
    });
    frame = shape(svg, "rect", { class: "picked", x: left - 1, width: n * cell + 2, height: tall + 2, rx: 4 });
    size = { top, tall };
    show(state.step);
  };
  whenSized(holder, draw);
  const colour = (now) => { dark = now; draw(Math.round(holder.clientWidth)); };
  darkness.addEventListener("change", () => colour(darkness.matches));
  addEventListener("beforeprint", () => colour(false));
  addEventListener("afterprint", () => colour(darkness.matches));
  onStep(show, holder);
}
