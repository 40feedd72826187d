"""Folders of runs with a file missing, foreign, cut or flipped: what reads them answers or refuses."""

import random
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from heedful import api
from heedful.audits.followed_run import FollowedRun
from heedful.budgets import study_preset
from heedful.studies.result import StudyResult
from heedful.studies.run import Run
from heedful.studies.study import run_study
from heedful.studies.tokens import token_table
from tests.conftest import tiny_corpus
from tests.faults import horrors
from tests.faults.fuzzing import Tally

FOREIGN = (b"{}", b"[]", b"null", b"0", b'"x"', b'{"a": NaN}', b"[" * 3000, b"PAR1PAR1", b"\xff\xfe", bytes(8), b"\n")


def fuzz(rounds: int, seed: int = 0, run: Path | None = None) -> Tally:
    """A finished study (that one, or a new one), copied and harmed so many times."""
    tally, draw = Tally("fuzz-runs"), random.Random(seed)
    with tempfile.TemporaryDirectory() as made:
        whole = run or _study(Path(made) / "whole")
        files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())
        for i in range(rounds):
            copy = Path(made) / "copy"
            shutil.copytree(whole, copy)
            harmed = draw.choice(files)
            what = _harm(copy / harmed, draw)
            _read(tally, f"{i}: {harmed} {what}", copy)
            shutil.rmtree(copy)
        for name, place in horrors.places(Path(made), ""):
            _read(tally, name, place)
    return tally


def _read(tally: Tally, what: str, folder: Path) -> None:
    run = Run(folder)
    tally.attempt(f"{what}: settings", run.config)
    tally.attempt(f"{what}: result", lambda: StudyResult.load(run.result_path))
    tally.attempt(f"{what}: report", lambda: api.report(folder, out=folder.parent / "page.html"))
    tally.attempt(f"{what}: tokens", lambda: token_table(folder))
    tally.attempt(f"{what}: followed", lambda: FollowedRun(folder).probe())


def _harm(path: Path, draw: random.Random) -> str:
    action = draw.randrange(5)
    content = path.read_bytes()
    path.unlink()
    if action == 0:
        return "missing"
    if action == 1:
        path.mkdir()
        return "a folder"
    if action == 2:
        path.write_bytes(foreign := draw.choice(FOREIGN))
        return f"{foreign[:10]!r}"
    if action == 3:
        path.symlink_to(path.name)
        return "a loop"
    path.write_bytes(horrors.mutated(content, draw))
    return "mutated"


def _study(out: Path) -> Path:
    corpus = tiny_corpus()
    run_study(replace(study_preset(corpus.name, "smoke"), min_count=2), out, corpus=corpus, jobs=1, device="cpu")
    return out
