"""A cluster of this process alone, for whoever talks to one: tasks are carried out when they are asked for."""

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any


class LostError(Exception):
    """What a cluster says when it has lost a task."""


class TaskError(LostError):
    """An error of a task's own, with its cause."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class PretendRay:
    """As much of Ray as is asked of it; `nodes` are what it says it has, `cancelled` what it was asked to end."""

    __version__ = "0"
    exceptions = SimpleNamespace(RayError=LostError, RayTaskError=TaskError)

    def __init__(self) -> None:
        self.cancelled: list[Any] = []
        self.left = False

    def is_initialized(self) -> bool:
        return not self.left

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 2.0}}]

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def put(self, value: Any) -> Any:
        return Reference(lambda: value)

    def remote(self, **how: Any) -> Callable[[Callable[..., Any]], Any]:
        def task(function: Callable[..., Any]) -> Any:
            def call(*arguments: Any) -> Any:
                if how.get("num_returns") == "streaming":
                    return References(function(*arguments))
                given = [self.get(each) if isinstance(each, Reference) else each for each in arguments]
                return Reference(lambda: function(*given))

            return SimpleNamespace(remote=call)

        return task

    def get(self, reference: "Reference") -> Any:
        try:
            return reference.value()
        except LostError:
            raise
        except Exception as error:
            raise TaskError(error) from error

    def cancel(self, references: Any, *, force: bool) -> None:
        self.cancelled.append((references, force))

    def shutdown(self) -> None:
        self.left = True


class Reference:
    """What a task will come to."""

    def __init__(self, value: Callable[[], Any]) -> None:
        self.value = value


class References:
    """What a task answers, one thing after the other."""

    def __init__(self, answers: Iterator[Any]) -> None:
        self.answers = answers

    def __iter__(self) -> Iterator[Reference]:
        try:
            for answer in self.answers:
                yield Reference(lambda answer=answer: answer)
        except LostError:
            raise
        except Exception as error:
            raise TaskError(error) from error
