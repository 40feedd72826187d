"""Progress for people: bars on a terminal, plain lines elsewhere; always on standard error."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Handlers = tuple[Callable[[dict[str, Any]], None], Callable[[str], None]]


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
        yield _print_line(console), lambda stage: console.print(f"{stage} …", highlight=False)


@contextmanager
def _bars(console: Console) -> Iterator[Handlers]:
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<18}"),
        BarColumn(bar_width=24),
        TextColumn("{task.completed:>5.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[figures]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    ) as progress:
        tasks: dict[str, TaskID] = {}

        def on_progress(line: dict[str, Any]) -> None:
            name = line["model"]
            if "notice" in line:
                progress.console.print(_notice(line), style="yellow", markup=False, highlight=False)
                return
            if "steps" in line and name not in tasks:
                tasks[name] = progress.add_task(name, total=line["steps"], figures="")
            if name not in tasks:
                return
            if line.get("step") == 0:  # a model of that name in another study
                progress.reset(tasks[name], total=line["steps"])
            if line.get("done"):
                progress.update(tasks[name], completed=progress.tasks[tasks[name]].total)
            elif "step" in line:
                figures = _figures(line)
                progress.update(tasks[name], completed=line["step"])
                if figures:
                    progress.update(tasks[name], figures=figures)

        yield on_progress, lambda stage: progress.console.print(f"{stage} …", style="bold", highlight=False)


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
            console.print(_notice(line), style="yellow", markup=False, highlight=False, soft_wrap=True)
        elif line.get("resumed"):
            began[line["model"]] = (time.monotonic(), line["step"])
            said = f"  {line['model']} goes on from step {line['step']} of {line['steps']}"
            console.print(said, highlight=False)
        elif line.get("done"):
            console.print(f"  {line['model']}: done", highlight=False)
        elif line.get("accuracy") is not None or line.get("loss") is not None:
            said = f"  {line['model']} {line['step']}/{line['steps']} {_figures(line)}{left(line)}"
            console.print(said, highlight=False, soft_wrap=True)

    return on_progress


def _notice(line: dict[str, Any]) -> str:
    return f"  {line['notice']}"


def _figures(line: dict[str, Any]) -> str:
    names = {"loss": "loss {:.3f}", "accuracy": "accuracy {:.1%}"}
    return ", ".join(words.format(line[key]) for key, words in names.items() if line.get(key) is not None)
