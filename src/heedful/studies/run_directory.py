"""The directory of a study: the paths, readers and writers of its files.

runs/<name>/config.toml                the settings
            manifest.json              kind, versions, commit, machine, times; the checksum of result.json
            data/                      the encoded texts and the vocabulary that the models get; checksums.json
            models/<kind>-<seed>/      metrics.jsonl, trace/<step>.parquet, checkpoints/<step>/, done.json
                                       (and trace-train/ where a sample of the training texts is recorded too,
                                       trace-heads/ where there are several heads)
            result.json                the measures
            report.html                the page
            lock.json, heartbeat.json  the process that works here, while there is one

Every file has a checksum: config.toml and the JSON records (`storage.step_cache`) contain their own; the others are
listed in the records checksums.json, done.json and manifest.json.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from heedful.config import StudyConfig
from heedful.data.subwords import EncodedPairs, Tokeniser, load_tokeniser
from heedful.data.vocabulary import EncodedSplit, Vocabulary
from heedful.data.word_vectors import WordVectors
from heedful.errors import ConfigError, DamagedError, RunError
from heedful.storage.atomic_files import (
    damaged_error,
    quarantine_path,
    read_json,
    remove_temporary_files,
    sha256,
    valid_path,
    verify_checksummed_text,
    write_atomically,
    write_checksummed_text,
    write_json,
    write_text,
)
from heedful.storage.manifest import MANIFEST, RESULT, Manifest, refuse_other, verified_result
from heedful.storage.run_files import listed, read_bounded, refuse_irregular
from heedful.storage.serialization import digest, from_toml, to_toml
from heedful.storage.step_cache import Damage, Notify, StepRecord, repair_notice
from heedful.studies.result import StudyResult
from heedful.tracing.heads import HeadMaps, read_heads, write_heads
from heedful.tracing.store import Snapshot, Trace, write_step

E = TypeVar("E", EncodedSplit, EncodedPairs)
STATE, TENSORS = "state.json", "training.safetensors"  # of a checkpoint that training resumes from
_VECTORS = "vectors.safetensors"
_MAX_WORDS = 1 << 30  # bytes of the file of validation words
Recorded = Literal["validation", "train"]  # the split whose texts are recorded during training


class ModelDirectory:
    """One model of a run: its metrics, its trace, its weights.

    `done` is the record of a trained model. `written` collects the checksums of its files as they are written.
    why_foreign: says why a record is not that of this model of this study; an empty text where it is.
    """

    def __init__(self, root: Path, why_foreign: Callable[[Mapping[str, Any]], str] = lambda record: "") -> None:
        self.root, self.done = root, StepRecord(root / "done.json")
        self.written: dict[str, str] = {}
        self._why_foreign, self._is_own = why_foreign, False

    def trace_folder(self, split: Recorded = "validation") -> Path:
        """One Parquet file per recorded step; the sample of training texts has its own folder."""
        return self.root / ("trace" if split == "validation" else "trace-train")

    def trace(self, split: Recorded = "validation") -> Trace:
        """The recorded quantities."""
        folder = self.trace_folder(split)
        if self.is_done():
            self.summary()
        files = {Path(name): checksum for name, checksum in (self.done.files() if self.is_done() else {}).items()}
        return Trace(folder, {name.name: sum for name, sum in files.items() if name.parent.name == folder.name})

    def heads_folder(self) -> Path:
        """One Parquet file per recorded step of a model with several heads."""
        return self.root / "trace-heads"

    def heads(self, step: int) -> HeadMaps:
        """The matrices of all heads in a few texts."""
        return read_heads(self.verified(self.heads_folder() / f"{step}.parquet"))

    def record_heads(self, step: int, maps: HeadMaps) -> None:
        """Store the matrices of one step."""
        folder = self.heads_folder()
        self.note(folder / f"{step}.parquet", write_heads(folder, step, maps))

    def checkpoint_folder(self, step: int) -> Path:
        """Weights at a step."""
        return self.root / "checkpoints" / str(step)

    def checkpoint_steps(self) -> list[int]:
        """Steps with a checkpoint to resume from, complete or not."""
        names = [path.name for path in listed(self.root / "checkpoints", "*") if path.name.isdecimal()]
        steps = sorted(int(name) for name in names if name == str(int(name)))  # not 007
        return [step for step in steps if any((self.checkpoint_folder(step) / n).exists() for n in (STATE, TENSORS))]

    def remove_checkpoint(self, step: int) -> None:
        """Remove the checkpoint of a step; the final weights stay."""
        folder = self.checkpoint_folder(step)
        for name in (STATE, TENSORS):
            (folder / name).unlink(missing_ok=True)
        with suppress(OSError):  # it is not empty: somebody else's files are in it
            folder.rmdir()

    def remove_checkpoints(self) -> None:
        """Remove all checkpoints, which a trained model no longer needs."""
        for step in self.checkpoint_steps():
            self.remove_checkpoint(step)

    def record(self, step: int, snapshot: Snapshot, split: Recorded = "validation") -> None:
        """Store one step of the trace."""
        folder = self.trace_folder(split)
        self.note(folder / f"{step}.parquet", write_step(folder, step, snapshot))

    def note(self, path: Path, checksum: str) -> None:
        """Remember the checksum of a file of this model that was just written."""
        self.written[self._name(path)] = checksum

    def remove_unlisted_traces(self) -> None:
        """Remove trace files that an interrupted training wrote after its checkpoint; it writes them again."""
        for folder in (*map(self.trace_folder, get_args(Recorded)), self.heads_folder()):
            for path in listed(folder, "*.parquet"):
                if self._name(path) not in self.written and path.is_file():
                    path.unlink()

    def is_done(self) -> bool:
        """Whether the model is trained and all its files are written."""
        return self.done.is_done()

    def summary(self) -> dict[str, Any]:
        """The summary of the trained model; that of another model, of other settings or of other data is an error."""
        summary = self.done.load()
        if not self._is_own and (why := self._why_foreign(summary)):
            raise damaged_error(self.done.path, why)
        self._is_own = True
        return summary

    def set_aside_if_foreign(self, notify: Notify) -> None:
        """Set the record aside if it is not that of this model of this study: the model then counts as not trained."""
        if why := self._why_foreign(self.done.load()):
            self.done.set_aside(Damage(self.done.path, why), notify)

    def verified(self, path: Path) -> Path:
        """The path of a file; of a trained model, its checksum is verified first."""
        if not self.is_done():
            return path
        self.summary()
        return self.done.verified(self._name(path))

    def save_metrics(self, metrics: list[dict[str, Any]]) -> None:
        """One line per evaluation."""
        path = self.root / "metrics.jsonl"
        self.note(path, write_text(path, "".join(json.dumps(line) + "\n" for line in metrics)))

    def metrics(self) -> list[dict[str, Any]]:
        """One dictionary per evaluation."""
        path = self.verified(self.root / "metrics.jsonl")
        try:
            return [json.loads(line) for line in read_bounded(path).decode("utf-8").splitlines()]
        except FileNotFoundError:
            raise RunError(f"{path}: no such file; the model was not trained") from None
        except (json.JSONDecodeError, UnicodeDecodeError, OSError) as error:
            raise DamagedError(path, str(error), f"delete {self.root} and run again") from None

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


ModelKind = Literal["standard", "uniform", "attention-only", "proxy", "logistic", "lexicon"]
_MODELS: dict[str, tuple[ModelKind, ...]] = {  # by task: those trained with every seed, and the one that only counts
    "classification": ("standard", "uniform", "attention-only", "proxy", "logistic"),
    "translation": ("standard", "uniform", "proxy", "lexicon"),
}


_TWINS: tuple[ModelKind, ...] = ("uniform", "attention-only", "proxy")


@dataclass(frozen=True)
class ModelSpec:
    """One model of a study."""

    kind: ModelKind
    seed: int

    @property
    def name(self) -> str:
        """The model's folder."""
        return f"{self.kind}-{self.seed}"


