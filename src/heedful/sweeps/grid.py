"""The grid of a sweep: settings that all its studies share, and axes of settings in which they differ."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

from heedful.config import TASKS, StudyConfig, TrainConfig, first_seeds, flat, study_preset
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
    base = flat(mapping.get("base", {}))
    axes = _axes(mapping.get("grid", {}), where)
    _refuse_overlap(base, axes, where)
    size = math.prod(len(values) for _, values in axes)
    if size > MAX_STUDIES:
        raise ConfigError(f"{where}: {size:,} studies; a grid has {MAX_STUDIES:,} at most")
    points = []
    for combination in product(*(values for _, values in axes)):
        settings = dict(base)
        for (name, _), value in zip(axes, combination, strict=True):
            settings |= flat({name: value})
        place = tuple(_label(value) for value in combination)
        at = ", ".join(f"{name} = {label}" for (name, _), label in zip(axes, place, strict=True))
        here = f"{where} ({at})" if at else where
        with _naming(here):
            points.append(GridPoint(place, _config(settings, here)))
    _refuse_duplicates(points, where)
    return Grid(tuple(Axis(name, tuple(_label(v) for v in values)) for name, values in axes), tuple(points))


def _axes(table: Mapping[str, Any], where: str) -> list[tuple[str, list[Any]]]:
    axes = []
    for name, values in flat(table).items():
        if not isinstance(values, list | tuple) or not values:
            raise ConfigError(f"{where}: grid: {name} is {values!r}; it must be a list of one value or more")
        axes.append((name, list(values)))
    return axes


def _config(settings: Mapping[str, Any], where: str) -> StudyConfig:
    """The preset that the settings choose, changed by the other settings."""
    for name in settings:
        _check(name)
    if "data" not in settings:
        raise ConfigError('no data; [base] or [grid] must say which, such as data = "rotten-tomatoes"')
    chosen = {name: settings.get(name) for name in _PRESET}
    for name, value in chosen.items():
        if value is not None and not isinstance(value, str):
            raise ConfigError(f"{name}: {value!r} must be of type str")
    data, target = str(chosen["data"]), chosen["target"]
    task = chosen["task"] or task_of(data, target)
    if task not in TASKS:
        raise ConfigError(f"task: {task!r} is not one of {', '.join(map(repr, TASKS))}")
    preset = study_preset(data, str(chosen["budget"] or "quick"), task)
    plain = content(preset)
    for name, value in _with_steps(preset, settings):
        _put(plain, name, value)
    return from_mapping(StudyConfig, plain, where=where)


@contextmanager
def _naming(where: str) -> Iterator[None]:
    """Every error says where in the grid it is."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(str(error) if str(error).startswith(where) else f"{where}: {error}") from None


def _with_steps(preset: StudyConfig, settings: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """All settings; where only the length of a training changes, its evaluation steps change with it."""
    trainings: dict[str, TrainConfig] = {"train": preset.train, "proxy.train": preset.proxy.train}
    for name, value in settings.items():
        table, _, last = name.rpartition(".")
        if last == "steps" and table in trainings and f"{table}.evaluate_at" not in settings:
            if type(value) is not int or value < 1:
                raise ConfigError(f"{name}: {value!r} must be a whole number, 1 or more")
            yield f"{table}.evaluate_at", list(trainings[table].changed(steps=value).evaluate_at)
        yield name, list(first_seeds(value)) if name == "seeds" and type(value) is int else value


_NAMES = tuple(flat(asdict(StudyConfig("data"))))  # of all settings, dotted


def _check(name: str) -> None:
    """Raise an error for a dotted name that is neither a setting nor a table of settings."""
    if name in _NAMES or any(known.startswith(f"{name}.") for known in _NAMES):
        return
    setting = next((known for known in _NAMES if name.startswith(f"{known}.")), None)
    hint = f"{setting!r} has no settings of its own" if setting else _nearest(name, _NAMES)
    raise ConfigError(f"unknown setting {name!r}; {hint}")


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
    for name, _ in axes:
        if any(other.startswith(f"{name}.") for other, _ in axes):
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
        return ", ".join(f"{name} {_label(inner)}" for name, inner in flat(value).items())
    if isinstance(value, list | tuple):
        return ", ".join(_label(inner) for inner in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
