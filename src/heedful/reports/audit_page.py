"""The page of an audit: one self-contained HTML file.

Words, tables and pictures are filled into the template, escaped, and can be read without a script; a script selects
heads and examples, and saves files. A Content-Security-Policy lets nothing else run and nothing be fetched.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from markupsafe import Markup

from heedful.attribution.attention_maps import (
    DELETION,
    EVERYWHERE,
    MEAN,
    RANDOM,
    ROLLOUT,
    SINKS,
    is_head,
    layer_name,
    weights_of,
)
from heedful.audits.result import OWN_TEXTS, AuditExample, AuditQuestion, AuditResult, AuditVerdict, Contrast, score_row
from heedful.config import AuditSettings
from heedful.metrics.statistics import Estimate
from heedful.reports.charts import (
    STEPS,
    ChartLine,
    ChartMark,
    ChartScale,
    Picture,
    ShadedCell,
    dots_svg,
    gauge_svg,
    shaded_style,
    share_shade,
    signed_shade,
)
from heedful.reports.html import NONE, assets, fill, interval, percent, quantity_name, with_ends, written
from heedful.storage.atomic_files import without_nan, write_text
from heedful.storage.manifest import MANIFEST, Manifest
from heedful.storage.serialization import from_mapping

_HIGHEST = 5  # words in a ranking
_SHORTEST, _LONGEST, _LETTERS = 5, 40, 400  # words and letters of the text that opens the page
_MANY_LABELS = 12
SINK_NAMES = {"first": "the first position", "separator": "separators", "punctuation": "punctuation"}
_NATS = ChartScale(0.0, 0.8, 0.2)  # of divergences, which end at ln 2
_QUERIES = {
    "first": "from the first position, the classification token",
    "last": "from the last position, where the prediction is read",
    "mean": "from all positions, averaged",
    "weighted": "from the positions that the output head reads, each with its share",
    "at": "from the positions where the output is read: the labelled word, the mask, or the ends of the answer",
    "only": "one position attends",
    "": "as given",
}
Column = Callable[[str], Estimate | None]


def write_audit_page(result: AuditResult, out: Path, command: str = "") -> Path:
    """Write the page and return its path; command: what runs the audit again."""
    write_text(out, render_audit(result, command))
    return out


def render_audit(result: AuditResult, command: str = "") -> str:
    """The page as text."""
    scores, smallest = Scores(result), smallest_effects(result)
    reason, evidence = opening(result.verdict)
    return fill(
        "audit.html.j2",
        without_nan(_payload(result)),
        style=shaded_style(),
        script=assets("draw.js", "grid.js", "audit.js"),
        result=result,
        name=short_name(result.model),
        kicker=kicker(result),
        reason=reason,
        evidence=evidence,
        questions=[(question, _gauge(question)) for question in result.verdict.questions],
        command=command,
        subject_facts=subject_facts(result),
        data_facts=data_facts(result),
        settings=[
            *((name.replace("_", " "), _setting(value)) for name, value in result.settings.items()),
            ("fingerprint", result.fingerprint),
        ],
        many_labels=_MANY_LABELS,
        tau=tau_section(scores),
        grids=head_grids(scores, result.layers, result.heads),
        with_maps=[example.text + 1 for example in result.examples if example.maps],
        largest=largest_tau(scores),
        steps=STEPS,
        heads=head_tables(scores),
        ranking=ranking_rows(result, scores),
        sinks=sink_rows(scores),
        erasure=order_section(scores, "comprehensiveness", "sufficiency"),
        movement=movement_section(scores, result.layers),
        another=another_section(scores, smallest.smallest_divergence),
        argument=argument(result, smallest.smallest_divergence),
        people=order_section(scores, "token f1", "iou f1", "auprc"),
        alignment=order_section(scores, "aer", maps=scores.maps),
        examples=[
            (anchor, shaded_example(example, result.headline))
            for anchor, example in zip(_anchors(result.examples), result.examples, strict=True)
        ],
        smallest=smallest,
    )


def smallest_effects(result: AuditResult) -> AuditSettings:
    """The settings of an audit; those that its version did not have are the defaults."""
    return from_mapping(AuditSettings, result.settings, where="settings")


def opening(verdict: AuditVerdict) -> tuple[str, str]:
    """The sentence of a verdict without its grade, which stands before it, and the number in parentheses that decided.

    >>> opening(AuditVerdict("Show it: no other map gives it (divergence 0.1 [0.0, 0.2] (3 undefined)).", (), "show"))
    ('No other map gives it.', 'divergence 0.1 [0.0, 0.2] (3 undefined)')
    """
    sentence = verdict.sentence
    if verdict.grade is not None:
        sentence = sentence.partition(": ")[2]
    before, opened, rest = sentence.partition(" (")
    depth, end = 1, 0
    while opened and depth and end < len(rest):
        depth += {"(": 1, ")": -1}.get(rest[end], 0)
        end += 1
    evidence, after = (rest[: end - 1], rest[end:]) if opened else ("", "")
    return before[:1].upper() + before[1:] + after, evidence


def short_name(model: str) -> str:
    """The end of a path, which names a model; other names stay as they are.

    >>> short_name("/home/me/runs/minilm/model"), short_name("org/model"), short_name("runs/demo")
    ('minilm/model', 'org/model', 'runs/demo')
    """
    parts = Path(model).parts
    return "/".join(parts[-2:]) if len(parts) > 2 else model


def kicker(result: AuditResult) -> str:
    """What was audited, in one line."""
    right = result.accuracy
    parts = [
        _audited_texts(result),
        f"{_count(result.layers, 'layer')} × {_count(result.heads, 'head')}"
        if result.layers * result.heads > 1
        else "",
        "" if right is None else f"accuracy {percent(right.value)} ({interval(right)})",
    ]
    return " · ".join(part for part in parts if part)


def _audited_texts(result: AuditResult) -> str:
    if result.data == OWN_TEXTS:
        return f"{result.texts:,} of {OWN_TEXTS}"
    return _count(result.texts, "text") + (f" of {short_name(result.data)}" if result.data else "")


def _gauge(question: AuditQuestion) -> Markup | None:
    """The number that decided a question, drawn beside its threshold."""
    if question.estimate is None or question.threshold is None or math.isnan(question.estimate.value):
        return None
    return gauge_svg(question.statistic, question.estimate, question.threshold)


@dataclass(frozen=True)
class ArgumentWord:
    """A word with its weight, as a class of colour and in percent, by the model's own map and by the other one.

    fixed: what stands before it without being explained.
    """

    fixed: str
    word: str
    own: str
    own_share: str
    other: str
    other_share: str


@dataclass(frozen=True)
class Argument:
    """One text under its own map and under another one with the same prediction: the picture that opens the page.

    found: whether the other map is a different explanation, by the threshold of the verdict. far: in how many of the
    `examples` one was found. furthest: the text whose other map differs most.
    """

    text: int
    output: str
    probability: str
    other_probability: str
    divergence: str
    words: tuple[ArgumentWord, ...]
    found: bool
    far: int
    examples: int
    furthest: int


def argument(result: AuditResult, smallest: float) -> Argument | None:
    """A typical example: its other map lies as far away as the median, of those short enough to take in.

    None where no other map was looked for.
    """
    sought = [example for example in result.examples if example.other and example.divergence is not None]
    short = [example for example in sought if _is_short(example)] or sought
    if not short:
        return None
    ordered = sorted(short, key=lambda example: example.divergence or 0.0)
    typical = ordered[len(ordered) // 2]
    columns = [
        cells
        for weights in (typical.map, typical.other)
        for cells in ([share_shade(w) for w in weights], [percent(w) for w in weights])
    ]
    return Argument(
        typical.text + 1,
        typical.output,
        percent(typical.probability),
        percent(typical.other_probability if typical.other_probability is not None else typical.probability),
        written(typical.divergence, 3),
        tuple(ArgumentWord(*cells) for cells in zip(_fixed(typical), typical.words, *columns, strict=True)),
        (typical.divergence or 0.0) > smallest,
        sum((example.divergence or 0.0) > smallest for example in sought),
        len(sought),
        max(sought, key=lambda example: example.divergence or 0.0).text + 1,
    )


def _fixed(example: AuditExample) -> tuple[str, ...]:
    """What stands before each word without being explained; "" for most."""
    return example.fixed or ("",) * len(example.words)


def _is_short(example: AuditExample) -> bool:
    return _SHORTEST <= len(example.words) <= _LONGEST and sum(map(len, example.words)) <= _LETTERS


def _anchors(examples: Sequence[AuditExample]) -> list[str]:
    """The end of the address of each example; a text with several passages counts them."""
    seen: Counter[int] = Counter()
    anchors = []
    for example in examples:
        seen[example.text] += 1
        passage = f".{seen[example.text]}" if seen[example.text] > 1 else ""
        anchors.append(f"example={example.text + 1}{passage}")
    return anchors


def _payload(result: AuditResult) -> dict[str, Any]:
    """Every score, every comparison, and the weights of the examples."""
    return {
        "name": f"{result.model} {result.data}".strip()[:80],
        "steps": STEPS,
        "scores": [score_row(score) for score in result.scores],
        "contrasts": [_contrast_row(contrast) for contrast in result.contrasts],
        "examples": [_example_numbers(example) for example in result.examples],
    }


def _contrast_row(contrast: Contrast) -> dict[str, Any]:
    row = asdict(contrast)
    difference = row.pop("difference")
    return {**row, "difference": difference.pop("value"), **difference}


def _example_numbers(example: AuditExample) -> dict[str, Any]:
    """The numbers with which the page's script shades and sorts the examples."""
    return {
        "text": example.text + 1,
        "probability": example.probability,
        "right": None if example.label is None else example.label == example.output,
        "map": _rounded(example.map),
        "importances": {weights.name: _rounded(weights.values) for weights in example.importances},
        "tau": example.tau(),
        "other": _rounded(example.other),
        "maps": {weights.name: weights.values for weights in example.maps},
        "words": example.words if example.maps else (),
        "fixed": example.fixed,
    }


