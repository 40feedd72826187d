"""Run folders as an enemy would send them: links, pipes, names that lead elsewhere, other models, altered figures.

Each function counts what it tries, and what it put into the folders on purpose. Nothing is trained here: what is asked
is whether the folder is refused, or the file named as damaged, and whether everything else is left alone.
"""

import itertools
import os
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from heedful import api
from heedful.data.ragged import Ragged
from heedful.followed.result import FollowedDirectory, ProbeTexts
from heedful.records.index import list_runs
from heedful.records.query import ask
from heedful.storage.atomic_files import read_checksummed_json, write_checksummed_json, write_text
from heedful.storage.locks import directory_lock
from heedful.storage.manifest import RunClock
from heedful.storage.run_files import OWN_NAMES
from heedful.studies.run_directory import RunDirectory, is_intact, repair_run
from heedful.studies.study import open_study
from heedful.studies.token_table import token_table
from heedful.sweeps.grid import Axis
from heedful.sweeps.result import SweepResult, SweepStudy
from heedful.sweeps.sweep import SUMMARIES
from heedful.tracing.store import Snapshot
from tests.faults.fuzzing import Tally
from tests.faults.small import TEXTS, corpus_of, finish
from tests.reports.audit_example import audit_example

KINDS = ("study", "audit", "sweep", "followed")


@dataclass
class Attack(Tally):
    """A tally that counts the faults put in, too."""

    injected: int = 0

    def must_refuse(self, what: str, call: Callable[[], Any]) -> None:
        """Call it: it must raise a `HeedfulError`, in words."""
        before = self.refused + len(self.failures)
        self.attempt(what, call)
        if self.refused + len(self.failures) == before:
            self.failures.append(f"{what}: not refused")

    def must_hold(self, what: str, holds: bool) -> None:
        """Count a condition that must hold."""
        self.tried += 1
        if not holds:
            self.failures.append(what)


def make_shelf(root: Path) -> Path:
    """A folder with a small finished run of each kind; returns it."""
    finish(TEXTS, root / "study")
    clock = RunClock("audit", "heedful audit a b")
    clock.begin(root / "audit")
    clock.finish(root / "audit", audit_example())
    _make_sweep(root / "sweep")
    _make_followed(root / "followed")
    return root


def links(shelf: Path, limit: int | None = None) -> Attack:
    """Each file and folder of each run in turn is a symbolic link to what it was, elsewhere."""
    attack = Attack("hostile: symbolic links in run folders")
    elsewhere = shelf.parent / "elsewhere"
    for kind, path in itertools.islice(_places(shelf, folders=True), limit):
        with _replaced(path, elsewhere, lambda path: path.symlink_to(elsewhere)):
            attack.injected += 1
            before = _content(elsewhere)
            _must_be_refused(attack, f"{path.relative_to(shelf)} is a link", shelf, kind)
            attack.must_hold(f"{path.relative_to(shelf)}: written through the link", _content(elsewhere) == before)
    return attack


def devices(shelf: Path, limit: int | None = None) -> Attack:
    """Each file of each run in turn is a pipe, a socket or a folder; nobody waits for it."""
    attack = Attack("hostile: pipes, sockets and folders in place of files")
    makers: dict[str, Callable[[Path], object]] = {"a pipe": os.mkfifo, "a socket": _socket, "a folder": Path.mkdir}
    places = itertools.product(_places(shelf, folders=False), makers.items())
    for (kind, path), (name, make) in itertools.islice(places, limit):
        with _replaced(path, shelf.parent / "elsewhere", make):
            attack.injected += 1
            what = f"{path.relative_to(shelf)} is {name}"
            if name == "a folder":  # which is refused where it is read, not by its mere existence
                _read(attack, what, shelf, kind)
            else:
                _must_be_refused(attack, what, shelf, kind)
    return attack


