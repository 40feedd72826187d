"""Preflight's forecast beside real trainings: is attention learned as soon as the counts let expect? (H14)

The copying model is trained on real sentence pairs, and followed until its attention is half of the way to what it is
at the end. That time, as a multiple of the time it takes to copy 40 of 60 words, is compared with the forecast.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.config import TrainConfig, TranslatorConfig
from heedful.data.batching import evaluation_batches, training_batches
from heedful.data.loading import open_data
from heedful.data.parallel import ParallelCorpus, ParallelSplit
from heedful.data.ragged import Ragged
from heedful.data.subwords import EncodedPairs, encode_pairs, fit_tokeniser
from heedful.errors import DataError
from heedful.execution.pool import OnEvent
from heedful.metrics.agreement import agreement
from heedful.metrics.statistics import Estimate
from heedful.models.training import build_optimiser, evaluation_mode
from heedful.models.transformer import build_translator
from heedful.models.translator import PairModel
from heedful.papers.experiment import Answer, Unit
from heedful.papers.findings import Cell, Figure, Finding, Line, Panel, ResultTable, Row, Value, exactly
from heedful.papers.heedful2026.config import EASY, FORECAST_BUDGETS, ForecastBudget
from heedful.papers.heedful2026.dose import CANDIDATES, dose_units, measured_times, median_steps
from heedful.papers.heedful2026.dose import Answers as DoseAnswers
from heedful.papers.heedful2026.recipes import time_ratio
from heedful.preflights.forecast import Calibration, Forecast, forecast
from heedful.preflights.preflight import run_preflight
from heedful.storage.serialization import content, from_mapping
from heedful.studies.run_directory import sample_indices

Key = tuple[str, str]  # ("runs" or "preflight", task), or ("real runs" or "real preflight", corpus)
HALF_WAY = "half_way"


def forecast_units(budget: str) -> dict[Key, list[Unit]]:
    """The doses, which calibrate the forecast, and for every corpus its preflight and its trainings."""
    sizes = FORECAST_BUDGETS[budget]
    real: dict[Key, list[Unit]] = {}
    for data in sizes.corpora:
        real["real preflight", data] = [count_unit(data, sizes)]
        real["real runs", data] = [pairs_unit(data, seed, sizes) for seed in range(sizes.seeds)]
    return dose_units(budget) | real


def pairs_unit(data: str, seed: int, sizes: ForecastBudget) -> Unit:
    """One training of the copying model on sentence pairs."""
    arguments = {
        "data": data,
        "seed": seed,
        "steps": sizes.steps,
        "every": sizes.every,
        "batch_size": sizes.dose.copying.batch_size,
        "translator": content(sizes.dose.copying.translator),
        **_reading(sizes),
        "held_out": sizes.held_out,
    }
    return Unit(f"pairs-{data.replace(':', '-')}-{seed}", f"{__name__}:follow_pairs", arguments)


def count_unit(data: str, sizes: ForecastBudget) -> Unit:
    """Preflight of a corpus."""
    return Unit(f"preflight-{data.replace(':', '-')}", f"{__name__}:count_corpus", {"data": data}, version=2)


def _reading(sizes: ForecastBudget) -> dict[str, int]:
    return {"pairs": sizes.pairs, "subwords": sizes.subwords, "max_length": sizes.max_length}


def count_corpus(*, data: str, device: torch.device, report: OnEvent) -> dict[str, Any]:
    """The verdict of preflight and the number of candidates, from the data alone."""
    found = run_preflight(_corpus(data))
    report({"step": 1, "steps": 1})
    assert found.candidates is not None
    return {"verdict": found.verdict, "candidates": found.candidates.value}


def follow_pairs(
    *,
    data: str,
    seed: int,
    steps: int,
    every: int,
    batch_size: int,
    translator: Mapping[str, Any],
    pairs: int,
    subwords: int,
    max_length: int,
    held_out: int,
    device: torch.device,
    report: OnEvent,
) -> dict[str, Any]:
    """Train the copying model on sentence pairs.

    Returns `steps`, and at each of them `accuracy` of output pieces under teacher forcing and `agreement` of attention
    with that at the end, on held-out pairs; `before` is 0, as in copying runs.
    """
    corpus = _corpus(data)
    tokeniser, _ = fit_tokeniser(corpus, subwords)
    train, test = (
        _encoded(split, size, max_length, tokeniser)
        for split, size in ((corpus.train, pairs), (corpus.validation, held_out))
    )
    torch.manual_seed(seed)
    model = build_translator(from_mapping(TranslatorConfig, translator), len(tokeniser)).to(device)
    optimiser = build_optimiser(model, TrainConfig(steps=steps, evaluate_at=(steps,)))
    batches = training_batches(train, batch_size, seed, device=device)
    at, accuracies, maps = [], [], []
    for step in range(steps + 1):
        if step % every == 0 or step == steps:
            accuracy, alpha = evaluate_pairs(model, test, device)
            at.append(step)
            accuracies.append(accuracy)
            maps.append(alpha)
            report({"step": step, "steps": steps, "accuracy": accuracy})
        if step < steps:
            optimiser.zero_grad(set_to_none=True)
            model.loss(next(batches)).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    curve = [float(agreement(alpha, maps[-1], percent=1).mean()) for alpha in maps]
    return {"steps": at, "accuracy": accuracies, "agreement": curve, "before": 0}


def _corpus(data: str) -> ParallelCorpus:
    corpus = open_data(data)
    if not isinstance(corpus, ParallelCorpus):
        raise DataError(f"{data}: the forecast is of sentence pairs, and this corpus has labels")
    return corpus


def _encoded(split: ParallelSplit, size: int, max_length: int, tokeniser: Any) -> EncodedPairs:
    """A sample of pairs, without those that have a longer side."""
    encoded = encode_pairs(split.take(sample_indices(len(split), size)), tokeniser)
    return encoded.take(np.flatnonzero(np.maximum(encoded.source.lengths, encoded.target.lengths) <= max_length + 2))


@torch.no_grad()
def evaluate_pairs(model: PairModel, pairs: EncodedPairs, device: torch.device) -> tuple[float, Ragged]:
    """Accuracy under teacher forcing, and attention averaged over heads: one row per output piece."""
    right, rows = 0, []
    with evaluation_mode([model]):
        for batch in evaluation_batches(pairs, device=device):
            output = model(batch)
            guess = model.read(output.context, output.states).argmax(-1)
            right += int((guess == batch.target_out)[batch.target_mask].sum())
            alpha, lengths = output.alpha.mean(1), batch.source_mask.sum(1).tolist()
            for text, mask, length in zip(alpha, batch.target_mask, lengths, strict=True):
                rows += [row[:length].cpu().numpy() for row in text[mask]]
    return right / len(rows), Ragged.of(rows)


def half_way(run: Answer) -> int:
    """The step from which on attention agrees with that at the end by more than half of what it lacked at first.

    Agreement is 1 at the end by definition, and at the start what an untrained model has.

    >>> half_way({"steps": [0, 10, 20, 30], "agreement": [0.2, 0.7, 0.5, 1.0]})
    30
    """
    curve = np.array(run["agreement"])
    below = np.flatnonzero(curve < (curve[0] + 1) / 2)
    return int(run["steps"][below[-1] + 1 if len(below) else 0])


def find_forecast(budget: str, answers: Mapping[Key, Sequence[Answer]]) -> Finding:
    """H14: the measured time of every corpus, as a multiple of copying's, beside the forecast and its interval."""
    sizes = FORECAST_BUDGETS[budget]
    known = calibrated(sizes, answers)
    easy = [{**run, HALF_WAY: half_way(run)} for run in answers["runs", EASY]]
    rows, values = [], []
    for data in sizes.corpora:
        runs = [{**run, HALF_WAY: half_way(run)} for run in answers["real runs", data]]
        counted = answers["real preflight", data][0]
        expected = forecast(counted["candidates"], known)
        ratio = time_ratio(runs, easy[: len(runs)], HALF_WAY, sizes.steps)
        values += [Value(f"measured ratio, {data}", ratio), _inside(data, ratio, expected)]
        values.append(Value(f"measured over forecast, {data}", _over(ratio, expected)))
        cells = (
            Cell(text=f"{counted['candidates']:.1f}"),
            Cell(text=counted["verdict"]),
            Cell(text=str(len(runs))),
            Cell(text=f"{np.mean([run[HALF_WAY] for run in runs]):.0f}"),
            Cell(ratio, digits=2),
            Cell(text=_shown(expected)),
            Cell(text="inside" if values[-2].estimate.value == 1 else "outside"),
            Cell(text=_calibrated_there(counted["candidates"], known)),
        )
        rows.append(Row(data, cells))
    columns = (
        "candidates",
        "verdict of preflight",
        "runs",
        "mean step of attention",
        f"times {EASY}, measured",
        "times, forecast (interval)",
        "measured time",
        "calibrated there",
    )
    table = ResultTable("Forecast and measured time of real corpora", columns, tuple(rows))
    panel = Panel(
        "agreement of attention with that at the end",
        tuple(_line(data, answers["real runs", data]) for data in sizes.corpora),
        x_label="training step",
        y_label="agreement",
        y_percent=True,
    )
    figure = Figure("forecast", "How fast attention is learned on real pairs", (panel,))
    notes = (
        f"{sizes.steps} steps of {sizes.dose.copying.batch_size} pairs of at most {sizes.max_length} pieces, "
        f"{sizes.seeds} seeds, the copying model and its training; attention on {sizes.held_out} validation pairs.",
        "Measured: the step from which on attention agrees with that at the end by more than half of what it lacked at "
        f"first, over the same of {EASY} by the same seeds. On real pairs attention goes on changing, and the end is "
        "where training was stopped: a longer training would give a later step.",
        f"The forecast is calibrated on copying tasks alone ({len(known.times)} doses, time until 99 % of words are "
        "right); it has seen no real corpus.",
    )
    return Finding((table,), (figure,), tuple(values), notes)


