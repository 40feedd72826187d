"""Serialization: dataclasses to and from plain values, JSON and TOML, checked against their annotations."""

import functools
import hashlib
import json
import math
import tomllib
import types
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, fields, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import tomli_w

from heedful.errors import ConfigError, MissingExtraError
from heedful.storage.atomic_files import read_json, without_nan, write_json
from heedful.storage.run_files import read_bounded

if TYPE_CHECKING:
    import pandas

T = TypeVar("T")

# Metadata of a setting that was added after results were stored; see `content`.
LATER = {"later": True}


def content(value: Any) -> Any:
    """What determines a result, as plain values: dataclasses become mappings, tuples lists.

    A setting with the metadata `LATER` is left out while it has its default. The default must be what was done before
    the setting existed, so that results stored then keep their digest.

    >>> from heedful.config import TrainConfig
    >>> content({"train": TrainConfig(steps=1, evaluate_at=(0, 1))})["train"]["evaluate_at"]
    [0, 1]
    """
    if is_dataclass(value) and not isinstance(value, type):
        kept = (f for f in fields(value) if not (f.metadata.get("later") and getattr(value, f.name) == f.default))
        return {f.name: content(getattr(value, f.name)) for f in kept}
    if isinstance(value, Mapping):
        return {str(k): content(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [content(v) for v in value]
    return value


def digest(config: Any) -> str:
    """SHA-256 of a configuration's content, independent of the order of its keys.

    >>> from heedful.config import ModelConfig
    >>> digest(ModelConfig()) == digest(ModelConfig(hidden=256))
    True
    """
    plain = json.dumps(content(config), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()


def from_mapping(kind: type[T], mapping: Mapping[str, Any], *, where: str = "config") -> T:
    """Build a configuration of the given kind from plain values, checking every name and type.

    >>> from heedful.config import TrainConfig
    >>> from_mapping(TrainConfig, {"step": 3})
    Traceback (most recent call last):
      ...
    heedful.errors.ConfigError: config: unknown setting 'step'; did you mean 'steps'?
    """
    hints = hints_of(kind)  # type: ignore[arg-type]
    names = [f.name for f in fields(kind)]  # type: ignore[arg-type]
    values = {}
    for key, value in mapping.items():
        known(key, names, where)
        values[key] = coerce(value, hints[key], f"{where}: {key}")
    for f in fields(kind):  # type: ignore[arg-type]
        if f.name not in values and f.default is MISSING and f.default_factory is MISSING:
            raise ConfigError(f"{where}: {f.name} is missing; it has no default")
    try:
        return kind(**values)
    except (ConfigError, TypeError) as error:
        raise ConfigError(f"{where}: {error}") from None


def known(name: str, names: Iterable[str], where: str) -> None:
    """Refuse an unknown name, with the nearest known one.

    >>> known("step", ["steps", "batch_size"], "study.toml")
    Traceback (most recent call last):
      ...
    heedful.errors.ConfigError: study.toml: unknown setting 'step'; did you mean 'steps'?
    """
    names = list(names)
    if name not in names:
        near = get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"the settings are {', '.join(names)}"
        raise ConfigError(f"{where}: unknown setting {short(repr(name))}; {hint}")


def coerce(value: Any, kind: Any, where: str) -> Any:
    """A plain value as its annotation requires: a list as a tuple, a table as a dataclass, an int as a float.

    >>> coerce([1, 2], tuple[float, ...], "study.toml: rates")
    (1.0, 2.0)
    """
    if kind is Any:
        return value
    origin, options = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in options:
            return None
        return coerce(value, next(o for o in options if o is not type(None)), where)
    if origin is Literal:
        if value in options:
            return value
        raise ConfigError(f"{where}: {short(repr(value))} is not one of {', '.join(map(repr, options))}")
    if origin is tuple:
        if isinstance(value, list | tuple):
            return tuple(coerce(v, options[0], where) for v in value)
    elif isinstance(kind, type) and is_dataclass(kind) and isinstance(value, Mapping):
        return from_mapping(kind, value, where=where)
    elif kind is float and value is None:
        return math.nan  # JSON has no NaN: null stands for it
    elif kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ConfigError(f"{where}: {short(repr(value))} is too large a number") from None
    elif origin is dict and isinstance(value, Mapping):
        return dict(value)
    elif kind in (int, str, bool) and type(value) is kind:
        return value
    wanted = "a list" if origin is tuple else "a table" if is_dataclass(kind) else f"of type {kind.__name__}"
    raise ConfigError(f"{where}: {short(repr(value))} must be {wanted}")


@functools.cache
def hints_of(kind: type) -> dict[str, Any]:
    """The annotations of a dataclass, cached: a result has thousands of dataclasses, of a dozen kinds.

    >>> from heedful.config import ProxyConfig
    >>> hints_of(ProxyConfig)["width"]
    <class 'int'>
    """
    return get_type_hints(kind)


def short(text: str) -> str:
    """At most 200 characters of a text, for an error message.

    >>> short("a" * 300) == "a" * 199 + "…"
    True
    """
    return text if len(text) <= 200 else f"{text[:199]}…"


S = TypeVar("S", bound="Stored")


class Stored:
    """A dataclass that saves itself as JSON and loads itself again.

    >>> import tempfile
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Result(Stored):
    ...     share: float
    >>> path = Path(tempfile.mkdtemp()) / "result.json"
    >>> Result(0.5).save(path)
    >>> Result.load(path), Result(float("nan")).to_dict()
    (Result(share=0.5), {'share': None})
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; NaN becomes `None`."""
        plain: dict[str, Any] = without_nan(asdict(self))
        return plain

    def save(self, path: Path | str) -> None:
        """Write as JSON, atomically."""
        write_json(Path(path), self.to_dict())

    @classmethod
    def load(cls: type[S], path: Path | str) -> S:
        """Read what `save` wrote."""
        return from_mapping(cls, read_json(Path(path)), where=str(path))


def frame(rows: Sequence[dict[str, Any]], columns: Sequence[str] | None = None) -> "pandas.DataFrame":
    """Rows as a pandas DataFrame; pandas is an optional dependency."""
    try:
        import pandas
    except ImportError:
        raise MissingExtraError("pandas", "demo", "to_pandas()") from None
    return pandas.DataFrame(rows, columns=None if columns is None else list(columns))


MAX_BYTES = 1 << 24  # of a file of settings


def from_toml(kind: type[T], path: Path) -> T:
    """Read a configuration of the given kind; an unknown key is an error that names the nearest right one."""
    return from_mapping(kind, read_toml(path), where=str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file; every error names the file."""
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"{path}: not a file; settings are read from a TOML file")
        if path.stat().st_size > MAX_BYTES:
            raise ConfigError(f"{path}: {path.stat().st_size:,} bytes are too many for settings; is it the right file?")
        return tomllib.loads(read_bounded(path, MAX_BYTES, follow=True).decode("utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; check its name and folder") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{short(str(path))}: not TOML that can be read: {short(str(error))}") from None


def to_toml(config: Any) -> str:
    """A configuration, or a mapping of plain values, as TOML; what is `None` is left out.

    >>> from heedful.config import TrainConfig
    >>> print(to_toml(TrainConfig(steps=2, evaluate_at=(0, 2))).splitlines()[0])
    steps = 2
    """
    return tomli_w.dumps(_without_none(asdict(config) if is_dataclass(config) else config))  # type: ignore[arg-type]


def _without_none(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _without_none(v) for k, v in value.items() if v is not None}
    return [_without_none(v) for v in value] if isinstance(value, list | tuple) else value
