"""Results of all commands in a terminal."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from heedful.execution.terminal import TerminalConsole, echo, visible
from heedful.html import concept, symbol
from heedful.metrics.statistics import Estimate
from heedful.reports.html import (
    MODEL_TITLES,
    NONE,
    duration,
    ends,
    interval,
    one_line,
    percent,
    quantity_name,
    with_ends,
    written,
)
from heedful.storage.serialization import to_toml
from heedful.storage.tables import cell

if TYPE_CHECKING:  # a command imports only the results that it prints
    from heedful.audits.dry_run import AuditPlan
    from heedful.audits.result import AuditResult, AuditVerdict
    from heedful.followed.result import FollowedTraining
    from heedful.papers.claims import LedgerEntry
    from heedful.papers.experiment import Result
    from heedful.preflights.preflight import Preflight
    from heedful.records.index import RunList
    from heedful.records.query import Answer
    from heedful.reports.audit_page import Scores
    from heedful.studies.dry_run import StudyPlan
    from heedful.studies.result import StudyResult, Verdict
    from heedful.sweeps.result import SweepResult, SweepStudy

MOST = 200  # rows of an answer that a terminal shows
_WIDE = 110  # letters in a line of a terminal that has room for the subject of a run
_SWEEP_FIGURES = ("accuracy", "entropy", "A(alpha,beta) own", "A(alpha,beta_uf) own", "A(delta,beta_uf) own")
_STATES = {"running": "bold", "finished": "green", "damaged": "red", "failed": "red", "broken off": "yellow"}
_CLAIMS = {"holds": "green", "holds in part": "cyan", "fails": "red", "inconclusive": "yellow", "not run": "dim"}


def print_study(result: "StudyResult", report: Path) -> None:
    """The agreements beside their largest control, the verdict, and the path of the report."""
    from heedful.reports.study_page import largest_control, shown_value, size_word

    console = _console()
    translating = any(
        row.xi_bleu is not None for row in result.agreements
    )  # ξ by BLEU then takes the place of the size
    table = _table(
        *("agreement", "whose"),
        *("%", "95 %", "control", "excess", *(["ξ", "ξ BLEU"] if translating else ["size", "ξ"])),
        title=f"{result.data['name']}: {result.budget}, seeds {', '.join(map(str, result.seeds))}",
        left=2,
    )
    for row in result.agreements:
        table.add_row(
            symbol(row.name),
            row.convention,
            f"{shown_value(row).value:.1%}",
            _interval(shown_value(row)),
            _share_of(largest_control(row)),
            _share_of(row.excess.value),
            *([] if translating else [size_word(row, result)]),
            f"{row.xi.value:.1%}{'' if row.xi_reached else '*'}",
            *([f"{row.xi_bleu:.1f}"] if row.xi_bleu is not None else []),
        )
    console.print(table)
    _print_letters(console, [row.name for row in result.agreements])
    wrong = "word" if result.task == "translation" else "label"
    console.print(
        f"control: chance, the largest of a random word, a shuffled baseline and a wrong {wrong}; "
        "excess: agreement above it"
    )
    console.print(
        f"ξ: accuracy when another seed's attention first agreed more; *: it never did, so its final accuracy "
        f"{result.xi_final.value:.1%} stands in"
    )
    _print_learned(console, result)
    _print_translation(console, result)
    _print_verdict(console, result.verdict, report)


def _print_letters(console: Console, names: Sequence[str]) -> None:
    """What the letters of agreements stand for, in words."""
    letters = dict.fromkeys(letter for name in names for letter in name[2:-1].split(","))
    console.print("A(u, v): how often the word that ranks highest by u is also in the top 5 % by v")
    console.print("; ".join(f"{symbol(letter)}: {concept(letter)}" for letter in letters))


def _share_of(share: float) -> str:
    return NONE if math.isnan(share) else f"{share:.1%}"


def _print_learned(console: Console, result: "StudyResult") -> None:
    """Accuracy beside the trivial baseline, and where the highest weights lie if not on words."""
    if (gate := result.verdict.gate) is not None:
        logistic = "" if gate.logistic is None else f", logistic regression {gate.logistic:.1%}"
        console.print(
            f"accuracy {gate.accuracy.value:.1%} ({_interval(gate.accuracy)}); "
            f"always answering '{gate.answer}' {gate.baseline:.1%}{logistic}",
            markup=False,
        )
    if result.top_positions:
        shares = " · ".join(f"{top.bos + top.eos + top.punctuation:.1%}" for top in result.top_positions)
        console.print(f"highest weight on <bos>, <eos> or punctuation, by seed: {shares}", markup=False)


def _print_translation(console: Console, result: "StudyResult") -> None:
    """BLEU and alignment error, where there are any."""
    final = [
        f"{MODEL_TITLES[kind]} {' · '.join(f'{m.bleu[-1]:.1f}' for m in models)}"
        for kind in dict.fromkeys(model.kind for model in result.models)
        if (models := [model for model in result.models if model.kind == kind and model.bleu])
    ]
    if final:
        console.print(f"BLEU at the end, by seed: {'; '.join(final)}")
    if (errors := result.alignment) is not None:
        console.print(
            f"alignment error of attention: {errors.trained.value:.1%} ({_interval(errors.trained)}), "
            f"untrained {errors.untrained.value:.1%}, chance {errors.chance:.1%}; "
            f"α^IBM {errors.counting.value:.1%}, IBM Model 1 {errors.model_1.value:.1%}, "
            f"position alone {errors.diagonal.value:.1%}"
        )


def _print_verdict(console: Console, verdict: "Verdict | AuditVerdict", report: Path) -> None:
    """Each question after its answer, the sentence, and the path of the report."""
    answers = Table.grid(padding=(0, 1))
    answers.add_column(min_width=len("unclear"))
    for question in verdict.questions:
        size = getattr(question, "size", None)  # only studies say how much
        answers.add_row(f"yes, {size}" if size and question.answer == "yes" else question.answer, question.question)
    console.print(Padding(answers, (0, 0, 0, 2), expand=False))
    console.print(verdict.sentence, style="bold", markup=False)
    if scope := getattr(verdict, "scope", ""):
        console.print(scope)
    console.print(f"report: {report}", soft_wrap=True)


def print_preflight(result: "Preflight") -> None:
    """The verdict with its sentence, then the words that go with each output."""
    console = _console()
    console.print(Text.assemble((result.verdict, "bold"), f": {result.sentence}"))
    if (left := result.candidates) is not None:
        console.print(
            f"Counts leave {left.value:.1f} of {left.words:.1f} source words open as the origin of an output word; "
            f"{left.by_chance:.1f} with targets shuffled."
        )
    if (expected := result.forecast) is not None and expected.ratio is not None:
        console.print(expected.sentence, markup=False)
        if expected.advice:
            console.print("What shortened learning where we measured it:")
        for line in expected.advice:
            console.print(f"  {line}", markup=False)
    outputs = [each for each in result.outputs if each.most or each.least]
    table = Table("output", "words that predict it", "words that predict another")
    for each in outputs[:12]:
        table.add_row(each.output, " ".join(w.word for w in each.most), " ".join(w.word for w in each.least))
    if outputs:
        console.print(table)
    elif result.verdict == "uninformative":
        console.print("no words are listed: even the strongest could be chance")
    else:
        console.print("no word predicts an output better than chance")
    if (errors := result.alignment) is not None:
        console.print(
            f"alignment error of counts alone: {errors.counting.value:.1%} (α^IBM), {errors.model_1.value:.1%} "
            f"(five iterations of Model 1), {errors.diagonal.value:.1%} (position alone)"
        )
    for decision in result.decisions:
        console.print(f"  {decision}", style="dim")


def print_paper_result(result: "Result") -> None:
    """A paper's tables, measured beside published, and the notes under them."""
    from heedful.reports.paper_tables import plain_cell

    console = _console()
    console.print(Text.assemble((result.title, "bold"), f" ({result.budget}, {result.manifest.seconds or 0:.0f} s)"))
    for measured in result.finding.tables:
        table = _table("", *measured.columns, title=measured.title, no_wrap=False)
        for row in measured.rows:
            table.add_row(row.name, *(plain_cell(cell) for cell in row.cells))
        console.print(table)
    for note in result.finding.notes:
        console.print(f"  {note}", style="dim")


