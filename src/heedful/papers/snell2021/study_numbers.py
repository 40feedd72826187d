"""The numbers of a finished study that tables, figures and claims of snell2021 read.

A study's traces are large. This is what is kept of them: one answer for each study, stored beside the results, so that
a study is trained again only where its numbers are missing.
"""

import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from scipy import stats

from heedful.config import StudyConfig
from heedful.execution.pool import OnEvent
from heedful.metrics.agreement import agreement, contextualised_agreement
from heedful.metrics.statistics import Estimate, mean_over_seeds
from heedful.papers.experiment import Unit, Workspace, study_folder
from heedful.papers.findings import Margins, Value
from heedful.papers.snell2021.config import study_of
from heedful.storage.atomic_files import without_nan
from heedful.storage.serialization import from_mapping
from heedful.studies.analysis import MeasureName, Recordings, Rows, final_performance, measure_agreements, pairing
from heedful.studies.result import AgreementResult, Convention, Gate
from heedful.studies.run_directory import ModelSpec, Recorded, RunDirectory

CONVENTIONS: tuple[Convention, ...] = get_args(Convention)
COMPARED = {  # the two agreements that Tables 10 and 11 have side by side
    "10": ("A(alpha,alpha_fr)", "A(alpha,beta_uf)"),
    "11": ("A(beta_uf,beta_px)", "A(beta_uf,beta_log)"),
}


@dataclass(frozen=True)
class Measured:
    """All agreements of one study, by one measure, on one split."""

    agreements: tuple[AgreementResult, ...]
    random: float
    final: Estimate
    final_bleu: Estimate | None
    texts: int

    @property
    def seeds(self) -> int:
        """How many models of a kind were compared."""
        return len(self.agreements[0].per_seed)

    def agreement(self, name: str, convention: Convention) -> AgreementResult:
        """The row of that name; under *cross* a bag-of-words probe stands first."""
        swapped = f"A({','.join(name[2:-1].split(',')[::-1])})"
        for row in self.agreements:
            if row.convention == convention and row.name in (name, swapped):
                return row
        raise KeyError(f"{name!r} ({convention}) was not measured")


@dataclass(frozen=True)
class HeldOut:
    """What is read of a study under one convention at steps that were chosen on other texts.

    xi_above: for each seed, the lower of ξ(α, β) and ξ(α, β^uf) less the larger of two accuracies, untrained and
    majority. table10, table11: the second agreement of a table less the first; None for translation.
    """

    convention: Convention
    xi_above: tuple[float, ...]
    table10: Margins | None = None
    table11: Margins | None = None


@dataclass(frozen=True)
class Climb:
    """A(α, α̂(τ)) of two seeds, the second one's performance, and A(α, β^uf): how ξ is read (Figure 2)."""

    seeds: tuple[int, ...]
    steps: tuple[int, ...]
    agreement: tuple[float, ...]
    performance: tuple[float, ...]
    target: float


@dataclass(frozen=True)
class TwinCurve:
    """A(α, β^uf(τ)) over the steps of another seed's twin, and how far its peak lies above both ends (A.7)."""

    steps: tuple[int, ...]
    curve: tuple[float, ...]
    rise: Margins
    fall: Margins


@dataclass(frozen=True)
class SeedPairs:
    """A(α, α̂) of all ordered pairs of seeds (A.9): first and second seed, mean over texts; and of texts, over pairs."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    agreement: tuple[float, ...]
    texts: tuple[float, ...]


@dataclass(frozen=True)
class StudyNumbers:
    """Everything that is kept of a study; twin, pairs: of classification only."""

    validation: Measured
    kendall: Measured
    train: Measured
    gate: Gate
    held_out: tuple[HeldOut, ...]
    climb: Climb
    twin: TwinCurve | None = None
    pairs: SeedPairs | None = None

    def measured(self, split: Recorded = "validation", measure: MeasureName = "agreement") -> Measured:
        """All agreements on one split by one measure; τ is measured on the validation texts alone."""
        if measure == "kendall":
            return self.kendall
        return self.train if split == "train" else self.validation

    def under(self, convention: Convention) -> HeldOut:
        """What is read under one convention."""
        return next(each for each in self.held_out if each.convention == convention)


def study_unit(study: StudyConfig) -> Unit:
    """The numbers of one study."""
    name = f"study-{study.data.replace(':', '-')}"
    return Unit(name, f"{__name__}:read_study", {"run": study_folder(study)}, paths=("run",), study=study)


def numbers_of(workspace: Workspace, data: str) -> StudyNumbers:
    """The stored numbers of a corpus's study."""
    unit = study_unit(study_of(data, workspace.budget))
    return from_mapping(StudyNumbers, workspace.answers([unit])[0], where=unit.name)


