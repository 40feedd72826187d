"""A sweep as a person sees it: a table that keeps its shape on a terminal, one line for each event elsewhere."""

import pytest

from heedful.execution.pool import Event
from heedful.execution.progress import SweepTable, show_sweep
from tests.terminal import at_a_terminal, last_frame, plainly

AXES = ("model.projection", "model.scale")
REASON = "the worker process ended early: [/bold] " + "and so on " * 12


def place(i: int) -> tuple[str, str]:
    return "softmax", str(10 * i)


def of(kind, i, **more) -> Event:
    line = more.pop("line", {})
    state = {} if kind == "progress" else {"state": kind, "figures": "", "error": ""}
    return {"study": f"sst-{i}", "place": place(i), "attempt": 1, **state, **line, **more}


SWEEP = (
    of("kept", 0, figures="accuracy 80.0%"),
    *(of("waiting", i) for i in range(1, 5)),
    of("started", 1),
    of("progress", 1, line={"stage": "training"}),
    of("progress", 1, line={"model": "standard-0", "done": True}),
    of("started", 2),
    of("progress", 2, line={"model": "standard-0", "step": 3, "steps": 9, "accuracy": 0.5}),
    of("retry", 2, error="the cluster lost it"),
    of("started", 2, attempt=2),
    of("progress", 2, attempt=2, line={"notice": "config.toml was damaged"}),
    of("started", 3),
    of("failed", 3, error=REASON),
)


def frame(monkeypatch, capsys, events, **size) -> tuple[str, list[str]]:
    at_a_terminal(monkeypatch, **size)
    with show_sweep(AXES) as on_event:
        for event in events:
            on_event(event)
    written = capsys.readouterr().err
    return plainly(written), last_frame(written, "state")


def cells(line: str) -> list[str]:
    return [cell for cell in line.strip().split("   ") if cell.strip()]


def test_the_table_says_what_is_running_first_and_how_many_there_are(monkeypatch, capsys):
    written, (_, _, *rows, last) = frame(monkeypatch, capsys, SWEEP, columns=240)
    assert [[cell.strip() for cell in cells(row)][:4] for row in rows if row] == [
        ["softmax", "10", "running", "training"],
        ["softmax", "20", "running (2)", "config.toml was damaged"],
        ["softmax", "30", "failed", REASON.strip()],
        ["softmax", "0", "kept", "accuracy 80.0%"],
        ["softmax", "40", "waiting"],
    ]
    assert [row.endswith(" s") for row in rows if row] == [True, True, True, False, False]
    assert last == "5 studies: 1 kept, 2 running, 1 failed, 1 waiting"
    assert "sst-2 (softmax, 20): attempt 1 failed: the cluster lost it; tried again\n" in written
    assert "sst-2: config.toml was damaged\n" in written
    assert f"sst-3 (softmax, 30): failed: {REASON}\n" in written


@pytest.mark.parametrize("columns", [60, 80])
def test_a_long_reason_leaves_the_states_readable(monkeypatch, capsys, columns):
    _, lines = frame(monkeypatch, capsys, SWEEP, columns=columns)
    states = ("running ", "running (2) ", "failed ", "kept ", "waiting")
    for line, state in zip(lines[2:], states, strict=False):
        assert f"   {state}" in line
    assert "the wor" in lines[4]
    assert len(lines) == 2 + 5 + 2  # head, a line for each study, how many there are
    assert max(map(len, lines)) <= columns


def test_more_studies_than_lines(monkeypatch, capsys):
    events = [of("waiting", i) for i in range(40)]
    _, lines = frame(monkeypatch, capsys, [*events, of("started", 39)], columns=100, lines=12)
    assert lines[-1] == "40 studies: 39 waiting, 1 running; 33 not shown"
    assert "390" in lines[2]  # what is running stands first
    assert len(lines) == 12 - 1


def test_one_study(monkeypatch, capsys):
    _, lines = frame(monkeypatch, capsys, [of("waiting", 0)], columns=100)
    assert lines[-1] == "1 study: 1 waiting"


def test_a_study_keeps_the_time_it_took(monkeypatch):
    table, clock = SweepTable(AXES), iter([100.0, 107.0])
    monkeypatch.setattr("heedful.execution.progress.time.monotonic", lambda: next(clock))
    table.update(of("started", 1))
    table.update(of("finished", 1, figures="accuracy 90.0%"))
    monkeypatch.undo()
    row = table.rows["sst-1"]
    assert (row.state, row.doing, row.ended - row.started) == ("finished", "accuracy 90.0%", 7.0)


def test_lines_elsewhere(capsys):
    with show_sweep(AXES) as on_event:
        for event in (*SWEEP, of("finished", 1, figures="accuracy 90.0%")):
            on_event(event)
    assert capsys.readouterr().err.splitlines() == [
        "1/1 sst-0 (softmax, 0): kept, accuracy 80.0%",
        "sst-1 (softmax, 10): begun",
        "sst-2 (softmax, 20): begun",
        "sst-2 (softmax, 20): attempt 1 failed: the cluster lost it; tried again",
        "sst-2: config.toml was damaged",
        "sst-3 (softmax, 30): begun",
        f"sst-3 (softmax, 30): failed: {REASON}",
        "2/5 sst-1 (softmax, 10): finished, accuracy 90.0%",
    ]
