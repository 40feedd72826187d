"""From texts to ids: the tokeniser, the vocabulary, and labelled texts encoded with both (snell2021, A.8)."""

import json
import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpus import PLAIN, Corpus, Split, TokenRules, sample
from heedful.data.ragged import Ragged, as_ids
from heedful.errors import DamagedError, DataError
from heedful.storage.atomic_files import read_any_json, reason, regular, write_atomically, write_text
from heedful.storage.parquet_pages import read_numbers_and_texts

PAD, UNK, BOS, EOS = 0, 1, 2, 3
UNKNOWN = "<unk>"
SPECIALS = ("<pad>", UNKNOWN, "<bos>", "<eos>")
LONGEST_CACHED = 40


def tokenise(text: str, rules: TokenRules = PLAIN) -> list[str]:
    """The words of a text, punctuation split off, contractions split as the Penn Treebank does.

    The tokens of text that is already tokenised stay as they are; see `is_tokenised`. The time is linear in the length
    of the text.

    >>> tokenise("Don't miss it!<br />A re-imagining of Poe's tale...")
    ['do', "n't", 'miss', 'it', '!', 'a', 're-imagining', 'of', 'poe', "'s", 'tale', '...']
    >>> tokenise("they wo n't sit still -lrb- for it -rrb-")
    ['they', 'wo', "n't", 'sit', 'still', '-lrb-', 'for', 'it', '-rrb-']
    >>> tokenise("no. 1 of j. lo , 2002"), tokenise("I said no.")
    (['no.', '1', 'of', 'j.', 'lo', ',', '2002'], ['i', 'said', 'no', '.'])
    >>> tokenise("Won 4 of 12 at Fenway_Park", TokenRules(integers_to_unknown=True, split_underscores=True))
    ['won', '4', 'of', '<unk>', 'at', 'fenway', 'park']
    """
    tokens = normalise(text, rules).split()
    words = tokens if is_tokenised(tokens) else list(chain.from_iterable(map(_splitter(tokens), tokens)))
    if rules.integers_to_unknown:
        return [UNKNOWN if len(word) > 1 and _INTEGER.fullmatch(word) else word for word in words]
    return words


def normalise(text: str, rules: TokenRules = PLAIN) -> str:
    """The text, lower-cased and without line breaks of HTML, before it is split at spaces.

    >>> normalise("One<br />TWO")
    'one two'
    """
    if "<" in text:
        text = _BREAK.sub(" ", text)
    if rules.lower:
        text = text.lower()
    return text.replace("_", " ") if rules.split_underscores else text


def is_tokenised(tokens: Sequence[str]) -> bool:
    """Whether these tokens, which stand between spaces in a text, are its words already.

    They are if a mark or the end of a contraction (`'s`) stands alone, the last word has no period at its end (an
    initial may: `jason x.`), and no token would be split but an abbreviation (`no.`, `j.`), an address (`a.com`), the
    first half of a compound (`anti-`) or a run such as `?!`.

    >>> is_tokenised("vietnam no. 1 , again !".split()), is_tokenised("vietnam no. 1, again !".split())
    (True, False)
    >>> is_tokenised("it 's jason x.".split()), is_tokenised("it 's over.".split()), is_tokenised("jason x.".split())
    (True, False, False)
    """
    if _ALONE.isdisjoint(tokens) or (tokens[-1].endswith(".") and len(tokens[-1].strip(".")) > 1):
        return False
    split = _splitter(tokens)
    return all(split(token) == (token,) or _KEPT.fullmatch(token) for token in tokens)


def split_token(token: str) -> tuple[str, ...]:
    """The words of a token, which has no spaces.

    >>> split_token("don't")
    ('do', "n't")
    """
    if token.isascii() and token.isalpha():
        return (token,)
    if "'" in token or "’" in token:
        token = _CONTRACTION.sub(r" \1", token)
    return tuple(_WORD.findall(token))


# Tokens repeat, so most need to be matched only once.
_split_cached = lru_cache(maxsize=1 << 18)(split_token)


