"""What an audit's page draws from scores: pictures, and under them the numbers as tables."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from heedful.audits.names import EVERYWHERE, RANDOM, layer_name
from heedful.audits.verdict import FAR
from heedful.reports.audit_figures import Line, Mark, Scale, dots_svg
from heedful.reports.audit_scores import Column, Scores, is_map
from heedful.reports.audit_words import quantity_name, with_ends
from heedful.reports.numbers import NONE

_NATS = Scale(0.0, 0.8, 0.2)  # of divergences, which end at ln 2


@dataclass(frozen=True)
class Picture:
    """A chart, and what it is called within the page."""

    name: str
    svg: Markup


@dataclass(frozen=True)
class Numbers:
    """A table: what its rows are, its columns, and its rows by name."""

    what: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


@dataclass(frozen=True)
class Section:
    """What was measured about one question; empty where nothing was."""

    pictures: tuple[Picture, ...] = ()
    tables: tuple[Numbers, ...] = ()


def tau_section(scores: Scores) -> Section:
    """τ of the maps with each importance, a random model's beside it; below, what other importances reach."""
    panels: dict[str, list[Line]] = {}
    tau: dict[str, Column] = {}
    agreement: dict[str, Column] = {}
    for against in scores.importances:
        own, random = scores.column("tau", against), scores.column("random tau", against)
        others = (
            Line(name, (Mark(reached, 2),)) for name in scores.importances if (reached := scores.between(name, against))
        )
        panels[f"τ with {against}"] = [*_pairs(scores, scores.maps, own, random), *others]
        tau |= {f"{against}": own, f"{against}, random model": random}
        agreement |= {f"{against}": scores.column("agreement", against)}
        agreement |= {f"{against}, shuffled": scores.column("shuffled agreement", against)}
    tables = _tables(scores.maps, {"τ with": tau, "Agreement with": agreement})
    return Section(_pictures("tau", panels), tables)


def head_tables(scores: Scores) -> tuple[Numbers, ...]:
    """Every map's τ with each importance, and its entropy."""
    columns: dict[str, Column] = {f"τ with {against}": scores.column("tau", against) for against in scores.importances}
    return _tables(scores.every_map, {"Map": columns | {"entropy": scores.column("entropy")}})


def order_section(scores: Scores, *quantities: str, maps: Sequence[str] = ()) -> Section:
    """What an order of words is good for: by attention, by each importance, at random."""
    orders = dict.fromkeys([*maps, scores.headline, *scores.importances, RANDOM])
    columns = {quantity_name(quantity): scores.column(quantity) for quantity in quantities}
    panels = {title[0].upper() + title[1:]: _singles(scores, orders, column) for title, column in columns.items()}
    return Section(_pictures(quantities[0].replace(" ", "-"), panels), _tables(orders, {"Words ordered by": columns}))


def movement_section(scores: Scores, layers: int) -> Section:
    """Predictions under permuted and under uniform attention, in all layers at once and in each alone."""
    places = [EVERYWHERE, *(layer_name(layer) for layer in range(layers))]
    tvd, flip = ([scores.under(quantity, change) for change in ("permuted", "uniform")] for quantity in ("tvd", "flip"))
    pictures = (
        *_pictures("moved", {"Total variation of predictions": _pairs(scores, places, *tvd)}),
        *_pictures("flipped", {"Share of predictions that change": _pairs(scores, places, *flip)}, shares=True),
    )
    titles = (
        "permuted: total variation",
        "uniform: total variation",
        "permuted: predictions changed",
        "uniform: predictions changed",
    )
    return Section(pictures, _tables(places, {"Attention changed in": dict(zip(titles, tvd + flip, strict=True))}))


def another_section(scores: Scores) -> Section:
    """How far from the headline map another lies that gives the same prediction."""
    column = scores.column("adversary")
    lines = _singles(scores, [scores.headline], column)
    if not lines:
        return Section()
    svg = dots_svg("Divergence, in nats", lines, _NATS, references=[(FAR, "asked"), (math.log(2), "most")])
    return Section((Picture("another-1", svg),), _tables([scores.headline], {"Map": {"divergence": column}}))


def _pairs(scores: Scores, names: Iterable[str], first: Column, second: Column) -> list[Line]:
    """A line for each name with a number; the second mark is hollow."""
    lines = []
    for name in names:
        found = ((first(name), 0), (second(name), 1))
        if marks := tuple(Mark(estimate, mark) for estimate, mark in found if estimate is not None):
            lines.append(Line(name, marks, strong=name == scores.headline))
    return lines


def _singles(scores: Scores, names: Iterable[str], column: Column) -> list[Line]:
    """A line for each name with a number: attention a dot, importances squares, chance hollow."""
    return [
        Line(
            name,
            (Mark(estimate, 1 if name == RANDOM else 0 if is_map(name) else 2),),
            strong=name == scores.headline,
        )
        for name in names
        if (estimate := column(name)) is not None
    ]


def _pictures(name: str, panels: Mapping[str, Sequence[Line]], *, shares: bool = False) -> tuple[Picture, ...]:
    """All panels that have lines, on one scale."""
    drawn = {title: lines for title, lines in panels.items() if lines}
    scale = Scale.over([line for lines in drawn.values() for line in lines], shares=shares)
    return tuple(
        Picture(f"{name}-{i}", dots_svg(title, lines, scale)) for i, (title, lines) in enumerate(drawn.items(), 1)
    )


def _tables(names: Iterable[str], tables: Mapping[str, Mapping[str, Column]]) -> tuple[Numbers, ...]:
    """A table for each set of columns, without rows and columns that are empty."""
    made = []
    for what, columns in tables.items():
        rows = {name: {title: with_ends(column(name)) for title, column in columns.items()} for name in names}
        kept = [title for title in columns if any(row[title] != NONE for row in rows.values())]
        filled = {name: tuple(row[title] for title in kept) for name, row in rows.items()}
        lines = tuple((name, cells) for name, cells in filled.items() if any(cell != NONE for cell in cells))
        if lines:
            made.append(Numbers(what, tuple(kept), lines))
    return tuple(made)
