"""Progress for people: bars or a live table on a terminal, plain lines elsewhere; always on standard error."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from threading import Lock

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from heedful.execution.pool import Event, OnEvent
from heedful.execution.terminal import TerminalConsole

_WIDE = 100  # columns; with fewer, only the remaining time is shown, not the elapsed time
_STYLES = {"running": "bold", "failed": "red", "finished": "green", "kept": "dim", "waiting": "dim"}
LINE_EVERY = 30.0  # seconds between two lines about the same job, where there is no terminal
_HEAD_AND_FOOT = 5  # lines of a sweep's table that are not studies


@contextmanager
def show_progress(*, enabled: bool = True) -> Iterator[OnEvent]:
    """Show the events of jobs, and the stages of what they are part of: an event with a `stage` but no `model`."""
    console = TerminalConsole(stderr=True, markup=False, emoji=False)
    if not enabled:
        yield lambda event: None
        return
    with _bars(console) if console.is_terminal else nullcontext(_line_printer(console)) as show_job:

        def on_event(event: Event) -> None:
            if "notice" in event:
                _print(console, f"  {event['notice']}", "yellow")
            elif "model" in event:
                show_job(event)
            else:
                _print(console, f"{event['stage']} …", "bold")

        yield on_event


@contextmanager
def show_sweep(axes: Sequence[str], *, enabled: bool = True) -> Iterator[OnEvent]:
    """Show the events of a sweep's studies: a live table on a terminal, one line for each change elsewhere."""
    console = TerminalConsole(stderr=True)
    if not enabled:
        yield lambda event: None
    elif console.is_terminal:
        table = SweepTable(axes)
        with Live(table, console=console, refresh_per_second=4, transient=False):

            def on_event(event: Event) -> None:
                table.update(event)
                if words := _failure(event) or _study_notice(event):
                    _print(console, words, "red")

            yield on_event
    else:
        yield _sweep_line_printer(console)


@contextmanager
def _bars(console: Console) -> Iterator[OnEvent]:
    elapsed = [TimeElapsedColumn()] if console.width >= _WIDE else []
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<18}", markup=False),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:>5.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[figures]}"),
        *elapsed,
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        tasks: dict[str, TaskID] = {}

        def on_event(event: Event) -> None:
            name = event["model"]
            if "steps" in event and name not in tasks:
                tasks[name] = progress.add_task(name, total=event["steps"], figures="")
            if name not in tasks:
                return
            if event.get("step") == 0 and "passes" not in event:  # a model of the same name in another study
                progress.reset(tasks[name], total=event["steps"], figures="")
            if event.get("done"):
                progress.update(tasks[name], completed=progress.tasks[tasks[name]].total)
            elif "step" in event:
                figures = _figures(event)
                progress.update(tasks[name], completed=event["step"])
                if figures:
                    progress.update(tasks[name], figures=figures)

        yield on_event


def _line_printer(console: Console) -> OnEvent:
    started: dict[str, tuple[float, int]] = {}
    spoken: dict[str, float] = {}

    def remaining(event: Event) -> str:
        now = time.monotonic(), event["step"]
        if event["step"] == 0 and "passes" not in event:
            started[event["model"]] = now
        start, first = started.setdefault(event["model"], now)
        if "passes" in event:
            done, total = event["passes"], event.get("expected", 0)
            seconds = now[0] - start
            return f", about {seconds * (total - done) / done:.0f} s left" if total > done else ""
        seconds, steps = now[0] - start, event["step"] - first
        if steps <= 0 or seconds < 1:
            return ""
        return f", about {seconds * (event['steps'] - event['step']) / steps:.0f} s left"

    def on_event(event: Event) -> None:
        if event.get("resumed"):
            started[event["model"]] = (time.monotonic(), event["step"])
            _print(console, f"  {event['model']} resumes at step {event['step']} of {event['steps']}")
        elif event.get("done"):
            _print(console, f"  {event['model']}: done")
        elif figures := _figures(event):
            _print(console, f"  {event['model']} {event['step']}/{event['steps']} {figures}{remaining(event)}")
        elif "step" in event:
            model, now = event["model"], time.monotonic()
            started.setdefault(model, (now, event["step"]))
            if now - spoken.setdefault(model, now) >= LINE_EVERY:
                spoken[model] = now
                passes = f", {event['passes']:,} forward passes" if "passes" in event else ""
                _print(console, f"  {model} {event['step']}/{event['steps']}{passes}{remaining(event)}")

    return on_event


@dataclass(frozen=True)
class SweepRow:
    """One study in the table of a sweep."""

    place: tuple[str, ...]
    state: str = "waiting"
    doing: str = ""
    attempt: int = 1
    started: float = 0.0
    ended: float = 0.0