def model_specs(config: StudyConfig) -> list[ModelSpec]:
    """All models of a study, those that train longest first.

    >>> [spec.name for spec in model_specs(StudyConfig("sst"))][:3]
    ['standard-0', 'standard-1', 'uniform-0']
    """
    *trained, counted = _MODELS[config.task]
    specs = [ModelSpec(kind, seed) for kind in trained for seed in config.seeds]
    return [*dict.fromkeys(model_of(config, spec) for spec in specs), ModelSpec(counted, 0)]


def model_of(config: StudyConfig, spec: ModelSpec) -> ModelSpec:
    """The model that stands for one of a kind and a seed: all seeds may share their twins.

    >>> model_of(StudyConfig("sst", shared_twins=True), ModelSpec("uniform", 0)).name
    'uniform-2'
    """
    return ModelSpec(spec.kind, config.twin_seed(spec.seed)) if spec.kind in _TWINS else spec


def shown_heads(config: StudyConfig) -> ModelSpec:
    """The model whose heads are recorded one by one, if it has several: the first seed's standard model."""
    return ModelSpec("standard", config.seeds[0])


def sample_indices(size: int, wanted: int) -> NDArray[np.int64]:
    """The indices of `wanted` out of `size` training texts to record, drawn with a fixed seed, in order.

    >>> sample_indices(3, 5)
    array([0, 1, 2])
    """
    return np.sort(np.random.default_rng(0).permutation(size)[:wanted])


