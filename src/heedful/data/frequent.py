"""The words that occur most, found in a stream by a list of bounded length."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from heedful.data.tokens import SPECIALS, Vocabulary


@dataclass
class Frequent:
    """How often words occurred, for at most `room` words at a time (Misra and Gries 1982, merged part by part).

    A count is too low by at most `missed`, which is 0 for as long as the words have room; every word that occurred more
    often than `missed` is there. Where there is no room left, half the words go, so `missed` never exceeds the number
    of words read over half the room.

    >>> seen = Frequent(room=4)
    >>> seen.add({"the": 5, "a": 3, "of": 1, "in": 1, "or": 1})
    >>> seen.counts, seen.missed
    (Counter({'the': 4, 'a': 2}), 1)
    """

    room: int
    counts: Counter[str] = field(default_factory=Counter)
    missed: int = 0

    def add(self, counts: Mapping[str, int]) -> None:
        """More occurrences."""
        self.counts.update(counts)
        if len(self.counts) > self.room:
            over = sorted(self.counts.values(), reverse=True)[self.room // 2]
            self.counts = Counter({word: count - over for word, count in self.counts.items() if count > over})
            self.missed += over

    def vocabulary(self, most: int, min_count: int) -> Vocabulary:
        """The `most` frequent words that occur `min_count` times or more, the most frequent first, then by spelling.

        >>> seen = Frequent(room=9)
        >>> seen.add({"b": 2, "a": 2, "c": 1})
        >>> seen.vocabulary(most=5, min_count=2).words[4:]
        ('a', 'b')
        """
        known = [w for w, count in self.counts.items() if count + self.missed >= min_count and w not in SPECIALS]
        known.sort(key=lambda word: (-self.counts[word], word))
        return Vocabulary(SPECIALS + tuple(known[:most]))
