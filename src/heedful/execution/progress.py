"""Progress for people: bars on a terminal, plain lines elsewhere; always on standard error."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

Handlers = tuple[Callable[[dict[str, Any]], None], Callable[[str], None]]
_ROOMY = 100  # columns; in fewer, the time that is left matters more than the time that is gone


@contextmanager
def show_progress(*, enabled: bool = True) -> Iterator[Handlers]:
    """Handlers for the lines of training processes and for the stages of a study."""
    console = Console(stderr=True, markup=False, emoji=False)
    if not enabled:
        yield (lambda line: None), (lambda stage: None)
    elif console.is_terminal:
        with _bars(console) as handlers:
            yield handlers
    else:
        yield _print_line(console), lambda stage: _say(console, f"{stage} …")


@contextmanager
def _bars(console: Console) -> Iterator[Handlers]:
    elapsed = [TimeElapsedColumn()] if console.width >= _ROOMY else []
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

        def on_progress(line: dict[str, Any]) -> None:
            name = line["model"]
            if "notice" in line:
                _say(progress.console, _notice(line), "yellow")
                return
            if "steps" in line and name not in tasks:
                tasks[name] = progress.add_task(name, total=line["steps"], figures="")
            if name not in tasks:
                return
            if line.get("step") == 0:  # a model of that name in another study
                progress.reset(tasks[name], total=line["steps"], figures="")
            if line.get("done"):
                progress.update(tasks[name], completed=progress.tasks[tasks[name]].total)
            elif "step" in line:
                figures = _figures(line)
                progress.update(tasks[name], completed=line["step"])
                if figures:
                    progress.update(tasks[name], figures=figures)

        yield on_progress, lambda stage: _say(progress.console, f"{stage} …", "bold")


def _print_line(console: Console) -> Callable[[dict[str, Any]], None]:
    began: dict[str, tuple[float, int]] = {}

    def left(line: dict[str, Any]) -> str:
        """How long the model will go on, from how long it took so far."""
        here = time.monotonic(), line["step"]
        if line["step"] == 0:
            began[line["model"]] = here
        at, first = began.setdefault(line["model"], here)
        since, steps = here[0] - at, line["step"] - first
        if steps <= 0 or since < 1:
            return ""
        return f", about {since * (line['steps'] - line['step']) / steps:.0f} s left"

    def on_progress(line: dict[str, Any]) -> None:
        if "notice" in line:
            _say(console, _notice(line), "yellow")
        elif line.get("resumed"):
            began[line["model"]] = (time.monotonic(), line["step"])
            _say(console, f"  {line['model']} goes on from step {line['step']} of {line['steps']}")
        elif line.get("done"):
            _say(console, f"  {line['model']}: done")
        elif line.get("accuracy") is not None or line.get("loss") is not None:
            _say(console, f"  {line['model']} {line['step']}/{line['steps']} {_figures(line)}{left(line)}")

    return on_progress


def _say(console: Console, said: str, style: str = "") -> None:
    """One line as it is: a path in it may have brackets, and is not broken in two."""
    console.print(Text(said, style=style), soft_wrap=True)


def _notice(line: dict[str, Any]) -> str:
    return f"  {line['notice']}"


def _figures(line: dict[str, Any]) -> str:
    names = {"loss": "loss {:.3f}", "accuracy": "accuracy {:.1%}"}
    return ", ".join(words.format(line[key]) for key, words in names.items() if line.get(key) is not None)
