"""What was asked for, however it was said: names, options and files become settings."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from heedful.budgets import study_preset
from heedful.config import StudyConfig, TaskName, first_seeds, with_overrides
from heedful.data.open import task_of
from heedful.errors import ConfigError

if TYPE_CHECKING:
    from heedful.studies.spreading import Place


def study_config(
    data: str,
    *,
    budget: str = "quick",
    seeds: int | tuple[int, ...] | None = None,
    task: TaskName | None = None,
    **settings: Any,
) -> StudyConfig:
    """The preset of a budget with the given settings changed; a mapping changes only what it names.

    >>> study_config("sst", seeds=3).seeds, study_config("sst", train={"steps": 60}).train.evaluate_at
    ((0, 1, 2), (0, 10, 50, 60))
    """
    chosen = first_seeds(seeds) if isinstance(seeds, int) else seeds
    preset = study_preset(data, budget, task or task_of(data, settings.get("target")))
    return with_overrides(preset, seeds=chosen, **settings)


def merged(file: Mapping[str, Any] | None, **given: Any) -> dict[str, Any]:
    """The settings of a file, overridden by those given that are not `None`, tables within it likewise.

    >>> merged({"train": {"steps": 9, "batch_size": 2}}, train={"steps": 5}, text=None)
    {'train': {'steps': 5, 'batch_size': 2}}
    """
    both = dict(file or {})
    for key, value in given.items():
        if isinstance(value, Mapping):
            value = merged(both.get(key), **value) or None
        if value is not None:
            both[key] = value
    return both


def task_named(name: str | None) -> TaskName | None:
    """A task by its name; an error that lists them where there is no such task.

    >>> task_named("translation")
    'translation'
    """
    for task in get_args(TaskName):
        if name == task:
            return task  # type: ignore[no-any-return]
    if name is not None:
        raise ConfigError(f"task {name!r} is not one of {', '.join(get_args(TaskName))}")
    return None


def place_named(name: str) -> "Place":
    """Where work is done, by its name.

    >>> place_named("ray")
    'ray'
    """
    if name == "local":
        return "local"
    if name == "ray":
        return "ray"
    raise ConfigError(f"--on {name!r} is not one of local, ray")


def run_name(data: str) -> str:
    """A folder name for a corpus or file: its name without folder and endings, and never a way out of the folder.

    >>> run_name("some/where/reviews.csv.gz"), run_name("sst"), run_name("../.."), run_name("a\\0b:c")
    ('reviews', 'sst', 'study', 'a-b-c')
    """
    return re.sub(r"[^\w+&()\[\] -]", "-", Path(data).name.split(".")[0])[:100].strip() or "study"


def column_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """What of these settings says how data are read; taken out of them.

    >>> asked = {"text": "review", "words": 5}
    >>> column_settings(asked), asked
    ({'text': 'review'}, {'words': 5})
    """
    return {
        key: settings.pop(key) for key in ("task", "text", "label", "validation", "test", "lower") if key in settings
    }


def label_of(thing: Any) -> str:
    """What a model or data are called: their own name, or of what kind they are.

    >>> label_of("reviews.csv"), label_of([])
    ('reviews.csv', 'list')
    """
    if isinstance(thing, str | Path):
        return str(thing)
    named = getattr(getattr(thing, "config", None), "_name_or_path", "") or getattr(thing, "name", "")
    return str(named) or type(thing).__name__