def names(shelf: Path, limit: int | None = None) -> Attack:
    """Each record of a study lists a name that leads elsewhere; repairing the study touches nothing there."""
    attack = Attack("hostile: names that leave the run folder")
    victim = shelf.parent / "thesis.tex"
    victim.write_text("a year's work", "utf-8")
    evil = [
        "../../../thesis.tex", "../thesis.tex", "../../thesis.tex", str(victim), "a/../../../../thesis.tex", "..", ".",
        "", "/", "//etc/passwd", "~/thesis.tex", "a\\..\\b", "a\0b", "a\nb", "./a", "a//b", "\x1b[31m", "trace/..",
    ]  # fmt: skip
    records = [path for pattern in ("data/checksums.json", "models/*/done.json", "manifest.json")
               for path in sorted((shelf / "study").glob(pattern))]  # fmt: skip
    for record, name in itertools.islice(itertools.product(records, evil), limit):
        with _copy(shelf / "study") as run:
            harmed = run / record.relative_to(shelf / "study")
            content = read_checksummed_json(harmed)
            write_checksummed_json(harmed, content | {"files": {name: "0" * 64}})
            attack.injected += 1
            what = f"{record.name} lists {name!r}"
            with directory_lock(run):
                attack.attempt(what, lambda run=run: repair_run(RunDirectory(run), TEXTS))
            attack.must_hold(f"{what}: still believed", not harmed.exists())
            attack.must_hold(f"{what}: {victim.name} was touched", victim.read_text("utf-8") == "a year's work")
            attack.must_hold(f"{what}: a file beside the run", not list(shelf.parent.glob("*.damaged-*")))
    return attack


def strangers(shelf: Path, limit: int | None = None) -> Attack:
    """Models, data and results of another model or another study, undamaged; none of them is taken for the study's."""
    attack = Attack("hostile: models, data and results of other studies")
    study = shelf / "study"
    other = shelf.parent / "other"
    finish(replace(TEXTS, min_count=2), other)
    models = sorted(path.name for path in (study / "models").iterdir())
    swaps = [(study, a, b) for a, b in itertools.permutations(models, 2)] + [(other, name, name) for name in models]
    for source, theirs, ours in itertools.islice(swaps, limit):
        with _copy(study) as run:
            shutil.rmtree(run / "models" / ours)
            shutil.copytree(source / "models" / theirs, run / "models" / ours)
            attack.injected += 1
            what = f"{theirs} of {source.name} in place of {ours}"
            attack.must_hold(f"{what}: intact", not is_intact(RunDirectory(run)))
            attack.must_refuse(f"{what}: summary", RunDirectory(run).model(ours).summary)
            notices: list[str] = []
            with directory_lock(run):
                repair_run(RunDirectory(run), TEXTS, notices.append)
            attack.must_hold(f"{what}: no word of it", len(notices) == 1 and ours in notices[0])
            attack.must_hold(f"{what}: done", not RunDirectory(run).model(ours).is_done())
    for name in ("data", "result.json"):
        with _copy(study) as run:
            attack.injected += 1
            _copy_over(other / name, run / name)
            if name == "result.json":
                _copy_over(other / "manifest.json", run / "manifest.json")
            attack.must_hold(f"{name} of another study: intact", not is_intact(RunDirectory(run)))
            notices = []
            with directory_lock(run):
                repair_run(RunDirectory(run), TEXTS, notices.append)
            attack.must_hold(f"{name} of another study: no word of it", any("other" in n for n in notices))
    return attack


