"""Folders of runs with a file missing, foreign, cut or flipped: what reads them answers or refuses."""

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from hypothesis import strategies as st

from heedful import api
from heedful.config import study_preset
from heedful.followed.result import FollowedDirectory
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import RunDirectory
from heedful.studies.study import run_study
from heedful.studies.token_table import token_table
from tests.conftest import tiny_corpus
from tests.faults import horrors
from tests.faults.fuzzing import Tally
from tests.faults.mutations import each, mutated, values

Harm = tuple[str, Callable[[Path], object]]
FOREIGN = (b"{}", b"[]", b"null", b"0", b'"x"', b'{"a": NaN}', b"[" * 3000, b"PAR1PAR1", b"\xff\xfe", bytes(8), b"\n")


def fuzz(rounds: int, run: Path | None = None) -> Tally:
    """A finished study (that one, or a new one), copied and harmed so many times as hypothesis draws."""
    tally = Tally("fuzz-runs")
    with tempfile.TemporaryDirectory() as made:
        whole, copy = run or _study(Path(made) / "whole"), Path(made) / "copy"
        files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file())

        def harm(drawn: tuple[Path, Harm]) -> None:
            harmed, (name, act) = drawn
            shutil.copytree(whole, copy)
            act(copy / harmed)
            _read(tally, f"{harmed} {name}", copy)
            shutil.rmtree(copy)

        def harms(file: Path) -> st.SearchStrategy[tuple[Path, Harm]]:
            return st.tuples(st.just(file), _harms((whole / file).read_bytes()))

        each(rounds, st.sampled_from(files).flatmap(harms), harm)
        for name, place in horrors.places(Path(made), ""):
            _read(tally, name, place)
    return tally


def _read(tally: Tally, what: str, folder: Path) -> None:
    run = RunDirectory(folder)
    tally.attempt(f"{what}: settings", run.config)
    tally.attempt(f"{what}: result", lambda: StudyResult.load(run.result_path))
    tally.attempt(f"{what}: report", lambda: api.report(folder, out=folder.parent / "page.html"))
    tally.attempt(f"{what}: tokens", lambda: token_table(folder))
    tally.attempt(f"{what}: followed", lambda: FollowedDirectory(folder).probe())


def _harms(content: bytes) -> st.SearchStrategy[Harm]:
    """What may happen to a file: each a name and an act."""

    def written(name: str, content: bytes) -> Harm:
        return name, lambda path: path.write_bytes(content)

    def instead(make: Callable[[Path], object]) -> Callable[[Path], object]:
        return lambda path: (path.unlink(), make(path))

    gone: list[Harm] = [
        ("missing", lambda path: path.unlink()),
        ("a folder", instead(lambda path: path.mkdir())),
        ("a loop", instead(lambda path: path.symlink_to(path.name))),
    ]
    foreign = st.sampled_from(FOREIGN) | values.map(lambda value: json.dumps(value).encode())
    return st.one_of(
        st.sampled_from(gone),
        foreign.map(lambda content: written(f"{content[:10]!r}", content)),
        mutated(content).map(lambda content: written("mutated", content)),
    )


def _study(out: Path) -> Path:
    corpus = tiny_corpus()
    run_study(replace(study_preset(corpus.name, "smoke"), min_count=2), out, corpus=corpus, jobs=1, device="cpu")
    return out