def print_claims(entries: "Sequence[LedgerEntry]") -> None:
    """Each claim of the ledger with its verdict; below it what was measured, on how much, and what it would take."""
    from heedful.reports.paper_page import claim_rows

    console = TerminalConsole(highlight=False)
    for entry in entries:
        verdict = f"[{_CLAIMS[entry.verdict]}]{entry.verdict:<13}[/]"
        console.print(f"[bold]{entry.claim.id:<4}[/bold]{verdict} {escape(entry.claim.sentence)}")
        rows = claim_rows([entry])
        lines = [f"{row['measured']}   expected {row['expected']}   ({row['size']})" for row in rows]
        first = rows[0]
        lines.append(" · ".join(part for part in (first["tested"], first["note"]) if part))
        for line in lines:
            console.print(f"                  {escape(line)}", style="dim", soft_wrap=True)
    counts = ", ".join(f"{sum(e.verdict == verdict for e in entries)} {verdict}" for verdict in _CLAIMS)
    console.print(f"{len(entries)} claims: {counts}")


def print_plan(plan: "StudyPlan") -> None:
    """The resolved settings, then the models, as comments: all of it is TOML that `--config` takes."""
    echo(to_toml(plan.config))
    console, table = TerminalConsole(highlight=False), _table("model", "steps", "evaluations", "time", "disk")
    for model in plan.models:
        steps = f"{model.steps:,}" if model.steps else NONE
        table.add_row(model.name, steps, str(model.evaluations), duration(model.seconds), size(model.disk))
    with console.capture() as drawn:
        console.print(table)
    for line in drawn.get().splitlines():
        echo(f"# {line}".rstrip())
    sizes = ", ".join(f"{plan.data[name]:,} {name}" for name in ("train", "validation", "test"))
    echo(f"# data: {sizes}; vocabulary {plan.data['vocabulary']:,}")
    echo(
        f"# estimated from a few steps of each kind: about {duration(plan.seconds)} to train and record, "
        f"{plan.jobs} at a time; {size(plan.disk)} of disk"
    )
    echo("# measuring and the page come on top; nothing was written")


