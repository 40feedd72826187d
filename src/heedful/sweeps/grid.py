"""The grid of a sweep: settings that all its studies share, and axes of settings in which they differ."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any, get_type_hints

from heedful.config import StudyConfig, TrainConfig, first_seeds, study_preset
from heedful.data.loading import task_of
from heedful.errors import ConfigError
from heedful.storage.atomic_files import valid_path
from heedful.storage.serialization import content, digest, from_mapping, read_toml

TABLES = ("base", "grid")
MAX_STUDIES = 10_000  # in one grid
_PRESET = ("data", "budget", "task", "target")  # settings that choose the preset; the others change it
_DIGEST_LETTERS = 12


@dataclass(frozen=True)
class Axis:
    """A setting, or a table of settings, and the values it takes, as shown to people."""

    name: str
    values: tuple[str, ...]


@dataclass(frozen=True)
class GridPoint:
    """One study of a grid: its value on each axis, and the whole config."""

    place: tuple[str, ...]
    config: StudyConfig

    @property
    def folder(self) -> str:
        """The study's folder; the digest of its settings is part of the name.

        >>> GridPoint((), StudyConfig("some/reviews.csv")).folder.rpartition("-")[0]
        'reviews'
        """
        name = Path(self.config.data).name.split(".")[0].replace(":", "-")
        safe = "".join(c if c.isalnum() or c in "-_" else "-" for c in name)[:60]
        return f"{safe or 'study'}-{digest(self.config)[:_DIGEST_LETTERS]}"


@dataclass(frozen=True)
class Grid:
    """The axes of a sweep and all its studies; the last axis varies fastest."""

    axes: tuple[Axis, ...]
    points: tuple[GridPoint, ...]


def read_grid(path: Path | str) -> Grid:
    """The grid of a TOML file with the tables `[base]` and `[grid]`."""
    path = Path(path)
    if not valid_path(path, ConfigError).exists():
        raise ConfigError(f"{path}: no such file; a grid is a TOML file with the tables [base] and [grid]")
    return grid_of(read_toml(path), where=str(path))


def grid_of(mapping: Mapping[str, Any], *, where: str = "grid") -> Grid:
    """The grid of plain values: `base` holds settings of `StudyConfig`, `grid` a list of values for each axis.

    A key is a setting, a dotted setting, or a table of settings whose values are tables. A shorter or longer training
    is evaluated at the preset's steps as far as they go.

    >>> made = grid_of({"base": {"data": "sst"}, "grid": {"model.hidden": [16, 32], "seeds": [2, 3]}})
    >>> [(point.place, point.config.model.hidden, point.config.seeds) for point in made.points][1]
    (('16', '3'), 16, (0, 1, 2))
    """
    for name, table in mapping.items():
        if name not in TABLES:
            raise ConfigError(f"{where}: unknown table {name!r}; {_nearest(name, TABLES)}")
        if not isinstance(table, Mapping):
            raise ConfigError(f"{where}: {name} must be a table, [{name}]")
    base = _flat(mapping.get("base", {}))
    axes = _axes(mapping.get("grid", {}), where)
    _refuse_overlap(base, axes, where)
    size = 1
    for _, values in axes:
        size *= len(values)
    if size > MAX_STUDIES:
        raise ConfigError(f"{where}: {size:,} studies; a grid has {MAX_STUDIES:,} at most")
    points = []
    for combination in product(*(values for _, values in axes)):
        settings = dict(base)
        for (name, _), value in zip(axes, combination, strict=True):
            settings |= _flat({name: value})
        place = tuple(_label(value) for value in combination)
        at = ", ".join(f"{name} = {label}" for (name, _), label in zip(axes, place, strict=True))
        points.append(GridPoint(place, _config(settings, f"{where} ({at})" if at else where)))
    _refuse_duplicates(points, where)
    return Grid(tuple(Axis(name, tuple(_label(v) for v in values)) for name, values in axes), tuple(points))


def _axes(table: Mapping[str, Any], where: str) -> list[tuple[str, list[Any]]]:
    axes = []
    for name, values in _flat(table).items():
        if not isinstance(values, list | tuple) or not values:
            raise ConfigError(f"{where}: grid: {name} is {values!r}; it must be a list of one value or more")
        axes.append((name, list(values)))
    return axes


def _flat(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Nested tables as dotted names."""
    flat: dict[str, Any] = {}
    for name, value in table.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{before}{name}.")
        else:
            flat[f"{before}{name}"] = value
    return flat


