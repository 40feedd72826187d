"""Settings as TOML: read with the file named in every error, and written."""

import json
import tomllib
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import ConfigError
from heedful.typed import from_mapping, short

T = TypeVar("T")

LARGEST = 1 << 24  # bytes of a file of settings


def from_toml(kind: type[T], path: Path) -> T:
    """Read a configuration of the given kind; an unknown key is an error that names the nearest right one."""
    return from_mapping(kind, read_toml(path), where=str(path))


def read_toml(path: Path) -> dict[str, Any]:
    """The content of a TOML file, with the file named in every error."""
    try:
        if path.exists() and not path.is_file():
            raise ConfigError(f"{path}: not a file; settings are read from a TOML file")
        if path.stat().st_size > LARGEST:
            raise ConfigError(f"{path}: {path.stat().st_size:,} bytes are too many for settings; is it the right file?")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; check its name and folder") from None
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(f"{short(str(path))}: not TOML that can be read: {short(str(error))}") from None


def to_toml(config: Any) -> str:
    """A configuration as TOML; settings that are `None` are left out.

    >>> from heedful.config import TrainConfig
    >>> print(to_toml(TrainConfig(steps=2, evaluate_at=(0, 2))).splitlines()[0])
    steps = 2
    """
    plain, tables = [], []
    for f in fields(config):
        value = getattr(config, f.name)
        if is_dataclass(value):
            tables.append((f.name, value))
        elif value is not None:
            plain.append(f"{f.name} = {toml_value(value)}")
    lines = plain
    for name, table in tables:
        lines += ["", f"[{name}]"]
        for line in to_toml(table).splitlines():
            lines.append(f"[{name}.{line[1:]}" if line.startswith("[") else line)
    return "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    """A value as TOML writes it.

    >>> toml_value(("a", True, 1.5))
    '["a", true, 1.5]'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, tuple | list):
        return f"[{', '.join(toml_value(v) for v in value)}]"
    return repr(value)
