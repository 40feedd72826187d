"""Words over training on a study's page: the attention each draws, what each predicts, and their translations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from heedful.data.ragged import Ragged
from heedful.data.subwords import EncodedPairs
from heedful.data.vocabulary import EOS, EncodedSplit
from heedful.tracing.store import Trace

FEW_WORDS, MANY_WORDS = 20, 600
FEW_TRANSLATED, MANY_TRANSLATED, BEST = 20, 150, 3
MOST_MOMENTS = 4
NOTICED, FOUND = 1.5, 0.5  # attention from which a word is noticed: 1.5 equal shares; half of what a source word draws


@dataclass(frozen=True)
class Moment:
    """A recorded step, by its place among them, at which attention comes to a word for good; to: what it translates."""

    place: int
    word: int
    to: int | None = None


@dataclass(frozen=True)
class AttendedWords:
    """Words that occur often enough, with n·α and β at each step, (steps, words) each.

    n·α is the weight a word draws over its share: 1 when attention is uniform, whatever the text's length (α itself
    would favour words of short texts). polarity: the mean log-odds of the second of two labels if the model attends to
    the word alone; None where there are not two known labels. moments: when attention came to some of the words.
    """

    ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    least: int
    seeds: int
    attention: NDArray[np.float32]
    beta: NDArray[np.float32]
    polarity: NDArray[np.float32] | None = None
    moments: tuple[Moment, ...] = ()


@dataclass(frozen=True, eq=False)
class TranslationRanking:
    """The `BEST` best output words of each source word at each step, (steps, words, BEST); -1 where there are fewer."""

    tokens: NDArray[np.int64]
    scores: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TranslatedWords:
    """Source words that occur often enough, with their translations.

    `counting` and `model_1` rank by Trans(o∣i) of the count table and of IBM Model 1's last iteration. `attention`
    ranks by the share of the word's attention that fell to it while o was said, Σ α[x_l = i, y_t = o] / Σ α[x_l = i].
    `knowledge` ranks by how much attending to the word alone raises the log-odds of o over attending to another word of
    the sentence, logit β_{t,l} less its mean over l, averaged over where i and o meet, `meetings` times or more.

    course, raised: (steps, words), that share of attention and that gain in log-odds for one fixed translation of each
    word, the best by IBM Model 1. moments: when attention came to some of these translations.
    """

    ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    least: int
    seeds: int
    meetings: int
    counting: TranslationRanking
    model_1: TranslationRanking
    attention: TranslationRanking
    knowledge: TranslationRanking
    course: NDArray[np.float32]
    raised: NDArray[np.float32]
    moments: tuple[Moment, ...] = ()


def attended_words(
    split: EncodedSplit, traces: Sequence[Trace], steps: Sequence[int], *, polar: bool = False
) -> AttendedWords:
    """The words of a split seen five times or more, or less often where there are few such; at most `MANY_WORDS`.

    polar: there are two labels, which are known.
    """
    counts = np.bincount(split.ids.values)
    ids, least = _frequent(counts, (5, 3, 2), FEW_WORDS, MANY_WORDS)
    length = np.repeat(split.lengths, split.lengths)
    side = np.repeat(2.0 * split.labels - 1, split.lengths)
    attention, beta, polarity = [], [], []
    for step in steps:
        weights = np.mean([trace.quantity("alpha", step).values for trace in traces], axis=0) * length
        logits = np.stack([trace.quantity("beta_logit", step).values for trace in traces])
        attention.append(_means(split.ids.values, weights, counts)[ids])
        beta.append(_means(split.ids.values, expit(logits).mean(axis=0), counts)[ids])
        polarity.append(_means(split.ids.values, side * logits.mean(axis=0), counts)[ids])
    means = np.array(attention, np.float32), np.array(beta, np.float32)
    named = [m for m in moments(means[0], NOTICED) if ids[m.word] > EOS]
    return AttendedWords(
        ids,
        counts[ids],
        least,
        len(traces),
        *means,
        polarity=np.array(polarity, np.float32) if polar else None,
        moments=_spaced(named),
    )


def moments(course: NDArray[np.float32], threshold: float) -> list[Moment]:
    """When each word passes a threshold for good, those that end highest first; course: (steps, words).

    A word that is above it from the first step on has no such moment.

    >>> moments(np.array([[1.0, 1, 2], [2.0, 1, 2], [1, 3, 2], [1.6, 4, 2]], dtype=np.float32), 1.5)
    [Moment(place=2, word=1, to=None), Moment(place=3, word=0, to=None)]
    """
    below = course < threshold
    last_below = len(course) - 1 - np.argmax(below[::-1], axis=0)
    passing = np.flatnonzero(below.any(axis=0) & ~below[-1])
    order = passing[np.argsort(-course[-1, passing], kind="stable")]
    return [Moment(int(last_below[word]) + 1, int(word)) for word in order]


def _spaced(found: Sequence[Moment]) -> tuple[Moment, ...]:
    """The first of each step, at most `MOST_MOMENTS`, in the order of training."""
    first: dict[int, Moment] = {}
    for moment in found:
        first.setdefault(moment.place, moment)
    return tuple(sorted(list(first.values())[:MOST_MOMENTS], key=lambda moment: moment.place))


def _means(ids: NDArray[np.int32], values: NDArray[np.floating], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = np.bincount(ids, weights=values, minlength=len(counts)) / np.maximum(counts, 1)
    return means


def translated_words(
    pairs: EncodedPairs, traces: Sequence[Trace], lexicon: Trace, steps: Sequence[int]
) -> TranslatedWords:
    """The table of a split, from the standard models of all seeds; at most `MANY_TRANSLATED` words."""
    source, target = _words_of_cells(pairs)
    counts = np.bincount(pairs.source.values)
    counts[: EOS + 1] = 0
    ids, least = _frequent(counts, (10, 5, 3, 2), FEW_TRANSLATED, MANY_TRANSLATED)
    words, meetings = _CoOccurrences(source, target, ids), max(2, least // 2)

    def counted(step: int) -> TranslationRanking:
        return words.best([words.mean(expit(lexicon.quantity("beta_logit", step).values))])

    attention, knowledge = [], []
    for step in steps:
        alpha = np.mean([trace.quantity("alpha", step).values for trace in traces], axis=0)
        attention.append(words.share(alpha))
        raised = words.mean(np.mean([_over_row(trace.quantity("beta_logit", step)) for trace in traces], axis=0))
        knowledge.append(np.where(words.counts >= meetings, raised, -np.inf))
    model_1 = counted(lexicon.steps[-1])
    pairs_of_words = words.pairs_with(model_1.tokens[0, :, 0])
    there = pairs_of_words >= 0
    course = np.array([np.where(there, share[pairs_of_words], 0.0) for share in attention], np.float32)
    gained = [np.where(np.isfinite(each), each, 0.0) for each in knowledge]
    translated = [replace(m, to=int(model_1.tokens[0, m.word, 0])) for m in moments(course, FOUND)]
    return TranslatedWords(
        ids,
        counts[ids],
        least,
        len(traces),
        meetings,
        counted(lexicon.steps[0]),
        model_1,
        words.best(attention),
        words.best(knowledge),
        course,
        np.array([np.where(there, each[pairs_of_words], 0.0) for each in gained], np.float32),
        _spaced(translated),
    )


class _CoOccurrences:
    """Which source word stands opposite which output word, over all cells; only the words `ids`, without the ends."""

    def __init__(self, source: NDArray[np.int64], target: NDArray[np.int64], ids: NDArray[np.int64]) -> None:
        self.size = len(ids)
        place = np.full(int(source.max()) + 1, -1)
        place[ids] = np.arange(len(ids))
        self.word = place[source]
        self.of_words = self.word >= 0
        self.used = np.flatnonzero(self.of_words & (target > EOS))
        many = int(target.max()) + 1
        keys, self.pair = np.unique(self.word[self.used] * many + target[self.used], return_inverse=True)
        self.words, self.targets = keys // many, keys % many
        self.counts = np.bincount(self.pair, minlength=len(keys))

    def mean(self, cells: NDArray[np.floating]) -> NDArray[np.float64]:
        """The mean over the cells of each pair of words."""
        return self._sum(cells) / self.counts

    def share(self, cells: NDArray[np.floating]) -> NDArray[np.float64]:
        """The sum over the cells of each pair of words, as a share of all cells of its source word."""
        total = np.bincount(self.word[self.of_words], weights=cells[self.of_words], minlength=self.size)
        return self._sum(cells) / total[self.words]

    def pairs_with(self, targets: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each word the place of its pair with that output word; -1 where they never meet."""
        place = {(int(i), int(o)): k for k, (i, o) in enumerate(zip(self.words, self.targets, strict=True))}
        return np.array([place.get((i, int(o)), -1) for i, o in enumerate(targets)], dtype=np.int64)

    def best(self, per_step: Sequence[NDArray[np.float64]]) -> TranslationRanking:
        """The output words of highest score of each source word; those of score −∞ never."""
        shape = len(per_step), self.size, BEST
        tokens, scores = np.full(shape, -1), np.zeros(shape, dtype=np.float32)
        for step, score in enumerate(per_step):
            order = np.lexsort((self.targets, -score, self.words))
            order = order[score[order] > -np.inf]
            words = self.words[order]
            place = np.arange(len(order)) - np.searchsorted(words, words)
            for k in range(BEST):
                chosen = order[place == k]
                tokens[step, self.words[chosen], k] = self.targets[chosen]
                scores[step, self.words[chosen], k] = score[chosen]
        return TranslationRanking(tokens, scores)

    def _sum(self, cells: NDArray[np.floating]) -> NDArray[np.float64]:
        weights = cells[self.used].astype(np.float64)
        return np.asarray(np.bincount(self.pair, weights=weights, minlength=len(self.counts)), dtype=np.float64)


def _words_of_cells(pairs: EncodedPairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The source word and the output word of every cell of every pair, in the order of a trace."""
    sentences = list(zip(pairs.source, pairs.outputs, strict=True))
    source = np.concatenate([np.tile(s, len(t)) for s, t in sentences])
    target = np.concatenate([np.repeat(t, len(s)) for s, t in sentences])
    return source.astype(np.int64), target.astype(np.int64)


def _over_row(rows: Ragged) -> NDArray[np.float64]:
    """Each value less the mean of its row."""
    values = np.asarray(rows.values, dtype=np.float64)
    means = np.add.reduceat(values, rows.offsets[:-1]) / rows.lengths
    over: NDArray[np.float64] = values - np.repeat(means, rows.lengths)
    return over


def _frequent(
    counts: NDArray[np.int64], thresholds: Sequence[int], few: int, many: int
) -> tuple[NDArray[np.int64], int]:
    """The words that occur often enough, at most `many`; and how often: the first threshold that `few` reach."""
    least = next((k for k in thresholds if np.sum(counts >= k) >= few), 1)
    ids = np.flatnonzero(counts >= least)
    return np.sort(ids[np.argsort(-counts[ids], kind="stable")[:many]]), least
