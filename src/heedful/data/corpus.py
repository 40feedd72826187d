"""Labelled texts in three splits, and how a corpus is split: stratified by label, under a seed."""

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError

SPLITS = ("train", "validation", "test")
MOST_COUNTS = 12  # labels whose counts an error lists
T = TypeVar("T")


@runtime_checkable
class Splittable(Protocol):
    """Examples that can be divided: labelled texts or sentence pairs."""

    @property
    def strata(self) -> Sequence[int]:
        """The class of each example; each part gets every class in the same proportion."""

    def __len__(self) -> int: ...

    def take(self: T, indices: Sequence[int] | NDArray[np.int64]) -> T:
        """The examples at `indices`, in that order."""


S = TypeVar("S", bound=Splittable)


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

    @property
    def strata(self) -> tuple[int, ...]:
        """The labels."""
        return self.labels

    def take(self, indices: Sequence[int] | NDArray[np.int64]) -> "Split":
        """The texts at `indices`, in that order.

        >>> Split(("a", "b", "c"), (0, 1, 0)).take([2, 1])
        Split(texts=('c', 'b'), labels=(0, 1))
        """
        return Split(tuple(self.texts[i] for i in indices), tuple(self.labels[i] for i in indices))


EMPTY = Split((), ())


@dataclass(frozen=True)
class TokenRules:
    """Options of `vocabulary.tokenise`; the last two are for 20 Newsgroups and AG News (snell2021, A.8)."""

    lower: bool = True
    integers_to_unknown: bool = False
    split_underscores: bool = False


PLAIN = TokenRules()


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
        for name in SPLITS:
            split: Split = getattr(self, name)
            sha.update(f"\n{name} {len(split)}\n".encode())
            for text, label in zip(split.texts, split.labels, strict=True):
                content = text.encode("utf-8", "surrogatepass")
                sha.update(b"%d %d " % (label, len(content)) + content)
        return sha.hexdigest()


_SPELLINGS: dict[str, tuple[str, ...]] = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "val", "dev"),
    "test": ("test",),
}


def splits_by_name(splits: Mapping[str, Any]) -> dict[str, str]:
    """Which of a dataset's splits is the training, validation and test set; only the training set must be there.

    >>> splits_by_name({"test": ..., "training": ..., "dev": ...})
    {'train': 'training', 'validation': 'dev', 'test': 'test'}
    """
    named = {split: next(filter(splits.__contains__, names), None) for split, names in _SPELLINGS.items()}
    if named["train"] is None:
        raise DataError(
            f"the dataset has no split 'train', only {', '.join(map(repr, splits))}; pass one of them alone"
        )
    return {split: name for split, name in named.items() if name is not None}


