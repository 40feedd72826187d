"""Copying tasks with a dose: families of tasks, named `family:number`, that differ only in what co-occurrence tells.

Every sequence has 40 different words in random order and is copied. At one end of each family co-occurrence is
constant, as in permutations of one set of words; towards the other it tells words apart better and better.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heedful.errors import DataError

LENGTH = 40
TYPES = 60
Numbers = NDArray[np.int32]
Draw = Callable[[np.random.Generator, float, int], Numbers]  # (generator, dose, how many) to sequences


@dataclass(frozen=True)
class Family:
    """A family of copying tasks; `dose` says what its number is, in words that follow the number.

    allowed: the numbers there are, where these are few; else all from `least` to `most`, whole ones unless `decimal`.
    draw: sequences of words from 1. types: how many different words they have.
    """

    name: str
    letter: str
    dose: str
    description: str
    least: float
    most: float
    example: str
    draw: Draw
    types: Callable[[float], int] = lambda dose: TYPES
    allowed: tuple[int, ...] = ()
    decimal: bool = False

    @property
    def form(self) -> str:
        """How its tasks are named, such as `copy-dose:K`."""
        return f"{self.name}:{self.letter}"

    def number(self, text: str) -> float:
        """The number behind the colon; an error that says which there are where it is none of them.

        >>> FAMILIES["copy-dose"].number("45")
        45.0
        >>> FAMILIES["copy-dose"].number("30")
        Traceback (most recent call last):
        heedful.errors.DataError: copy-dose:30 needs at least 40 types of words; copy-dose:K takes a whole number ...
        """
        numbers = ", ".join(map(str, self.allowed)) if self.allowed else f"from {self.least:g} to {self.most:g}"
        kind = "" if self.allowed else "a number " if self.decimal else "a whole number "
        takes = f"{self.form} takes {kind}{numbers}, such as {self.name}:{self.example}"
        whole = r"0|[1-9]\d{0,5}"
        if not re.fullmatch(rf"({whole})(\.\d{{1,3}})?" if self.decimal else whole, text):
            raise DataError(f"{self.name}:{text[:40]} has no number that fits; {takes}")
        dose = float(text)
        if dose < self.least:
            raise DataError(f"{self.name}:{text} needs at least {self.least:g} {self.dose}; {takes}")
        if dose > self.most:
            raise DataError(f"{self.name}:{text} has more than {self.most:g} {self.dose}; {takes}")
        if self.allowed and dose not in self.allowed:
            raise DataError(f"{self.name}:{text} is not among them: {takes}")
        return dose


def family_of(name: str) -> tuple[Family, float] | None:
    """The family and the dose of a task such as `copy-dose:45`; None where no family has that name.

    >>> family, dose = family_of("copy-zipf:0.5")
    >>> family.name, dose
    ('copy-zipf', 0.5)
    >>> family_of("sst") is family_of("multi30k:de-en") is None
    True
    """
    base, colon, text = name.partition(":")
    if base not in FAMILIES or (not colon and base == "copy-mixture"):  # a task of its own, of two sets
        return None
    return FAMILIES[base], FAMILIES[base].number(text)


def dose_generator(family: Family, dose: float, seed: int) -> np.random.Generator:
    """The random numbers of a task with a dose; of no other task, and the same on every machine.

    >>> first, again = (dose_generator(FAMILIES["copy-dose"], 45.0, 0) for _ in range(2))
    >>> bool(first.integers(1000) == again.integers(1000))
    True
    """
    return np.random.default_rng([seed, 100 + list(FAMILIES).index(family.name), round(1000 * dose)])


def replace_words(rng: np.random.Generator, sequences: Numbers, percent: float) -> Numbers:
    """Sequences in which each word is replaced by any word with this probability: it is then aligned with nothing.

    >>> replace_words(np.random.default_rng(0), np.ones((2, 3), dtype=np.int32), 0.0).tolist()
    [[1, 1, 1], [1, 1, 1]]
    """
    other = rng.integers(1, TYPES + 1, size=sequences.shape, dtype=np.int32)
    return np.where(100 * rng.random(sequences.shape) < percent, other, sequences)


def _draw_any(rng: np.random.Generator, types: int, count: int) -> Numbers:
    """Any 40 of so many words."""
    deck = np.tile(np.arange(1, types + 1, dtype=np.int32), (count, 1))
    return rng.permuted(deck, axis=1)[:, :LENGTH]


def _draw_blocks(rng: np.random.Generator, dose: float, count: int) -> Numbers:
    """40 / n of 60 / n blocks of n words each; the words of all of them in one random order."""
    n = int(dose)
    blocks = rng.permuted(np.tile(np.arange(TYPES // n, dtype=np.int32), (count, 1)), axis=1)[:, : LENGTH // n]
    words = 1 + n * blocks[:, :, None] + np.arange(n, dtype=np.int32)
    return rng.permuted(words.reshape(count, LENGTH), axis=1)


def _draw_sets(rng: np.random.Generator, dose: float, count: int) -> Numbers:
    sets = overlapping_sets(int(dose))
    return rng.permuted(sets[rng.integers(len(sets), size=count)], axis=1)


def overlapping_sets(n: int) -> Numbers:
    """n fixed sets of 40 of 60 words, each drawn at random; words that are in none of them are left out of the count.

    >>> overlapping_sets(1).shape, int(overlapping_sets(1).max()), int(overlapping_sets(8).max())
    ((1, 40), 40, 60)
    """
    drawn = _draw_any(np.random.default_rng(LENGTH), TYPES, 1000)[:n]
    _, numbered = np.unique(drawn, return_inverse=True)
    return (numbered.reshape(drawn.shape) + 1).astype(np.int32)


def _draw_mixture(rng: np.random.Generator, dose: float, count: int) -> Numbers:
    """A permutation of one of n sets that share no word."""
    which = rng.integers(int(dose), size=(count, 1), dtype=np.int32)
    return _draw_any(rng, LENGTH, count) + np.int32(LENGTH) * which


def _draw_zipf(rng: np.random.Generator, dose: float, count: int) -> Numbers:
    """40 of 60 words one after the other with probability ∝ 1/rank^s of those left (Gumbel keys), then shuffled."""
    keys = rng.gumbel(size=(count, TYPES)) - dose * np.log(np.arange(1, TYPES + 1))
    chosen = np.argsort(-keys, axis=1, kind="stable")[:, :LENGTH].astype(np.int32) + np.int32(1)
    return rng.permuted(chosen, axis=1)


_DIVISORS: Sequence[int] = [n for n in range(1, LENGTH + 1) if LENGTH % n == 0 and TYPES % n == 0]
FAMILIES = {
    family.name: family
    for family in (
        Family(
            "copy-dose",
            "K",
            "types of words",
            "copy 40 of K words: co-occurrence reveals nothing at K = 40, more with larger K",
            40.0,
            1000.0,
            "45",
            lambda rng, dose, count: _draw_any(rng, int(dose), count),
            lambda dose: int(dose),
        ),
        Family(
            "copy-blocks",
            "n",
            "words in a block",
            "copy 40 of 60 words in blocks of n that occur together: co-occurrence reveals nothing within one",
            1.0,
            20.0,
            "4",
            _draw_blocks,
            allowed=tuple(_DIVISORS),
        ),
        Family(
            "copy-sets",
            "n",
            "sets",
            "copy one of n overlapping sets of 40 words in random order: co-occurrence reveals nothing at n = 1",
            1.0,
            1000.0,
            "3",
            _draw_sets,
            lambda dose: int(overlapping_sets(int(dose)).max()),
        ),
        Family(
            "copy-mixture",
            "n",
            "sets",
            "copy one of n disjoint sets of 40 words: co-occurrence reveals nothing within each",
            1.0,
            10.0,
            "3",
            _draw_mixture,
            lambda dose: LENGTH * int(dose),
        ),
        Family(
            "copy-zipf",
            "s",
            "as its exponent",
            "copy 40 of 60 words of frequency 1/rank^s: the larger s, the more similar the sets of words",
            0.0,
            10.0,
            "1.5",
            _draw_zipf,
            decimal=True,
        ),
        Family(
            "copy-noise",
            "p",
            "percent",
            "copy 40 of 60 words, p % of the copies replaced by random words: co-occurrence reveals less with larger p",
            0.0,
            100.0,
            "25",
            lambda rng, dose, count: _draw_any(rng, TYPES, count),
        ),
    )
}