class RunDirectory:
    """Paths, readers and writers of one study's directory.

    The settings and the records are read once; make a new object to see what another process has changed since.
    """

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)
        self.config_path, self.manifest_path = self.root / "config.toml", self.root / MANIFEST
        self.result_path, self.report_path = self.root / RESULT, self.root / "report.html"
        self.data = StepRecord(self.data_path("checksums.json"))
        self._config: StudyConfig | None = None
        self._models: dict[str, ModelDirectory] = {}

    def config(self) -> StudyConfig:
        """The settings; an error where this is not a study."""
        if self._config is None:
            if not valid_path(self.config_path).exists():
                raise RunError(f"{self.root}: not a run of heedful (it has no config.toml)")
            refuse_irregular(self.root)
            verify_checksummed_text(self.config_path)
            self._config = from_toml(StudyConfig, self.config_path)
        return self._config

    def is_translation(self) -> bool:
        """Whether the task is translation, not classification."""
        return self.config().task == "translation"

    def save_config(self, config: StudyConfig) -> None:
        """Write the settings."""
        self._config = None
        write_checksummed_text(self.config_path, to_toml(config))

    def claim(self, config: StudyConfig, notify: Notify = lambda notice: None) -> None:
        """Write the settings where there are none; refuse other settings, and replace a damaged config.toml.

        Where config.toml is lost or damaged, the records of the run say which settings it had.
        """
        why, there = "it is gone", os.path.lexists(valid_path(self.config_path))
        if there:
            try:
                if digest(self.config()) != digest(config):
                    raise self.other_settings()
                return
            except DamagedError as error:
                why = error.why
            except ConfigError as error:
                why = str(error).removeprefix(f"{self.config_path}: ")
        known = {identity["config"] for identity in trained_identities(self)}
        with suppress(RunError, KeyError):
            known.add(self.data.load()["config"])
        if known - {digest(config)}:
            raise self.other_settings()
        if not known and (self.root / "models").exists():
            raise RunError(
                f"{self.config_path}: damaged ({why}), and no other file records the settings; choose another --out"
            )
        if there:
            aside = quarantine_path(self.config_path)
            write_atomically(aside, lambda path: path.write_bytes(read_bounded(self.config_path)))
            notify(repair_notice(self.config_path, why, aside))
        self.save_config(config)

    def refuse_foreign(self) -> None:
        """Refuse a folder that holds something else than a study."""
        refuse_other(self.root, "study", self.config_path.name)

    def other_settings(self) -> RunError:
        """The error for a directory that holds another study."""
        return RunError(f"{self.root} holds a study with other settings (see {self.config_path}); choose another --out")

    def identity(self) -> dict[str, str]:
        """The digests of settings and data, which every record of the study contains."""
        return {"config": digest(self.config()), "data": self.data_summary()["digest"]}

    def why_foreign(self, record: Mapping[str, Any], name: str | None = None) -> str:
        """Why a record belongs to other settings, other data or another model; an empty text where it does not.

        name: of the model whose record it should be; None for the record of the data.
        """
        identity = record.get("identity") if name else record
        if not isinstance(identity, Mapping):
            return "it does not say which study it belongs to"
        if name and f"{record.get('kind')}-{record.get('seed')}" != name:
            return f"it is the record of the model {str(record.get('kind'))[:40]}-{str(record.get('seed'))[:20]}"
        if identity.get("config") != digest(self.config()):
            return "it belongs to a study with other settings"
        if name and self.data.is_done() and identity.get("data") != self.data.load().get("data"):
            return "it belongs to a study of other data"
        return ""

    def manifest(self) -> Manifest:
        """The kind of the run, and when, where and with what it was made; almost empty where it was lost."""
        return Manifest.read(self.root) if self.manifest_path.exists() else Manifest("study")

    def result(self) -> StudyResult:
        """The measures, as they were written."""
        result = StudyResult.load(verified_result(self.root))
        if result.config_digest != digest(self.config()):
            raise damaged_error(self.result_path, "it is the result of a study with other settings")
        return result

    def records(self) -> Iterator[StepRecord]:
        """The records of all finished steps, which list every file of the study but its settings."""
        yield self.data
        yield from (model.done for model in self.trained_models())
        yield StepRecord(self.manifest_path)

    def trained_models(self) -> list[ModelDirectory]:
        """The models that are trained."""
        return [self.model(path.name) for path in listed(self.root / "models", "*") if (path / "done.json").exists()]

    def data_path(self, name: str) -> Path:
        """A file of the data that the models get."""
        return self.root / "data" / name

    def finish_data(self, config: StudyConfig, digest_of_data: str) -> None:
        """Write the record of the data: the checksums of all its files."""
        files = {path.name: sha256(path) for path in listed(self.data.root, "*") if _is_data(path)}
        self.data.save({"config": digest(config), "data": digest_of_data}, files)

    def split(self, name: str) -> EncodedSplit:
        """The encoded texts of one split."""
        return EncodedSplit.load(self.data.verified(f"{name}.parquet"))

    def recorded(self, load: Callable[[str], E]) -> dict[Recorded, E]:
        """The texts or pairs that are recorded during training. load: `split` or `pairs`."""
        splits: dict[Recorded, E] = {"validation": load("validation")}
        return splits | ({"train": load("train_sample")} if self.config().train_sample else {})

    def save_splits(self, splits: Mapping[str, E], train_sample: int) -> None:
        """Write the encoded texts or pairs of every split, and a sample of the training split."""
        for name, split in splits.items():
            split.save(self.data_path(f"{name}.parquet"))
        if train_sample:
            chosen = sample_indices(len(splits["train"]), train_sample)
            splits["train"].take(chosen).save(self.data_path("train_sample.parquet"))

    def vocabulary(self) -> Vocabulary:
        """The words of the ids."""
        return Vocabulary.load(self.data.verified("vocabulary.json"))

    def save_vectors(self, vectors: WordVectors) -> None:
        """Keep the word vectors that embeddings start from."""
        tensors: dict[str, NDArray[Any]] = {"index": vectors.index, "vectors": vectors.vectors}
        write_atomically(self.data_path(_VECTORS), lambda path: save_file(tensors, path))

    def vectors(self) -> WordVectors | None:
        """The word vectors that embeddings start from; None where they start at random."""
        if self.config().embeddings is None:
            return None
        tensors = load_file(self.data.verified(_VECTORS))
        return WordVectors(tensors["index"], tensors["vectors"])

    def save_words(self, words: Sequence[Sequence[str]]) -> None:
        """Keep the words of the validation texts as they were written, rare ones too."""
        write_json(self.data_path("validation_words.json"), {"words": [list(text) for text in words]})

    def words(self) -> list[list[str]]:
        """The words of each validation text, without its two ends."""
        texts: list[list[str]] = read_json(self.data.verified("validation_words.json"), _MAX_WORDS)["words"]
        return texts

    def pairs(self, name: str) -> EncodedPairs:
        """The encoded sentence pairs of one split."""
        return EncodedPairs.load(self.data.verified(f"{name}.parquet"))

    def tokeniser(self) -> Tokeniser:
        """The tokeniser of a translation study."""
        names = ("subwords.model", "vocabulary.json")
        return load_tokeniser(self.data.verified(names[0] if self.data_path(names[0]).exists() else names[1]))

    def data_summary(self) -> dict[str, Any]:
        """Name, labels, sizes, licence and decisions of the data."""
        return read_json(self.data.verified("summary.json"))

    def save_data_summary(self, summary: dict[str, Any]) -> None:
        """Write name, labels, sizes, licence and decisions of the data."""
        write_json(self.data_path("summary.json"), summary)

    def model(self, spec: ModelSpec | str) -> ModelDirectory:
        """The directory of one model."""
        name = spec if isinstance(spec, str) else spec.name
        if name not in self._models:
            self._models[name] = ModelDirectory(
                self.root / "models" / name, lambda record: self.why_foreign(record, name)
            )
        return self._models[name]