def stratified_order(labels: Sequence[int] | NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """An order of the examples in which every stretch has the labels in about the proportion of all examples.

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


def sample(split: S, size: int | None, seed: int) -> S:
    """At most `size` examples, stratified, in their original order; all of them if `size` is None.

    Every class stays in the sample, with one example at least, unless there are more classes than examples.

    >>> sample(Split(("a", "b", "c", "d"), (0, 1, 0, 1)), 2, seed=0).labels
    (0, 1)
    >>> sample(Split(tuple("abcdefghij"), (0,) * 9 + (1,)), 3, seed=0).labels
    (0, 0, 1)
    """
    if size is None or size >= len(split):
        return split
    order = stratified_order(split.strata, seed)
    chosen, _ = _keep_classes(np.split(order, [max(size, 0)]), split.strata, needed=1)
    return split.take(np.sort(chosen))


def divide(split: S, sizes: Sequence[int], seed: int) -> tuple[S, ...]:
    """Stratified parts of the given sizes and, last, whatever remains; each in its original order.

    Every class that has two examples or more is in the first part and in the second, if they have room for it.

    >>> [len(part) for part in divide(Split(tuple("abcdefghij"), (0, 1) * 5), [8, 1], seed=0)]
    [8, 1, 1]
    """
    parts = np.split(stratified_order(split.strata, seed), np.cumsum(sizes))
    return tuple(split.take(np.sort(part)) for part in _keep_classes(parts, split.strata, needed=2))


def _keep_classes(
    parts: Sequence[NDArray[np.int64]], labels: Sequence[int] | NDArray[np.int64], *, needed: int
) -> list[NDArray[np.int64]]:
    """The parts of an order, changed only where a class is missing from one of the first `needed` parts.

    Such a part then gets one example of the class from the part that has most of them, and gives its last example of
    its largest class in return. A part that is needed never loses its only example of a class.
    """
    names, classes = np.unique(np.asarray(labels, dtype=np.int64), return_inverse=True)
    kept = [part.copy() for part in parts]
    counts = np.array([np.bincount(classes[part], minlength=len(names)) for part in kept])
    for receiver in range(needed):
        for c in np.flatnonzero(counts[receiver] == 0):
            spare = counts[:, c] - (np.arange(len(kept)) < needed)
            donor, largest = int(spare.argmax()), int(counts[receiver].argmax())
            if spare[donor] < 1 or counts[receiver, largest] < 2:
                continue
            given = np.flatnonzero(classes[kept[donor]] == c)[0]
            returned = np.flatnonzero(classes[kept[receiver]] == largest)[-1]
            kept[donor][given], kept[receiver][returned] = kept[receiver][returned], kept[donor][given]
            counts[[donor, receiver], c] += [-1, 1]
            counts[[donor, receiver], largest] += [1, -1]
    return kept


def require_classes(name: str, labels: Sequence[str], train: Split, validation: Split) -> None:
    """Refuse a corpus of fewer than two labels, or that has a label without a training or a validation text.

    >>> require_classes("mail.csv", ("ham", "spam"), Split(("a", "b", "c"), (0, 0, 1)), Split(("d",), (0,)))
    Traceback (most recent call last):
    heedful.errors.DataError: mail.csv: label 'spam' has no validation text (texts for training / validation: ham \
2 / 1, spam 1 / 0); ...
    """
    if len(labels) < 2:
        raise DataError(f"{name}: {len(labels)} labels; a study needs two or more")
    counts = [np.bincount(split.labels, minlength=len(labels)) for split in (train, validation)]
    for kind, count in zip(("training", "validation"), counts, strict=True):
        if count.min() > 0:
            continue
        absent = [repr(labels[c]) for c in np.flatnonzero(count == 0).tolist()]
        rarest = np.argsort(counts[0] + counts[1], kind="stable")[:MOST_COUNTS]
        shown = ", ".join(f"{labels[c]} {counts[0][c]:,} / {counts[1][c]:,}" for c in np.sort(rarest).tolist())
        which = f"label {absent[0]} has" if len(absent) == 1 else f"{len(absent)} labels, {absent[0]} first, have"
        order = "" if len(labels) <= MOST_COUNTS else f" of the {MOST_COUNTS} rarest labels"
        raise DataError(
            f"{name}: {which} no {kind} text (texts for training / validation{order}: {shown}); "
            "give more texts of each rare label, or merge it with another, or leave its rows out"
        )


def eighty_ten_ten(train: S, test: S | None, seed: int) -> tuple[S, S, S]:
    """Train, validation and test set of what has no validation set: 80/10/10, or 90/10 beside a given test set.

    >>> [len(part) for part in eighty_ten_ten(Split(tuple("abcdefghij"), (0, 1) * 5), None, seed=0)]
    [8, 1, 1]
    """
    if test is None:
        train, validation, test = divide(train, [len(train) * 8 // 10, len(train) // 10], seed)
    else:
        train, validation = divide(train, [len(train) * 9 // 10], seed)
    return train, validation, test


def sizes_of(*parts: Splittable) -> str:
    """The sizes of parts, for a decision.

    >>> sizes_of(Split(("a", "b"), (0, 1)), EMPTY)
    '2 / 0'
    """
    return " / ".join(f"{len(part):,}" for part in parts)
