"""Every kind of file that a run has, and what can happen to it on a disk."""

import random
from collections.abc import Callable
from pathlib import Path

FINISHED = (
    "config.toml",
    "data/train.parquet",
    "data/train_sample.parquet",
    "data/validation.parquet",
    "data/test.parquet",
    "data/vocabulary.json",
    "data/validation_words.json",
    "data/summary.json",
    "data/checksums.json",
    "models/standard-0/metrics.jsonl",
    "models/uniform-1/trace/2.parquet",
    "models/attention-only-0/trace-train/5.parquet",
    "models/standard-1/checkpoints/5/model.safetensors",
    "models/proxy-0/done.json",
    "models/logistic-0/trace/0.parquet",
    "manifest.json",
    "result.json",
)
UNFINISHED = (
    "config.toml",
    "data/checksums.json",
    "models/standard-0/trace/0.parquet",
    "models/standard-0/checkpoints/*/state.json",
    "models/standard-0/checkpoints/*/training.safetensors",
)


def flip(path: Path) -> None:
    """Turn one bit of the file around, somewhere."""
    content = bytearray(path.read_bytes())
    place = random.Random(path.name).randrange(8 * len(content))
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)


def truncate(path: Path) -> None:
    """Lose the second half of the file."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    """Lose all of the file."""
    path.write_bytes(b"")


HARMS: dict[str, Callable[[Path], None]] = {"flipped": flip, "truncated": truncate, "emptied": empty}


def last(folder: Path, pattern: str) -> Path:
    """The file of that kind; of several, that of the last step."""
    return max(folder.glob(pattern), key=lambda path: int(path.parent.name) if path.parent.name.isdigit() else 0)
