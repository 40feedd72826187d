"""Results in a terminal: one table, one verdict, where the page is."""

from pathlib import Path

from rich import box
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from heedful.attribution.attention_maps import EVERYWHERE, RANDOM
from heedful.audits.result import AuditResult
from heedful.metrics.statistics import Estimate
from heedful.papers.results import Result
from heedful.preflights.preflight import Preflight
from heedful.reports.audit_sections import Scores
from heedful.reports.formatting import (
    ANSWERS,
    MODEL_TITLES,
    NONE,
    decimal,
    duration,
    ends,
    interval,
    percent,
    quantity_name,
    symbol,
    with_ends,
)
from heedful.reports.paper_tables import one_line, plain_cell
from heedful.runs.index import RunList
from heedful.runs.query import Answer
from heedful.storage.serialization import to_toml
from heedful.storage.tables import cell
from heedful.studies.dry_run import StudyPlan
from heedful.studies.result import StudyResult
from heedful.sweeps.result import SweepResult, SweepStudy


def print_study(result: StudyResult, report: Path) -> None:
    """The agreements beside chance, the verdict, and the path of the report."""
    console = _console()
    title = f"{result.data['name']}: {result.budget}, seeds {', '.join(map(str, result.seeds))}"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    translating = any(row.xi_bleu is not None for row in result.agreements)
    for column in ("agreement", "whose", "%", "95 %", "random", "shuffle", "ξ", *(["ξ BLEU"] if translating else [])):
        table.add_column(column, justify="left" if column in ("agreement", "whose") else "right", no_wrap=True)
    for row in result.agreements:
        table.add_row(
            symbol(row.name),
            row.convention,
            f"{row.estimate.value:.1%}",
            _interval(row.estimate),
            f"{row.random:.1%}",
            f"{row.shuffle.value:.1%}" if row.shuffle.n else "–",
            f"{row.xi.value:.1%}{'' if row.xi_reached else '*'}",
            *([f"{row.xi_bleu:.1f}"] if row.xi_bleu is not None else []),
        )
    console.print(table)
    console.print(f"ξ* (final accuracy) {result.xi_final.value:.1%}; a star marks agreement never exceeded by a seed")
    _print_translation(console, result)
    for question in result.verdict.questions:
        console.print(f"  {ANSWERS[question.answer]} {question.question}")
    console.print(result.verdict.sentence, style="bold")
    console.print(f"report: {report}", soft_wrap=True)


def _print_translation(console: Console, result: StudyResult) -> None:
    """BLEU and alignment error, where there are any."""
    final = [
        f"{MODEL_TITLES[kind]} {' · '.join(f'{m.bleu[-1]:.1f}' for m in models)}"
        for kind in dict.fromkeys(model.kind for model in result.models)
        if (models := [model for model in result.models if model.kind == kind and model.bleu])
    ]
    if final:
        console.print(f"BLEU at the end, by seed: {'; '.join(final)}")
    if (found := result.alignment) is not None:
        console.print(
            f"alignment error of attention: {found.trained.value:.1%} ({_interval(found.trained)}), "
            f"untrained {found.untrained.value:.1%}, chance {found.chance:.1%}; "
            f"α^IBM {found.counting.value:.1%}, IBM Model 1 {found.model_1.value:.1%}, "
            f"position alone {found.diagonal.value:.1%}"
        )


def print_preflight(result: Preflight) -> None:
    """The verdict, the statistic beside its null, and the telling words."""
    console = _console()
    console.print(Text.assemble((result.verdict, "bold"), f": {result.sentence}"))
    told = [each for each in result.outputs if each.most or each.least]
    table = Table(show_header=True)
    for column in ("output", "words that speak for it", "words that speak against it"):
        table.add_column(column)
    for each in told[:12]:
        table.add_row(each.output, " ".join(w.word for w in each.most), " ".join(w.word for w in each.least))
    console.print(table if told else "no word speaks for an output or against it")
    if result.alignment is not None:
        counted = result.alignment
        console.print(
            f"alignment error of counts alone: {counted.counting.value:.1%} (α^IBM), {counted.model_1.value:.1%} "
            f"(five iterations of Model 1), {counted.diagonal.value:.1%} (position alone)"
        )
    for decision in result.decisions:
        console.print(f"  {decision}", style="dim")


def print_result(result: Result) -> None:
    """A paper's tables, measured beside published, and the notes under them."""
    console = _console()
    console.print(Text.assemble((result.title, "bold"), f" ({result.budget}, {result.seconds:.0f} s)"))
    for found in result.finding.tables:
        table = Table(
            title=found.title, title_justify="left", box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False
        )
        table.add_column("")
        for column in found.columns:
            table.add_column(column, justify="right")
        for row in found.rows:
            table.add_row(row.name, *(plain_cell(cell) for cell in row.cells))
        console.print(table)
    for note in result.finding.notes:
        console.print(f"  {note}", style="dim")


def _console() -> Console:
    """Words of the data are words, whatever brackets and colons they have."""
    return Console(markup=False, emoji=False, highlight=False)


def _interval(estimate: Estimate) -> str:
    return f"{100 * estimate.low:.1f} – {100 * estimate.high:.1f}"