def _splitter(tokens: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """`split_token` with a cache, unless a token is too long to be worth its memory."""
    return _split_cached if max(map(len, tokens), default=0) < LONGEST_CACHED else split_token


_ALONE = frozenset(".,!?;:") | {"n't", "'s", "'re", "'ve", "'ll", "'d", "'m", "``", "''"}

_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_INTEGER = re.compile(r"\d+(?:,\d\d\d)*")

# Everything is part of a word that is not a space, a control, punctuation, an emoji or an ideograph: `\w` would cut
# Hindi, Thai and Hebrew at their vowel signs.
_MARKS = (
    "!-/:-@\\[-\\^`{-~\u00a1-\u00a7\u00ab\u00b6\u00b7\u00bb\u00bf\u2010-\u2027\u2030-\u205e"
    "\u3001-\u3003\u3008-\u3020\uff01-\uff0f\uff1a-\uff20"
)
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IN_WORD = rf"[^\s\x00-\x1f\x7f-\x9f{_MARKS}{_EMOJI}{_IDEOGRAPH}]"
_ENDINGS = r"n['’]t|['’](?:s|re|ve|ll|d|m)"

_CONTRACTION = re.compile(rf"(?<={_IN_WORD})({_ENDINGS})(?!{_IN_WORD})", re.IGNORECASE)
_WORD = re.compile(
    "|".join(
        (
            rf"(?:{_ENDINGS}|['’]n['’]|['’](?:em|til|cause|tis|twas|n|\d\ds?))(?!{_IN_WORD})",
            r"-[lr][rsc]b-",
            r"(?:\\[*/])+",
            rf"\d+\\/\d+{_IN_WORD}+",
            r"\d+(?:(?:[.,:]|\\?/)\d+)+",
            rf"(?:[^\W\d_]\.){{2,}}(?!{_IN_WORD})",
            rf"(?:mr|mrs|ms|dr|jr|sr|st|vs)\.(?!{_IN_WORD})",
            rf"ol['’](?!{_IN_WORD})",
            rf"{_IN_WORD}+(?:(?:['’]|-|\\?/|&){_IN_WORD}+)*",
            r"\.+|-+|!+|\?+|'+|`+|\*+|=+|~+|#+|\++|\^+|<+|>+|/+|\\+|\|+",
            r"[\U0001f1e6-\U0001f1ff]{2}",
            rf"[{_EMOJI}][\ufe0f\U0001f3fb-\U0001f3ff]*(?:\u200d[{_EMOJI}][\ufe0f\U0001f3fb-\U0001f3ff]*)*",
            rf"[{_MARKS}{_EMOJI}{_IDEOGRAPH}]",
        )
    ),
    re.IGNORECASE,
)
_KEPT = re.compile(rf"{_IN_WORD}+(?:[.-]{_IN_WORD}+)*[.-]?|[!?]+")


@dataclass(frozen=True)
class Vocabulary:
    """The words a model knows, the four specials first. A word of a text never gets `<pad>`, `<bos>` or `<eos>`.

    >>> vocabulary = Vocabulary.build([["good", "film"], ["good", "plot"], ["<pad>", "film"]], min_count=2)
    >>> vocabulary.words
    ('<pad>', '<unk>', '<bos>', '<eos>', 'film', 'good')
    >>> vocabulary.ids(["good", "plot", "<pad>"])
    array([5, 1, 1], dtype=int32)
    """

    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.words[: len(SPECIALS)] != SPECIALS:
            raise DataError(
                f"a vocabulary begins with {', '.join(SPECIALS)}, this one with {str(self.words[:4])[:100]}"
            )
        if len(set(self.words)) != len(self.words):
            raise DataError("a vocabulary holds each word once, this one repeats some")

    @classmethod
    def build(
        cls, texts: Iterable[Sequence[str]], min_count: int = 3, known: Container[str] = frozenset()
    ) -> "Vocabulary":
        """The words that occur `min_count` times or are `known`, the most frequent first, then alphabetically.

        >>> Vocabulary.build([["good", "film"], ["good", "plot"]], min_count=2, known={"plot", "cast"}).words[4:]
        ('good', 'plot')
        """
        counts = Counter(chain.from_iterable(texts))
        kept = {word: count for word, count in counts.items() if count >= min_count or word in known}
        return cls.most_frequent(kept, min_count=1)

    @classmethod
    def most_frequent(cls, counts: Mapping[str, int], min_count: int, size: int | None = None) -> "Vocabulary":
        """The words that were counted so often, the `size` most frequent of them, in the order of `build`."""
        known = [word for word, count in counts.items() if count >= min_count and word not in SPECIALS]
        known.sort(key=lambda word: (-counts[word], word))
        return cls(SPECIALS + tuple(known[:size]))

    def ids(self, words: Sequence[str]) -> NDArray[np.int32]:
        """The id of each word; `UNK` for one that is not in the vocabulary or is spelt like a special."""
        index = self._index
        return np.array([index.get(word, UNK) for word in words], dtype=np.int32)

    def __len__(self) -> int:
        return len(self.words)

    @cached_property
    def _index(self) -> dict[str, int]:
        return {word: i for i, word in enumerate(self.words) if i >= len(SPECIALS)}

    def save(self, path: Path) -> None:
        """Write a JSON list of the words."""
        write_text(path, json.dumps(self.words, indent=0) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Vocabulary":
        """Read what `save` wrote."""
        try:
            words = read_any_json(regular(path))
        except DamagedError as error:
            raise DataError(str(error)) from None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            raise DataError(f"{path}: damaged (a vocabulary is a JSON list of words); delete it and run again")
        try:
            return cls(tuple(words))
        except DataError as error:
            raise DataError(f"{path}: damaged ({error}); delete it and run again") from None


@dataclass(frozen=True)
class EncodedSplit:
    """The texts of one split as ids, each `<bos> … <eos>`, and their labels.

    >>> split = EncodedSplit.of([[BOS, 7, EOS], [BOS, 8, 9, EOS]], [0, 1])
    >>> split.lengths, split.text(1)
    (array([3, 4]), array([2, 8, 9, 3], dtype=int32))
    """

    ids: Ragged
    labels: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Iterable[Sequence[int] | NDArray[np.int32]], labels: Sequence[int]) -> "EncodedSplit":
        """Join texts that are already ids."""
        return cls(as_ids(texts), np.asarray(labels, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of ids of each text, `<bos>` and `<eos>` included."""
        return self.ids.lengths

    def text(self, i: int) -> NDArray[np.int32]:
        """The ids of text i."""
        return self.ids[i]

    def take(self, which: NDArray[np.int64]) -> "EncodedSplit":
        """The texts with these indices, in this order.

        >>> EncodedSplit.of([[2, 3], [2, 9, 3]], [0, 1]).take(np.array([1])).lengths
        array([3])
        """
        return EncodedSplit(self.ids.take(which), self.labels[which])

    def save(self, path: Path) -> None:
        """Write one Parquet file with a row per text: `ids` (list of int32) and `label` (int64)."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({"ids": self.ids.to_arrow(), "label": pa.array(self.labels)})
        write_atomically(path, lambda place: pq.write_table(table, place))

    @classmethod
    def load(cls, path: Path) -> "EncodedSplit":
        """Read what `save` wrote."""
        import pyarrow as pa

        try:
            schema = pa.schema({"ids": pa.list_(pa.int32()), "label": pa.int64()})
            table = read_numbers_and_texts(regular(path), schema.names).cast(schema)
            return cls(Ragged.from_arrow(table["ids"]), table["label"].to_numpy())
        except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
            raise DataError(f"{path}: damaged ({reason(error)}); delete it and run again") from error


@dataclass(frozen=True)
class Encoded:
    """An encoded corpus, and what was decided when it was encoded (`decisions`).

    `validation_words` are the words behind the validation ids, rare ones included, for display.
    """

    vocabulary: Vocabulary
    train: EncodedSplit
    validation: EncodedSplit
    test: EncodedSplit
    decisions: tuple[str, ...]
    validation_words: tuple[tuple[str, ...], ...] = ()


def encode(
    corpus: Corpus,
    *,
    min_count: int = 3,
    max_length: int = 400,
    max_validation: int | None = None,
    max_train: int | None = None,
    known: Container[str] = frozenset(),
    seed: int = 0,
) -> Encoded:
    """Encode a corpus with the vocabulary of its training texts (snell2021, A.8).

    `max_length` counts words without `<bos>` and `<eos>`; longer texts are cut, and counted in `decisions`.
    `max_train` and `max_validation` take stratified samples under `seed`, of one text per label at least. Words of
    `known` are in the vocabulary if a training text has them, however rarely.

    >>> train = Split(("a fine film", "a dull film", "a film"), (1, 0, 0))
    >>> encoded = encode(Corpus("tiny", ("bad", "good"), train, train, train), max_length=2)
    >>> encoded.vocabulary.words[4:], encoded.train.text(0)
    (('a',), array([2, 4, 1, 3], dtype=int32))
    >>> encoded.decisions[0]
    'train: 2 of 3 texts cut to 2 words'
    """
    if max_length < 1 or min_count < 1:
        raise DataError(f"max_length and min_count are at least 1, not {max_length} and {min_count}")
    train, validation = (
        sample(split, None if most is None else max(most, len(corpus.labels)), seed)
        for split, most in ((corpus.train, max_train), (corpus.validation, max_validation))
    )
    decisions = list(corpus.decisions)
    for name, used, every in (("train", train, corpus.train), ("validation", validation, corpus.validation)):
        if len(used) < len(every):
            decisions.append(f"{name}: {len(used):,} of {len(every):,} texts sampled, stratified, seed {seed}")
    words = {
        name: _words(name, split, corpus.rules, max_length, decisions)
        for name, split in (("train", train), ("validation", validation), ("test", corpus.test))
    }
    vocabulary = Vocabulary.build(words["train"], min_count, known)
    return Encoded(
        vocabulary,
        _encoded(vocabulary, words["train"], train),
        _encoded(vocabulary, words["validation"], validation),
        _encoded(vocabulary, words["test"], corpus.test),
        tuple(decisions),
        tuple(tuple(text) for text in words["validation"]),
    )


def _words(name: str, split: Split, rules: TokenRules, max_length: int, decisions: list[str]) -> list[list[str]]:
    texts = [tokenise(text, rules) for text in split.texts]
    cut = sum(len(text) > max_length for text in texts)
    wordless = sum(not text for text in texts)
    if cut:
        decisions.append(f"{name}: {cut:,} of {len(texts):,} texts cut to {max_length:,} words")
    if wordless:
        decisions.append(f"{name}: {wordless:,} of {len(texts):,} texts have no word and keep only their two ends")
    return [text[:max_length] for text in texts]


def _encoded(vocabulary: Vocabulary, texts: list[list[str]], split: Split) -> EncodedSplit:
    bos, eos = (np.array([end], dtype=np.int32) for end in (BOS, EOS))
    return EncodedSplit.of((np.concatenate((bos, vocabulary.ids(text), eos)) for text in texts), split.labels)


@dataclass
class FrequentWords:
    """Counts of at most `capacity` words at a time (Misra and Gries 1982, merged part by part).

    A count is too low by at most `missed`, which is 0 as long as all words fit; every word that occurred more often
    than `missed` is there. When there are more words than `capacity`, half of them are dropped, so `missed` never
    exceeds the number of words read divided by half the capacity.

    >>> words = FrequentWords(capacity=4)
    >>> words.add({"the": 5, "a": 3, "of": 1, "in": 1, "or": 1})
    >>> words.counts, words.missed
    (Counter({'the': 4, 'a': 2}), 1)
    """

    capacity: int
    counts: Counter[str] = field(default_factory=Counter)
    missed: int = 0

    def add(self, counts: Mapping[str, int]) -> None:
        """Add the counts of another part."""
        self.counts.update(counts)
        if len(self.counts) > self.capacity:
            dropped = sorted(self.counts.values(), reverse=True)[self.capacity // 2]
            self.counts = Counter({word: count - dropped for word, count in self.counts.items() if count > dropped})
            self.missed += dropped

    def vocabulary(self, size: int, min_count: int) -> Vocabulary:
        """The `size` most frequent words that occur `min_count` times or more, by frequency, then by spelling.

        >>> words = FrequentWords(capacity=9)
        >>> words.add({"b": 2, "a": 2, "c": 1})
        >>> words.vocabulary(size=5, min_count=2).words[4:]
        ('a', 'b')
        """
        return Vocabulary.most_frequent(self.counts, min_count - self.missed, size)