def read_study(*, run: str, device: torch.device, report: OnEvent) -> dict[str, Any]:
    """A unit: the numbers of a trained study."""
    folder = RunDirectory(Path(run))
    result, recordings = folder.result(), Recordings(folder)
    gate = result.verdict.gate
    assert gate is not None
    validation = Measured(
        result.agreements, result.random_agreement, result.xi_final, _final_bleu(recordings), gate.texts
    )
    numbers = StudyNumbers(
        validation,
        kendall=_measure(recordings, "kendall"),
        train=_measure(Recordings(folder, "train"), "agreement"),
        gate=gate,
        held_out=tuple(_held_out(recordings, validation, convention, gate) for convention in CONVENTIONS),
        climb=_climb(recordings),
        twin=None if recordings.translating else _twin_curve(recordings),
        pairs=None if recordings.translating else _seed_pairs(recordings),
    )
    plain: dict[str, Any] = without_nan(asdict(numbers))
    return plain


def _measure(recordings: Recordings, measure: MeasureName) -> Measured:
    agreements = measure_agreements(recordings, measure)
    texts = len(np.unique(recordings.example))
    return Measured(agreements, agreements[0].random, final_performance(recordings), _final_bleu(recordings), texts)


def _final_bleu(recordings: Recordings) -> Estimate | None:
    if not recordings.translating:
        return None
    key = "bleu" if recordings.split == "validation" else "train_bleu"
    last = [recordings.run.model(ModelSpec("standard", seed)).metrics()[-1][key] for seed in recordings.seeds]
    return mean_over_seeds(last)


def _held_out(recordings: Recordings, measured: Measured, convention: Convention, gate: Gate) -> HeldOut:
    xi = tuple(xi_above_baselines(recordings, convention, gate.baseline))
    if recordings.translating:
        return HeldOut(convention, xi)
    gaps = {}
    for number, columns in COMPARED.items():
        left, right = (measured.agreement(column, convention).name for column in columns)
        gaps[number] = _difference(recordings, left, right, convention)
    return HeldOut(convention, xi, gaps["10"], gaps["11"])


def _difference(recordings: Recordings, left: str, right: str, convention: Convention) -> Margins:
    """The second agreement less the first, seed by seed and text by text."""
    gaps = [
        held_out_rows(recordings, right, convention, A) - held_out_rows(recordings, left, convention, A)
        for A in recordings.seeds
    ]
    return Margins.of(np.array(gaps))


def xi_above_baselines(recordings: Recordings, convention: Convention, majority: float) -> list[float]:
    """For each seed, the lower of ξ(α, β) and ξ(α, β^uf) less the larger of two accuracies: untrained, and majority.

    ξ is read from the curve of that seed alone; one that is never exceeded (`*`) says nothing, and is NaN.
    """
    above = []
    for A in recordings.seeds:
        to_other = pairing(recordings, "A(alpha,alpha_hat)", convention, A)
        climb = [float(np.nanmean(agreement(*to_other.pair(step)))) for step in to_other.steps]
        performance = [float(recordings.correct(*to_other.read_from, step).mean()) for step in to_other.steps]
        read = [
            contextualised_agreement(
                float(np.nanmean(held_out_rows(recordings, name, convention, A))),
                list(to_other.steps),
                climb,
                performance,
            )
            for name in ("A(alpha,beta)", "A(alpha,beta_uf)")
        ]
        lower = min(xi.value for xi in read) if all(xi.reached for xi in read) else np.nan
        above.append(lower - max(performance[0], majority))
    return above


def held_out_rows(recordings: Recordings, name: str, convention: Convention, A: int) -> Rows:
    """One seed's agreement, row by row; where it is read at its maximum, the step is chosen on the other half."""
    read = pairing(recordings, name, convention, A)
    if read.read_at is not None:
        return agreement(*read.pair(read.read_at))
    table = np.stack([agreement(*read.pair(step)) for step in read.steps])
    even = np.unique(recordings.example, return_inverse=True)[1] % 2 == 0
    rows = np.full(table.shape[1], np.nan)
    for half in (even, ~even):
        chosen = table[:, ~half] if (~half).any() else table
        rows[half] = table[int(np.argmax(chosen.mean(axis=1)))][half]
    return rows