def print_plan(plan: StudyPlan) -> None:
    """The resolved settings, then the models, as comments: all of it is TOML that `--config` takes."""
    print(to_toml(plan.config))
    console = Console(highlight=False)
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for column in ("model", "steps", "evaluations", "time", "disk"):
        table.add_column(column, justify="left" if column == "model" else "right", no_wrap=True)
    for model in plan.models:
        steps = f"{model.steps:,}" if model.steps else "–"
        table.add_row(model.name, steps, str(model.evaluations), duration(model.seconds), size(model.disk))
    with console.capture() as drawn:
        console.print(table)
    for line in drawn.get().splitlines():
        print(f"# {line}".rstrip())
    sizes = ", ".join(f"{plan.data[name]:,} {name}" for name in ("train", "validation", "test"))
    print(f"# data: {sizes}; vocabulary {plan.data['vocabulary']:,}")
    print(
        f"# estimated from a few steps of each kind: about {duration(plan.seconds)} to train and record, "
        f"{plan.jobs} at a time; {size(plan.disk)} of disk"
    )
    print("# measuring and the page come on top; nothing was written")


def size(count: int) -> str:
    """Bytes as people read them.

    >>> size(900), size(61_300_000)
    ('900 B', '61.3 MB')
    """
    for unit, unit_size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= unit_size:
            return f"{count / unit_size:.1f} {unit}"
    return f"{count:.0f} B"


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


MOST = 200  # rows of an answer that a terminal shows
_WIDE = 110  # letters in a line of a terminal that has room for what a run is of
_STYLES = {"running": "bold", "finished": "green", "damaged": "red", "failed": "red", "broken off": "yellow"}


def print_runs(found: RunList) -> None:
    """One line a run: when, where, what, its state and its main figures."""
    console = Console(markup=False, emoji=False, highlight=False)
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    wide = console.width >= _WIDE
    for name in ("when (UTC)", "kind", "state", "run", *(["what"] if wide else []), "accuracy", "A(α, β)", "took"):
        number = name in ("accuracy", "A(α, β)", "took")
        whole = name not in ("run", "what")
        table.add_column(name, justify="right" if number else "left", no_wrap=whole, overflow="fold")
    for run in found.runs:
        table.add_row(
            run.when[:16].replace("T", " "),
            run.kind,
            Text(run.state, style=_STYLES[run.state]),
            Text(run.run),
            *([Text(run.what)] if wide else []),
            percent(run.accuracy) if run.accuracy is not None else "",
            percent(run.agreement) if run.agreement is not None else "",
            duration(run.seconds) if run.seconds is not None else "",
        )
    console.print(table)
    for run in found.runs:
        if run.state in ("damaged", "broken off", "running", "failed") and run.said:
            console.print(Text(f"{run.state}: {run.run}: {run.said}"), soft_wrap=True)
    count = f"{len(found.runs):,} run{'' if len(found.runs) == 1 else 's'}"
    console.print(f"{count} below {found.folder}", soft_wrap=True)


def print_answer(answer: Answer) -> None:
    """The rows of an answer, as many as a terminal bears."""
    console, table = Console(), Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    shown = answer.table.slice(0, MOST)
    for name, column in zip(shown.column_names, shown.columns, strict=True):
        values = [value for value in column.to_pylist() if value is not None]
        numeric = bool(values) and all(isinstance(value, int | float) for value in values)
        table.add_column(Text(name), justify="right" if numeric else "left", overflow="fold")
    for row in zip(*(column.to_pylist() for column in shown.columns), strict=True):
        table.add_row(*(Text(_short(cell(value))) for value in row))
    console.print(table)
    rest = f", of which {MOST} are shown; --format csv has all" if answer.table.num_rows > MOST else ""
    count = f"{answer.table.num_rows:,} row{'' if answer.table.num_rows == 1 else 's'}"
    console.print(f"{count}{rest}", highlight=False)


def _short(text: str, most: int = 120) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


SHOWN = ("accuracy", "entropy", "A(alpha,beta) own", "A(alpha,beta_uf) own", "A(delta,beta_uf) own")


def print_sweep(result: SweepResult, report: Path) -> None:
    """Main figures of every study, the failures, and the path of the page."""
    console = Console(markup=False, emoji=False, highlight=False)
    table = Table(box=box.SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for axis in result.axes:
        table.add_column(Text(axis.name), overflow="fold")
    keys = [key for key in SHOWN if key in result.figure_keys()]
    for key in keys:
        table.add_column(symbol(key.removesuffix(" own")), justify="right", no_wrap=True)
    for study in result.studies:
        cells = [_cell(study, key) for key in keys] if study.state == "finished" else ["failed", *[""] * len(keys)]
        table.add_row(*(Text(word) for word in study.place), *cells[: len(keys)])
    console.print(table)
    for study in result.failed:
        said = f"failed: {study.folder} ({', '.join(study.place)}): {study.error}"
        console.print(Text(said, style="red"), soft_wrap=True)
    done = len(result.studies) - len(result.failed)
    console.print(f"{done} of {len(result.studies)} studies finished")
    console.print(f"report: {report}", soft_wrap=True)


def _cell(study: SweepStudy, key: str) -> str:
    figure = study.figure(key)
    return NONE if figure is None else percent(figure.estimate.value)
