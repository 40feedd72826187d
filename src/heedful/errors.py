"""What can go wrong, each with its words.

The command line turns any of these into one red line and exit code 2; anything else is a fault of ours.
"""

from typing import Any


class HeedfulError(Exception):
    """Bad input or a missing piece: the message says what came, where, and what would do."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)  # pickled, whatever arguments a subclass takes


class ConfigError(HeedfulError):
    """A setting that does not exist or cannot hold."""


class DataError(HeedfulError):
    """A corpus that cannot be read, or not as asked."""


class ProjectionError(HeedfulError):
    """Attention scores that no distribution can be made of."""


class TrainingError(HeedfulError):
    """Training that cannot go on."""


class RunError(HeedfulError):
    """A run directory that is missing, unfinished or not ours."""


class DamagedError(RunError):
    """A file that is not what was written: it is named, and never trusted."""

    def __init__(self, path: object, why: str, remedy: str = "delete it and run again") -> None:
        super().__init__(f"{path}: damaged ({why}); {remedy}")
        self.path, self.why = path, why


class DiskFullError(RunError):
    """No room for a file; nothing of it was left behind."""


class MissingExtraError(HeedfulError):
    """An optional dependency that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package}; install it with: pip install 'heedful[{extra}]'")


def _restore(kind: type[HeedfulError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> HeedfulError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(attributes)
    return error
