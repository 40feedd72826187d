"""A sweep as it goes on: a live table on a terminal, plain lines elsewhere; always on standard error."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, Literal

from rich import box
from rich.console import Console, ConsoleOptions, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

EventKind = Literal["kept", "waiting", "started", "progress", "finished", "retry", "failed"]


@dataclass(frozen=True)
class Event:
    """Something that happened to one study of a sweep.

    place: where it stands on the axes. line: of progress. figures: main figures of a study that is finished. error:
    why an attempt failed. attempt: counted from 1.
    """

    kind: EventKind
    study: str
    place: tuple[str, ...]
    attempt: int = 1
    line: dict[str, Any] | None = None
    figures: str = ""
    error: str = ""


OnEvent = Callable[[Event], None]


_STYLES = {"running": "bold", "failed": "red", "finished": "green", "kept": "dim", "waiting": "dim"}
_AROUND = 5  # lines of the table that are no study: its head, and how many there are


@contextmanager
def watch(axes: Sequence[str], *, enabled: bool = True) -> Iterator[OnEvent]:
    """Whoever is told of a sweep's events."""
    console = Console(stderr=True)
    if not enabled:
        yield lambda event: None
    elif console.is_terminal:
        board = Board(axes)
        with Live(board, console=console, refresh_per_second=4, transient=False):

            def on_event(event: Event) -> None:
                board.hear(event)
                if said := _failure(event) or _notice(event):
                    console.print(Text(said, style="red"), soft_wrap=True)

            yield on_event
    else:
        yield _print_lines(console)


@dataclass(frozen=True)
class BoardRow:
    """One study as the table shows it."""

    place: tuple[str, ...]
    state: str = "waiting"
    doing: str = ""
    attempt: int = 1
    began: float = 0.0
    ended: float = 0.0


@dataclass
class Board:
    """The live table: what is running and what failed, then the rest as far as there is room."""

    axes: Sequence[str]
    rows: dict[str, BoardRow] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    most: int = 24

    def hear(self, event: Event) -> None:
        """Take note of an event."""
        with self.lock:
            row, now = self.rows.get(event.study, BoardRow(event.place)), time.monotonic()
            if event.kind == "progress":
                row = replace(row, doing=doing(event) or row.doing)
            elif event.kind == "started":
                row = replace(row, state="running", attempt=event.attempt, began=row.began or now, doing="")
            elif event.kind == "retry":
                row = replace(row, doing=f"failed, tried again: {event.error}")
            else:
                row = replace(row, state=event.kind, doing=event.figures or event.error, ended=now)
            self.rows[event.study] = row

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        """The table as it stands; where there is little room, what a study is doing is cut, not its state."""
        with self.lock:
            rows = list(self.rows.values())
        order = {"running": 0, "failed": 1, "waiting": 3}
        room = max(1, min(self.most, options.size.height - _AROUND))
        shown = sorted(rows, key=lambda row: order.get(row.state, 2))[:room]
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in self.axes:
            table.add_column(_one_line(name))
        table.add_column("state", no_wrap=True)
        table.add_column("")
        table.add_column("time", no_wrap=True)
        for row in shown:
            again = f" ({row.attempt})" if row.attempt > 1 else ""
            table.add_row(
                *map(_one_line, row.place),
                Text(row.state + again, style=_STYLES.get(row.state, "")),
                _one_line(row.doing),
                f"{max(0.0, (row.ended or time.monotonic()) - row.began):.0f} s" if row.began else "",
            )
        yield table
        counts = Counter(row.state for row in rows)
        said = ", ".join(f"{count:,} {state}" for state, count in counts.items())
        hidden = f"; {len(rows) - len(shown):,} not shown" if len(rows) > len(shown) else ""
        yield Text(f"{len(rows):,} {'study' if len(rows) == 1 else 'studies'}: {said}{hidden}")


def _one_line(words: str) -> Text:
    """A cell that gives way: its column may shrink, and it is cut rather than wrapped."""
    return Text(words, no_wrap=True, overflow="ellipsis")


def doing(event: Event) -> str:
    """A line of progress in a few words.

    >>> doing(Event("progress", "a", (), line={"model": "standard-0", "step": 3, "steps": 9, "accuracy": 0.5}))
    'standard-0 3/9, accuracy 50.0%'
    """
    line = event.line or {}
    if "stage" in line:
        return str(line["stage"])
    if "notice" in line:
        return str(line["notice"])
    if "step" not in line or "steps" not in line:
        return ""
    figures = f", accuracy {line['accuracy']:.1%}" if line.get("accuracy") is not None else ""
    return f"{line.get('model', '')} {line['step']}/{line['steps']}{figures}"


def _failure(event: Event) -> str:
    if event.kind == "retry":
        return f"{_where(event)}: attempt {event.attempt} failed: {event.error}; tried again"
    return f"{_where(event)}: failed: {event.error}" if event.kind == "failed" else ""


def _where(event: Event) -> str:
    """The study and its place on the axes, if the sweep has any.

    >>> _where(Event("kept", "sst-1", ("softmax", "10"))), _where(Event("kept", "sst-1", ()))
    ('sst-1 (softmax, 10)', 'sst-1')
    """
    return f"{event.study} ({', '.join(event.place)})" if event.place else event.study


def _notice(event: Event) -> str:
    return f"{event.study}: {event.line['notice']}" if event.line and "notice" in event.line else ""


def _print_lines(console: Console) -> OnEvent:
    done: Counter[str] = Counter()
    studies: set[str] = set()
    lock = Lock()

    def on_event(event: Event) -> None:
        with lock:
            studies.add(event.study)
            done[event.kind] += 1
            said = _failure(event) or _notice(event)
            if event.kind in ("kept", "finished"):
                count = f"{done['kept'] + done['finished']}/{len(studies)}"
                said = f"{count} {_where(event)}: {event.kind}, {event.figures}"
            elif event.kind == "started" and event.attempt == 1:
                said = f"{_where(event)}: begun"
            if said:
                console.print(Text(said), soft_wrap=True)

    return on_event
