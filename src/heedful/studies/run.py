"""A study's directory: what lies where.

runs/<name>/config.toml                what was asked
            manifest.json              versions, commit, data digest, machine, times
            data/                      the encoded texts and the vocabulary the models were given
            models/<kind>-<seed>/      metrics.jsonl, trace/<step>.parquet, checkpoints/<step>/, done.json
                                       (and trace-train/ where a sample of the training texts is recorded too)
            result.json                the measures
            report.html                the page
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from heedful.config import StudyConfig, digest, from_toml, to_toml
from heedful.data.subwords import EncodedPairs, Tokeniser, load_tokeniser
from heedful.data.tokens import EncodedSplit, Vocabulary
from heedful.errors import RunError
from heedful.files import read_json, write_json, write_text
from heedful.trace.store import Trace

ModelKind = Literal["standard", "uniform", "attention-only", "proxy", "logistic", "lexicon"]
SPLITS = ("train", "validation", "test")
Recorded = Literal["validation", "train"]  # the split whose texts are recorded through training


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


class Run:
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
        if not self.config_path.exists():
            raise RunError(f"{self.root}: not a run of heedful (it has no config.toml)")
        return from_toml(StudyConfig, self.config_path)

    def claim(self, config: StudyConfig) -> None:
        """Make the directory this study's, or refuse where another study lives in it."""
        if self.config_path.exists():
            if digest(self.config()) != digest(config):
                raise RunError(
                    f"{self.root} holds a study with other settings (see {self.config_path}); choose another --out"
                )
            return
        if self.root.exists() and any(self.root.iterdir()):
            raise RunError(f"{self.root} is not empty and not a run of heedful; choose another --out")
        write_text(self.config_path, to_toml(config))

    def data_path(self, name: str) -> Path:
        """A file of the data the models were given."""
        return self.root / "data" / name

    def split(self, name: str) -> EncodedSplit:
        """The encoded texts of one split."""
        return EncodedSplit.load(self.data_path(f"{name}.parquet"))

    def recorded_splits(self) -> dict[Recorded, EncodedSplit]:
        """The texts that are recorded through training."""
        splits: dict[Recorded, EncodedSplit] = {"validation": self.split("validation")}
        return splits | ({"train": self.split("train_sample")} if self.config().train_sample else {})

    def vocabulary(self) -> Vocabulary:
        """The words behind the ids."""
        return Vocabulary.load(self.data_path("vocabulary.json"))

    def save_words(self, words: Sequence[Sequence[str]]) -> None:
        """Keep the words of the validation texts as they were written, the rare ones too."""
        write_json(self.data_path("validation_words.json"), {"words": [list(text) for text in words]})

    def words(self) -> list[list[str]]:
        """The words of each validation text, without its two ends."""
        texts: list[list[str]] = read_json(self.data_path("validation_words.json"))["words"]
        return texts

    def pairs(self, name: str) -> EncodedPairs:
        """The encoded sentence pairs of one split."""
        return EncodedPairs.load(self.data_path(f"{name}.parquet"))

    def recorded_pairs(self) -> dict[Recorded, EncodedPairs]:
        """The sentence pairs that are recorded through training."""
        splits: dict[Recorded, EncodedPairs] = {"validation": self.pairs("validation")}
        return splits | ({"train": self.pairs("train_sample")} if self.config().train_sample else {})

    def tokeniser(self) -> Tokeniser:
        """What turns sentences into ids and back."""
        subwords = self.data_path("subwords.model")
        return load_tokeniser(subwords if subwords.exists() else self.data_path("vocabulary.json"))

    def data_summary(self) -> dict[str, Any]:
        """Name, labels, sizes, licence and decisions of the data."""
        return read_json(self.data_path("summary.json"))

    def save_data_summary(self, summary: dict[str, Any]) -> None:
        """Written last of the data's files: where it stands, the data are whole."""
        write_json(self.data_path("summary.json"), summary)

    def has_data(self) -> bool:
        """Whether the data were saved whole."""
        return (self.data_path("summary.json")).exists()

    def model(self, spec: ModelSpec) -> "ModelFolder":
        """Where one model's files lie."""
        return ModelFolder(self.root / "models" / spec.name)


class ModelFolder:
    """One model of a run: its metrics, its trace, its weights."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def trace_folder(self, split: Recorded = "validation") -> Path:
        """One Parquet file per recorded step; the sample of training texts has its own folder."""
        return self.root / ("trace" if split == "validation" else "trace-train")

    def trace(self, split: Recorded = "validation") -> Trace:
        """The recorded quantities."""
        return Trace(self.trace_folder(split))

    def checkpoint_folder(self, step: int) -> Path:
        """Weights at a step."""
        return self.root / "checkpoints" / str(step)

    def is_done(self) -> bool:
        """Whether training ended and everything was written."""
        return (self.root / "done.json").exists()

    def finish(self, summary: dict[str, Any]) -> None:
        """Mark the model as whole, with what its training came to."""
        write_json(self.root / "done.json", summary)

    def summary(self) -> dict[str, Any]:
        """What the training came to."""
        return read_json(self.root / "done.json")

    def save_metrics(self, metrics: list[dict[str, Any]]) -> None:
        """One line per evaluation."""
        write_text(self.root / "metrics.jsonl", "".join(json.dumps(line) + "\n" for line in metrics))

    def metrics(self) -> list[dict[str, Any]]:
        """One dictionary per evaluation."""
        path = self.root / "metrics.jsonl"
        try:
            return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        except FileNotFoundError:
            raise RunError(f"{path}: no such file; the model was not trained") from None
        except json.JSONDecodeError as error:
            raise RunError(f"{path}: damaged ({error}); delete {self.root} and run again") from None