def figures(shelf: Path, limit: int | None = None) -> Attack:
    """Each number of each result altered by hand, and each line of metrics: named as damaged, and shown nowhere."""
    attack = Attack("hostile: figures altered by hand")
    for kind in KINDS:
        path = shelf / kind / "result.json"
        text = path.read_text("utf-8")
        places = [i for i, letter in enumerate(text) if letter.isdigit()]
        step = max(1, len(places) // limit) if limit else 1
        for place in places[::step]:
            altered = f"{text[:place]}{(int(text[place]) + 1) % 10}{text[place + 1 :]}"
            path.write_text(altered, "utf-8")
            attack.injected += 1
            what = f"{kind}: character {place} of result.json altered"
            listed = attack.attempt(f"{what}: runs", lambda kind=kind: list_runs(shelf / kind))
            attack.must_hold(f"{what}: listed as finished", listed is not None and listed.runs[0].state == "damaged")
            attack.must_refuse(f"{what}: report", lambda kind=kind: _report(shelf, kind))
        path.write_text(text, "utf-8")
    _altered_tables(attack, shelf)
    return attack


def _altered_tables(attack: Attack, shelf: Path) -> None:
    """Files of models, altered: a query leaves them out, and says so."""
    for kind, table, pattern in itertools.product(
        ("study", "followed"), ("metrics", "trace"), ("metrics.jsonl", "trace/*.parquet")
    ):
        for path in sorted((shelf / kind).rglob(pattern)):
            content = path.read_bytes()
            path.write_bytes(content.replace(b"0", b"1", 1) if path.suffix == ".jsonl" else content + b"x")
            attack.injected += 1
            answer = attack.attempt(
                f"{path}: query", lambda kind=kind, table=table: ask(f"SELECT * FROM {table}", shelf / kind)
            )
            used = (table == "metrics") == (path.suffix == ".jsonl")
            noted = answer is not None and any(str(path) in note for note in answer.notes)
            attack.must_hold(f"{path}: used without a word", noted or not used)
            path.write_bytes(content)


def _must_be_refused(attack: Attack, what: str, shelf: Path, kind: str) -> None:
    """Every command that reads or writes the run refuses it, or names it as damaged."""
    listed = attack.attempt(f"{what}: runs", lambda: list_runs(shelf))
    state = {run.run: run.state for run in listed.runs}.get(kind) if listed is not None else None
    attack.must_hold(f"{what}: listed as {state}", state == "damaged")
    attack.must_refuse(f"{what}: report", lambda: _report(shelf, kind))
    attack.must_refuse(f"{what}: lock", lambda: _lock(shelf / kind))
    if kind == "study":
        attack.must_refuse(f"{what}: tokens", lambda: token_table(shelf / kind))
        attack.must_refuse(f"{what}: study", lambda: _open(shelf / kind))
    _read(attack, what, shelf, kind)


def _read(attack: Attack, what: str, shelf: Path, kind: str) -> None:
    attack.attempt(f"{what}: runs", lambda: list_runs(shelf))
    for table in ("metrics", "trace", "agreements"):
        attack.attempt(f"{what}: query {table}", lambda table=table: ask(f"SELECT * FROM {table}", shelf / kind))
    attack.attempt(f"{what}: report", lambda: _report(shelf, kind))
    if kind == "study":
        attack.attempt(f"{what}: tokens", lambda: token_table(shelf / kind))


def _report(shelf: Path, kind: str) -> Path:
    return api.report(shelf / kind, out=shelf.parent / "page.html")


def _lock(run: Path) -> None:
    with directory_lock(run):
        pass


def _open(run: Path) -> None:
    with open_study(TEXTS, run, corpus=corpus_of(TEXTS)):
        pass


def _places(shelf: Path, *, folders: bool) -> Iterator[tuple[str, Path]]:
    """Every own file of every run (and every own folder), with the run's kind."""
    for kind in KINDS:
        for path in sorted((shelf / kind).rglob("*")):
            own = path.relative_to(shelf / kind).parts[0] in OWN_NAMES
            if own and (path.is_file() or (folders and path.is_dir())):
                yield kind, path


@contextmanager
def _replaced(path: Path, aside: Path, make: Callable[[Path], object]) -> Iterator[None]:
    """Something else in place of a file or folder, which is elsewhere meanwhile."""
    os.replace(path, aside)
    try:
        make(path)
        yield
    finally:
        with suppress(FileNotFoundError):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        os.replace(aside, path)


@contextmanager
def _copy(run: Path) -> Iterator[Path]:
    copy = run.parent.parent / "deep" / "er" / "copy"
    shutil.copytree(run, copy)
    try:
        yield copy
    finally:
        shutil.rmtree(copy.parent.parent)


def _copy_over(source: Path, target: Path) -> None:
    if source.is_dir():
        shutil.rmtree(target)
        shutil.copytree(source, target)
    else:
        shutil.copyfile(source, target)


def _content(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return {str(each): each.read_bytes() for each in files}


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            server.bind(f"/proc/self/fd/{folder}/{path.name}")  # a socket's path may have a hundred letters only
        finally:
            os.close(folder)


def _make_sweep(out: Path) -> None:
    clock = RunClock("sweep")
    clock.begin(out)
    studies = tuple(SweepStudy(f"studies/{name}", (name,), "0", "failed", "it broke") for name in ("a", "b"))
    result = SweepResult((Axis("model.projection", ("a", "b")),), studies)
    write_text(out / "grid.toml", "")
    for name in SUMMARIES:
        result.save_table(out / name)
    clock.finish(out, result, SUMMARIES)


def _make_followed(out: Path) -> None:
    words = (("a", "good", "film"), ("a", "bad", "one", "indeed"))
    draw = np.random.default_rng(0)
    run = FollowedDirectory(out)
    run.claim(ProbeTexts("texts", "Model", ("bad", "good"), words, (1, 0)))
    for step in (0, 5):
        rows = [draw.dirichlet(np.ones(len(text))) for text in words]
        quantities = {name: Ragged.of(rows) for name in ("alpha", "beta_logit", "delta")}
        numbers = np.arange(2, dtype=np.int32)
        odds = np.ones(2, dtype=np.float32)
        run.keep(step, Snapshot(quantities, numbers, 0 * numbers, numbers[::-1].copy(), numbers, odds), 0.1)
    run.close()
