"""Every kind of file of a run damaged in every way, and mended: `python -m tests.faults.long_damage`."""

import shutil
import sys
import tempfile
import time
from pathlib import Path

import torch

from heedful.studies.run_directory import RunDirectory, is_intact
from tests.faults.damage import FINISHED, HARMS, UNFINISHED, last
from tests.faults.ledger import record
from tests.faults.small import TEXTS, die_at_rename, finish


def main() -> int:
    torch.set_num_threads(1)
    failures = 0
    with tempfile.TemporaryDirectory() as made:
        whole, broken_off = Path(made) / "whole", Path(made) / "broken-off"
        expected = finish(TEXTS, whole)
        assert die_at_rename(TEXTS, broken_off, 27, before=False)
        for name, source, kinds in (("finished", whole, FINISHED), ("unfinished", broken_off, UNFINISHED)):
            began, tried, failed = time.monotonic(), 0, 0
            for kind in kinds:
                for harm in HARMS:
                    tried += 1
                    failed += not mended(source, Path(made) / "run", kind, harm, expected)
            record(
                f"damage: files of a run that is {name}",
                tried,
                tried,
                failed,
                time.monotonic() - began,
                f"python -m {__spec__.name}",
            )
            failures += failed
    return failures


def mended(source: Path, run: Path, kind: str, harm: str, expected: bytes) -> bool:
    """Whether a copy of a run with one damaged file names it, sets it aside and ends with the same bytes."""
    shutil.copytree(source, run)
    harmed = last(run, kind)
    HARMS[harm](harmed)
    notices: list[str] = []
    same = finish(TEXTS, run, notices) == expected
    named = any(str(harmed) in notice and "damaged-1" in notice for notice in notices)
    well = same and named and is_intact(RunDirectory(run))
    print(f"{kind} {harm}: {'mended' if well else f'FAILED, same: {same}, said: {notices}'}", flush=True)
    shutil.rmtree(run)
    return well


if __name__ == "__main__":
    sys.exit(bool(main()))