def _rounded(values: Iterable[float]) -> list[float]:
    return [round(value, 5) for value in values]


def command_of(run: Path) -> str:
    """What made an audit, where its manifest says so."""
    return (Manifest.read(run).command or "") if (run / MANIFEST).exists() else ""


def subject_facts(result: AuditResult) -> list[tuple[str, str]]:
    """Facts about the model: name and value."""
    right = result.accuracy
    facts = [
        ("model", result.model),
        ("accuracy", "" if right is None else f"{percent(right.value)} ({interval(right)})"),
        ("attention", f"{_count(result.layers, 'layer')} of {_count(result.heads, 'head')}, {_QUERIES[result.query]}"),
        ("map shown", f"{result.headline}; the verdict is about this one"),
        *(("not measured", sentence) for sentence in result.left_out),
    ]
    return [(name, value) for name, value in facts if value]


def data_facts(result: AuditResult) -> list[tuple[str, str]]:
    """Facts about the data: name and value."""
    special = result.settings.get("include_special", False)
    cut = f"{result.cut:,} of {result.passages:,} passages lost {_count(result.cut_pieces, 'piece')} at the end"
    marked = result.rationale_percent
    facts = [
        ("data", result.data),
        ("texts", f"{result.texts:,}"),
        ("predictions", f"{result.passages:,} explained"),
        ("left out", f"{_count(result.wordless, 'passage')} without a word to explain" if result.wordless else "none"),
        ("truncation", cut if result.cut else "nothing was cut"),
        ("special words", "explained like any other" if special else "left out; the other words’ shares add up to 1"),
        ("rationales", "" if marked is None else f"people marked {marked}\N{NO-BREAK SPACE}% of the words"),
    ]
    return [(name, value) for name, value in facts if value]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not set" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def shaded_example(example: AuditExample, headline: str) -> dict[str, Any]:
    """A passage as the page shows it.

    words: each with what stands before it without being explained, the class of its colour by the headline map, its
    share in percent, and whether people marked it. rankings: attention and each importance with its τ with attention,
    and the highest words with their shares.
    """
    marks = example.rationale if len(example.rationale) == len(example.words) else (False,) * len(example.words)
    shades, shares = [share_shade(w) for w in example.map], [percent(w) for w in example.map]
    words = zip(_fixed(example), example.words, shades, shares, marks, strict=True)
    weights = {headline: example.map} | {weights.name: weights.values for weights in example.importances}
    tau = example.tau()
    return {
        "text": example.text + 1,
        "output": example.output,
        "label": example.label,
        "probability": percent(example.probability),
        "words": list(words),
        "rankings": [
            (name, written(tau.get(name), 2), _highest(example.words, values)) for name, values in weights.items()
        ],
    }


