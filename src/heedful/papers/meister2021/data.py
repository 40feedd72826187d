"""The pre-processing of Jain & Wallace (2019), which meister2021 follows: words without punctuation, length filters.

Lower-case; whatever is neither a letter nor a digit separates words; a word with a digit in it becomes `qqq`; texts
that are too short or too long are dropped; the vocabulary is that of the training texts. There is no `<bos>` and no
`<eos>`: the paper masks them, and a masked position is as good as removed.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heedful.data.catalog import data_directory
from heedful.data.corpus import Corpus, Split, divide, sample
from heedful.data.loading import open_data
from heedful.data.parallel import ParallelCorpus
from heedful.data.vocabulary import Encoded, EncodedSplit, Vocabulary
from heedful.errors import DataError
from heedful.storage.atomic_files import sha256

NUMBER = "qqq"
SEED = 0
VECTORS = "glove/glove.6B.100d.subset.float16.npz"
VECTORS_SHA256 = "7de6c97854b6bfe40616a5a208e9a13148dc76854fa91ed0c61bd93272bc8241"
VECTOR_WIDTH = 100


@dataclass(frozen=True)
class Rules:
    """What is kept of a corpus: texts of more than `shortest` and fewer than `longest` words.

    longest: None means the longest text of a split, which is therefore dropped, as in the released code. rarest: how
    many training texts a word has to occur in. splits: the corpus's own; `pooled`, all texts divided anew 64/16/20;
    `fifths`, a fifth of the training texts validate and a fifth of the test texts test.
    """

    shortest: int
    longest: int | None
    rarest: int
    splits: Literal["own", "pooled", "fifths"] = "own"


RULES = {
    "sst": Rules(5, None, 1),
    "20news-sport": Rules(6, 500, 2, "pooled"),
    "imdb": Rules(6, 400, 10, "fifths"),
}


@lru_cache(maxsize=4)
def encode_corpus(
    data: str, max_train: int | None = None, max_test: int | None = None, longest: int | None = None
) -> Encoded:
    """A corpus as ids; `max_train` and `max_test` take stratified samples of the training and of the other texts.

    longest: texts of so many words or more are dropped, whatever the corpus's own rule allows. Of a corpus that Jain &
    Wallace do not have, every other text that has a word is kept, with its digits.

    >>> encoded = encode_corpus("polarity", 50, 10)
    >>> len(encoded.train), len(encoded.validation), len(encoded.test), int(encoded.train.lengths.max())
    (50, 10, 10, 12)
    """
    corpus = open_data(data)
    if isinstance(corpus, ParallelCorpus):
        raise DataError(f"{data} holds sentence pairs; this pre-processing is of texts with labels")
    rules = RULES.get(data)
    decisions = list(corpus.decisions) if rules is None or rules.splits == "own" else []
    texts, labels = {}, {}
    for name, split in _divided(corpus, rules, decisions).items():
        kept = _fitting(name, split, rules, longest, decisions)
        used = sample(kept, max_train if name == "train" else max_test, SEED)
        if len(used) < len(kept):
            decisions.append(f"{name}: {len(used):,} of {len(kept):,} texts sampled, stratified, seed {SEED}")
        texts[name], labels[name] = [words(text, keep_numbers=rules is None) for text in used.texts], used.labels
    vocabulary = Vocabulary.build((sorted(set(text)) for text in texts["train"]), rules.rarest if rules else 1)
    encoded = {name: EncodedSplit.of(map(vocabulary.ids, texts[name]), labels[name]) for name in texts}
    return Encoded(vocabulary, encoded["train"], encoded["validation"], encoded["test"], tuple(decisions))


def words(text: str, *, keep_numbers: bool = False) -> list[str]:
    """The words of a text.

    >>> words("-LRB- It -RRB- was n't the 1920's ... <br />a re-imagining!")
    ['it', 'was', 'n', 't', 'the', 'qqq', 's', 'a', 're', 'imagining']
    """
    found = _WORD.findall(_NO_WORDS.sub(" ", text.lower()))
    return found if keep_numbers else [NUMBER if _DIGIT.search(word) else word for word in found]


_NO_WORDS = re.compile(r"-[lr]rb-|<br ?/?>")
_WORD = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")


def word_vectors(vocabulary: Vocabulary) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Which words of a vocabulary have a GloVe vector (Pennington et al. 2014), and those vectors, (words, 100).

    The file is the mirror's, a subset of 6B in 100 dimensions; Jain & Wallace have fastText in 300.
    """
    path = data_directory() / VECTORS
    if not path.is_file():
        raise DataError(f"{path}: there are no word vectors; point HEEDFUL_DATA at a mirror that has {VECTORS}")
    if sha256(path) != VECTORS_SHA256:
        raise DataError(f"{path}: this file has not the checksum it should have; get it again")
    with np.load(path, allow_pickle=False) as file:
        row = {word: i for i, word in enumerate(file["words"].tolist())}
        known = [i for i, word in enumerate(vocabulary.words) if word in row]
        chosen = file["vectors"][[row[vocabulary.words[i]] for i in known]]
    return np.array(known, dtype=np.int64), chosen.astype(np.float32)


def _divided(corpus: Corpus, rules: Rules | None, decisions: list[str]) -> Mapping[str, Split]:
    """The splits under their names, in the way of Jain & Wallace."""
    own = {"train": corpus.train, "validation": corpus.validation, "test": corpus.test}
    if rules is None or rules.splits == "own":
        return own
    if rules.splits == "pooled":
        pool = _joined(*own.values())
        test, rest = divide(pool, [len(pool) // 5], SEED)
        validation, train = divide(rest, [len(rest) // 5], SEED)
        decision = f"all {len(pool):,} texts divided anew, 64/16/20"
    else:
        unseen = _joined(corpus.validation, corpus.test)
        validation, train = divide(corpus.train, [len(corpus.train) // 5], SEED)
        test, _ = divide(unseen, [len(unseen) // 5], SEED)
        decision = "a fifth of the training texts validate, a fifth of the test texts test"
    decisions.append(f"{decision}, stratified, seed {SEED}")
    return {"train": train, "validation": validation, "test": test}


def _joined(*splits: Split) -> Split:
    return Split(
        tuple(text for split in splits for text in split.texts),
        tuple(label for split in splits for label in split.labels),
    )


def _fitting(name: str, split: Split, rules: Rules | None, longest: int | None, decisions: list[str]) -> Split:
    """The texts within the length limits."""
    lengths = np.array([len(words(text)) for text in split.texts])
    shortest = rules.shortest if rules else 0
    limits = [np.inf if longest is None else longest]
    if rules:
        limits.append(lengths.max(initial=0) if rules.longest is None else rules.longest)
    kept = np.flatnonzero((lengths > shortest) & (lengths < min(limits)))
    if len(kept) < len(split):
        reason = f"{shortest} words or fewer, or {min(limits):g} or more"
        decisions.append(f"{name}: {len(split) - len(kept):,} of {len(split):,} texts dropped: {reason}")
    return split.take(kept)
