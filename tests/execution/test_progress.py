"""Progress on a terminal and elsewhere: what stands there at the end, and nothing that a name could break."""

from types import SimpleNamespace

import pytest

from heedful.execution import progress
from heedful.execution.progress import show_progress
from tests.terminal import at_a_terminal, last_frame, plainly

LINES = (
    {"model": "standard-0", "step": 0, "steps": 40, "accuracy": 0.5},
    {"model": "standard-0", "step": 20, "steps": 40},
    {"model": "standard-0", "step": 30, "steps": 40, "loss": 0.25, "accuracy": 0.875},
    {"model": "proxy-1", "steps": 9, "step": 4, "resumed": True},
    {"model": "logistic-0", "done": True},  # it never said how many steps it has
    {"model": "run", "notice": "/runs/a[/b]/metrics.jsonl was damaged"},
)
STAGE = "auditing model[/bold] on texts[1].csv"


@pytest.fixture
def bars(monkeypatch, capsys):
    """All that is written at a terminal of so many columns."""

    def show(*lines, columns=120):
        at_a_terminal(monkeypatch, columns=columns)
        with show_progress() as on_progress:
            on_progress({"stage": STAGE})
            for line in lines:
                on_progress(line)
        return capsys.readouterr().err

    return show


def test_bars(bars):
    written = plainly(bars(*LINES))
    standard, proxy = last_frame(written, "standard-0")
    assert "   30/40 loss 0.250, accuracy 87.5% " in standard
    assert proxy.split()[1] == "proxy-1"
    assert "    4/9 " in proxy
    assert "logistic-0" not in written
    assert f"{STAGE} …\n" in written
    assert "  /runs/a[/b]/metrics.jsonl was damaged\n" in written


def test_the_time_that_is_left_has_room_on_a_narrow_terminal(bars):
    (bar,) = last_frame(bars(*LINES[:1], columns=80), "standard-0")
    assert bar.endswith("0/40 accuracy 50.0% left -:--:--")
    assert "…" not in last_frame(bars(*LINES, columns=80), "standard-0")[0]


def test_a_model_that_is_done_or_begins_again_in_another_study(bars):
    (done,) = last_frame(bars(*LINES[:3], {"model": "standard-0", "done": True}), "standard-0")
    assert "   40/40 loss 0.250, accuracy 87.5% " in done
    (again,) = last_frame(bars(*LINES[:3], {"model": "standard-0", "step": 0, "steps": 7}), "standard-0")
    assert "    0/7 " in again
    assert "accuracy" not in again


def test_lines_elsewhere(monkeypatch, capsys):
    clock = iter([100.0, 101.0, 103.0, 110.0, 112.0])
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    with show_progress() as on_progress:
        on_progress({"stage": STAGE})
        for line in (*LINES, {"model": "proxy-1", "step": 5, "steps": 9, "loss": 1.0}):
            on_progress(line)
    assert capsys.readouterr().err.splitlines() == [
        f"{STAGE} …",
        "  standard-0 0/40 accuracy 50.0%",
        "  standard-0 30/40 loss 0.250, accuracy 87.5%, about 1 s left",
        "  proxy-1 resumes at step 4 of 9",
        "  logistic-0: done",
        "  /runs/a[/b]/metrics.jsonl was damaged",
        "  proxy-1 5/9 loss 1.000, about 8 s left",
    ]


def test_nothing_where_nothing_is_asked(capsys):
    with show_progress(enabled=False) as on_progress:
        on_progress({"stage": STAGE})
        on_progress(LINES[0])
    assert capsys.readouterr() == ("", "")


def test_a_job_without_figures_speaks_every_half_minute(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with show_progress() as on_progress:
        for seconds, step in ((0, 0), (20, 4), (15, 4), (10, 6), (30, 8)):
            now[0] += seconds
            passes = {"passes": 1000 * step, "expected": 40_000} if seconds else {}
            on_progress({"model": "audit", "step": step, "steps": 40, **passes})
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "  audit 4/40, 4,000 forward passes, about 315 s left",
        "  audit 8/40, 8,000 forward passes, about 300 s left",
    ]
