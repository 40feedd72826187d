"""A sweep as it goes on: a live table on a terminal, plain lines elsewhere; always on standard error."""

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from threading import Lock

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from heedful.sweeps.events import Event, OnEvent

_STYLES = {"running": "bold", "failed": "red", "finished": "green", "kept": "dim", "waiting": "dim"}


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
class Row:
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
    rows: dict[str, Row] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    most: int = 24

    def hear(self, event: Event) -> None:
        """Take note of an event."""
        with self.lock:
            row, now = self.rows.get(event.study, Row(event.place)), time.monotonic()
            if event.kind == "progress":
                row = replace(row, doing=doing(event) or row.doing)
            elif event.kind == "started":
                row = replace(row, state="running", attempt=event.attempt, began=row.began or now, doing="")
            elif event.kind == "retry":
                row = replace(row, doing=f"failed, tried again: {event.error}")
            else:
                row = replace(row, state=event.kind, doing=event.figures or event.error, ended=now)
            self.rows[event.study] = row

    def __rich__(self) -> RenderableType:
        """The table as it stands."""
        with self.lock:
            rows = list(self.rows.values())
        order = {"running": 0, "failed": 1, "waiting": 3}
        shown = sorted(rows, key=lambda row: order.get(row.state, 2))[: self.most]
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in (*self.axes, "state", "", "time"):
            table.add_column(Text(name), overflow="ellipsis", no_wrap=True)
        for row in shown:
            spent = (row.ended or time.monotonic()) - row.began if row.began else 0.0
            again = f" ({row.attempt})" if row.attempt > 1 else ""
            table.add_row(
                *(Text(word) for word in row.place),
                Text(row.state + again, style=_STYLES.get(row.state, "")),
                Text(row.doing),
                Text(f"{spent:.0f} s" if spent else ""),
            )
        counts = Counter(row.state for row in rows)
        said = ", ".join(f"{count:,} {state}" for state, count in counts.items())
        hidden = f"; {len(rows) - len(shown):,} not shown" if len(rows) > len(shown) else ""
        return Group(table, Text(f"{len(rows):,} studies: {said}{hidden}"))


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
    where = f"{event.study} ({', '.join(event.place)})"
    if event.kind == "retry":
        return f"{where}: attempt {event.attempt} failed: {event.error}; tried again"
    return f"{where}: failed: {event.error}" if event.kind == "failed" else ""


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
                said = f"{count} {event.study} ({', '.join(event.place)}): {event.kind}, {event.figures}"
            elif event.kind == "started" and event.attempt == 1:
                said = f"{event.study} ({', '.join(event.place)}): begun"
            if said:
                console.print(Text(said), soft_wrap=True)

    return on_event
