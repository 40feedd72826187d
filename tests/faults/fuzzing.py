"""One input at a time: it is read, or refused in words, soon, and in little memory."""

import contextlib
import json
import resource
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.errors import HeedfulError

SECONDS, PATIENCE = 60, 600  # of CPU time and by the clock, until an input counts as one that hangs
LENGTH = 9000  # characters of an error; a path may have four thousand
MEMORY = 3 << 30  # bytes of address space that reading one input may take


class HangError(Exception):
    """Something took too long."""


@dataclass
class Tally:
    """How many inputs were tried, and what came of those that did not end as promised."""

    name: str
    tried: int = 0
    refused: int = 0
    failures: list[str] = field(default_factory=list)
    messages: dict[str, str] = field(default_factory=dict)
    began: float = field(default_factory=time.monotonic)

    def attempt(self, what: str, call: Callable[[], Any], *, place: str | None = None) -> Any:
        """Call it: a result without NaN, or a `HeedfulError` that names the place; anything else is a failure."""
        self.tried += 1
        try:
            with limited():
                result = call()
        except HeedfulError as error:
            self.refused += 1
            said = str(error)
            self.messages.setdefault(said, what)
            if not said.strip() or len(said) > LENGTH:
                self.failures.append(f"{what}: an error of {len(said)} characters: {said[:300]}")
            elif place is not None and place not in said:
                self.failures.append(f"{what}: the error does not name {place}: {said[:300]}")
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            last = traceback.extract_tb(error.__traceback__)[-1]
            self.failures.append(f"{what}: {type(error).__name__}: {str(error)[:200]} ({last.filename}:{last.lineno})")
        else:
            if found := not_numbers(result):
                self.failures.append(f"{what}: {found} in the result")
            return result
        return None

    @property
    def seconds(self) -> float:
        """Since the first input."""
        return time.monotonic() - self.began


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """A limit of time (in the main thread) and of memory."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    watched = threading.current_thread() is threading.main_thread()

    def stop(*_: object) -> None:
        raise HangError(f"longer than {SECONDS} s")

    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, hard))
    before = [signal.signal(kind, stop) for kind in (signal.SIGALRM, signal.SIGPROF)] if watched else []
    if watched:
        signal.alarm(PATIENCE)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        if watched:
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
            for kind, handler in zip((signal.SIGALRM, signal.SIGPROF), before, strict=True):
                signal.signal(kind, handler)
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def not_numbers(result: Any) -> str:
    """Where a NaN or an infinity stands in a result's JSON; empty if nowhere."""
    plain = result.to_dict() if hasattr(result, "to_dict") else result
    if not isinstance(plain, dict):
        return ""
    try:
        json.dumps(plain, allow_nan=False, default=lambda value: None)
    except ValueError as error:
        return str(error)
    return ""
