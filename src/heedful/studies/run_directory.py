"""A study's directory: what lies where.

runs/<name>/config.toml                what was asked
            manifest.json              versions, commit, data digest, machine, times; the checksum of result.json
            data/                      the encoded texts and the vocabulary the models were given, checksums.json
            models/<kind>-<seed>/      metrics.jsonl, trace/<step>.parquet, checkpoints/<step>/, done.json
                                       (and trace-train/ where a sample of the training texts is recorded too)
            result.json                the measures
            report.html                the page
            lock.json                  who is at work here, while someone is

Every file has a checksum: config.toml and the sealed JSON files (`storage.checksums`) carry their own, the
rest are listed in checksums.json, done.json or manifest.json. Runs begun before there were checksums are read as they
are.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from heedful.config import StudyConfig
from heedful.data.subwords import EncodedPairs, Tokeniser, load_tokeniser
from heedful.data.vocabulary import EncodedSplit, Vocabulary
from heedful.errors import DamagedError, RunError
from heedful.storage.atomic_files import TEMPORARY, read_json, sha256, valid_path, write_json, write_text
from heedful.storage.checksums import (
    read_checksummed_json,
    verify_checksum,
    verify_checksummed_text,
    write_checksummed_json,
    write_checksummed_text,
)
from heedful.storage.locks import LOCK
from heedful.storage.serialization import digest, from_toml, to_toml
from heedful.tracing.store import Snapshot, Trace, write_step

if TYPE_CHECKING:
    from heedful.studies.result import StudyResult

STATE, TENSORS = "state.json", "training.safetensors"  # of a checkpoint to go on from
Recorded = Literal["validation", "train"]  # the split whose texts are recorded through training


class ModelDirectory:
    """One model of a run: its metrics, its trace, its weights.

    sealed: whether everything that was finished here has a checksum. `written` gathers those of the files as they are
    written; they are sealed at the end.
    """

    def __init__(self, root: Path, *, sealed: bool = False) -> None:
        self.root, self.sealed = root, sealed
        self.written: dict[str, str] = {}

    @property
    def done_path(self) -> Path:
        """What the training came to, written last of all."""
        return self.root / "done.json"

    def trace_folder(self, split: Recorded = "validation") -> Path:
        """One Parquet file per recorded step; the sample of training texts has its own folder."""
        return self.root / ("trace" if split == "validation" else "trace-train")

    def trace(self, split: Recorded = "validation") -> Trace:
        """The recorded quantities."""
        folder = self.trace_folder(split)
        ours = {Path(name): checksum for name, checksum in self.checksums().items()}
        return Trace(folder, {name.name: sum for name, sum in ours.items() if name.parent.name == folder.name})

    def checkpoint_folder(self, step: int) -> Path:
        """Weights at a step."""
        return self.root / "checkpoints" / str(step)

    def state_steps(self) -> list[int]:
        """Steps with a checkpoint to go on from, whole or not."""
        found = {path.parent.name for name in (STATE, TENSORS) for path in self.root.glob(f"checkpoints/*/{name}")}
        return sorted(int(name) for name in found if name.isdecimal())

    def drop_state(self, step: int) -> None:
        """Remove the checkpoint of a step; the weights that training ended with stay."""
        place = self.checkpoint_folder(step)
        for name in (STATE, TENSORS):
            (place / name).unlink(missing_ok=True)
        if not any(place.iterdir()):
            place.rmdir()

    def drop_states(self) -> None:
        """Remove all checkpoints of a model that is done: nothing goes on from them."""
        for step in self.state_steps():
            self.drop_state(step)

    def record(self, step: int, snapshot: Snapshot, split: Recorded = "validation") -> None:
        """Store one step of the trace."""
        folder = self.trace_folder(split)
        self.note(folder / f"{step}.parquet", write_step(folder, step, snapshot))

    def note(self, path: Path, checksum: str) -> None:
        """Remember the checksum of a file of this model that was just written."""
        self.written[path.relative_to(self.root).as_posix()] = checksum

    def traces_written(self) -> dict[str, str]:
        """The checksums of the trace so far."""
        return {name: checksum for name, checksum in self.written.items() if name.startswith("trace")}

    def forget_the_rest(self) -> None:
        """Remove what a training that was broken off recorded and will record again."""
        for path in self.root.glob("trace*/*.parquet"):
            if path.relative_to(self.root).as_posix() not in self.written:
                path.unlink()

    def is_done(self) -> bool:
        """Whether training ended and everything was written."""
        return self.done_path.exists()

    def finish(self, summary: dict[str, Any]) -> None:
        """Mark the model as whole, with what its training came to and the checksums of its files."""
        write_checksummed_json(self.done_path, summary | {"files": dict(sorted(self.written.items()))})

    def summary(self) -> dict[str, Any]:
        """What the training came to."""
        return read_checksummed_json(self.done_path) if self.sealed else read_json(self.done_path)

    def checksums(self) -> dict[str, str]:
        """The checksums of a finished model's files; none of one that is not finished, or that has none."""
        files: dict[str, str] = self.summary().get("files", {}) if self.is_done() else {}
        return files

    def checked(self, path: Path) -> Path:
        """The path of a file, once its checksum is known to be right."""
        expected = self.checksums().get(path.relative_to(self.root).as_posix())
        if expected:
            verify_checksum(path, expected)
        return path

    def save_metrics(self, metrics: list[dict[str, Any]]) -> None:
        """One line per evaluation."""
        path = self.root / "metrics.jsonl"
        self.note(path, write_text(path, "".join(json.dumps(line) + "\n" for line in metrics)))

    def metrics(self) -> list[dict[str, Any]]:
        """One dictionary per evaluation."""
        path = self.checked(self.root / "metrics.jsonl")
        try:
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except FileNotFoundError:
            raise RunError(f"{path}: no such file; the model was not trained") from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise DamagedError(path, str(error), f"delete {self.root} and run again") from None