def _highest(words: Sequence[str], weights: Sequence[float]) -> list[tuple[str, str]]:
    order = sorted(range(len(weights)), key=lambda i: -weights[i])[:_HIGHEST]
    return [(words[i], percent(weights[i])) for i in order]


class Scores:
    """The scores of an audit, without those that nothing was measured for.

    every_map: all maps; maps: without single heads, unless one is the headline; importances: what maps are
    compared with, first the one that the verdict rests on.
    """

    def __init__(self, result: AuditResult) -> None:
        self._estimates = {(s.quantity, s.of, s.against): s.estimate for s in result.scores if s.estimate.n}
        self.headline = result.headline
        self.every_map = list(dict.fromkeys(of for _, of, _ in self._estimates if is_map(of)))
        self.maps = [name for name in self.every_map if not is_head(name) or name == result.headline]
        against = dict.fromkeys(other for quantity, of, other in self._estimates if quantity == "tau" and is_map(of))
        self.importances = sorted(against, key=lambda name: name != DELETION)

    def score(self, quantity: str, of: str, against: str = "") -> Estimate | None:
        """The estimate of that name, if there is one."""
        return self._estimates.get((quantity, of, against))

    def between(self, one: str, other: str) -> Estimate | None:
        """τ of two importances, whichever of them was named first."""
        return self.score("tau", one, other) or self.score("tau", other, one)

    def column(self, quantity: str, against: str = "") -> Column:
        """One quantity of anything."""
        return lambda of: self.score(quantity, of, against)