def print_audit_plan(plan: "AuditPlan") -> None:
    """The forward passes of each measure, and the expected time."""
    console, table = Console(highlight=False), _table("measure", "forward passes")
    for name, passes in plan.passes.items():
        table.add_row(name, f"{passes:,}")
    console.print(table)
    lengths = " and ".join(f"{length:,}" for length in plan.timed)
    texts = f"{plan.texts:,} {'text' if plan.texts == 1 else 'texts'}"
    print(f"{texts}, the longest of {plan.longest:,} pieces: about {duration(plan.seconds)}")
    print(f"estimated from texts of {lengths} pieces, which were timed; nothing was written")


def size(count: int) -> str:
    """Bytes in the largest unit that leaves 1 or more.

    >>> size(900), size(61_300_000)
    ('900 B', '61.3 MB')
    """
    for unit, unit_size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= unit_size:
            return f"{count / unit_size:.1f} {unit}"
    return f"{count:.0f} B"


def print_audit(result: "AuditResult", report: Path) -> None:
    """τ beside a random model's, erasure, movement, the verdict, and the path of the report."""
    from heedful.attribution.attention_maps import RANDOM
    from heedful.reports.audit_page import Scores

    console, scores = _console(), Scores(result)
    read = f"{result.texts:,} texts, {result.passages:,} predictions"
    cut = f", {result.cut:,} of them of texts that were cut" if result.cut else ""
    right = (
        "" if result.accuracy is None else f"; accuracy {percent(result.accuracy.value)} ({interval(result.accuracy)})"
    )
    console.print(f"{one_line(result.model)} on {one_line(result.data)}", style="bold")
    console.print(f"{read}{cut}{right}")
    if scores.importances:
        console.print(_tau(scores))
        console.print(
            "τ: rank correlation with attention, 1 for the same order, 0 for none in common; "
            "random: of untrained models; top word: how often the highest words agree; shuffled: how often by chance"
        )
    for quantities in (("comprehensiveness", "sufficiency"), ("token f1", "iou f1", "auprc")):
        if any(scores.score(quantities[0], name) for name in (scores.headline, RANDOM)):
            console.print(_orders(scores, (scores.headline, *scores.importances, RANDOM), quantities))
    if len(result.explanations) > 1:
        console.print(_ranking(result))
    for line in _audit_lines(scores, "label" if result.labels else "word"):
        console.print(Padding(line, (0, 0, 0, 2), expand=False))
    _print_verdict(console, result.verdict, report)