def calibrated(sizes: ForecastBudget, answers: DoseAnswers) -> Calibration:
    """The calibration that the doses give, before they are put into the package."""
    times = tuple(measured_times(sizes.dose, answers, CANDIDATES))
    easy, _ = median_steps(answers["runs", EASY], "learned", sizes.dose.copying.steps)
    return Calibration(EASY, easy, times, (), "by the doses of this page")


def _inside(data: str, ratio: Estimate, expected: Forecast) -> Value:
    """1 where the measured ratio lies within the interval of the forecast, else 0."""
    if expected.ratio is None or expected.low is None or expected.high is None or math.isnan(ratio.value):
        return Value(f"inside the interval, {data}", exactly(math.nan))
    return Value(f"inside the interval, {data}", exactly(float(expected.low <= ratio.value <= expected.high)))


def _over(ratio: Estimate, expected: Forecast) -> Estimate:
    by = expected.ratio or math.nan
    return Estimate(ratio.value / by, ratio.low / by, ratio.high / by, ratio.n)


def _shown(expected: Forecast) -> str:
    if expected.ratio is None:
        return "none"
    return f"{expected.ratio:.2g} ({expected.low:.2g} to {expected.high:.2g})"


def _calibrated_there(candidates: float, known: Calibration) -> str:
    most = max(1 / point.statistic for point in known.times)
    return "yes" if candidates <= most else f"no: a dose has {most:.0f} candidates at most"


def _line(data: str, runs: Sequence[Answer]) -> Line:
    mean: NDArray[np.float64] = np.mean([run["agreement"] for run in runs], axis=0)
    return Line(data, tuple(float(step) for step in runs[0]["steps"]), tuple(map(float, mean)))
