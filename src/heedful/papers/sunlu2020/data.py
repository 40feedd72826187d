"""The texts of sunlu2020: their splits, without `<bos>` and `<eos>`, and the class of every token.

The paper's texts have no ends, so none are attended to. The vocabulary is that of the training texts, every word of it:
γ asks for counts that a rare word cannot reach anyway. Words that only other texts have are `<unk>`, which no training
text has, so that its vector stays as it was drawn, as the vectors of unseen words do in the released code.
"""

from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpus import PLAIN, Corpus, Split, divide, sample
from heedful.data.loading import open_data
from heedful.data.parallel import ParallelCorpus
from heedful.data.synthetic.tasks import NEUTRAL, POLAR
from heedful.data.vocabulary import EncodedSplit, Vocabulary, encode
from heedful.errors import DataError
from heedful.metrics.association import even_tokens, token_counts, token_labels
from heedful.storage.serialization import LATER

SEED = 0
TOPICS = "topics"  # generated like `polarity`, with three labels
SHARES = {  # of training and dev texts in the paper
    "20news-sport": (0.64, 0.16),
    "20news-sport-sklearn": (0.64, 0.16),
    "20news-three": (0.817, 0.085),
    "20news-three-sklearn": (0.817, 0.085),
}
NEUTRAL_CLASS, NO_CLASS = -1, -2


@dataclass(frozen=True)
class Sample:
    """How much of a corpus is used: texts of each split, stratified, and words of each text; None: all of them.

    positive: the share of texts with the second of two labels in training and dev; others of them are left out.
    division: the seed under which a corpus without a test set is divided.
    """

    train: int | None = None
    validation: int | None = None
    test: int | None = None
    max_length: int = 500
    positive: float | None = field(default=None, metadata=LATER)
    division: int = field(default=SEED, metadata=LATER)


@dataclass(frozen=True, eq=False)
class SunLuTexts:
    """A corpus as the models are given it.

    counts: how often each token occurs in training texts of each label, before any are left out for the sake of their
    label. token_class: the label that a token goes with, `NEUTRAL_CLASS`, or `NO_CLASS`.
    """

    labels: tuple[str, ...]
    vocabulary: Vocabulary
    train: EncodedSplit
    validation: EncodedSplit
    test: EncodedSplit
    counts: NDArray[np.int64]
    token_class: NDArray[np.int64]

    @property
    def frequency(self) -> NDArray[np.int64]:
        """How often each token occurs in training texts."""
        frequency: NDArray[np.int64] = self.counts.sum(axis=1)
        return frequency


@lru_cache(maxsize=2)
def read_texts(data: str, sizes: Sample) -> SunLuTexts:
    """The corpus of that name, so much of it.

    >>> texts = read_texts("polarity", Sample(train=400, validation=10, test=10))
    >>> len(texts.train), int(texts.train.lengths.max()), texts.labels
    (400, 12, ('negative', 'positive'))
    >>> texts.vocabulary.words[int(np.flatnonzero(texts.token_class == 1)[0])][:3]
    'pos'
    """
    corpus = with_test_split(open_corpus(data), sizes.division)
    used = replace(
        corpus,
        train=sample(corpus.train, sizes.train, SEED),
        validation=sample(corpus.validation, sizes.validation, SEED),
        test=sample(corpus.test, sizes.test, SEED),
    )
    encoded = encode(used, min_count=1, max_length=sizes.max_length)
    train, validation, test = (_without_ends(split) for split in (encoded.train, encoded.validation, encoded.test))
    K = len(corpus.labels)
    counts = token_counts(train.ids, train.labels, vocabulary=len(encoded.vocabulary), classes=K)
    classes = token_labels(counts)
    classes[classes < 0] = NO_CLASS
    classes[even_tokens(counts)] = NEUTRAL_CLASS
    if sizes.positive is not None:
        train, validation = (thinned(split, sizes.positive) for split in (train, validation))
    return SunLuTexts(corpus.labels, encoded.vocabulary, train, validation, test, counts, classes)


def thinned(split: EncodedSplit, positive: float) -> EncodedSplit:
    """The split without so many texts of label 1, drawn under a fixed seed, that the share of those left is `positive`.

    >>> split = EncodedSplit.of([[4]] * 8, [0, 1] * 4)
    >>> thinned(split, 0.2).labels.tolist()
    [0, 0, 0, 1, 0]
    """
    if not 0 < positive <= split.labels.mean():
        raise DataError(
            f"a share of {positive} of label 1 cannot be had by leaving texts out of {split.labels.mean():.2f}"
        )
    ones = np.flatnonzero(split.labels == 1)
    count = max(1, round(positive / (1 - positive) * int((split.labels == 0).sum())))
    chosen = np.random.default_rng(SEED).permutation(ones)[:count]
    return split.take(np.sort(np.concatenate([np.flatnonzero(split.labels == 0), chosen])))


def open_corpus(data: str) -> Corpus:
    """The corpus of that name, all its words as they are, lower-cased; `topics` is generated here.

    >>> open_corpus("topics").labels
    ('first', 'second', 'third')
    """
    if data == TOPICS:
        return _topics()
    corpus = open_data(data)
    if isinstance(corpus, ParallelCorpus):
        raise DataError(f"{data} holds sentence pairs; polarity is of texts with labels")
    return replace(corpus, rules=PLAIN)


def with_test_split(corpus: Corpus, seed: int = SEED) -> Corpus:
    """Three splits: a corpus that has no test set is divided anew, all of it, in the paper's proportions.

    >>> with_test_split(open_corpus("polarity")).name
    'polarity'
    """
    if corpus.name not in SHARES:
        return corpus
    pool = Split(corpus.train.texts + corpus.validation.texts, corpus.train.labels + corpus.validation.labels)
    sizes = [round(share * len(pool)) for share in SHARES[corpus.name]]
    train, validation, test = divide(pool, sizes, seed)
    return replace(corpus, train=train, validation=validation, test=test)


def _without_ends(split: EncodedSplit) -> EncodedSplit:
    """The same texts without `<bos>` and `<eos>`; a text that has no word is left out."""
    kept = np.flatnonzero(split.lengths > 2)
    return EncodedSplit.of([split.text(int(i))[1:-1] for i in kept], split.labels[kept].tolist())


def _topics(size: int = 3000) -> Corpus:
    """Ten neutral words and two of the label's own 50, for three labels (as the paper's synthetic data for two)."""
    labels = ("first", "second", "third")
    rng = np.random.default_rng(9)

    def split(count: int) -> Split:
        label = rng.integers(len(labels), size=count)
        neutral = rng.integers(NEUTRAL, size=(count, 10))
        own = rng.integers(POLAR, size=(count, 2))
        texts = [
            " ".join([*(f"n{i}" for i in around), *(f"{labels[y]}{i}" for i in inside)])
            for around, inside, y in zip(neutral.tolist(), own.tolist(), label.tolist(), strict=True)
        ]
        return Split(tuple(texts), tuple(label.tolist()))

    return Corpus(TOPICS, labels, split(size), split(size // 10), split(size // 10), source="generated")