def print_followed(result: "FollowedTraining", report: Path) -> None:
    """The course over the recorded steps, checkpoints with the same weights, the verdict, and the report."""
    console = _console()
    console.print(f"{one_line(result.name)}: {len(result.steps)} steps, {result.texts:,} texts", style="bold")
    names = [row.name for row in result.steps[0].agreements]
    table = _table("step", "checkpoint", "accuracy", "entropy", *names)
    for step in result.steps:
        accuracy = "" if math.isnan(step.accuracy) else percent(step.accuracy)
        table.add_row(
            f"{step.step:,}",
            one_line(step.source),
            accuracy,
            _value(step.entropy),
            *(percent(row.estimate.value) for row in step.agreements),
        )
    console.print(table)
    for sentence in result.same_weights:
        console.print(f"  {one_line(sentence)}", style="yellow")
    _print_verdict(console, result.verdict, report)


def _tau(scores: "Scores") -> Table:
    """The headline map against every importance."""
    table = _table(f"attention ({scores.headline}) with", "τ", "95 %", "random", "top word", "shuffled")
    for against in scores.importances:
        tau, random, agreement, shuffled = (
            scores.score(quantity, scores.headline, against)
            for quantity in ("tau", "random tau", "agreement", "shuffled agreement")
        )
        table.add_row(against, _value(tau), ends(tau, 2), _value(random), _share(agreement), _share(shuffled))
    return table


def _ranking(result: "AuditResult") -> Table:
    """Every explanation with its grade, the best first."""
    names = {"tau": "τ", "comprehensiveness": "drop", "token f1": "token F1", "iou f1": "IOU F1"}
    rows = result.ranking()
    kept = [name for name in rows[0] if name in names and any(row[name] is not None for row in rows)]
    table = _table("explanation", "grade", *(names[name] for name in kept), "seconds")
    for row in rows:
        numbers = ("" if row[name] is None else written(row[name], 2) for name in kept)
        seconds = "" if row["seconds"] is None else f"{row['seconds']:.2f}"
        table.add_row(one_line(row["explanation"]), row["grade"] or "not graded", *numbers, seconds)
    return table


def _orders(scores: "Scores", names: Sequence[str], quantities: Sequence[str]) -> Table:
    """Scores of the words that come first in each order."""
    table = _table("words ordered by", *map(quantity_name, quantities))
    for name in names:
        if scores.score(quantities[0], name) is not None:
            table.add_row(name, *(with_ends(scores.score(quantity, name), 2) for quantity in quantities))
    return table


def _audit_lines(scores: "Scores", output: str) -> list[str]:
    """Scores that fit into a sentence; output: what a prediction is."""
    from heedful.attribution.attention_maps import EVERYWHERE, RANDOM, SINKS, weights_of
    from heedful.reports.audit_page import SINK_NAMES

    place = scores.headline if scores.score("tvd", "permuted", scores.headline) else EVERYWHERE
    first = scores.importances[:1]
    taus = [(name, scores.score("tau", name, against)) for against in first for name in scores.maps]
    by_map = ", ".join(f"{name} {_value(tau)}" for name, tau in taus)
    lines = [f"τ with {first[0]} by map: {by_map}"] if first else []
    for change in ("permuted", "uniform"):
        moved, flipped = scores.score("tvd", change, place), scores.score("flip", change, place)
        everywhere = scores.score("tvd", change, EVERYWHERE)
        if moved is not None:
            labels = "" if flipped is None else f"; {percent(flipped.value)} of predictions flip"
            rest = "" if everywhere in (None, moved) else f"; in all layers {with_ends(everywhere)}"
            lines.append(f"{place} {change} moves predictions by {with_ends(moved)}{labels}{rest}")
    if (another := scores.score("adversary", scores.headline)) is not None:
        lines.append(f"another map with the same prediction diverges by {with_ends(another)} nats, at most 0.693")
    weights = weights_of(scores.headline)
    sinks = [(kind, share) for kind in SINKS if (share := scores.score("sink", weights, kind)) is not None]
    if sinks:
        named = ", ".join(f"{SINK_NAMES[kind]} {percent(share.value)} ({interval(share)})" for kind, share in sinks)
        lines.append(f"share of the weight of {weights} on sinks: {named}")
    if (aer := scores.score("aer", scores.headline)) is not None:
        chance = scores.score("aer", RANDOM)
        lines.append(
            f"alignment error {with_ends(aer)}{'' if chance is None else f', at random {written(chance.value)}'}"
        )
    return lines