@dataclass
class SweepTable:
    """The live table of a sweep: running and failed studies first, then as many others as there is room for."""

    axes: Sequence[str]
    rows: dict[str, SweepRow] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    max_rows: int = 24

    def update(self, event: Event) -> None:
        """Change the row of the event's study."""
        with self.lock:
            row, now = self.rows.get(event["study"], SweepRow(event["place"])), time.monotonic()
            state = event.get("state")
            if state is None:
                row = replace(row, doing=describe(event) or row.doing)
            elif state == "started":
                row = replace(row, state="running", attempt=event["attempt"], started=row.started or now, doing="")
            elif state == "retry":
                row = replace(row, doing=f"failed, tried again: {event['error']}")
            else:
                row = replace(row, state=state, doing=event.get("figures") or event.get("error", ""), ended=now)
            self.rows[event["study"]] = row

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """The table as it is now; on a narrow terminal, what a study is doing is cut, not its state."""
        with self.lock:
            rows = list(self.rows.values())
        order = {"running": 0, "failed": 1, "waiting": 3}
        room = max(1, min(self.max_rows, options.size.height - _HEAD_AND_FOOT))
        shown = sorted(rows, key=lambda row: order.get(row.state, 2))[:room]
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in self.axes:
            table.add_column(_cell(name))
        table.add_column("state", no_wrap=True)
        table.add_column("")
        table.add_column("time", no_wrap=True)
        for row in shown:
            again = f" ({row.attempt})" if row.attempt > 1 else ""
            table.add_row(
                *map(_cell, row.place),
                Text(row.state + again, style=_STYLES.get(row.state, "")),
                _cell(row.doing),
                f"{max(0.0, (row.ended or time.monotonic()) - row.started):.0f} s" if row.started else "",
            )
        yield table
        counts = ", ".join(f"{count:,} {state}" for state, count in Counter(row.state for row in rows).items())
        hidden = f"; {len(rows) - len(shown):,} not shown" if len(rows) > len(shown) else ""
        yield Text(f"{len(rows):,} {'study' if len(rows) == 1 else 'studies'}: {counts}{hidden}")


def describe(event: Event) -> str:
    """An event of a study's training in a few words.

    >>> describe({"model": "standard-0", "step": 3, "steps": 9, "accuracy": 0.5})
    'standard-0 3/9, accuracy 50.0%'
    """
    if words := event.get("stage") or event.get("notice"):
        return words
    if "step" not in event or "steps" not in event:
        return ""
    accuracy = event.get("accuracy")
    figures = "" if accuracy is None else f", accuracy {accuracy:.1%}"
    return f"{event.get('model', '')} {event['step']}/{event['steps']}{figures}"


def _sweep_line_printer(console: Console) -> OnEvent:
    done: Counter[str] = Counter()
    studies: set[str] = set()
    lock = Lock()

    def on_event(event: Event) -> None:
        with lock:
            state = event.get("state", "")
            studies.add(event["study"])
            done[state] += 1
            words = _failure(event) or _study_notice(event)
            if state in ("kept", "finished"):
                count = f"{done['kept'] + done['finished']}/{len(studies)}"
                words = f"{count} {_study_and_place(event)}: {state}, {event['figures']}"
            elif state == "started" and event["attempt"] == 1:
                words = f"{_study_and_place(event)}: begun"
            if words:
                _print(console, words)

    return on_event


def _failure(event: Event) -> str:
    state, where = event.get("state"), _study_and_place(event)
    if state == "retry":
        return f"{where}: attempt {event['attempt']} failed: {event['error']}; tried again"
    return f"{where}: failed: {event['error']}" if state == "failed" else ""


def _study_notice(event: Event) -> str:
    return f"{event['study']}: {event['notice']}" if "notice" in event else ""


def _study_and_place(event: Event) -> str:
    """The study, and its place on the axes where the sweep has any.

    >>> _study_and_place({"study": "sst-1", "place": ("softmax", "10")}), _study_and_place({"study": "a", "place": ()})
    ('sst-1 (softmax, 10)', 'a')
    """
    return f"{event['study']} ({', '.join(event['place'])})" if event["place"] else event["study"]


def _figures(event: Event) -> str:
    loss, accuracy = event.get("loss"), event.get("accuracy")
    words = [f"loss {loss:.3f}"] if loss is not None else []
    return ", ".join(words + ([f"accuracy {accuracy:.1%}"] if accuracy is not None else []))


def _cell(words: str) -> Text:
    """A cell whose column may shrink: it is cut, not wrapped."""
    return Text(words, no_wrap=True, overflow="ellipsis")


def _print(console: Console, line: str, style: str = "") -> None:
    """Print one line as it is: a path in it may have brackets, and is not broken in two."""
    console.print(Text(line, style=style), soft_wrap=True)