def is_map(name: str) -> bool:
    """Whether a name is of attention, not of an importance or an order.

    >>> is_map("layer 2 head 1"), is_map("rollout"), is_map("gradient")
    (True, True, False)
    """
    return name.startswith("layer ") or name in (MEAN, ROLLOUT)


@dataclass(frozen=True)
class NumberTable:
    """A table of numbers as text: what its rows are, its columns, and its rows by name."""

    what: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]

    def turned(self) -> "NumberTable":
        """The same table with its columns as rows: narrower where there are more columns than rows."""
        names, cells = zip(*self.rows, strict=True)
        return NumberTable(self.what, names, tuple(zip(self.columns, zip(*cells, strict=True), strict=True)))


@dataclass(frozen=True)
class Section:
    """The measurements for one question; empty where there are none."""

    pictures: tuple[Picture, ...] = ()
    tables: tuple[NumberTable, ...] = ()


def tau_section(scores: Scores) -> Section:
    """τ of the maps with each importance, a random model's beside it; below, what other importances reach."""
    panels: dict[str, list[ChartLine]] = {}
    tau: dict[str, Column] = {}
    agreement: dict[str, Column] = {}
    for against in scores.importances:
        own, random = scores.column("tau", against), scores.column("random tau", against)
        others = (
            ChartLine(name, (ChartMark(reached, 2),))
            for name in scores.importances
            if (reached := scores.between(name, against))
        )
        panels[f"τ with {against}"] = [*_pairs(scores, scores.maps, own, random), *others]
        tau |= {f"{against}": own, f"{against}, random model": random}
        agreement |= {f"{against}": scores.column("agreement", against)}
        agreement |= {f"{against}, shuffled": scores.column("shuffled agreement", against)}
    tables = _tables(scores.maps, {"τ with": tau, "Agreement with": agreement})
    return Section(_pictures("tau", panels), tuple(table.turned() for table in tables))


