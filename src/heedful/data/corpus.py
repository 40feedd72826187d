"""Labelled texts in three splits, and the seeded splits themselves."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.words import PLAIN, TokenRules
from heedful.errors import DataError


@dataclass(frozen=True)
class Split:
    """Texts and the index of each one's label in `Corpus.labels`."""

    texts: tuple[str, ...]
    labels: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels):
            raise ValueError(f"{len(self.texts)} texts have {len(self.labels)} labels")

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, indices: Sequence[int] | NDArray[np.int64]) -> "Split":
        """The texts at `indices`, in that order.

        >>> Split(("a", "b", "c"), (0, 1, 0)).take([2, 1])
        Split(texts=('c', 'b'), labels=(0, 1))
        """
        return Split(tuple(self.texts[i] for i in indices), tuple(self.labels[i] for i in indices))


EMPTY = Split((), ())


@dataclass(frozen=True)
class Corpus:
    """A text classification task: its splits, where they come from, and what was decided on the way (`decisions`)."""

    name: str
    labels: tuple[str, ...]
    train: Split
    validation: Split
    test: Split
    rules: TokenRules = PLAIN
    licence: str = "unknown"
    source: str = ""
    decisions: tuple[str, ...] = ()

    def digest(self) -> str:
        """SHA-256 of everything a result depends on: rules, labels, and the texts of each split in order.

        >>> corpus = Corpus("tiny", ("bad", "good"), Split(("so good",), (1,)), EMPTY, EMPTY)
        >>> from dataclasses import replace
        >>> corpus.digest()[:12]
        'fae74700b543'
        >>> replace(corpus, rules=TokenRules(lower=False)).digest() == corpus.digest()
        False
        """
        sha = hashlib.sha256()
        sha.update(repr((self.rules, self.labels)).encode("utf-8", "backslashreplace"))
        for name, split in (("train", self.train), ("validation", self.validation), ("test", self.test)):
            sha.update(f"\n{name} {len(split)}\n".encode())
            for text, label in zip(split.texts, split.labels, strict=True):
                content = text.encode("utf-8", "surrogatepass")
                sha.update(b"%d %d " % (label, len(content)) + content)
        return sha.hexdigest()


_SPELLINGS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test",),
}


def splits_by_name(splits: Mapping[str, Any]) -> dict[str, str]:
    """Which of a dataset's splits is for training, which for validation and which for the test, where there are any.

    >>> splits_by_name({"test": ..., "training": ..., "dev": ...})
    {'train': 'training', 'validation': 'dev', 'test': 'test'}
    """
    found = {split: next(filter(splits.__contains__, names), None) for split, names in _SPELLINGS.items()}
    if found["train"] is None:
        raise DataError(
            f"the dataset has no split 'train', only {', '.join(map(repr, splits))}; pass one of them alone"
        )
    return {split: name for split, name in found.items() if name is not None}


def stratified_order(labels: Sequence[int] | NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """An order of the examples in which every stretch holds the labels in about the proportion of the whole.

    Each label's examples are shuffled and spread evenly over [0, 1], at (k + ½)/n; cut the order anywhere for a
    stratified sample or split. A label's only example stands in the middle, so it falls to the largest first part.
    Uses `random.Random.random`, whose sequence Python promises not to change.

    >>> labels = [0] * 6 + [1] * 3
    >>> [labels[i] for i in stratified_order(labels, seed=0)]
    [0, 1, 0, 0, 1, 0, 0, 1, 0]
    """
    draw = random.Random(seed).random
    keys = np.array([draw() for _ in labels], dtype=np.float64)
    classes = np.asarray(labels, dtype=np.int64)
    place = np.empty(len(keys), dtype=np.float64)
    for label in np.unique(classes):
        members = np.flatnonzero(classes == label)
        members = members[np.argsort(keys[members], kind="stable")]
        place[members] = (np.arange(len(members)) + 0.5) / len(members)
    return np.lexsort((keys, place)).astype(np.int64)


def sample(split: Split, size: int | None, seed: int) -> Split:
    """At most `size` texts of a split, stratified by label, in their original order; all of them if `size` is None.

    >>> sample(Split(("a", "b", "c", "d"), (0, 1, 0, 1)), 2, seed=0).labels
    (0, 1)
    """
    if size is None or size >= len(split):
        return split
    return split.take(np.sort(stratified_order(split.labels, seed)[: max(size, 0)]))


def divide(split: Split, sizes: Sequence[int], seed: int) -> tuple[Split, ...]:
    """Stratified parts of the given sizes and, last, whatever remains; each in its original order.

    >>> [len(part) for part in divide(Split(tuple("abcdefghij"), (0, 1) * 5), [8, 1], seed=0)]
    [8, 1, 1]
    """
    parts = np.split(stratified_order(split.labels, seed), np.cumsum(sizes))
    return tuple(split.take(np.sort(part)) for part in parts)
