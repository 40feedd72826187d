"""Quality of translations: BLEU; and of word alignments: error rate, precision, recall (Och & Ney 2003), and chance.

A link is (source position, target position). Gold has sure links S and possible links P ⊇ S.
"""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from heedful.data.ragged import Ragged
from heedful.errors import DataError
from heedful.metrics.agreement import first_maximum
from heedful.metrics.statistics import Estimate, bootstrap_ratio

Link = tuple[int, int]
Links = Collection[Link]


@dataclass(frozen=True)
class Bleu:
    """A corpus BLEU in [0, 100] and sacrebleu's signature."""

    score: float
    signature: str


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Bleu:
    """BLEU of hypotheses against one reference each.

    >>> round(corpus_bleu(["the cat sat on the mat"], ["the cat sat on the mat"]).score, 6)
    100.0
    """
    from sacrebleu.metrics.bleu import BLEU

    if len(hypotheses) != len(references) or not hypotheses:
        raise DataError(f"{len(hypotheses)} translations for {len(references)} references")
    metric = BLEU()
    score = metric.corpus_score(list(hypotheses), [list(references)]).score
    return Bleu(float(score), str(metric.get_signature()))


@dataclass(frozen=True)
class BleuGain:
    """How much better translations match their own references than those of other sentences, in BLEU.

    `others` is the BLEU against other sentences' references, which a model that ignores its source reaches too; `se`
    the standard error of `gain` by bootstrap over sentences.
    """

    bleu: float
    others: float
    gain: float
    se: float


def bleu_gain(hypotheses: Sequence[str], references: Sequence[str], *, resamples: int = 500, seed: int = 0) -> BleuGain:
    """BLEU against the references, less BLEU against the references moved on by one sentence.

    >>> sentences = ["a man sleeps in the sun", "two dogs run over a green field"]
    >>> round(bleu_gain(sentences, sentences).bleu), round(bleu_gain(["a b c d e"] * 2, ["a b c d e"] * 2).gain)
    (100, 0)
    """
    from sacrebleu.metrics.bleu import BLEU

    if len(hypotheses) != len(references) or not hypotheses:
        raise DataError(f"{len(hypotheses)} translations for {len(references)} references")
    metric, n = BLEU(effective_order=True), len(references)  # of a sentence's score only its counts are used
    moved = [*references[1:], references[0]]

    def counts(against: Sequence[str]) -> NDArray[np.float64]:
        scores = [metric.sentence_score(h, [r]) for h, r in zip(hypotheses, against, strict=True)]
        return np.array([[*s.counts, *s.totals, s.sys_len, s.ref_len] for s in scores], dtype=np.float64)

    right, wrong = counts(references), counts(moved)

    def score(sums: NDArray[np.float64]) -> float:
        correct, total = sums[:4].astype(int).tolist(), sums[4:8].astype(int).tolist()
        return float(BLEU.compute_bleu(correct, total, int(sums[8]), int(sums[9]), smooth_method="exp").score)

    drawn = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=resamples)
    gains = [score(w @ right) - score(w @ wrong) for w in drawn]
    own, others = score(right.sum(axis=0)), score(wrong.sum(axis=0))
    return BleuGain(own, others, own - others, float(np.std(gains)))