def _is_data(path: Path) -> bool:
    return path.is_file() and path.name != "checksums.json" and path.name[0] != "." and ".damaged-" not in path.name


def repair_run(run: RunDirectory, config: StudyConfig, notify: Notify = lambda notice: None) -> None:
    """Make the directory this study's, and set aside every file that is damaged or belongs to another study or model.

    A directory that holds another study is refused before anything in it is changed. Call it only while holding the
    run's lock.
    """
    run.refuse_foreign()
    run.claim(config, notify)
    remove_temporary_files(run.root)
    for record in list(run.records()):
        record.repair(notify)
    _set_foreign_aside(run, notify)
    for model in run.trained_models():
        model.remove_checkpoints()  # of a process that was killed before it did so itself


def _set_foreign_aside(run: RunDirectory, notify: Notify) -> None:
    """Set aside undamaged records of other settings, other data or another model, such as copied folders have."""
    if run.data.is_done() and (why := run.why_foreign(run.data.load())):
        run.data.set_aside(Damage(run.data.path, why), notify)
    for model in run.trained_models():
        model.set_aside_if_foreign(notify)
    manifest = StepRecord(run.manifest_path)
    if manifest.is_done() and RESULT in manifest.files():
        try:
            run.result()
        except (DamagedError, ConfigError) as error:
            why = error.why if isinstance(error, DamagedError) else str(error)
            manifest.set_aside(Damage(run.result_path, why), notify)


def is_intact(run: RunDirectory) -> bool:
    """Whether a run is finished and none of its files is damaged."""
    try:
        run.result()
        for model in run.trained_models():
            model.summary()
        foreign = run.data.is_done() and run.why_foreign(run.data.load())
        return not foreign and next(damages(run), None) is None
    except (RunError, ConfigError):
        return False


def damages(run: RunDirectory) -> Iterator[Damage]:
    """The damaged files of a run, its config.toml apart."""
    for record in run.records():
        yield from record.damages()


def trained_identities(run: RunDirectory) -> Iterator[dict[str, str]]:
    """The digests of settings and data in the records of the trained models."""
    for model in run.trained_models():
        with suppress(DamagedError, KeyError, TypeError):
            identity = model.done.load()["identity"]
            yield {name: str(identity[name]) for name in ("config", "data")}
