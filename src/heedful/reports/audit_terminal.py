"""An audit in a terminal: how far attention follows importance, what the words are good for, the verdict."""

from pathlib import Path

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from heedful.audits.names import EVERYWHERE, RANDOM
from heedful.audits.result import AuditResult
from heedful.measure.uncertainty import Estimate
from heedful.reports.audit_scores import Scores
from heedful.reports.audit_words import decimal, ends, quantity_name, with_ends
from heedful.reports.numbers import NONE, interval, percent
from heedful.reports.paper_tables import one_line
from heedful.reports.words import ANSWERS


def print_audit(result: AuditResult, report: Path) -> None:
    """τ beside a random model's, erasure, movement, the verdict, and the path of the report."""
    console, scores = Console(markup=False, emoji=False, highlight=False), Scores(result)
    read = f"{result.texts:,} texts, {result.passages:,} predictions"
    cut = f", {result.cut:,} of them of texts that were cut" if result.cut else ""
    right = (
        "" if result.accuracy is None else f"; accuracy {percent(result.accuracy.value)} ({interval(result.accuracy)})"
    )
    console.print(f"{one_line(result.model)} on {one_line(result.data)}", style="bold")
    console.print(f"{read}{cut}{right}")
    if scores.importances:
        console.print(_tau(scores))
    for quantities in (("comprehensiveness", "sufficiency"), ("token f1", "auprc")):
        if any(scores.score(quantities[0], name) for name in (scores.headline, RANDOM)):
            console.print(_orders(scores, *quantities))
    for line in _lines(scores, "label" if result.labels else "word"):
        console.print(Padding(line, (0, 0, 0, 2), expand=False))
    console.print(Padding(_answers(result), (0, 0, 0, 2), expand=False))
    console.print(result.verdict.sentence, style="bold")
    console.print(f"report: {report}", soft_wrap=True)


def _tau(scores: Scores) -> Table:
    """The headline map against every importance."""
    table = _table(f"attention ({scores.headline}) with", "τ", "95 %", "random", "top word", "shuffled")
    for against in scores.importances:
        tau = scores.score("tau", scores.headline, against)
        random, agreement, shuffled = (
            scores.score(quantity, scores.headline, against)
            for quantity in ("random tau", "agreement", "shuffled agreement")
        )
        table.add_row(against, _value(tau), ends(tau, 2), _value(random), _share(agreement), _share(shuffled))
    return table


def _orders(scores: Scores, *quantities: str) -> Table:
    """What the words that come first by each account are good for."""
    table = _table("words ordered by", *map(quantity_name, quantities))
    for name in (scores.headline, *scores.importances, RANDOM):
        if scores.score(quantities[0], name) is not None:
            table.add_row(name, *(with_ends(scores.score(quantity, name), 2) for quantity in quantities))
    return table


def _answers(result: AuditResult) -> Table:
    """Each question after its answer."""
    table = Table.grid(padding=(0, 1))
    for question in result.verdict.questions:
        table.add_row(ANSWERS[question.answer].strip(), question.question)
    return table


def _lines(scores: Scores, output: str) -> list[str]:
    """What fits into a sentence; output: what a prediction is."""
    first = scores.importances[:1]
    taus = [(name, scores.score("tau", name, against)) for against in first for name in scores.maps]
    by_map = ", ".join(f"{name} {_value(tau)}" for name, tau in taus)
    lines = [f"τ with {first[0]} by map: {by_map}"] if first else []
    for change in ("permuted", "uniform"):
        moved, flipped = scores.score("tvd", change, EVERYWHERE), scores.score("flip", change, EVERYWHERE)
        if moved is not None:
            labels = "" if flipped is None else f"; {percent(flipped.value)} become another {output}"
            lines.append(f"{change} attention moves predictions by {with_ends(moved)}{labels}")
    if (another := scores.score("adversary", scores.headline)) is not None:
        lines.append(f"another map with the same prediction diverges by {with_ends(another)} nats, at most 0.693")
    if (aer := scores.score("aer", scores.headline)) is not None:
        chance = scores.score("aer", RANDOM)
        lines.append(
            f"alignment error {with_ends(aer)}{'' if chance is None else f', at random {decimal(chance.value)}'}"
        )
    return lines


def _table(first: str, *others: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    table.add_column(first, overflow="fold")
    for column in others:
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _value(estimate: Estimate | None) -> str:
    return NONE if estimate is None else decimal(estimate.value, 2)


def _share(estimate: Estimate | None) -> str:
    return NONE if estimate is None else percent(estimate.value)
