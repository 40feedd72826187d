"""Studies on a disk that is too small, until it grows: `python -m tests.faults.long_disk`; mounting needs root."""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from heedful.errors import DiskFullError
from tests.faults.ledger import record
from tests.faults.small import TEXTS, finish

SHARES = (0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
PAGE = 4096


def main() -> int:
    torch.set_num_threads(1)
    began, full, failures = time.monotonic(), 0, 0
    with tempfile.TemporaryDirectory() as made:
        expected = finish(TEXTS, Path(made) / "undisturbed")
        files = [path for path in Path(made).rglob("*") if path.is_file()]
        used = sum(-(-path.stat().st_size // PAGE) * PAGE for path in files)
        for share in SHARES:
            disk = Path(made) / f"disk-{share}"
            disk.mkdir()
            if not _mount(disk, int(used * share)):
                print("a small disk cannot be mounted here (that needs root): left out")
                return 0
            try:
                said = _until_full(disk / "run")
                full += bool(said)
                left = [str(path) for name in (".*.part", "lock.json", "heartbeat.json") for path in disk.rglob(name)]
                _mount(disk, 4 * used, "remount,")
                same = finish(TEXTS, disk / "run") == expected
                well = said is not None and "the disk is full" in said and "are free in" in said and not left and same
                print(f"{share:.0%} of the room: {said}; {'finished' if well else f'FAILED {left} {same}'}", flush=True)
                failures += not well
            finally:
                subprocess.run(["umount", str(disk)], check=True)
    record(
        "full disk: a study on a small tmpfs",
        len(SHARES),
        full,
        failures,
        time.monotonic() - began,
        f"python -m {__spec__.name}",
    )
    return failures


def _until_full(out: Path) -> str | None:
    try:
        finish(TEXTS, out)
    except DiskFullError as error:
        return str(error)
    return None


def _mount(disk: Path, size: int, how: str = "") -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"{how}size={max(size, PAGE)}", "tmpfs", str(disk)]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


if __name__ == "__main__":
    sys.exit(bool(main()))
