"""The page of an audit, and the page of several side by side: each one self-contained HTML file.

Words, tables and pictures are filled into the template, escaped, and can be read without a script; a script selects
heads and examples, and saves files. A Content-Security-Policy lets nothing else run and nothing be fetched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from heedful.attribution.attention_maps import EVERYWHERE
from heedful.audits.result import AuditExample, AuditResult, score_row
from heedful.audits.verdict import FAR, MOVES, NEGLIGIBLE_DROP, NEGLIGIBLE_TAU
from heedful.metrics.statistics import Estimate
from heedful.reports.audit_sections import (
    HeadGrid,
    NumberTable,
    Scores,
    another_section,
    head_grids,
    head_tables,
    largest_tau,
    movement_section,
    order_section,
    tau_section,
)
from heedful.reports.charts import STEPS, ChartLine, ChartMark, ChartScale, Picture, dots_svg, shade, shaded_style
from heedful.reports.comparison import RunSummary, comparison_names, comparison_words
from heedful.reports.html import (
    NONE,
    QUERIES,
    assets,
    decimal,
    fill,
    interval,
    p_value,
    percent,
    quantity_name,
    with_ends,
)
from heedful.storage.atomic_files import without_nan, write_text
from heedful.storage.manifest import MANIFEST, Manifest

EVEN = 3  # shades end at the highest weight, but not below so many times an even share: flat attention looks pale
_HIGHEST = 5  # words in a ranking
_MANY_LABELS = 12
_ORDERS = ("comprehensiveness", "sufficiency", "token f1", "auprc")
_LETTERS = 18  # of a name that fit before a picture's scale


@dataclass(frozen=True)
class ShadedWord:
    """A word, the class of its colour, and whether people marked it."""

    text: str
    shade: str
    marked: bool


@dataclass(frozen=True)
class WordRanking:
    """The highest words by attention or an importance, each with its share; tau: of the importance with attention."""

    name: str
    tau: str
    highest: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class ShadedExample:
    """One passage as the page shows it."""

    text: int
    output: str
    label: str | None
    probability: str
    words: tuple[ShadedWord, ...]
    rankings: tuple[WordRanking, ...]


def write_audit_page(result: AuditResult, out: Path, command: str = "") -> Path:
    """Write the page and return its path; command: what runs the audit again."""
    write_text(out, render_audit(result, command))
    return out


def render_audit(result: AuditResult, command: str = "") -> str:
    """The page as text."""
    scores = Scores(result)
    return fill(
        "audit.html.j2",
        _payload(result),
        style=shaded_style(),
        script=assets("draw.js", "audit.js"),
        filters={
            "with_ends": with_ends,
            "decimal": decimal,
            "p_value": p_value,
            "quantity": quantity_name,
        },
        result=result,
        command=command,
        subject_facts=subject_facts(result),
        data_facts=data_facts(result),
        settings=[(name.replace("_", " "), _setting(value)) for name, value in result.settings.items()],
        many_labels=_MANY_LABELS,
        tau=tau_section(scores),
        grids=head_grids(scores, result.layers, result.heads),
        largest=largest_tau(scores),
        steps=STEPS,
        heads=head_tables(scores),
        erasure=order_section(scores, "comprehensiveness", "sufficiency"),
        movement=movement_section(scores, result.layers),
        another=another_section(scores),
        people=order_section(scores, "token f1", "auprc"),
        alignment=order_section(scores, "aer", maps=scores.maps),
        examples=shaded_examples(result),
        limits={"moves": MOVES, "far": FAR, "tau": NEGLIGIBLE_TAU, "drop": NEGLIGIBLE_DROP},
    )


def _payload(result: AuditResult) -> dict[str, Any]:
    """Every score, every comparison, and the weights of the examples."""
    content: dict[str, Any] = without_nan(
        {
            "name": f"{result.model} {result.data}".strip()[:80],
            "steps": STEPS,
            "even": EVEN,
            "scores": [score_row(score) for score in result.scores],
            "contrasts": [_contrast_row(asdict(contrast)) for contrast in result.contrasts],
            "examples": example_numbers(result),
        }
    )
    return content


def _contrast_row(contrast: dict[str, Any]) -> dict[str, Any]:
    difference = contrast.pop("difference")
    return {**contrast, "difference": difference.pop("value"), **difference}


def subject_facts(result: AuditResult) -> list[tuple[str, str]]:
    """Facts about the model: name and value."""
    accuracy = result.accuracy
    facts = [
        ("model", result.model),
        ("attention", f"{_count(result.layers, 'layer')} of {_count(result.heads, 'head')}, {QUERIES[result.query]}"),
        ("map shown", f"{result.headline}; the verdict is about this one"),
        ("fingerprint", result.fingerprint),
    ]
    facts += [("not measured", sentence) for sentence in result.left_out]
    if accuracy is not None:
        facts.insert(1, ("accuracy", f"{percent(accuracy.value)} ({interval(accuracy)})"))
    return [(name, value) for name, value in facts if value]


def data_facts(result: AuditResult) -> list[tuple[str, str]]:
    """Facts about the data: name and value."""
    special = result.settings.get("include_special", False)
    cut = f"{result.cut:,} of {result.passages:,} passages lost {_count(result.cut_pieces, 'piece')} at the end"
    facts = [
        ("data", result.data),
        ("texts", f"{result.texts:,}"),
        ("predictions", f"{result.passages:,} explained"),
        ("left out", f"{_count(result.wordless, 'passage')} without a word to explain" if result.wordless else "none"),
        ("truncation", cut if result.cut else "nothing was cut"),
        ("special words", "explained like any other" if special else "left out; the other words’ shares add up to 1"),
    ]
    if result.rationale_percent is not None:
        facts.append(("rationales", f"people marked {result.rationale_percent}\N{NO-BREAK SPACE}% of the words"))
    return [(name, value) for name, value in facts if value]


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _setting(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "not set" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def shaded_examples(result: AuditResult) -> list[ShadedExample]:
    """All examples, shaded by the headline map."""
    return [_shaded(example, result.headline) for example in result.examples]


def example_numbers(result: AuditResult) -> list[dict[str, Any]]:
    """The numbers with which the page's script shades and sorts the examples."""
    return [
        {
            "text": example.text,
            "probability": example.probability,
            "right": None if example.label is None else example.label == example.output,
            "map": _rounded(example.map),
            "importances": {weights.name: _rounded(weights.values) for weights in example.importances},
            "tau": example.tau(),
        }
        for example in result.examples
    ]


