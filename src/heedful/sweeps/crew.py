"""Whoever carries out the studies of a sweep: processes of this machine, or a cluster."""

from typing import Any, Protocol, runtime_checkable

from heedful.errors import HeedfulError
from heedful.execution.worker import Report
from heedful.sweeps.study_job import StudyJob


class AttemptError(HeedfulError):
    """One attempt at a study that failed; died: the process ended under it, rather than the study itself."""

    def __init__(self, reason: str, *, died: bool = False) -> None:
        super().__init__(reason)
        self.died = died


@runtime_checkable
class Crew(Protocol):
    """`width` attempts may be under way at a time, each called from a thread of its own."""

    width: int

    def attempt(self, order: StudyJob, report: Report) -> None:
        """Carry out one study from beginning to end, or raise `AttemptError`; report hears of its progress."""

    def stop(self) -> None:
        """Break off whatever is under way, and begin nothing more."""

    def about(self) -> dict[str, Any]:
        """Where the studies were carried out, for the manifest."""


def as_attempt_error(line: dict[str, Any]) -> AttemptError:
    """The error that a line of progress tells of.

    >>> str(as_attempt_error({"error": "no such file"}))
    'no such file'
    """
    return AttemptError(" ".join(str(line["error"]).split()))