@dataclass(frozen=True, eq=False)
class AlignmentScores:
    """Scores of a corpus, intervals by bootstrap over sentences; and the AER of each sentence, NaN without links."""

    aer: Estimate
    precision: Estimate
    recall: Estimate
    per_sentence: NDArray[np.float64]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, without the single sentences."""
        return {name: getattr(self, name).to_dict() for name in ("aer", "precision", "recall")}


def alignment_scores(
    links: Sequence[Links], sure: Sequence[Links], possible: Sequence[Links] | None = None, *, seed: int = 0
) -> AlignmentScores:
    """Compare links A with gold links, over the corpus.

        precision = |A ∩ P| / |A|,   recall = |A ∩ S| / |S|,   AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

    Without `possible`, every link was sure.

    >>> scores = alignment_scores([{(0, 0), (1, 1)}], [{(0, 0)}], [{(0, 0), (2, 1)}])
    >>> round(scores.aer.value, 4), scores.precision.value, scores.recall.value
    (0.3333, 0.5, 1.0)
    """
    possible = sure if possible is None else possible
    if not len(links) == len(sure) == len(possible):
        raise DataError(f"{len(links)} sentences of links, {len(sure)} of sure and {len(possible)} of possible ones")
    counts = np.array([_counts(*three) for three in zip(links, sure, possible, strict=True)], dtype=np.float64)
    made, firm, hit_sure, hit_possible = counts.reshape(-1, 4).T
    with np.errstate(invalid="ignore", divide="ignore"):
        per_sentence = 1 - (hit_sure + hit_possible) / (made + firm)
    error, precision, recall = (
        bootstrap_ratio(part, whole, seed=seed)
        for part, whole in (
            (made + firm - hit_sure - hit_possible, made + firm),
            (hit_possible, made),
            (hit_sure, firm),
        )
    )
    return AlignmentScores(error, precision, recall, per_sentence)


def links_from_attention(
    alpha: Ragged | Sequence[ArrayLike], target_lengths: ArrayLike | None = None
) -> list[frozenset[Link]]:
    """Link each target word to the source word it attends to most (the first of several).

    `alpha` is one (T, L) matrix per sentence, or ragged rows with the number of target words of each sentence.

    >>> links_from_attention([[[0.1, 0.9], [0.6, 0.4]]]) == [{(1, 0), (0, 1)}]
    True
    >>> links_from_attention(Ragged.of([[0.1, 0.9], [0.6, 0.4], [1.0]]), [2, 1]) == [{(1, 0), (0, 1)}, {(0, 0)}]
    True
    """
    if not isinstance(alpha, Ragged):
        matrices = [np.asarray(matrix, dtype=np.float64) for matrix in alpha]
        for m, matrix in enumerate(matrices):
            if matrix.ndim != 2 or matrix.shape[1] == 0:
                raise DataError(f"the attention of sentence {m} has shape {matrix.shape}; it must be (T, L)")
        return [frozenset((int(s), t) for t, s in enumerate(matrix.argmax(axis=1))) for matrix in matrices]
    lengths = np.asarray(target_lengths if target_lengths is not None else [], dtype=np.int64)
    if int(lengths.sum()) != len(alpha):
        raise DataError(f"{len(alpha)} rows of attention, but {int(lengths.sum())} target words")
    if len(alpha) == 0:
        return [frozenset() for _ in lengths]
    tops = first_maximum(alpha)
    if len(tops) != len(alpha):
        raise DataError("the attention has NaN; every row needs a highest value")
    best = (tops - alpha.offsets[:-1]).tolist()
    ends = np.cumsum(lengths)
    return [
        frozenset((best[r], r - start) for r in range(start, end))
        for start, end in zip((ends - lengths).tolist(), ends.tolist(), strict=True)
    ]


def chance_aer(
    sure: Sequence[Links], source_lengths: ArrayLike, target_lengths: ArrayLike, possible: Sequence[Links] | None = None
) -> float:
    """The expected AER if every target word is linked to a random source word.

        1 − Σ (|S| + |P|)/L / Σ (T + |S|)

    >>> chance_aer([{(0, 0), (1, 1)}], [2], [2])
    0.5
    """
    possible = sure if possible is None else possible
    L = np.asarray(source_lengths, dtype=np.float64)
    T = np.asarray(target_lengths, dtype=np.float64)
    if not len(L) == len(T) == len(sure) == len(possible):
        raise DataError(f"{len(sure)} gold sentences, but lengths of {len(L)} source and {len(T)} target sentences")
    firm, loose = (np.array([len(set(links)) for links in gold], dtype=np.float64) for gold in (sure, possible))
    total = float(np.sum(T + firm))
    return 1 - float(np.sum((firm + loose) / L)) / total if total else math.nan


def diagonal_links(source_length: int, target_length: int) -> frozenset[Link]:
    """Link every target word to the source word at the same relative position, as a baseline.

    >>> sorted(diagonal_links(4, 2))
    [(1, 0), (3, 1)]
    """
    return frozenset(((2 * t + 1) * source_length // (2 * target_length), t) for t in range(target_length))


def attention_between_words(alpha: ArrayLike, source_words: ArrayLike, target_words: ArrayLike) -> NDArray[np.float64]:
    """Attention between subwords as attention between words.

    Summed over the subwords of a source word, averaged over those of a target word. `source_words` and `target_words`
    give the word of each position; -1 is left out.

    >>> attention_between_words([[0.2, 0.3, 0.5], [0.4, 0.4, 0.2]], [0, 0, 1], [0, 0])
    array([[0.65, 0.35]])
    """
    matrix = np.asarray(alpha, dtype=np.float64)
    source, target = np.asarray(source_words, dtype=np.int64), np.asarray(target_words, dtype=np.int64)
    if matrix.shape != (len(target), len(source)):
        raise DataError(
            f"attention is {matrix.shape}, the words are {len(target)} target by {len(source)} source positions"
        )
    onto = np.zeros((len(source), int(source.max(initial=-1)) + 1))
    onto[np.flatnonzero(source >= 0), source[source >= 0]] = 1
    mean = np.zeros((int(target.max(initial=-1)) + 1, len(target)))
    mean[target[target >= 0], np.flatnonzero(target >= 0)] = 1
    mean /= np.maximum(mean.sum(axis=1, keepdims=True), 1)
    result: NDArray[np.float64] = mean @ matrix @ onto
    return result


def _counts(links: Links, sure: Links, possible: Links) -> tuple[int, int, int, int]:
    made, firm = set(links), set(sure)
    return len(made), len(firm), len(made & firm), len(made & (firm | set(possible)))