def _shaded(example: AuditExample, headline: str) -> ShadedExample:
    strongest = max((*example.map, EVEN / len(example.words)))
    marks = example.rationale if len(example.rationale) == len(example.words) else (False,) * len(example.words)
    words = zip(example.words, example.map, marks, strict=True)
    tau = {name: decimal(value, 2) for name, value in example.tau().items()}
    values = {headline: example.map} | {weights.name: weights.values for weights in example.importances}
    return ShadedExample(
        example.text,
        example.output,
        example.label,
        percent(example.probability),
        tuple(ShadedWord(word, shade(weight, strongest), marked) for word, weight, marked in words),
        tuple(_ranking(example.words, name, weights, tau.get(name, NONE)) for name, weights in values.items()),
    )


def _ranking(words: tuple[str, ...], name: str, weights: tuple[float, ...], tau: str) -> WordRanking:
    order = sorted(range(len(weights)), key=lambda i: -weights[i])[:_HIGHEST]
    return WordRanking(name, tau, tuple((words[i], percent(weights[i])) for i in order))


def _rounded(values: tuple[float, ...]) -> list[float]:
    return [round(value, 5) for value in values]


@dataclass(frozen=True)
class ComparedAudit:
    """One of the audits that are compared; command: what made it, where known."""

    name: str
    result: AuditResult
    command: str = ""

    def summary(self) -> RunSummary:
        """The scores of the map it would show, its verdict and how it was made."""
        known = dict([*subject_facts(self.result), *data_facts(self.result)])
        return RunSummary(self.name, self.result.verdict, figures_of(self.result), known)


@dataclass(frozen=True)
class SharedText:
    """A text that all audits have among their examples, as each of them shaded it."""

    text: int
    label: str | None
    examples: tuple[tuple[str, ShadedExample], ...]


def open_audits(runs: Sequence[Path]) -> list[ComparedAudit]:
    """The audits in those folders."""
    return [
        ComparedAudit(name, AuditResult.load(root / "result.json"), command_of(root))
        for name, root in zip(comparison_names(runs), runs, strict=True)
    ]


def command_of(run: Path) -> str:
    """What made an audit, where its manifest says so."""
    return (Manifest.read(run).command or "") if (run / MANIFEST).exists() else ""