def print_runs(listing: "RunList") -> None:
    """One line a run: when, where, what, its state and its main figures."""
    console = _console()
    wide = console.width >= _WIDE
    table = _table()
    for name in ("when (UTC)", "kind", "state", "run", *(["what"] if wide else []), "accuracy", "A(α, β)", "took"):
        number = name in ("accuracy", "A(α, β)", "took")
        table.add_column(
            name, justify="right" if number else "left", no_wrap=name not in ("run", "what"), overflow="fold"
        )
    for run in listing.runs:
        table.add_row(
            run.when[:16].replace("T", " "),
            run.kind,
            Text(run.state, style=_STATES[run.state]),
            Text(visible(run.run)),
            *([Text(visible(run.what))] if wide else []),
            percent(run.accuracy) if run.accuracy is not None else "",
            percent(run.agreement) if run.agreement is not None else "",
            duration(run.seconds) if run.seconds is not None else "",
        )
    console.print(table)
    for run in listing.runs:
        if run.state in ("damaged", "broken off", "running", "failed") and run.said:
            console.print(Text(f"{run.state}: {run.run}: {run.said}"), soft_wrap=True)
    count = f"{len(listing.runs):,} run{'' if len(listing.runs) == 1 else 's'}"
    console.print(f"{count} below {listing.folder}", soft_wrap=True)


def print_answer(answer: "Answer") -> None:
    """The rows of an answer, at most `MOST`."""
    console, table = TerminalConsole(), _table()
    rows = answer.table.slice(0, MOST)
    for name, column in zip(rows.column_names, rows.columns, strict=True):
        values = [value for value in column.to_pylist() if value is not None]
        numeric = bool(values) and all(isinstance(value, int | float) for value in values)
        table.add_column(Text(visible(name)), justify="right" if numeric else "left", overflow="fold")
    for row in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        table.add_row(*(Text(visible(_short(cell(value)))) for value in row))
    console.print(table)
    rest = f", of which {MOST} are shown; --format csv has all" if answer.table.num_rows > MOST else ""
    count = f"{answer.table.num_rows:,} row{'' if answer.table.num_rows == 1 else 's'}"
    console.print(f"{count}{rest}", highlight=False)


def print_sweep(result: "SweepResult", report: Path) -> None:
    """Main figures of every study, the failures, and the path of the page."""
    console, table = _console(), _table()
    for axis in result.axes:
        table.add_column(Text(axis.name), overflow="fold")
    keys = [key for key in _SWEEP_FIGURES if key in result.figure_keys()]
    for key in keys:
        table.add_column(symbol(key.removesuffix(" own")), justify="right", no_wrap=True)
    for study in result.studies:
        cells = [_figure(study, key) for key in keys] if study.state == "finished" else ["failed", *[""] * len(keys)]
        if study.status != "answered" and cells:
            cells[-1] += " †"
        table.add_row(*(Text(visible(word)) for word in study.place), *cells[: len(keys)])
    console.print(table)
    if agreements := [key.removesuffix(" own") for key in keys if key.startswith("A(")]:
        _print_letters(console, agreements)
    if any(study.status != "answered" for study in result.studies):
        console.print("†: learned nothing or had too few texts, so its agreements mean nothing")
    for study in result.failed:
        line = f"failed: {study.folder} ({', '.join(study.place)}): {study.error}"
        console.print(Text(line, style="red"), soft_wrap=True)
    done = len(result.studies) - len(result.failed)
    console.print(f"{done} of {len(result.studies)} studies finished")
    console.print(f"report: {report}", soft_wrap=True)


def _console() -> Console:
    """A console that prints words of the data as they are, whatever brackets and colons they have."""
    return TerminalConsole(markup=False, emoji=False, highlight=False)


def _table(*columns: str, title: str | None = None, left: int = 1, no_wrap: bool = True) -> Table:
    """An empty table whose first columns are words, on the left, and the others numbers, which may wrap or not."""
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for k, column in enumerate(columns):
        if k < left:
            table.add_column(column, overflow="fold" if no_wrap else "ellipsis")
        else:
            table.add_column(column, justify="right", no_wrap=no_wrap)
    return table


def _interval(estimate: Estimate) -> str:
    return f"{100 * estimate.low:.1f} – {100 * estimate.high:.1f}"


def _value(estimate: Estimate | None) -> str:
    return NONE if estimate is None else written(estimate.value, 2)


def _share(estimate: Estimate | None) -> str:
    return NONE if estimate is None else percent(estimate.value)


def _figure(study: "SweepStudy", key: str) -> str:
    figure = study.figure(key)
    return NONE if figure is None else percent(figure.estimate.value)


def _short(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