def _climb(recordings: Recordings) -> Climb:
    A, B = recordings.seeds[0], recordings.other(recordings.seeds[0])
    alpha = recordings.quantity("standard", A, "alpha", recordings.best_step(A))
    steps = recordings.steps("standard", B)
    climb = [float(agreement(alpha, recordings.quantity("standard", B, "alpha", step)).mean()) for step in steps]
    performance = [float(recordings.correct("standard", B, step).mean()) for step in steps]
    target = max(
        float(agreement(alpha, recordings.quantity("uniform", B, "beta_logit", step)).mean())
        for step in recordings.steps("uniform", B)
    )
    return Climb((A, B), steps, tuple(climb), tuple(performance), target)


def _twin_curve(recordings: Recordings) -> TwinCurve:
    tables = [_over_twin(recordings, A) for A in recordings.seeds]
    rise, fall = (Margins.of(np.array([from_peak(table, end) for table in tables])) for end in (0, -1))
    curve = np.mean([table.mean(axis=1) for table in tables], axis=0)
    return TwinCurve(recordings.steps("uniform", recordings.seeds[0]), tuple(curve.tolist()), rise, fall)


def _over_twin(recordings: Recordings, A: int) -> Rows:
    """A(α, β^uf(τ)) of every text at every step of another seed's twin: (steps, texts)."""
    alpha = recordings.quantity("standard", A, "alpha", recordings.best_step(A))
    twin = recordings.other(A)
    steps = recordings.steps("uniform", twin)
    return np.stack([agreement(alpha, recordings.quantity("uniform", twin, "beta_logit", step)) for step in steps])


def from_peak(table: Rows, end: int) -> Rows:
    """How far the peak lies above one end of the curve, text by text; its step is chosen on the other half of texts."""
    gaps = np.empty(table.shape[1])
    for half in (np.s_[::2], np.s_[1::2]):
        other = np.ones(table.shape[1], dtype=bool)
        other[half] = False
        peak = int(np.argmax(table[:, other].mean(axis=1))) if other.any() else int(np.argmax(table.mean(axis=1)))
        gaps[half] = table[peak, half] - table[end, half]
    return gaps


def _seed_pairs(recordings: Recordings) -> SeedPairs:
    """A(α, α̂) of every text, for all ordered pairs of seeds."""
    rows = {}
    for A, B in itertools.permutations(recordings.seeds, 2):
        read = pairing(recordings, "A(alpha,alpha_hat)", "cross", A, B)
        assert read.read_at is not None
        rows[A, B] = agreement(*read.pair(read.read_at))
    return seed_pairs(rows)


def seed_pairs(rows: Mapping[tuple[int, int], Rows]) -> SeedPairs:
    """The means of some rows, one for each pair of seeds."""
    first, second = zip(*rows, strict=True)
    means = tuple(float(each.mean()) for each in rows.values())
    return SeedPairs(first, second, means, tuple(np.mean(list(rows.values()), axis=0).tolist()))


def over_pairs(pairs: SeedPairs, chance: float) -> Value:
    """The mean over pairs above chance; over seeds, by leaving out each with all of its pairs, and over texts."""
    table = list(zip(zip(pairs.first, pairs.second, strict=True), pairs.agreement, strict=True))
    mean, seeds, texts = float(np.mean(pairs.agreement)), sorted(set(pairs.first)), np.array(pairs.texts)
    error = float(texts.std(ddof=1) / math.sqrt(len(texts))) if len(texts) > 1 else math.nan
    without = [[value for pair, value in table if seed not in pair] for seed in seeds]
    if not all(without):
        return Value("", Estimate(mean - chance, math.nan, math.nan, len(seeds)), (), len(texts), len(seeds), error)
    over_seeds = (len(seeds) - 1) * float(np.var([np.mean(values) for values in without]))
    half = float(stats.t.ppf(0.975, len(seeds) - 1)) * math.sqrt(over_seeds + error**2)
    low, high = max(0.0, mean - half) - chance, min(1.0, mean + half) - chance
    return Value("", Estimate(mean - chance, low, high, len(seeds)), (), len(texts), len(seeds), error)
