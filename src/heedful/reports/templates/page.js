// The slider, its film and its keys; then everything is drawn.

function showPlayer() {
  const slider = document.getElementById("step");
  const text = document.getElementById("step-text");
  const play = document.getElementById("play");
  const last = page.steps.length - 1;
  const pause = Math.min(Math.max(6000 / page.steps.length, 150), 600);
  const standard = page.accuracy[0];
  /** The accuracy at a step: of each run where several are compared, of the first seed otherwise. */
  const accuracyAt = (step) => {
    if (page.runs) return page.runs.map((run) => {
      const found = page.accuracy.filter((m) => m.kind === run).map((m) => readAt(m, step).value);
      return !found.length ? "" : ` · ${run} ${percent(found.reduce((a, b) => a + b, 0) / found.length)}`;
    }).join("");
    const accuracy = standard?.values[standard.steps.indexOf(step)];
    if (accuracy === undefined) return "";
    return ` · accuracy ${percent(accuracy)}` + ("seed" in standard ? ` (seed ${standard.seed})` : "");
  };
  let timer = 0;
  const now = element("b"), beside = element("span");
  text.append("step ", now, beside);
  slider.max = last;
  slider.value = last;

  const stop = () => {
    clearInterval(timer);
    timer = 0;
    document.body.classList.remove("playing");
    play.setAttribute("aria-pressed", "false");
    play.firstChild.textContent = "▶";
    play.lastChild.textContent = "Play";
  };
  const start = () => {
    if (state.step === last) goTo(0);
    document.body.classList.add("playing");
    play.setAttribute("aria-pressed", "true");
    play.firstChild.textContent = "❚❚";
    play.lastChild.textContent = "Pause";
    timer = setInterval(() => (state.step === last ? stop() : goTo(state.step + 1)), pause);
  };
  const toggle = () => (timer ? stop() : start());

  play.addEventListener("click", toggle);
  slider.addEventListener("input", () => { stop(); goTo(Number(slider.value)); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    const jumps = { ArrowLeft: state.step - 1, ArrowRight: state.step + 1 };
    if (event.key === " " && !target.closest("button, summary, input:not([type=range]), select, a")) toggle();
    else if (event.key in jumps && !target.closest("input, select, .scroll, pre")) {
      stop();
      goTo(jumps[event.key]);
    } else return;
    event.preventDefault();
  });
  onStep((place) => {
    slider.value = place;
    slider.setAttribute("aria-valuetext", `step ${steps(page.steps[place])}`);
    say(now, steps(page.steps[place]));
    say(beside, ` of ${steps(page.steps[last])}${accuracyAt(page.steps[place])}`);
  }, slider);
}

async function showTexts() {
  try {
    const arrays = await unpack();
    if (page.texts || page.pairs) showExamples(arrays);
    if (page.tokens || page.translations) showTokens(arrays);
  } catch (failure) {
    const notice = element("p", { class: "notice", role: "alert", text: `The examples cannot be shown: ${failure.message}` });
    document.getElementById("examples").append(notice);
    console.error(failure);
  }
}

showPlayer();
const agreementChart = document.getElementById("agreement-chart");
whenSized(agreementChart, (width) => drawAgreements(agreementChart, width));
drawCurves();
offerSaving();
showTexts().then(() => { document.body.dataset.ready = "yes"; });