def head_tables(scores: Scores) -> tuple[NumberTable, ...]:
    """Every map's τ with each importance, and its entropy."""
    columns: dict[str, Column] = {f"τ with {against}": scores.column("tau", against) for against in scores.importances}
    return _tables(scores.every_map, {"Map": columns | {"entropy": scores.column("entropy")}})


def order_section(scores: Scores, *quantities: str, maps: Sequence[str] = ()) -> Section:
    """Scores of an order of words: by attention, by each importance, at random."""
    orders = dict.fromkeys([*maps, scores.headline, *scores.importances, RANDOM])
    columns = {quantity_name(quantity): scores.column(quantity) for quantity in quantities}
    panels = {title[0].upper() + title[1:]: _singles(scores, orders, column) for title, column in columns.items()}
    return Section(_pictures(quantities[0].replace(" ", "-"), panels), _tables(orders, {"Words ordered by": columns}))


@dataclass(frozen=True)
class RankedRow:
    """One explanation in the table of all: its grade, the reason, and its numbers as text."""

    name: str
    shown: bool
    grade: str
    reason: str
    tau: str
    fall: str
    people: str


def ranking_rows(result: AuditResult, scores: Scores) -> list[RankedRow]:
    """Every explanation that was ranked, the best first; none where there is only the map shown."""
    if len(result.explanations) < 2:
        return []
    return [
        RankedRow(
            e.name,
            e.name == result.headline,
            e.verdict.grade or "not graded",
            e.verdict.sentence,
            with_ends(scores.score("tau", e.name, DELETION)),
            with_ends(scores.score("comprehensiveness", e.name)),
            with_ends(scores.score("token f1", e.name)),
        )
        for e in result.explanations
    ]


def sink_rows(scores: Scores) -> list[tuple[str, str, str]]:
    """The share of the weights on each kind of sink, and the share of places that are such."""
    weights = weights_of(scores.headline)
    return [
        (SINK_NAMES[kind], f"{percent(share.value)} ({interval(share)})", percent(places.value))
        for kind in SINKS
        if (share := scores.score("sink", weights, kind)) and (places := scores.score("even share", weights, kind))
    ]


def movement_section(scores: Scores, layers: int) -> Section:
    """Predictions under permuted and under uniform attention, in all layers at once and in each alone."""
    places = [EVERYWHERE, *(layer_name(layer) for layer in range(layers))]
    changes = ("permuted", "uniform")
    tvd, flip = ([partial(scores.score, quantity, change) for change in changes] for quantity in ("tvd", "flip"))
    pictures = (
        *_pictures("moved", {"Total variation of predictions": _pairs(scores, places, *tvd)}),
        *_pictures("flipped", {"Share of predictions that change": _pairs(scores, places, *flip)}, shares=True),
    )
    titles = [f"{change}: {what}" for what in ("total variation", "predictions changed") for change in changes]
    return Section(pictures, _tables(places, {"Attention changed in": dict(zip(titles, tvd + flip, strict=True))}))


