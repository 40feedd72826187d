// The players, the address of what is shown, and their keys; then everything is drawn.

const SECONDS = Math.min(7, 1.2 * last); // that playing takes from the first recorded step to the last

/** The mean accuracy of the standard models at a recorded step; of each run where several are compared. */
function accuracyAt(step) {
  const mean = (curves) => {
    const found = curves.map((m) => readAt(m, step).value).filter((v) => v !== null);
    return found.length ? percent(found.reduce((a, b) => a + b, 0) / found.length) : "";
  };
  if (page.runs) return page.runs.map((run) => [run, mean(page.accuracy.filter((m) => m.kind === run))])
    .filter(([, value]) => value).map(([run, value]) => ` · ${run} ${value}`).join("");
  const value = mean(page.accuracy.filter((m) => m.kind === page.accuracy[0].kind));
  return value ? ` · accuracy ${value}` : "";
}

const playing = { frame: 0, since: 0, from: 0 };

function stop() {
  if (!playing.frame) return;
  cancelAnimationFrame(playing.frame);
  playing.frame = 0;
  goTo(Math.round(state.at)); // only recorded steps have numbers
  showButtons();
}

function start() {
  playing.from = state.at >= last ? 0 : state.at;
  playing.since = 0;
  const on = (now) => {
    playing.since ||= now;
    const at = playing.from + ((now - playing.since) / 1000 / SECONDS) * last;
    playing.frame = at < last ? requestAnimationFrame(on) : 0;
    goTo(at);
    if (!playing.frame) { showButtons(); keepAddress(); }
  };
  goTo(playing.from);
  playing.frame = requestAnimationFrame(on);
  showButtons();
}

function showButtons() {
  const on = Boolean(playing.frame);
  for (const play of document.querySelectorAll(".play")) {
    play.setAttribute("aria-pressed", String(on));
    play.firstChild.textContent = on ? "❚❚" : "▶";
    play.lastChild.textContent = on ? "Pause" : "Play";
  }
}

function showPlayer(player) {
  const slider = player.querySelector("input"), text = player.querySelector("output");
  const now = element("b"), beside = element("span");
  text.append("step ", now, beside);
  slider.max = last;
  player.querySelector(".play").addEventListener("click", () => { if (playing.frame) { stop(); keepAddress(); } else start(); });
  slider.addEventListener("input", () => { stop(); goTo(Number(slider.value)); });
  slider.addEventListener("change", () => { goTo(Math.round(Number(slider.value))); keepAddress(); });
  onStep((at) => {
    const exact = Number.isInteger(at);
    slider.value = at;
    slider.setAttribute("aria-valuetext", `step ${steps(stepAt(at))}`);
    say(now, (exact ? "" : "≈\u2009") + steps(stepAt(at)));
    say(beside, ` of ${steps(page.steps[last])}${accuracyAt(page.steps[state.step])}`);
  }, slider, true);
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { target, key } = event, slider = target.matches?.("input[type=range]");
  const jumps = { ArrowLeft: Math.ceil(state.at) - 1, ArrowRight: Math.floor(state.at) + 1 };
  if (slider) Object.assign(jumps, { ArrowDown: jumps.ArrowLeft, ArrowUp: jumps.ArrowRight, Home: 0, End: last });
  if (key === " " && !target.closest("button, summary, input:not([type=range]), select, a")) { if (playing.frame) stop(); else start(); }
  else if (key in jumps && (slider || !target.closest("input, select, .scroll, pre"))) {
    stop();
    goTo(jumps[key]);
    keepAddress();
  } else return;
  event.preventDefault();
});

/** What the address asks for, such as `#step=100&text=12`; a plain `#method` asks for a section and no more. */
function askedFor() {
  const asked = new URLSearchParams(location.hash.includes("=") ? location.hash.slice(1) : "");
  const step = asked.has("step") ? Number(asked.get("step")) : NaN;
  return { step: Number.isFinite(step) ? step : null, example: asked.get("text") ?? asked.get("pair"), word: asked.get("word"), head: asked.get("head") };
}

const shownNow = {}; // of the address: the example, the word and the head that were chosen

/** Write what is shown into the address, so that it can be sent to somebody. */
function keepAddress() {
  const parts = { step: page.steps[Math.round(state.at)], ...shownNow };
  history.replaceState(null, "", `#${new URLSearchParams(parts)}`);
}

async function showTexts() {
  try {
    const arrays = await unpack();
    if (page.texts || page.pairs) showExamples(arrays);
    if (page.tokens || page.translations) showTokens(arrays);
    if (document.getElementById("scatter-chart")) showScatter(arrays);
  } catch (failure) {
    const notice = element("p", { class: "notice", role: "alert", text: `The examples cannot be shown: ${failure.message}` });
    document.getElementById("examples").append(notice);
    console.error(failure);
  }
}

const wanted = askedFor();
const first = document.getElementById("stage");
if (wanted.step !== null) goTo(page.steps.reduce((best, step, i) => (Math.abs(step - wanted.step) < Math.abs(page.steps[best] - wanted.step) ? i : best), 0));
else if (first && !still) goTo(0);
for (const player of document.querySelectorAll(".player")) showPlayer(player);
const bar = document.querySelector(".player.bar");
if (first) new IntersectionObserver(([{ isIntersecting }]) => bar.classList.toggle("away", isIntersecting)).observe(first.querySelector(".player"));
const agreementChart = document.getElementById("agreement-chart");
whenSized(agreementChart, (width) => drawAgreements(agreementChart, width));
drawCurves();
offerSaving();
showTexts().then(() => {
  document.body.dataset.ready = "yes";
  if (!first || still || wanted.step !== null || last < 1) return;
  const once = new IntersectionObserver(([{ isIntersecting }]) => {
    if (!isIntersecting) return;
    once.disconnect();
    if (state.at === 0) start();
  }, { threshold: 0.5 });
  once.observe(first.querySelector(".player"));
});