def write_audits(runs: Sequence[Path], out: Path) -> Path:
    """Write one page of several audits side by side and return its path."""
    write_text(out, render_audits(open_audits(runs)))
    return out


def figures_of(result: AuditResult) -> dict[str, Estimate]:
    """Every score of the map shown that can be compared with another audit's, by name.

    τ with every importance; erasure and plausibility of the order by attention; how far changed attention moves
    predictions.
    """
    scores, headline = Scores(result), result.headline
    figures = {f"τ with {against}": scores.score("tau", headline, against) for against in scores.importances}
    figures |= {quantity_name(quantity): scores.score(quantity, headline) for quantity in _ORDERS}
    figures |= {
        f"movement, {change} attention": scores.score("tvd", change, EVERYWHERE) for change in ("permuted", "uniform")
    }
    others = {"another map": "adversary", "alignment error rate": "aer", "entropy of attention": "entropy"}
    figures |= {name: scores.score(quantity, headline) for name, quantity in others.items()}
    named = {name: estimate for name, estimate in figures.items() if estimate is not None}
    return named | ({"accuracy": result.accuracy} if result.accuracy is not None else {})


def render_audits(audits: Sequence[ComparedAudit]) -> str:
    """The page of several audits as text."""
    summaries = [audit.summary() for audit in audits]
    return fill(
        "audits.html.j2",
        _scores_payload(audits),
        style=shaded_style(),
        script=assets("draw.js", "saving.js"),
        **comparison_words(summaries, "measurements", spell=with_ends),
        charts=_pictures(summaries),
        table=_table(summaries),
        grids=[(audit.name, audit.result.heads, grid) for audit in audits for grid in _first_grid(audit.result)],
        steps=STEPS,
        examples=shared_texts(audits),
        commands=[(audit.name, audit.command) for audit in audits],
    )


def shared_texts(audits: Sequence[ComparedAudit]) -> list[SharedText]:
    """The examples that all audits have, found by number and by their words."""
    each: list[Mapping[tuple[int, tuple[str, ...]], ShadedExample]] = [
        {(example.text, tuple(word.text for word in example.words)): example for example in shaded_examples(a.result)}
        for a in audits
    ]
    return [
        SharedText(text.text, text.label, tuple((a.name, one[key]) for a, one in zip(audits, each, strict=True)))
        for key, text in each[0].items()
        if all(key in one for one in each)
    ]


def _pictures(runs: Sequence[RunSummary]) -> tuple[Picture, ...]:
    """A picture for each measurement that two or more have, a row for each audit; τ on one scale."""
    names = dict.fromkeys(name for run in runs for name in run.figures)
    panels = {
        name: [ChartLine(_short(run.name), (ChartMark(run.figures[name]),)) for run in runs if name in run.figures]
        for name in names
    }
    several = {name: lines for name, lines in panels.items() if len(lines) > 1}
    tau = ChartScale.over([line for name, lines in several.items() if _is_tau(name) for line in lines])
    return tuple(
        Picture(f"figure-{i}", dots_svg(_title(name), lines, tau if _is_tau(name) else ChartScale.over(lines)))
        for i, (name, lines) in enumerate(several.items(), 1)
    )


def _is_tau(name: str) -> bool:
    return name.startswith("τ")


def _title(name: str) -> str:
    return name if _is_tau(name) else name[0].upper() + name[1:]


def _table(runs: Sequence[RunSummary]) -> NumberTable:
    """All measurements as numbers, a column for each audit."""
    names = dict.fromkeys(name for run in runs for name in run.figures)
    rows = tuple((name, tuple(with_ends(run.figures.get(name)) for run in runs)) for name in names)
    return NumberTable("Measurement", tuple(run.name for run in runs), rows)


def _first_grid(result: AuditResult) -> tuple[HeadGrid, ...]:
    """All heads by their τ with the importance that the verdict rests on."""
    scores = Scores(result)
    return head_grids(scores, result.layers, result.heads)[:1] if largest_tau(scores) else ()


def _scores_payload(audits: Sequence[ComparedAudit]) -> dict[str, Any]:
    rows = [{"audit": audit.name, **score_row(score)} for audit in audits for score in audit.result.scores]
    content: dict[str, Any] = without_nan({"name": " beside ".join(audit.name for audit in audits), "scores": rows})
    return content


def _short(name: str) -> str:
    return name if len(name) <= _LETTERS else f"…{name[1 - _LETTERS :]}"
