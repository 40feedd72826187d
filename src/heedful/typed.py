"""Plain values, as files have them, to and from dataclasses, whose annotations say what is right."""

import functools
import hashlib
import json
import math
import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from heedful.errors import ConfigError

T = TypeVar("T")

# A setting that came after results were stored; see `content`.
LATER = {"later": True}


def content(value: Any) -> Any:
    """What decides a result, as plain values: dataclasses become mappings, tuples lists.

    A setting with the metadata `LATER` is left out while it has its default, which must mean what was done before there
    was such a setting: what was measured then still stands.

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
            raise ConfigError(f"{where}: {f.name} is missing; it must be said")
    try:
        return kind(**values)
    except (ConfigError, TypeError) as error:
        raise ConfigError(f"{where}: {error}") from None


def known(name: str, names: Iterable[str], where: str) -> None:
    """Refuse a name that is not among those there are, and give the nearest of them.

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
    """A plain value as its annotation wants it: a list as a tuple, a table as a dataclass, an int as a float.

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
    """The annotations of a dataclass, kept: a result has thousands of dataclasses, of a dozen kinds.

    >>> from heedful.config import ProxyConfig
    >>> hints_of(ProxyConfig)["width"]
    <class 'int'>
    """
    return get_type_hints(kind)


def short(text: str) -> str:
    """As much of what somebody wrote as an error can quote.

    >>> short("a" * 300) == "a" * 199 + "…"
    True
    """
    return text if len(text) <= 200 else f"{text[:199]}…"
