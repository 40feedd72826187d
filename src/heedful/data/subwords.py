"""Tokenisers and encoded sentence pairs: SentencePiece subwords (snell2021 A.8), or words for generated tasks.

Either way both sides share one vocabulary, and the first ids are `<pad>`, `<unk>`, `<bos>`, `<eos>`.
"""

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from heedful.data.parallel import Alignment, ParallelCorpus, ParallelSplit, parse_links
from heedful.data.ragged import Ragged, as_ids
from heedful.data.vocabulary import BOS, EOS, PAD, UNK, Vocabulary
from heedful.errors import DataError
from heedful.storage.atomic_files import reason, regular, write_atomically
from heedful.storage.parquet_pages import read_numbers_and_texts
from heedful.storage.run_files import read_bounded

SIZE = 8000
MAX_MODEL_BYTES = 1 << 26  # of a SentencePiece model; one of 8,000 subwords has some 400,000


@runtime_checkable
class Tokeniser(Protocol):
    """Encodes sentences as ids and decodes them."""

    def __len__(self) -> int:
        """The number of ids."""

    def encode(self, sentence: str) -> tuple[list[int], list[int]]:
        """The ids, without `<bos>` and `<eos>`, and the index of the word (split at spaces) that each is a part of."""

    def decode(self, ids: Sequence[int] | NDArray[np.int32]) -> str:
        """The sentence, without `<bos>`, `<eos>` and padding."""

    def save(self, path: Path) -> None:
        """Write it to a file that `load_tokeniser` reads."""


@dataclass(frozen=True)
class Subwords:
    """A SentencePiece model, as the bytes of its file."""

    model: bytes = field(repr=False)

    @cached_property
    def processor(self) -> Any:
        """The model, loaded."""
        from sentencepiece import SentencePieceProcessor

        try:
            return SentencePieceProcessor(model_proto=self.model)
        except RuntimeError as error:
            raise DataError(f"these {len(self.model):,} bytes are not a SentencePiece model") from error

    @cached_property
    def _known(self) -> dict[str, list[int]]:
        return {}

    def __len__(self) -> int:
        return int(self.processor.get_piece_size())

    def encode(self, sentence: str) -> tuple[list[int], list[int]]:
        """Word by word, so that each subword knows its word; subwords never cross a space."""
        ids: list[int] = []
        owners: list[int] = []
        for position, word in enumerate(sentence.split()):
            pieces = self._known.get(word)
            if pieces is None:
                pieces = self._known[word] = self.processor.encode(word)
            ids += pieces
            owners += [position] * len(pieces)
        return ids, owners

    def decode(self, ids: Sequence[int] | NDArray[np.int32]) -> str:
        """The sentence of these ids."""
        return str(self.processor.decode([int(i) for i in ids if i not in (PAD, BOS, EOS)]))

    def save(self, path: Path) -> None:
        """Write the SentencePiece model file."""
        write_atomically(path, lambda place: place.write_bytes(self.model))


@dataclass(frozen=True)
class Words:
    """Words as tokens, for sentences of words separated by spaces.

    >>> words = Words(Vocabulary.build([["ein", "Hund"]], min_count=1))
    >>> words.encode("ein Hund bellt"), words.decode([2, 5, 4, 3])
    (([5, 4, 1], [0, 1, 2]), 'ein Hund')
    """

    vocabulary: Vocabulary

    def __len__(self) -> int:
        return len(self.vocabulary)

    def encode(self, sentence: str) -> tuple[list[int], list[int]]:
        """One id per word."""
        ids = self.vocabulary.ids(sentence.split()).tolist()
        return ids, list(range(len(ids)))

    def decode(self, ids: Sequence[int] | NDArray[np.int32]) -> str:
        """The words, separated by spaces."""
        return " ".join(self.vocabulary.words[i] for i in ids if i not in (PAD, BOS, EOS))

    def save(self, path: Path) -> None:
        """Write the vocabulary as JSON."""
        self.vocabulary.save(path)