def _config(settings: Mapping[str, Any], where: str) -> StudyConfig:
    """The preset that the settings choose, changed by the other settings."""
    for name in settings:
        _check(name, where)
    if "data" not in settings:
        raise ConfigError(f'{where}: no data; [base] or [grid] must say which, such as data = "rotten-tomatoes"')
    chosen = {name: settings.get(name) for name in _PRESET}
    for name, value in chosen.items():
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{where}: {name}: {value!r} must be of type str")
    data, target = str(chosen["data"]), chosen["target"]
    task = chosen["task"] or task_of(data, target)
    if task not in ("classification", "translation"):
        raise ConfigError(f"{where}: task: {task!r} is not one of 'classification', 'translation'")
    try:
        preset = study_preset(data, str(chosen["budget"] or "quick"), task)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    plain = content(preset)
    for name, value in _with_steps(preset, settings, where):
        _put(plain, name, value)
    try:
        return from_mapping(StudyConfig, plain, where=where)
    except ConfigError as error:
        raise ConfigError(str(error) if str(error).startswith(where) else f"{where}: {error}") from None


def _with_steps(preset: StudyConfig, settings: Mapping[str, Any], where: str) -> Iterator[tuple[str, Any]]:
    """All settings; where only the length of a training changes, its evaluation steps change with it."""
    trainings: dict[str, TrainConfig] = {"train": preset.train, "proxy.train": preset.proxy.train}
    for name, value in settings.items():
        table, _, last = name.rpartition(".")
        if last == "steps" and table in trainings and f"{table}.evaluate_at" not in settings:
            if type(value) is not int or value < 1:
                raise ConfigError(f"{where}: {name}: {value!r} must be a whole number, 1 or more")
            yield f"{table}.evaluate_at", list(trainings[table].changed(steps=value).evaluate_at)
        if name == "seeds" and type(value) is int:
            try:
                yield name, list(first_seeds(value))
            except ConfigError as error:
                raise ConfigError(f"{where}: {error}") from None
        else:
            yield name, value


def _check(name: str, where: str) -> None:
    """Raise an error for a dotted name that is not a setting."""
    kind: Any = StudyConfig
    parts = name.split(".")
    for i, part in enumerate(parts):
        known = [f.name for f in fields(kind)] if is_dataclass(kind) else []
        if part not in known:
            before = ".".join(parts[:i])
            if not known:
                raise ConfigError(f"{where}: unknown setting {name!r}; {before!r} has no settings of its own")
            raise ConfigError(f"{where}: unknown setting {name!r}; {_nearest(name, _names(StudyConfig))}")
        kind = get_type_hints(kind)[part]


def _names(kind: Any, before: str = "") -> list[str]:
    """The dotted names of all settings."""
    names = []
    hints = get_type_hints(kind)
    for f in fields(kind):
        inner = hints[f.name]
        names += _names(inner, f"{before}{f.name}.") if is_dataclass(inner) else [f"{before}{f.name}"]
    return names


def _nearest(name: str, known: Sequence[str]) -> str:
    near = get_close_matches(name, known, n=1) or [
        dotted for dotted in known if get_close_matches(name.rpartition(".")[2], [dotted.rpartition(".")[2]])
    ]
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"


def _put(plain: dict[str, Any], name: str, value: Any) -> None:
    *tables, last = name.split(".")
    for table in tables:
        plain = plain[table]
    plain[last] = value


def _refuse_overlap(base: Mapping[str, Any], axes: Sequence[tuple[str, Any]], where: str) -> None:
    names = [name for name, _ in axes]
    for name in names:
        others = [other for other in names if other != name]
        if any(other.startswith(f"{name}.") for other in others):
            raise ConfigError(f"{where}: grid: {name!r} and a setting within it are both axes; join them in one")
        if name in base:
            raise ConfigError(f"{where}: {name!r} is in [base] and in [grid]; leave it out of one")


def _refuse_duplicates(points: Sequence[GridPoint], where: str) -> None:
    seen: dict[str, GridPoint] = {}
    for point in points:
        other = seen.setdefault(digest(point.config), point)
        if other is not point:
            both = f"({', '.join(other.place)}) and ({', '.join(point.place)})"
            raise ConfigError(f"{where}: {both} are the same study; leave one out")


def _label(value: Any) -> str:
    """A value of an axis as shown to people.

    >>> _label({"projection": "sparsegen", "projection_parameter": 0.5}), _label([0, 1])
    ('projection sparsegen, projection_parameter 0.5', '0, 1')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_label(inner)}" for name, inner in _flat(value).items())
    if isinstance(value, list | tuple):
        return ", ".join(_label(inner) for inner in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
