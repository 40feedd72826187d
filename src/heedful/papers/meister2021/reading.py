"""What the units measured, as the tables want it: a mean over texts for each seed, an interval over seeds."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.measure.rank import kendall_tau_b
from heedful.measure.uncertainty import Estimate, mean_over_seeds
from heedful.papers.finding import Cell
from heedful.papers.meister2021.budgets import ARCHITECTURES, SOFTMAX, SPARSEMAX, Architecture, Corpus, sparsegen
from heedful.papers.meister2021.training import Trained

Answer = Mapping[str, Any]
PerText = Callable[[Answer], NDArray[np.float64]]
PROJECTIONS = (SOFTMAX, SPARSEMAX)
SPREAD = "After ±, the standard deviation over texts, the paper's in parentheses; intervals are over seeds."


def numbers(values: Sequence[float | int | None]) -> NDArray[np.float64]:
    """What JSON held, NaN for None.

    >>> numbers([0.5, None])
    array([0.5, nan])
    """
    return np.array([math.nan if value is None else value for value in values], dtype=np.float64)


def of(key: str) -> PerText:
    """The measure of that name, one number for each text."""
    return lambda answer: numbers(answer[key])


def over_ceiling(key: str) -> PerText:
    """τ as a share of the highest that this α can have with an importance that has no ties (SPEC §6.4)."""
    return lambda answer: numbers(answer[key]) / numbers(answer["ceiling"])


def less(first: PerText, second: PerText) -> PerText:
    """The difference, text by text."""
    return lambda answer: first(answer) - second(answer)


def mean(values: NDArray[np.float64]) -> float:
    """The mean of what there is; NaN of nothing.

    >>> mean(np.array([1.0, math.nan]))
    1.0
    """
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else math.nan


def per_seed(seeds: Sequence[Answer], measure: PerText) -> list[float]:
    """The mean over the texts that have a value, seed by seed; NaN where none has."""
    return [mean(measure(answer)) for answer in seeds]


def over_seeds(seeds: Sequence[Answer], measure: PerText) -> Estimate:
    """The mean over texts and seeds, with its interval over seeds."""
    return mean_over_seeds(per_seed(seeds, measure))


def spread(seeds: Sequence[Answer], measure: PerText) -> float:
    """The standard deviation over texts, in the mean over seeds."""
    each = [values[~np.isnan(values)].std() for values in map(measure, seeds) if not np.isnan(values).all()]
    return float(np.mean(each)) if each else math.nan


def undefined(seeds: Sequence[Answer], measure: PerText) -> int:
    """How many texts have no value, over all seeds."""
    return int(sum(np.isnan(measure(answer)).sum() for answer in seeds))


def cell(seeds: Sequence[Answer], measure: PerText, published: tuple[float, float | None] | None = None) -> Cell:
    """A mean with its spread over texts, beside what the paper prints."""
    mean, std = published or (None, None)
    deviation = spread(seeds, measure)
    text = None if math.isnan(deviation) else f"± {deviation:.2f}" + ("" if std is None else f" (± {std:.2f})")
    return Cell(over_seeds(seeds, measure), mean, digits=2, text=text)


def trend(grid: Sequence[float], seeds: Sequence[Sequence[Answer]], measure: PerText) -> Estimate:
    """Kendall's τ-b between a parameter and the mean of a measure, seed by seed; `seeds[i]` are those of `grid[i]`."""
    table = np.array([per_seed(answers, measure) for answers in seeds]).T  # (seeds, grid)
    return mean_over_seeds([rank_correlation(grid, row) for row in table])


def rank_correlation(x: Sequence[float] | NDArray[np.float64], y: Sequence[float] | NDArray[np.float64]) -> float:
    """Kendall's τ-b over the pairs that have both values; NaN where nothing can be ordered.

    >>> rank_correlation([1.0, 2.0, 3.0], [5.0, 4.0, math.nan])
    -1.0
    """
    u, v = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    both = ~(np.isnan(u) | np.isnan(v))
    return float(kendall_tau_b([u[both]], [v[both]])[0]) if both.any() else math.nan


def on_axis(lam: float) -> float:
    """Where λ stands on the axis of Figure 3, log-scaled towards −∞ and towards 1: −log₁₀(1 − λ).

    >>> on_axis(-99.0), on_axis(0.0), round(on_axis(0.99), 6)
    (-2.0, 0.0, 2.0)
    """
    return -math.log10(1 - lam) + 0.0


AXIS = "−log₁₀(1 − λ)"
AXIS_SAID = "The axis is log-scaled towards both ends: λ = −99, −9, 0, 0.9 and 0.99 stand at −2, −1, 0, 1 and 2."


def main_models(corpora: Sequence[Corpus]) -> list[Trained]:
    """The models of Tables 1 and 6: both architectures with softmax and with sparsemax."""
    return [Trained(c, a, p) for a in ARCHITECTURES for p in PROJECTIONS for c in corpora]


def by_name(models: Sequence[Trained]) -> dict[str, list[Trained]]:
    """The lines of a table: models of one name, one for each corpus."""
    lines: dict[str, list[Trained]] = {}
    for model in models:
        lines.setdefault(model.name, []).append(model)
    return lines


def columns(corpora: Sequence[Corpus]) -> tuple[str, ...]:
    """The heads of a table's columns: the paper's names, or those of the data that stand in."""
    return tuple(corpus.published_as or corpus.data for corpus in corpora)


def along_grid(corpus: Corpus, architecture: Architecture) -> list[Trained]:
    """The models of one corpus at every λ it is trained with."""
    return [Trained(corpus, architecture, sparsegen(lam)) for lam in corpus.grid]


def all_along(corpora: Sequence[Corpus]) -> list[Trained]:
    """The models of all corpora at every λ."""
    return [model for corpus in corpora for architecture in ARCHITECTURES for model in along_grid(corpus, architecture)]
