"""Exceptions of heedful.

The command line prints any `HeedfulError` as one red line and exits with code 2. Any other exception is a bug.
"""

from typing import Any


class HeedfulError(Exception):
    """Base class: bad input or something missing. The message says what came, where, and what would work."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)  # pickled, whatever arguments a subclass takes


class ConfigError(HeedfulError):
    """An unknown setting, or a value that is not allowed."""


class DataError(HeedfulError):
    """Data that cannot be read, or not in the requested way."""


class ProjectionError(HeedfulError):
    """Attention scores that cannot be turned into a distribution."""


class TrainingError(HeedfulError):
    """Training that cannot continue."""


class RunError(HeedfulError):
    """A run directory that is missing, unfinished or not a run of heedful."""


class DamagedError(RunError):
    """A file whose content is not what was written; it is never used."""

    def __init__(self, path: object, why: str, remedy: str = "delete it and run again") -> None:
        super().__init__(f"{path}: damaged ({why}); {remedy}")
        self.path, self.why = path, why


class DiskFullError(RunError):
    """No space for a file; nothing of it was left behind."""


class MissingExtraError(HeedfulError):
    """An optional dependency that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package {package}; install it with: pip install 'heedful[{extra}]'")


def _restore(kind: type[HeedfulError], arguments: tuple[Any, ...], attributes: dict[str, Any]) -> HeedfulError:
    error = kind.__new__(kind, *arguments)
    error.__dict__.update(attributes)
    return error
