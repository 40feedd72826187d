"""Following a training afterwards: the course of attention over saved checkpoints, or revisions on the Hub.

Every checkpoint is loaded, recorded as a training in progress would be (`Recorder`), and let go. The checksum of its
weights is kept, so that checkpoints with the same content are named.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from heedful.attribution.huggingface_text import load
from heedful.audits.request import match_labels
from heedful.config import ModelTask
from heedful.data.rows import Text
from heedful.errors import ConfigError, DataError, MissingExtraError
from heedful.execution.pool import OnEvent
from heedful.followed.result import FollowedTraining
from heedful.followed.training import Recorder
from heedful.storage.atomic_files import valid_path

OTHER_WEIGHTS = ["*.bin", "*.pt", "*.h5", "*.msgpack", "*.onnx"]  # safetensors are read
NUMBER = re.compile(r"\d+")


@dataclass(frozen=True)
class SavedCheckpoint:
    """A checkpoint to record: its name, its step, and a function that finds its folder."""

    name: str
    step: int
    place: Callable[[], str]


def checkpoints_of(
    places: Sequence[str | Path], revisions: Sequence[str] = (), steps: Sequence[int] = ()
) -> list[SavedCheckpoint]:
    """Checkpoints in the order of their steps: several folders, or the revisions of one model of the Hub.

    steps: of each in turn; by default the last number in each name (`checkpoint-500`, `step1000`), or their order where
    a name has none or two have the same.

    >>> [(c.name, c.step) for c in checkpoints_of(["out/checkpoint-500", "out/checkpoint-60"])]
    [('checkpoint-60', 60), ('checkpoint-500', 500)]
    >>> [(c.name, c.step) for c in checkpoints_of(["some/model"], ["main", "other"])]
    [('main', 0), ('other', 1)]
    """
    if revisions and len(places) != 1:
        raise ConfigError(f"revisions are those of one model, but {len(places)} were given")
    if revisions and valid_path(Path(places[0])).exists():
        raise ConfigError(f"{places[0]} is a folder, which has no revisions; name a model of the Hub")
    names = list(revisions) if revisions else [Path(place).name or str(place) for place in places]
    if len(names) < 2:
        raise ConfigError("a course needs two checkpoints or more; for one model, use heedful audit")
    if steps and len(steps) != len(names):
        raise ConfigError(f"{len(names)} checkpoints, but {len(steps)} steps; give one for each")
    found = [NUMBER.findall(name) for name in names]
    numbers = [int(digits[-1]) for digits in found if digits]
    named = len(set(numbers)) == len(names)
    chosen = list(steps) or (numbers if named else list(range(len(names))))
    if len(set(chosen)) < len(chosen) or min(chosen) < 0:
        raise ConfigError(f"steps are {chosen}; they must be different, and 0 or more")
    made = [
        SavedCheckpoint(name, step, _downloaded(str(places[0]), name) if revisions else _folder(places[i]))
        for i, (name, step) in enumerate(zip(names, chosen, strict=True))
    ]
    return sorted(made, key=lambda checkpoint: checkpoint.step)


def _folder(place: str | Path) -> Callable[[], str]:
    return lambda: str(place)


def _downloaded(model: str, revision: str) -> Callable[[], str]:
    """The folder of a revision, downloaded unless it is in the cache, and looked up once."""

    @cache
    def place() -> str:
        try:
            from huggingface_hub import snapshot_download
            from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError
        except ImportError:
            raise MissingExtraError("huggingface-hub", "hf", "following revisions") from None
        try:
            return str(snapshot_download(model, revision=revision, ignore_patterns=OTHER_WEIGHTS))
        except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
            raise DataError(f"{model}, revision {revision}: {str(error).splitlines()[0]}") from None

    return place


def follow_checkpoints(
    checkpoints: Sequence[SavedCheckpoint],
    texts: Sequence[Text],
    *,
    out: Path | str,
    task: ModelTask = "classification",
    labels: Sequence[Any] | None = None,
    names: Mapping[str, str] | None = None,
    tokenizer: Any = None,
    name: str | None = None,
    device: str = "cpu",
    trust_remote_code: bool = False,
    on_progress: OnEvent = lambda event: None,
    **settings: Any,
) -> FollowedTraining:
    """Record every checkpoint on the same texts; the result has a step for each.

    task: that of the checkpoints; labels: of each text, or the outputs to follow, as for `Recorder`. names: the model's
    name for each label of a classifier, where they differ. tokenizer: the place of one, where the checkpoints have none
    of their own. settings: of `Recorder`.
    """
    recorder: Recorder | None = None
    for number, checkpoint in enumerate(checkpoints):
        on_progress({"model": "checkpoints", "step": number, "steps": len(checkpoints)})
        model, own = load(task, checkpoint.place(), tokenizer, device, trust_remote_code=trust_remote_code)
        if recorder is None:
            right = _named(model, labels, names) if labels is not None and task == "classification" else labels
            recorder = Recorder(out, texts, own, labels=right, task=task, every=1, name=name, **settings)
        recorder.record(model, checkpoint.step, source=checkpoint.name)
    assert recorder is not None
    on_progress({"model": "checkpoints", "done": True})
    return recorder.finish()


def _named(model: Any, labels: Sequence[str], names: Mapping[str, str] | None) -> list[str]:
    """The model's names of the labels."""
    own = [str(model.config.id2label[i]) for i in range(model.config.num_labels)]
    matched = match_labels(own, list(dict.fromkeys(labels)), names)
    return [matched[label] for label in labels]
