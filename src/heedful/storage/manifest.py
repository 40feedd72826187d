"""What made an audit or a followed training: the command, versions, commit and time."""

import platform
import subprocess
import time
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from heedful.storage.serialization import Stored

PACKAGES = ("heedful", "torch", "transformers", "captum", "numpy", "scipy")


@dataclass(frozen=True)
class Provenance(Stored):
    """`manifest.json` of an audit. seconds, cpu_seconds: of its last leg, where it was broken off and went on."""

    command: str
    versions: dict[str, str]
    commit: str | None
    finished: str
    seconds: float
    cpu_seconds: float


class Clock:
    """Measures from when it was made.

    >>> Clock().stopped("heedful audit MODEL DATA").command
    'heedful audit MODEL DATA'
    """

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def stopped(self, command: str) -> Provenance:
        """What is true now of the command that is about to end."""
        return Provenance(
            command,
            versions(),
            source_commit(),
            now(),
            round(time.monotonic() - self._wall, 1),
            round(time.process_time() - self._cpu, 1),
        )


def versions() -> dict[str, str]:
    """Of Python and of what is installed.

    >>> list(versions())[:3]
    ['python', 'heedful', 'torch']
    """
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def now() -> str:
    """The time in Greenwich.

    >>> now().endswith("Z")
    True
    """
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def source_commit() -> str | None:
    """The commit of this source tree, where it is one; a package installed within another repository has none."""
    here = Path(__file__)
    try:
        for asked in (["ls-files", "--error-unmatch", here.name], ["rev-parse", "HEAD"]):
            command = ["git", "-C", str(here.parent), *asked]
            answer = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return answer.stdout.strip()
