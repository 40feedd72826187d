"""What is said of a sweep while it goes on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

EventKind = Literal["kept", "waiting", "started", "progress", "finished", "retry", "failed"]


@dataclass(frozen=True)
class Event:
    """Something that happened to one study of a sweep.

    place: where it stands on the axes. line: of progress. figures: main figures of a study that is finished. error:
    why an attempt failed. attempt: counted from 1.
    """

    kind: EventKind
    study: str
    place: tuple[str, ...]
    attempt: int = 1
    line: dict[str, Any] | None = None
    figures: str = ""
    error: str = ""


OnEvent = Callable[[Event], None]