@dataclass(frozen=True, eq=False)
class EncodedPairs:
    """The pairs of one split as ids, each sentence `<bos> … <eos>` on both sides.

    `source_words` and `target_words` have the index of the word that each id is a part of, -1 for `<bos>` and `<eos>`.
    """

    source: Ragged
    target: Ragged
    source_words: Ragged
    target_words: Ragged
    alignments: tuple[Alignment, ...] | None = None

    def __len__(self) -> int:
        return len(self.source)

    @property
    def outputs(self) -> Ragged:
        """The ids a decoder has to predict: each target without its `<bos>`."""
        keep = np.ones(len(self.target.values), dtype=bool)
        keep[self.target.offsets[:-1]] = False
        return Ragged.from_lengths(self.target.values[keep], self.target.lengths - 1)

    def take(self, which: NDArray[np.int64]) -> "EncodedPairs":
        """The pairs with these indices, in this order."""
        gold = None if self.alignments is None else tuple(self.alignments[int(i)] for i in which)
        source, target, source_words, target_words = (getattr(self, name).take(which) for name in _COLUMNS)
        return EncodedPairs(source, target, source_words, target_words, gold)

    def save(self, path: Path) -> None:
        """Write one Parquet file with a row per pair: ids and word positions of both sides, gold links as text."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        columns = {name: getattr(self, name).to_arrow() for name in _COLUMNS}
        if self.alignments is not None:
            columns["alignment"] = pa.array([str(alignment) for alignment in self.alignments], pa.string())
        write_atomically(path, lambda place: pq.write_table(pa.table(columns), place))

    @classmethod
    def load(cls, path: Path) -> "EncodedPairs":
        """Read what `save` wrote."""
        import pyarrow as pa

        try:
            table = read_numbers_and_texts(regular(path), (*_COLUMNS, "alignment"))
            source, target, source_words, target_words = (Ragged.from_arrow(table[name]) for name in _COLUMNS)
            gold = None
            if "alignment" in table.column_names:
                gold = tuple(parse_links(str(line), where=str(path)) for line in table["alignment"].to_pylist())
            return cls(as_ids(source), as_ids(target), source_words, target_words, gold)
        except (OSError, KeyError, ValueError, TypeError, AttributeError, pa.ArrowException) as error:
            raise DataError(f"{path}: damaged ({reason(error)}); delete it and run again") from error


_COLUMNS = ("source", "target", "source_words", "target_words")


def train_subwords(sentences: Iterable[str], size: int = SIZE) -> tuple[Subwords, tuple[str, ...]]:
    """A SentencePiece model (unigram, every character covered), and decisions.

    The same sentences give the same bytes. A small corpus may not have `size` subwords; it then gets as many as it has.

    >>> model, decisions = train_subwords(["ein Hund bellt", "a dog barks"] * 3)
    >>> decisions[0].startswith("8,000 subwords were asked for; the training sentences have")
    True
    """
    from sentencepiece import SentencePieceTrainer

    texts = list(sentences)
    if not any(text.strip() for text in texts):
        raise DataError("subwords need at least one training sentence with words")
    options: dict[str, Any] = {
        "vocab_size": size,
        "pad_id": PAD,
        "unk_id": UNK,
        "bos_id": BOS,
        "eos_id": EOS,
        "character_coverage": 1.0,
        "num_threads": 1,  # the order of sums would vary with more
        "minloglevel": 2,
    }
    for hard in (True, False):
        written = io.BytesIO()
        try:
            SentencePieceTrainer.train(
                sentence_iterator=iter(texts), model_writer=written, hard_vocab_limit=hard, **options
            )
        except RuntimeError as error:
            if "too high" in str(error) and hard:
                continue
            raise DataError(f"SentencePiece cannot make {size:,} subwords of these sentences: {error}") from error
        break
    model = Subwords(written.getvalue())
    if len(model) == size:
        return model, ()
    return model, (f"{size:,} subwords were asked for; the training sentences have only {len(model):,}",)


def fit_tokeniser(corpus: ParallelCorpus, size: int = SIZE) -> tuple[Tokeniser, tuple[str, ...]]:
    """The tokeniser of a corpus, trained on both sides of its training split, and decisions.

    >>> train = ParallelSplit(("1 2",), ("2 1",))
    >>> tokeniser, _ = fit_tokeniser(ParallelCorpus("tiny", train, train, train, in_words=True))
    >>> len(tokeniser)
    6
    """
    sentences = corpus.train.sources + corpus.train.targets
    if corpus.in_words:
        return Words(Vocabulary.build((sentence.split() for sentence in sentences), min_count=1)), ()
    return train_subwords(sentences, size)


def load_tokeniser(path: Path) -> Tokeniser:
    """Read what a tokeniser's `save` wrote: a SentencePiece model, or a vocabulary where the name ends in `.json`."""
    if path.suffix == ".json":
        return Words(Vocabulary.load(path))
    regular(path)
    try:
        model = Subwords(read_bounded(path, MAX_MODEL_BYTES))
        if len(model) == 0:  # a damaged model is found here, not in the middle of a run
            raise DataError("there is no piece in it")
    except (OSError, DataError) as error:
        raise DataError(f"{path}: damaged ({reason(error)}); delete it and run again") from error
    return model


def encode_pairs(split: ParallelSplit, tokeniser: Tokeniser, *, source_bos: bool = True) -> EncodedPairs:
    """Every sentence of a split as ids between `<bos>` and `<eos>`; sources without `<bos>` if `source_bos` is false.

    >>> words = Words(Vocabulary.build([["a", "b"]], min_count=1))
    >>> encoded = encode_pairs(ParallelSplit(("a b",), ("b",)), words)
    >>> encoded.source[0], encoded.source_words[0]
    (array([2, 4, 5, 3], dtype=int32), array([-1,  0,  1, -1], dtype=int32))
    """
    source, source_words = _side(split.sources, tokeniser, bos=source_bos)
    target, target_words = _side(split.targets, tokeniser, bos=True)
    return EncodedPairs(source, target, source_words, target_words, split.alignments)


def _side(sentences: Sequence[str], tokeniser: Tokeniser, *, bos: bool) -> tuple[Ragged, Ragged]:
    values: list[int] = []
    words: list[int] = []
    lengths = np.empty(len(sentences), dtype=np.int64)
    for m, sentence in enumerate(sentences):
        ids, owners = tokeniser.encode(sentence)
        values += [BOS, *ids, EOS] if bos else [*ids, EOS]
        words += [-1, *owners, -1] if bos else [*owners, -1]
        lengths[m] = len(ids) + 1 + bos
    as_rows = [Ragged.from_lengths(np.array(column, dtype=np.int32), lengths) for column in (values, words)]
    return as_rows[0], as_rows[1]