ModelKind = Literal["standard", "uniform", "attention-only", "proxy", "logistic", "lexicon"]
SPLITS = ("train", "validation", "test")


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
    """All models of a study, the longest to train first.

    >>> [spec.name for spec in model_specs(StudyConfig("sst"))][:3]
    ['standard-0', 'standard-1', 'uniform-0']
    """
    translating = config.task == "translation"
    trained: tuple[ModelKind, ...] = ("standard", "uniform", "proxy")
    if not translating:
        trained = ("standard", "uniform", "attention-only", "proxy")
    counted: ModelKind = "lexicon" if translating else "logistic"
    return [ModelSpec(kind, seed) for kind in trained for seed in config.seeds] + [ModelSpec(counted, 0)]


def sample_indices(size: int, wanted: int) -> NDArray[np.int64]:
    """Which of `size` training texts are recorded: `wanted` of them, drawn under a fixed seed, in their order.

    >>> sample_indices(3, 5)
    array([0, 1, 2])
    """
    return np.sort(np.random.default_rng(0).permutation(size)[:wanted])


class RunDirectory:
    """Paths and readers of one study's directory."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root)

    @property
    def config_path(self) -> Path:
        """What was asked."""
        return self.root / "config.toml"

    @property
    def result_path(self) -> Path:
        """The measures."""
        return self.root / "result.json"

    @property
    def report_path(self) -> Path:
        """The page."""
        return self.root / "report.html"

    @property
    def manifest_path(self) -> Path:
        """Where, when and with what it was run."""
        return self.root / "manifest.json"

    def config(self) -> StudyConfig:
        """What was asked; an error where this is not a run."""
        if not valid_path(self.config_path).exists():
            raise RunError(f"{self.root}: not a run of heedful (it has no config.toml)")
        verify_checksummed_text(self.config_path)
        return from_toml(StudyConfig, self.config_path)

    def is_sealed(self) -> bool:
        """Whether the run was begun when everything in it has a checksum."""
        return verify_checksummed_text(self.config_path)

    def refuse_foreign(self) -> None:
        """An error where the folder holds something, but not a run."""
        if valid_path(self.config_path).exists() or not self.root.exists():
            return
        begun = f".{self.config_path.name}."  # a run killed while it wrote its first file
        if not self.root.is_dir() or any(
            path.name != LOCK and not (path.name.startswith(begun) and path.name.endswith(TEMPORARY))
            for path in self.root.iterdir()
        ):
            raise RunError(f"{self.root} is not empty and not a run of heedful; choose another --out")

    def claim(self, config: StudyConfig) -> None:
        """Make the directory this study's, or refuse where another study lives in it."""
        self.refuse_foreign()
        if not self.config_path.exists():
            self.save_config(config)
        elif digest(self.config()) != digest(config):
            raise self.other_settings()

    def save_config(self, config: StudyConfig) -> None:
        """Write down what is asked."""
        write_checksummed_text(self.config_path, to_toml(config))

    def other_settings(self) -> RunError:
        """What to say to a study that would move in with another."""
        return RunError(f"{self.root} holds a study with other settings (see {self.config_path}); choose another --out")

    def identity(self) -> dict[str, str]:
        """Which study on which data: everything that is stored says so."""
        return {"config": digest(self.config()), "data": self.data_summary()["digest"]}

    def manifest(self) -> dict[str, Any]:
        """Where, when and with what it was run; nothing where it is not finished."""
        if not self.manifest_path.exists():
            return {}
        return read_checksummed_json(self.manifest_path) if self.is_sealed() else read_json(self.manifest_path)

    def result(self) -> "StudyResult":
        """The measures, as they were written."""
        from heedful.studies.result import StudyResult

        if not valid_path(self.result_path).exists():
            raise RunError(
                f"{self.root}: the study is not finished (it has no result.json); the same command goes on with it"
            )
        expected = self.manifest().get("result")
        if expected and self.is_sealed():
            verify_checksum(self.result_path, expected)
        return StudyResult.load(self.result_path)

    def data_path(self, name: str) -> Path:
        """A file of the data the models were given."""
        return self.root / "data" / name

    def read_data(self, name: str) -> Path:
        """A file of the data, known to be as it was written."""
        path = self.data_path(name)
        if self.data_seal.exists():
            files = read_checksummed_json(self.data_seal)["files"]
            if name not in files:
                raise DamagedError(path, f"{self.data_seal.name} does not know it")
            verify_checksum(path, files[name])
        return path

    @property
    def data_seal(self) -> Path:
        """The checksums of the data, written last: where it stands, they are whole."""
        return self.data_path("checksums.json")

    def seal_data(self, config: StudyConfig, digest_of_data: str) -> None:
        """Note the checksums of all files of the data."""
        files = sorted(path for path in self.data_seal.parent.iterdir() if _is_data(path))
        sums = {path.name: sha256(path) for path in files}
        write_checksummed_json(self.data_seal, {"config": digest(config), "data": digest_of_data, "files": sums})

    def has_data(self) -> bool:
        """Whether the data were saved whole."""
        return (self.data_seal if self.is_sealed() else self.data_path("summary.json")).exists()

    def split(self, name: str) -> EncodedSplit:
        """The encoded texts of one split."""
        return EncodedSplit.load(self.read_data(f"{name}.parquet"))

    def recorded_splits(self) -> dict[Recorded, EncodedSplit]:
        """The texts that are recorded through training."""
        splits: dict[Recorded, EncodedSplit] = {"validation": self.split("validation")}
        return splits | ({"train": self.split("train_sample")} if self.config().train_sample else {})

    def vocabulary(self) -> Vocabulary:
        """The words behind the ids."""
        return Vocabulary.load(self.read_data("vocabulary.json"))

    def save_words(self, words: Sequence[Sequence[str]]) -> None:
        """Keep the words of the validation texts as they were written, the rare ones too."""
        write_json(self.data_path("validation_words.json"), {"words": [list(text) for text in words]})

    def words(self) -> list[list[str]]:
        """The words of each validation text, without its two ends."""
        texts: list[list[str]] = read_json(self.read_data("validation_words.json"))["words"]
        return texts

    def pairs(self, name: str) -> EncodedPairs:
        """The encoded sentence pairs of one split."""
        return EncodedPairs.load(self.read_data(f"{name}.parquet"))

    def recorded_pairs(self) -> dict[Recorded, EncodedPairs]:
        """The sentence pairs that are recorded through training."""
        splits: dict[Recorded, EncodedPairs] = {"validation": self.pairs("validation")}
        return splits | ({"train": self.pairs("train_sample")} if self.config().train_sample else {})

    def tokeniser(self) -> Tokeniser:
        """What turns sentences into ids and back."""
        names = ("subwords.model", "vocabulary.json")
        return load_tokeniser(self.read_data(names[0] if self.data_path(names[0]).exists() else names[1]))

    def data_summary(self) -> dict[str, Any]:
        """Name, labels, sizes, licence and decisions of the data."""
        return read_json(self.read_data("summary.json"))

    def save_data_summary(self, summary: dict[str, Any]) -> None:
        """Written last of the data's files, before their checksums."""
        write_json(self.data_path("summary.json"), summary)

    def model(self, spec: ModelSpec) -> "ModelDirectory":
        """Where one model's files lie."""
        return ModelDirectory(self.root / "models" / spec.name, sealed=self.is_sealed())


def _is_data(path: Path) -> bool:
    return path.is_file() and not path.name.startswith(".") and ".damaged-" not in path.name
