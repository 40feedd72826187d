"""The table of words on a page: which draw attention, or what they are translated as, in one run or in several."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from heedful.data.ragged import Ragged
from heedful.data.subwords import EncodedPairs, Subwords, Tokeniser
from heedful.data.vocabulary import BOS, EOS, PAD, UNK, EncodedSplit
from heedful.reports.html import Arrays
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory
from heedful.tracing.store import Trace

FEW_WORDS, MANY_WORDS = 20, 600


@dataclass(frozen=True)
class TokenTable:
    """Words that occur often enough, with n·α and β at each step, (steps, words) each.

    n·α is the weight a word draws over its share: 1 when attention is uniform, whatever the text's length (α itself
    would favour words of short texts).
    """

    ids: NDArray[np.int64]
    counts: NDArray[np.int64]
    least: int
    attention: NDArray[np.float32]
    beta: NDArray[np.float32]


def token_table(split: EncodedSplit, traces: Sequence[Trace], steps: Sequence[int]) -> TokenTable:
    """The words of a split seen five times or more, or less often where there are few such; at most `MANY_WORDS`."""
    every = np.bincount(split.ids)
    least = next((k for k in (5, 3, 2) if np.sum(every >= k) >= FEW_WORDS), 1)
    ids = np.flatnonzero(every >= least)
    ids = np.sort(ids[np.argsort(-every[ids], kind="stable")[:MANY_WORDS]])
    length = np.repeat(split.lengths, split.lengths)
    attention, beta = [], []
    for step in steps:
        weights = np.mean([trace.quantity("alpha", step).values for trace in traces], axis=0) * length
        known = np.mean([expit(trace.quantity("beta_logit", step).values) for trace in traces], axis=0)
        attention.append(_means(split.ids, weights, every)[ids])
        beta.append(_means(split.ids, known, every)[ids])
    return TokenTable(ids, every[ids], least, np.array(attention, np.float32), np.array(beta, np.float32))


def _means(ids: NDArray[np.int32], values: NDArray[np.floating], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = np.bincount(ids, weights=values, minlength=len(counts)) / np.maximum(counts, 1)
    return means


FEW_TRANSLATED, MANY_TRANSLATED, BEST = 20, 150, 3


@dataclass(frozen=True, eq=False)
class TranslationRanking:
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
    counting: TranslationRanking
    model_1: TranslationRanking
    attention: TranslationRanking
    knowledge: TranslationRanking


def translation_table(
    pairs: EncodedPairs, traces: Sequence[Trace], lexicon: Trace, steps: Sequence[int]
) -> TranslationTable:
    """The table of a split, from the standard models of all seeds; at most `MANY_TRANSLATED` words."""
    source, target = _words_of_cells(pairs)
    every = np.bincount(pairs.source.values)
    every[: EOS + 1] = 0
    least = next((k for k in (10, 5, 3, 2) if np.sum(every >= k) >= FEW_TRANSLATED), 1)
    ids = np.flatnonzero(every >= least)
    ids = np.sort(ids[np.argsort(-every[ids], kind="stable")[:MANY_TRANSLATED]])
    meet, meetings = _Meetings(source, target, ids), max(2, least // 2)

    def counted(step: int) -> TranslationRanking:
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

    def best(self, per_step: Sequence[NDArray[np.float64]]) -> TranslationRanking:
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
        return TranslationRanking(tokens, scores)

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


_SPECIAL = {PAD: "pad", UNK: "unknown", BOS: "start", EOS: "end"}
_WORD_BEGINS = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece's sign for a space


def special(token: int) -> str:
    """How a token that is no word is to be shown; empty for all others.

    >>> special(3), special(4)
    ('end', '')
    """
    return _SPECIAL.get(token, "")


def spelling(tokeniser: Tokeniser, tokens: Sequence[int] | NDArray[np.integer]) -> dict[str, list[Any]]:
    """The text of each token; what it is if it is no word; and whether it goes on with the word before it.

    >>> from heedful.data.subwords import Words
    >>> from heedful.data.vocabulary import Vocabulary
    >>> spelling(Words(Vocabulary.build([["ein"]], min_count=1)), [2, 4])
    {'words': ['<bos>', 'ein'], 'special': ['start', ''], 'joined': [0, 0]}
    """
    found: dict[str, list[Any]] = {"words": [], "special": [], "joined": []}
    for token in map(int, tokens):
        piece = _piece(tokeniser, token)
        begins = not isinstance(tokeniser, Subwords) or piece.startswith(_WORD_BEGINS)
        found["words"].append(piece.removeprefix(_WORD_BEGINS) or piece if isinstance(tokeniser, Subwords) else piece)
        found["special"].append(special(token))
        found["joined"].append(int(not begins and not special(token)))
    return found


def _piece(tokeniser: Tokeniser, token: int) -> str:
    if isinstance(tokeniser, Subwords):
        return str(tokeniser.processor.id_to_piece(token))
    words: tuple[str, ...] = tokeniser.vocabulary.words  # type: ignore[attr-defined]
    return words[token]


Spelt = tuple[str, str]


@dataclass(frozen=True)
class Told:
    """The words of one run.

    name: the run's, where there are several. places: which of its own steps is shown at each of the slider's; empty
    where they are the same. spelt: each row of the table as it is written, and what it is if no word.
    """

    table: TokenTable
    spelt: tuple[Spelt, ...]
    seeds: int
    name: str = ""
    places: tuple[int, ...] = ()


def told(
    run: RunDirectory, result: StudyResult, steps: Sequence[int], name: str = "", places: Sequence[int] = ()
) -> Told:
    """The words of a study, over its seeds."""
    traces = [run.model(ModelSpec("standard", seed)).trace() for seed in result.seeds]
    table, vocabulary = token_table(run.split("validation"), traces, steps), run.vocabulary().words
    spelt = tuple((vocabulary[i], special(int(i))) for i in table.ids)
    return Told(table, spelt, len(traces), name, tuple(places))


def attended_words(runs: Sequence[Told], arrays: Arrays) -> dict[str, Any]:
    """The words that all runs have, with n·α and β of each run."""
    rows = [{spelt: row for row, spelt in enumerate(one.spelt)} for one in runs]
    shared = [spelt for spelt in runs[0].spelt if all(spelt in one for one in rows)]
    for one, row_of in zip(runs, rows, strict=True):
        kept = [row_of[spelt] for spelt in shared]
        arrays.add(f"{_before(one.name)}tokens/attention", one.table.attention[:, kept])
        arrays.add(f"{_before(one.name)}tokens/beta", one.table.beta[:, kept])
    first = runs[0]
    return {
        "tokens": {
            "words": [word for word, _ in shared],
            "special": [kind for _, kind in shared],
            "counts": [int(first.table.counts[rows[0][spelt]]) for spelt in shared],
            "least": max(one.table.least for one in runs),
            "seeds": max(one.seeds for one in runs),
            "runs": [_shown(one.name, one.places) for one in runs],
        }
    }


@dataclass(frozen=True)
class Translated:
    """The source words of one run; see `Told`."""

    table: TranslationTable
    name: str = ""
    places: tuple[int, ...] = ()


def translated(
    run: RunDirectory, result: StudyResult, steps: Sequence[int], name: str = "", places: Sequence[int] = ()
) -> Translated:
    """What the source words of a study are translated as, over its seeds."""
    traces = [run.model(ModelSpec("standard", seed)).trace() for seed in result.seeds]
    lexicon = run.model(ModelSpec("lexicon", 0)).trace()
    return Translated(translation_table(run.pairs("validation"), traces, lexicon, steps), name, tuple(places))


def translated_words(runs: Sequence[Translated], first: RunDirectory, seeds: int, arrays: Arrays) -> dict[str, Any]:
    """The same source words in every run; what counting says of them is the first run's."""
    rankings = {name: getattr(runs[0].table, name) for name in ("counting", "model_1")}
    for one in runs:
        rankings |= {f"{_before(one.name)}{way}": getattr(one.table, way) for way in ("knowledge", "attention")}
    table = runs[0].table
    used = np.unique(np.concatenate([table.ids, *(ranking.tokens.ravel() for ranking in rankings.values())]))
    used = used[used >= 0]
    for name, ranking in rankings.items():
        places = np.where(ranking.tokens < 0, len(used), np.searchsorted(used, ranking.tokens))
        arrays.add(f"translations/{name}", places.astype(np.uint16))
        arrays.add(f"translations/{name}_score", ranking.scores)
    return {
        "translations": {
            "source": np.searchsorted(used, table.ids).tolist(),
            "counts": table.counts.tolist(),
            "least": table.least,
            "meetings": table.meetings,
            "seeds": seeds,
            "best": table.counting.tokens.shape[-1],
            "runs": [_shown(one.name, one.places) for one in runs],
            **spelling(first.tokeniser(), used),
        }
    }


def _before(name: str) -> str:
    return f"{name}/" if name else ""


def _shown(name: str, places: Sequence[int]) -> dict[str, Any]:
    return {"name": name, "places": list(places) or None}
