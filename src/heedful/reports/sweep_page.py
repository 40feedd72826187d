"""The page of a sweep: every figure in small multiples over the grid's axes, and all studies in one shaded table.

One self-contained HTML file that can be read without a script; the one it has saves files, and its
Content-Security-Policy lets nothing else run and nothing be fetched.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from heedful.html import concept, symbol
from heedful.reports.charts import (
    STEPS,
    ChartLine,
    ChartMark,
    ChartScale,
    Picture,
    ShadedCell,
    dots_svg,
    shade,
    shaded_style,
)
from heedful.reports.html import NONE, assets, fill, percent
from heedful.storage.atomic_files import write_text
from heedful.sweeps.result import SweepFigure, SweepResult, SweepStudy

_WIDEST = 17  # letters of a name that fit before a picture's scale
_UNLEARNED = "†"  # after the name of a study whose verdict answers nothing


def write_sweep_page(result: SweepResult, folder: Path, out: Path | None = None) -> Path:
    """Write the page of the sweep in that folder; returns its path."""
    target = out or folder / "report.html"
    write_text(target, render_sweep(result, folder.resolve().name))
    return target


def render_sweep(result: SweepResult, name: str) -> str:
    """The page as text."""
    keys = result.figure_keys()
    own = [key for key in keys if not key.endswith(" cross")]
    return fill(
        "sweep.html.j2",
        {"name": name},
        style=f"{shaded_style()}\n{assets('sweep.css')}",
        script=assets("draw.js", "saving.js"),
        name=name,
        title=headline(result),
        scope=_scope(result),
        axes=result.axes,
        finished=[study for study in result.studies if study.state == "finished"],
        failed=[(_place(result, study), study.error) for study in result.failed],
        first=[_measure(result, key) for key in own],
        second=[_measure(result, key) for key in keys if key not in own],
        columns=[(_concept(key), _symbol(key)) for key in own],
        unlearned=sum(study.status != "answered" for study in result.studies),
        rows=_rows(result, own),
        steps=range(STEPS + 1),
    )


def headline(result: SweepResult) -> str:
    """What the sweep found: the axis that moves accuracy most, or that nothing does.

    Studies differ where the intervals of the best and the worst do not overlap; the axis is the one whose values have
    the means furthest apart.
    """
    key = next(iter(result.figure_keys()), "")
    found = [(study, figure.estimate) for study in result.studies if (figure := study.figure(key)) is not None]
    found = [(study, estimate) for study, estimate in found if not math.isnan(estimate.value)]
    count = f"{len(found):,} {'study' if len(found) == 1 else 'studies'}"
    if not found:
        return f"None of {len(result.studies):,} studies gave a result"
    name = _concept(key).capitalize()
    estimates = sorted((estimate for _, estimate in found), key=lambda estimate: estimate.value)
    worst, best = estimates[0], estimates[-1]
    if all(study.status != "answered" for study, _ in found):
        reached = percent(best.value) if len(found) == 1 else f"{percent(worst.value)} to {percent(best.value)}"
        return f"Nothing was learned in {count}: {name.lower()} {reached}"
    if len(found) == 1:
        return f"{name} {percent(best.value)} in the one study that finished"
    if best.low <= worst.high:
        return f"{name} hardly differs over {count}: {percent(worst.value)} to {percent(best.value)}"
    ranges = []
    for i, axis in enumerate(result.axes):
        values = {word: [e.value for study, e in found if study.place[i] == word] for word in axis.values}
        means = {word: sum(own) / len(own) for word, own in values.items() if own}
        low, high = min(means, key=lambda word: means[word]), max(means, key=lambda word: means[word])
        ranges.append((means[high] - means[low], axis.name, (low, means[low]), (high, means[high])))
    if not ranges:
        return f"{name} from {percent(worst.value)} to {percent(best.value)} over {count}"
    _, axis_name, (low, least), (high, most) = max(ranges, key=lambda each: each[0])
    plain = axis_name.rpartition(".")[2].replace("_", " ").capitalize()
    return f"{plain} moves {name.lower()} most: {percent(least)} with {low}, {percent(most)} with {high}"


def _scope(result: SweepResult) -> str:
    """How many studies, over what."""
    axes = [axis.name for axis in result.axes if len(axis.values) > 1]
    over = f" over {', '.join(axes[:-1])}{' and ' if len(axes) > 1 else ''}{axes[-1]}" if axes else ""
    count = f"{len(result.studies):,} {'study' if len(result.studies) == 1 else 'studies'}"
    return f"{count}{over}"


def _measure(result: SweepResult, key: str) -> dict[str, Any]:
    """A figure in all studies: a picture for each place on all axes but the longest, whose values are its rows.

    All pictures have one scale.
    """
    rows = _row_axis(result)
    apart = [len(axis.values) > 1 and i != rows for i, axis in enumerate(result.axes)]
    groups: dict[str, list[tuple[str, SweepFigure]]] = {}
    for study in result.studies:
        figure = study.figure(key)
        if figure is None or math.isnan(figure.estimate.value):
            continue
        places = zip(result.axes, study.place, apart, strict=True)
        others = [f"{axis.name} {word}" for axis, word, differs in places if differs]
        name = "the one study" if rows is None else study.place[rows]
        mark = "" if study.status == "answered" else f" {_UNLEARNED}"
        groups.setdefault(", ".join(others), []).append((_short(name) + mark, figure))
    lines = {
        title: [ChartLine(name, (ChartMark(figure.estimate),)) for name, figure in group]
        for title, group in groups.items()
    }
    scale = ChartScale.over([line for group in lines.values() for line in group], shares=True)
    name, anchor = _concept(key), "".join(c if c.isalnum() else "-" for c in key)
    return {
        "anchor": anchor,
        "name": name,
        "symbol": _symbol(key),
        "named": len(lines) == 1 and "" in lines,  # the one picture has the name already
        "about": f"rows: {result.axes[rows].name}" if rows is not None else "",
        "multiples": [
            Picture(f"{anchor}-{i}", dots_svg(title or name, group, scale, references=_chance(groups[title], scale)))
            for i, (title, group) in enumerate(lines.items(), 1)
        ],
    }


def _row_axis(result: SweepResult) -> int | None:
    """The axis with the most values, the last of equals; none where nothing differs."""
    sizes = [len(axis.values) for axis in result.axes]
    if not sizes or max(sizes) == 1:
        return None
    return max(range(len(sizes)), key=lambda i: (sizes[i], i))


def _chance(group: Sequence[tuple[str, SweepFigure]], scale: ChartScale) -> list[tuple[float, str]]:
    """Where one kind of chance is the same in all rows, a line with its name."""
    known = [figure.random for _, figure in group if figure.random is not None]
    if not known or max(known) - min(known) > 0.01 or not scale.low <= known[0] <= scale.high:
        return []
    return [(known[0], "chance")]


def _rows(result: SweepResult, keys: Sequence[str]) -> list[dict[str, Any]]:
    """The finished studies: place, link and shaded figures of each."""
    ends = {key: _ends(result, key) for key in keys}
    return [
        {
            "place": study.place,
            "mark": "" if study.status == "answered" else _UNLEARNED,
            "link": f"{quote(study.folder)}/report.html",
            "cells": [_shaded(study.figure(key), *ends[key]) for key in keys],
        }
        for study in result.studies
        if study.state == "finished"
    ]


def _shaded(figure: SweepFigure | None, least: float, most: float) -> ShadedCell:
    if figure is None or math.isnan(figure.estimate.value):
        return ShadedCell(NONE, "")
    value = figure.estimate.value
    return ShadedCell(percent(value), shade(value - least, most - least, "p"))


def _ends(result: SweepResult, key: str) -> tuple[float, float]:
    """The smallest and the largest value of a figure."""
    values = [figure.estimate.value for study in result.studies if (figure := study.figure(key)) is not None]
    known = [value for value in values if not math.isnan(value)] or [0.0]
    return min(known), max(known)


def _place(result: SweepResult, study: SweepStudy) -> str:
    values = ", ".join(f"{axis.name} {word}" for axis, word in zip(result.axes, study.place, strict=True))
    return values or study.folder


def _concept(key: str) -> str:
    """The name of a figure in plain words.

    >>> _concept("A(alpha,beta_uf) own"), _concept("accuracy"), _concept("entropy")
    ('attention ↔ word knowledge without attention', 'accuracy', 'spread of attention')
    """
    return "spread of attention" if key == "entropy" else concept(_without_convention(key))


def _symbol(key: str) -> str:
    """The name of an agreement with the papers' letters; empty for other figures.

    >>> _symbol("A(alpha,beta_uf) own"), _symbol("accuracy")
    ('A(α, β^uf)', '')
    """
    name = _without_convention(key)
    return symbol(name) if name.startswith("A(") else ""


def _without_convention(key: str) -> str:
    return key.removesuffix(" own").removesuffix(" cross")


def _short(name: str) -> str:
    return name if len(name) <= _WIDEST else f"{name[: _WIDEST - 1]}…"
