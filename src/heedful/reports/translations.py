"""What frequent source words are translated as: by counting words, by what the model knows, by where it attends.

Over the validation pairs alone, since that is where α and β are recorded: a word's translations are looked for among
the output words that stand opposite it there.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from heedful.data.subwords import EncodedPairs
from heedful.data.tokens import EOS
from heedful.measure.ragged import Ragged
from heedful.trace.store import Trace

FEW_WORDS, MANY_WORDS, BEST = 20, 150, 3


@dataclass(frozen=True, eq=False)
class Ranking:
    """The `BEST` best output words of each source word at each step, (steps, words, BEST); -1 where there are fewer."""

    tokens: NDArray[np.int64]
    scores: NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class TranslationTable:
    """Source words that occur often enough, with their translations.

    `counting` and `model_1` rank by Trans(o∣i) of the count table and of IBM Model 1's last iteration. `attention`
    ranks by the share of the word's attention that fell to it while o was said, Σ α[x_l = i, y_t = o] / Σ α[x_l = i].
    `knowledge` ranks by how much attending to the word alone raises the log-odds of o over attending to another word of
    the sentence, logit β_{t,l} less its mean over l, averaged over where i and o meet, `meetings` times or more.
    """

    ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    least: int
    meetings: int
    counting: Ranking
    model_1: Ranking
    attention: Ranking
    knowledge: Ranking


def translation_table(
    pairs: EncodedPairs, traces: Sequence[Trace], lexicon: Trace, steps: Sequence[int]
) -> TranslationTable:
    """The table of a split, from the standard models of all seeds; at most `MANY_WORDS` words."""
    source, target = _words_of_cells(pairs)
    every = np.bincount(pairs.source.values)
    every[: EOS + 1] = 0
    least = next((k for k in (10, 5, 3, 2) if np.sum(every >= k) >= FEW_WORDS), 1)
    ids = np.flatnonzero(every >= least)
    ids = np.sort(ids[np.argsort(-every[ids], kind="stable")[:MANY_WORDS]])
    meet, meetings = _Meetings(source, target, ids), max(2, least // 2)

    def counted(step: int) -> Ranking:
        return meet.best([meet.mean(expit(lexicon.quantity("beta_logit", step).values))])

    attention, knowledge = [], []
    for step in steps:
        alpha = np.mean([trace.quantity("alpha", step).values for trace in traces], axis=0)
        attention.append(meet.share(alpha))
        raised = meet.mean(np.mean([_over_row(trace.quantity("beta_logit", step)) for trace in traces], axis=0))
        knowledge.append(np.where(meet.counts >= meetings, raised, -np.inf))
    return TranslationTable(
        ids,
        every[ids],
        least,
        meetings,
        counted(lexicon.steps[0]),
        counted(lexicon.steps[-1]),
        meet.best(attention),
        meet.best(knowledge),
    )


class _Meetings:
    """Which source word meets which output word, over all cells; words outside `ids` and the ends take no part."""

    def __init__(self, source: NDArray[np.int64], target: NDArray[np.int64], ids: NDArray[np.int64]) -> None:
        self.size = len(ids)
        place = np.full(int(source.max()) + 1, -1)
        place[ids] = np.arange(len(ids))
        self.word = place[source]
        self.whole = self.word >= 0
        self.kept = np.flatnonzero(self.whole & (target > EOS))
        many = int(target.max()) + 1
        keys, self.meeting = np.unique(self.word[self.kept] * many + target[self.kept], return_inverse=True)
        self.words, self.targets = keys // many, keys % many
        self.counts = np.bincount(self.meeting, minlength=len(keys))

    def mean(self, cells: NDArray[np.floating]) -> NDArray[np.float64]:
        """The mean over the cells of each meeting."""
        return self._sum(cells) / self.counts

    def share(self, cells: NDArray[np.floating]) -> NDArray[np.float64]:
        """The sum over the cells of each meeting, over all cells of the source word."""
        whole = np.bincount(self.word[self.whole], weights=cells[self.whole], minlength=self.size)
        return self._sum(cells) / whole[self.words]

    def best(self, per_step: Sequence[NDArray[np.float64]]) -> Ranking:
        """The meetings of highest score of each source word; those of score −∞ never."""
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
        return Ranking(tokens, scores)

    def _sum(self, cells: NDArray[np.floating]) -> NDArray[np.float64]:
        weights = cells[self.kept].astype(np.float64)
        return np.asarray(np.bincount(self.meeting, weights=weights, minlength=len(self.counts)), dtype=np.float64)


def _words_of_cells(pairs: EncodedPairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The source word and the output word of every cell of every pair, in the order of a trace."""
    sides = list(zip(pairs.source, pairs.outputs, strict=True))
    source = np.concatenate([np.tile(s, len(t)) for s, t in sides])
    target = np.concatenate([np.repeat(t, len(s)) for s, t in sides])
    return source.astype(np.int64), target.astype(np.int64)


def _over_row(rows: Ragged) -> NDArray[np.float64]:
    """Each value less the mean of its row."""
    values = np.asarray(rows.values, dtype=np.float64)
    means = np.add.reduceat(values, rows.offsets[:-1]) / rows.lengths
    over: NDArray[np.float64] = values - np.repeat(means, rows.lengths)
    return over
