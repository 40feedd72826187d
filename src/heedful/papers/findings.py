"""Findings of an experiment: tables, figures and the numbers that claims are judged by, as plain data.

Experiments fill these in; reports draw them.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypedDict

import numpy as np
from numpy.typing import NDArray

from heedful.metrics.statistics import Estimate, mean_over_seeds, nested_normal
from heedful.papers.judge import Case

CellUnit = Literal["", "%"]


class Sizes(TypedDict, total=False):
    """What the number of a cell was measured on."""

    seeds: int | None
    texts: int | None


@dataclass(frozen=True)
class Cell:
    """One entry of a table: what we measured, what the paper prints there, and a word where neither is a number.

    `unit` "%" means that `measured` is a share and `published` a percentage; both are then shown in percent.
    `starred` and `published_starred` are the paper's `*`: a contextualised agreement that was never exceeded. `seeds`
    and `texts` say how many it was measured on.
    """

    measured: Estimate | None = None
    published: float | None = None
    unit: CellUnit = ""
    digits: int = 1
    starred: bool = False
    published_starred: bool = False
    text: str | None = None
    seeds: int | None = None
    texts: int | None = None


@dataclass(frozen=True)
class Row:
    """A line of a table; `group` keeps lines together that belong together."""

    name: str
    cells: tuple[Cell, ...]
    group: str = ""


@dataclass(frozen=True)
class ResultTable:
    """A table as the paper has it, each entry measured beside published."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    caption: str = ""


@dataclass(frozen=True)
class Line:
    """A curve, with its interval where there is one; lines of one `group` look alike and share one legend entry."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    group: str = ""
    faint: bool = False


@dataclass(frozen=True)
class Points:
    """A cloud of points; clouds of one `group` look alike and share one legend entry.

    large: few points, each of which counts. hollow: only their outlines.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    group: str = ""
    large: bool = False
    hollow: bool = False


@dataclass(frozen=True)
class Mark:
    """A point of a panel, with a word beside it and guides to both axes."""

    x: float
    y: float
    label: str
    guides: bool = False


@dataclass(frozen=True)
class Panel:
    """One picture: lines and clouds of points over an axis, or a matrix of numbers printed in its cells."""

    title: str
    lines: tuple[Line, ...] = ()
    marks: tuple[Mark, ...] = ()
    matrix: tuple[tuple[float, ...], ...] = ()
    row_labels: tuple[str, ...] = ()
    column_labels: tuple[str, ...] = ()
    x_label: str = ""
    y_label: str = ""
    x_log: bool = False
    y_percent: bool = False
    digits: int = 2
    reference: float | None = None  # a horizontal line, such as chance
    points: tuple[Points, ...] = ()


@dataclass(frozen=True)
class Figure:
    """Panels side by side, saved as `name`.svg and `name`.png."""

    name: str
    title: str
    panels: tuple[Panel, ...]
    caption: str = ""


@dataclass(frozen=True)
class Value:
    """A number that a claim is judged by.

    per_seed: its value for each seed, where the estimate is their mean. texts: how many texts each seed was measured
    on. seeds: where they are not the estimate's n. text_error: the standard error that texts contribute.
    """

    name: str
    estimate: Estimate
    per_seed: tuple[float, ...] = ()
    texts: int | None = None
    seeds: int | None = None
    text_error: float = 0.0

    def case(self, name: str, statistic: str) -> Case:
        """The value as a case of a claim."""
        seeds = self.estimate.n if self.seeds is None else self.seeds
        return Case(name, self.estimate, seeds, self.texts, self.per_seed, self.text_error, statistic)


@dataclass(frozen=True)
class Finding:
    """Everything one experiment found; `notes` are sentences a reader of its tables needs."""

    tables: tuple[ResultTable, ...] = ()
    figures: tuple[Figure, ...] = ()
    values: tuple[Value, ...] = ()
    notes: tuple[str, ...] = ()

    def value(self, name: str) -> Estimate:
        """The number of that name.

        >>> Finding(values=(Value("a", Estimate(1.0, 0.0, 2.0, 3)),)).value("a").n
        3
        """
        for value in self.values:
            if value.name == name:
                return value.estimate
        raise KeyError(f"{name!r} is not among {[value.name for value in self.values]}")


