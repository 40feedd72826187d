"""What a subject yields: a race against a peer, a point on a curve of cost, or a figure that has a limit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """The same work by us and by a peer; `share` is the part of it that the peer was given (its time is scaled).

    account: measures what stops us, told the ratio that was reached; asked only where the bar was missed.
    cpu_elsewhere: the seconds of processor time that our side has spent in other processes so far.
    """

    work: str
    peer: str
    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    bar: float
    share: float = 1.0
    account: Callable[[float], str] | None = None
    cpu_elsewhere: Callable[[], float] = lambda: 0.0


@dataclass(frozen=True)
class Point:
    """One size of one kind of work, for the table of how cost grows."""

    work: str
    size: str
    run: Callable[[], Any]


@dataclass(frozen=True)
class Limit:
    """A figure that was measured, and what it must be `at most` or `at least`."""

    work: str
    unit: str
    value: float
    bar: float
    side: str

    @property
    def ok(self) -> bool:
        return self.value <= self.bar if self.side == "at most" else self.value >= self.bar
