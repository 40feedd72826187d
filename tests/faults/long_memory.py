"""Ten times the sentence pairs take no more memory: `python -m tests.faults.long_memory`.

What preflight holds is decided by the words kept and the lengths of sentences: its table has at most one cell for each
two words kept and each length, here (200 + 1)² · 21 = 848,421 cells of 16 bytes. 100,000 pairs fill 530,000 of them,
1,000,000 fill 802,000. What a larger corpus may hold beyond that is allowed once, not for each pair.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.scale import generate

from tests.faults.ledger import record

FEWER, MORE = 100_000, 1_000_000
TYPES = 200
ALLOWED = 32 << 10  # kilobytes by which two runs of one program may differ


def main() -> int:
    began = time.monotonic()
    peak(1000)  # compiles what is compiled only once
    held = {pairs: peak(pairs) for pairs in (FEWER, MORE)}
    for pairs, kilobytes in held.items():
        print(f"{pairs:,} pairs: {kilobytes / 1024:,.0f} MB at most", flush=True)
    failures = int(held[MORE] > held[FEWER] + ALLOWED)
    record(
        f"memory: preflight of {FEWER:,} and of {MORE:,} pairs",
        len(held),
        0,
        failures,
        time.monotonic() - began,
        f"python -m {__spec__.name}",
    )
    return failures


def peak(pairs: int) -> int:
    """The most kilobytes that `heedful preflight --stream` held, in one process."""
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "a.src", Path(folder) / "a.tgt"]
        generate(pairs, *files)
        command = [sys.executable, "-m", "heedful", "preflight", *map(str, files), "--stream", "--json"]
        command += ["--max-types", str(TYPES), "--jobs", "1"]
        with (Path(folder) / "said").open("w+") as said:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            assert process.returncode == 0, f"exit code {process.returncode}: {said.read()[-500:]}"
    return used.ru_maxrss


if __name__ == "__main__":
    sys.exit(bool(main()))