def seed_value(
    name: str, per_seed: Sequence[float], texts: int | None = None, within: tuple[float, float] | None = None
) -> Value:
    """A number that has a value for each seed; seeds without one are left out of it and counted.

    within: the range of the statistic, which its interval keeps to.

    >>> seed_value("tau", [1.0, 1.0, 1.0, 1.0, 1.0], within=(-1.0, 1.0)).estimate.low < 0
    True
    """
    kept = tuple(float(value) for value in per_seed if not math.isnan(value))
    return Value(name, mean_over_seeds(list(per_seed), within), kept, texts, len(kept))


@dataclass(frozen=True)
class Margins:
    """The means of a table of numbers, (seeds, texts), over its rows and its columns; NaN is left out of them."""

    seeds: tuple[float, ...]
    texts: tuple[float, ...]

    @classmethod
    def of(cls, rows: NDArray[np.float64]) -> "Margins":
        """The margins of a table; a seed or a text without any number has none.

        >>> Margins.of(np.array([[0.0, 1.0], [1.0, np.nan]])).texts
        (0.5, 1.0)
        """
        seeds, texts = (
            tuple(float(np.nanmean(line)) for line in lines if not np.isnan(line).all()) for lines in (rows, rows.T)
        )
        return cls(seeds, texts)


def nested_value(name: str, rows: NDArray[np.float64] | Margins, within: tuple[float, float] = (-1.0, 1.0)) -> Value:
    """A number measured on the same texts by every seed, rows (seeds, texts): its interval is over seeds and texts.

    A seed's value is its mean over texts; NaN is left out. within: the range of the statistic.

    >>> value = nested_value("gap", np.array([[0.1, 0.3], [0.2, 0.4], [0.1, 0.2]]))
    >>> value.texts, value.seeds, round(value.estimate.value, 3)
    (2, 3, 0.217)
    """
    margins = rows if isinstance(rows, Margins) else Margins.of(rows)
    per_seed, over_texts = list(margins.seeds), np.array(margins.texts)
    if len(per_seed) < 2 or len(over_texts) < 2:
        return replace(seed_value(name, per_seed), texts=len(over_texts))
    error = float(over_texts.std(ddof=1) / math.sqrt(len(over_texts)))
    alone, both = mean_over_seeds(per_seed, within), nested_normal(per_seed, [error], len(over_texts)).seeds
    low, high = min(alone.low, max(within[0], both.low)), max(alone.high, min(within[1], both.high))
    estimate = Estimate(alone.value, low, high, len(per_seed))
    return Value(name, estimate, tuple(per_seed), len(over_texts), len(per_seed), error)


def exactly(value: float) -> Estimate:
    """A number that has no uncertainty: a count, or something derived.

    >>> exactly(3.0).high
    3.0
    """
    return Estimate(value, value, value, 1)


def shifted(estimate: Estimate, by: float) -> Estimate:
    """An estimate and its interval, moved by a number that has no uncertainty.

    >>> shifted(exactly(3.0), -1.0).low
    2.0
    """
    return Estimate(estimate.value + by, estimate.low + by, estimate.high + by, estimate.n)


def matrix_panel(
    title: str, matrix: Iterable[Iterable[float]], rows: Sequence[str], columns: Sequence[str], digits: int = 2
) -> Panel:
    """A matrix with the names of its rows and columns.

    >>> matrix_panel("C", [[0.5, 0.25]], ["bad"], ["positive", "negative"]).matrix
    ((0.5, 0.25),)
    """
    entries = tuple(tuple(float(x) for x in row) for row in matrix)
    return Panel(title, matrix=entries, row_labels=tuple(rows), column_labels=tuple(columns), digits=digits)


def curve(label: str, x: Sequence[float], estimates: Sequence[Estimate], group: str = "") -> Line:
    """A line through estimates, with their intervals.

    >>> curve("H", (0.0, 1.0), (exactly(0.5), exactly(0.25))).y
    (0.5, 0.25)
    """
    y, low, high = (tuple(getattr(e, part) for e in estimates) for part in ("value", "low", "high"))
    return Line(label, tuple(x), y, low, high, group)