def another_section(scores: Scores, smallest: float) -> Section:
    """How far from the headline map another one is that gives the same prediction."""
    column = scores.column("adversary")
    lines = _singles(scores, [scores.headline], column)
    if not lines:
        return Section()
    svg = dots_svg("Divergence, in nats", lines, _NATS, references=[(smallest, "threshold"), (math.log(2), "most")])
    return Section((Picture("another-1", svg),), _tables([scores.headline], {"Map": {"divergence": column}}))


def _pairs(scores: Scores, names: Iterable[str], first: Column, second: Column) -> list[ChartLine]:
    """A line for each name with a number; the second mark is hollow."""
    lines = []
    for name in names:
        estimates = ((first(name), 0), (second(name), 1))
        if marks := tuple(ChartMark(estimate, mark) for estimate, mark in estimates if estimate is not None):
            lines.append(ChartLine(name, marks, strong=name == scores.headline))
    return lines


def _singles(scores: Scores, names: Iterable[str], column: Column) -> list[ChartLine]:
    """A line for each name with a number: attention a dot, importances squares, chance hollow."""
    return [
        ChartLine(
            name,
            (ChartMark(estimate, 1 if name == RANDOM else 0 if is_map(name) else 2),),
            strong=name == scores.headline,
        )
        for name in names
        if (estimate := column(name)) is not None
    ]


def _pictures(name: str, panels: Mapping[str, Sequence[ChartLine]], *, shares: bool = False) -> tuple[Picture, ...]:
    """All panels that have lines, on one scale."""
    drawn = {title: lines for title, lines in panels.items() if lines}
    scale = ChartScale.over([line for lines in drawn.values() for line in lines], shares=shares)
    return tuple(
        Picture(f"{name}-{i}", dots_svg(title, lines, scale)) for i, (title, lines) in enumerate(drawn.items(), 1)
    )


def _tables(names: Iterable[str], tables: Mapping[str, Mapping[str, Column]]) -> tuple[NumberTable, ...]:
    """A table for each set of columns, without rows and columns that are empty."""
    filled = []
    for what, columns in tables.items():
        rows = {name: {title: with_ends(column(name)) for title, column in columns.items()} for name in names}
        used = [title for title in columns if any(row[title] != NONE for row in rows.values())]
        cells = {name: tuple(row[title] for title in used) for name, row in rows.items()}
        lines = tuple((name, row) for name, row in cells.items() if any(cell != NONE for cell in row))
        if lines:
            filled.append(NumberTable(what, tuple(used), lines))
    return tuple(filled)


@dataclass(frozen=True)
class HeadGrid:
    """τ with one importance: a row per layer, a cell per head, and last the layer's mean."""

    against: str
    rows: tuple[tuple[str, tuple[ShadedCell, ...]], ...]


def head_grids(scores: Scores, layers: int, heads: int) -> tuple[HeadGrid, ...]:
    """A grid for each importance, all on one scale; none where there is but one head in one layer."""
    if layers * heads == 1:
        return ()
    largest = largest_tau(scores)
    maps = [[layer_name(layer, head) for head in range(heads)] if heads > 1 else [] for layer in range(layers)]
    rows = [(layer_name(layer), (*maps[layer], layer_name(layer))) for layer in range(layers)]
    return tuple(
        HeadGrid(
            against, tuple((layer, tuple(_cell(scores, m, against, largest) for m in names)) for layer, names in rows)
        )
        for against in scores.importances
    )


def largest_tau(scores: Scores) -> float:
    """The end of the grids' scale: the largest |τ| of any map, rounded up."""
    taus = (scores.score("tau", name, against) for name in scores.every_map for against in scores.importances)
    return math.ceil(10 * max((abs(tau.value) for tau in taus if tau is not None), default=1.0)) / 10


def _cell(scores: Scores, name: str, against: str, largest: float) -> ShadedCell:
    tau = scores.score("tau", name, against)
    if tau is None:
        return ShadedCell(NONE, "p0", name)
    return ShadedCell(written(tau.value, 2), signed_shade(tau.value, largest), name)
