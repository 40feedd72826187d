"""The page of a large study: its size, the time to its first paint, and how fast its slider moves."""

import random
import statistics
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from benchmarks.browser import chromium, screen, visit
from benchmarks.case import Limit

from heedful.config import TrainConfig, study_preset
from heedful.data.corpus import Corpus, Split
from heedful.reports.pages import write_report
from heedful.studies.study import run_study

TEXTS, STEPS, TOKENS = 200, 30, 40
LOADS = 9
PAINT = "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
FRAMES = """
const done = arguments[0], times = [], from = performance.now();
let place = 0;
const step = (now) => {
  times.push(now);
  if (times.length > 90) return done(times.slice(1).map((t, i) => t - times[i]));
  place = (place + 1) % page.steps.length;
  goTo(place);
  requestAnimationFrame(step);
};
requestAnimationFrame(step);
"""
WORK = """
const taken = [];
for (let place = 0; place < page.steps.length; place++) {
  const from = performance.now();
  state.step = place;
  for (const { show } of watchers.values()) show(place);
  document.body.getBoundingClientRect();
  taken.push(performance.now() - from);
}
return taken;
"""


def limits(quick: bool) -> Iterator[Limit]:
    size = f"{TEXTS} texts × {STEPS} steps × {TOKENS} tokens"
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        page = large_page(Path(folder))
        yield Limit(f"page of {size}", "MB", page.stat().st_size / 1e6, 5, "at most")
        screen(browser, 1280, 900)
        paints = []
        for _ in range(3 if quick else LOADS):
            visit(browser, page)
            paints.append(browser.execute_script(PAINT) / 1e3)
        yield Limit(f"first paint, {size}", "s", statistics.median(paints), 1, "at most")
        work = statistics.median(browser.execute_script(WORK))
        yield Limit(f"all that one step of the slider redraws, {size}", "ms", work, 1000 / 30, "at most")
        for place, where in (("#verdict", "at the top"), ("#example-list", "with examples in sight")):
            browser.execute_script("document.querySelector(arguments[0]).scrollIntoView()", place)
            between = statistics.median(browser.execute_async_script(FRAMES))
            moving = f"slider moving at every frame, {where}, {size}"
            yield Limit(moving, "frames a second", 1000 / between, 30, "at least")


def large_page(folder: Path) -> Path:
    """The page of a study of texts of nonsense, recorded at every step."""
    draw = random.Random(0)
    words = [f"{a}{b}{c}" for a in "bdfgklmnprst" for b in ("a", "e", "ia", "o", "ou") for c in ("l", "nd", "rk", "st")]
    weights = [1 / (rank + 5) for rank in range(len(words))]

    def split(n: int) -> Split:
        texts = tuple(" ".join(draw.choices(words, weights, k=TOKENS - 2)) for _ in range(n))
        return Split(texts, tuple(i % 2 for i in range(n)))

    corpus = Corpus("nonsense", ("no", "yes"), split(256), split(TEXTS), split(8))
    train = TrainConfig(steps=STEPS - 1, learning_rate=1e-2, evaluate_at=tuple(range(STEPS)))
    config = replace(study_preset(corpus.name, "smoke"), train=train, max_validation=TEXTS)
    run_study(config, folder / "run", corpus=corpus, jobs=1, device="cpu")
    return write_report(folder / "run")
