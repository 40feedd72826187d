"""Evidence for a study's verdict: agreements on held-out texts beside three controls, and whether anything was learned.

An agreement counts by what it exceeds the largest of three controls by: Â (a random position), the matched shuffle (the
same position in other texts), and the wrong label (the probe asked for another label; of translations, for another
output word of the same sentence). On shuffled labels attention agrees as often with the probe of a wrong label as with
that of the right one, while both exceed Â and the shuffle.
"""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from heedful.data.ragged import Ragged
from heedful.data.subwords import Subwords, Words
from heedful.data.vocabulary import BOS, EOS
from heedful.metrics.agreement import agreement, first_maximum, other_word_agreement, shuffled_agreement
from heedful.metrics.statistics import (
    Estimate,
    SeedsAndTexts,
    bootstrap_mean,
    nested_estimate,
    nested_normal,
    nested_share,
)
from heedful.preflights.information import informativeness, label_targets
from heedful.studies.analysis import Pairing, Recordings, Rows, pairing
from heedful.studies.result import AgreementResult, Control, Convention, Evidence, Gate, TopPosition, Twin, decisive
from heedful.studies.run_directory import ModelSpec, model_of

MIN_TEXTS = 30  # validation texts or sentence pairs below which nothing is answered
MIN_BLEU = 2.0  # of a model that translates
PARTNERS = 4  # other seeds that each seed is compared with under *cross*
KINDS = ("word", "bos", "eos", "punctuation")  # of an input position
_ATTENTIONS = ("alpha_hat", "alpha_fr")  # of other models, compared word by word


def with_evidence(recordings: Recordings, agreements: Sequence[AgreementResult]) -> tuple[AgreementResult, ...]:
    """The agreements of a study, each with its evidence, and with the excess that decides."""
    measure = _Measurement(recordings)
    rows = []
    for row in agreements:
        evidence = measure.evidence(row.name, row.convention)
        rows.append(replace(row, excess=evidence.decisive_excess, evidence=evidence))
    return tuple(rows)


def evidence_of(recordings: Recordings, name: str, convention: Convention) -> Evidence:
    """The evidence of one agreement, such as `A(alpha,beta)`."""
    return _Measurement(recordings).evidence(name, convention)


@dataclass(frozen=True)
class _HeldOut:
    """One training's rows: A, Â, the matched shuffle and the wrong label; steps chosen on the other half of texts."""

    value: Rows
    random: Rows
    shuffle: Rows
    wrong: Rows


class _Measurement:
    """The recordings, and what is the same for all agreements."""

    def __init__(self, recordings: Recordings) -> None:
        self.recordings = recordings
        text = np.unique(recordings.example, return_inverse=True)[1]
        self.even = text % 2 == 0
        L = recordings.lengths
        self.random: Rows = -(-5 * L // 100) / L
        self.words = recordings.trace("standard", recordings.seeds[0]).label()

    @cached_property
    def is_word(self) -> NDArray[np.bool_]:
        """Of every input position: whether it is a word."""
        word: NDArray[np.bool_] = position_kinds(self.recordings) == KINDS.index("word")
        return word

    def evidence(self, name: str, convention: Convention) -> Evidence:
        v_name = name[2:-1].split(",")[1]
        words_only = v_name in _ATTENTIONS
        trainings = self._trainings(v_name, convention)
        seen = [self._held_out(pairing(self.recordings, name, convention, A, B), words_only) for A, B in trainings]
        seeds = [tuple(sorted({A, B})) for A, B in trainings]
        columns = [[getattr(each, column) for each in seen] for column in ("value", "random", "shuffle", "wrong")]
        sample = SeedsAndTexts.of(columns, seeds, self.recordings.example)
        names: tuple[Control, ...] = ("random", "shuffle", "wrong label")
        least = min(MIN_TEXTS, sample.sizes.shape[2] // 2)  # long texts may have no partner of their length
        enough = [i for i in (1, 2, 3) if (sample.sizes[i, 0] > 0).sum() >= max(1, least)]
        value = nested_share(sample)
        excess = nested_estimate(sample, lambda means: means[0] - means[enough].max(axis=0))
        means = sample.means()
        shuffle, wrong = (bootstrap_mean(np.mean(rows, axis=0), groups=self.recordings.example) for rows in columns[2:])
        return Evidence(
            value=value.models,
            value_seeds=value.seeds,
            excess=excess.models,
            excess_seeds=excess.seeds,
            random=float(means[1]),
            shuffle=shuffle,
            wrong=wrong if wrong.n else None,
            control=names[max(enough, key=lambda i: means[i]) - 1],
            seeds=len(self.recordings.seeds),
            words_only=words_only,
        )

    def _trainings(self, v_name: str, convention: Convention) -> list[tuple[int, int]]:
        """The pairs of seeds (A, B) to compare; under *own*, and with counts, each seed with itself."""
        seeds = self.recordings.seeds
        if convention == "own" or v_name == "alpha_ibm":
            return [(A, A) for A in seeds]
        n = len(seeds)
        return [(seeds[i], seeds[(i + k) % n]) for i in range(n) for k in range(1, min(n - 1, PARTNERS) + 1)]

    def _held_out(self, read: Pairing, words_only: bool) -> _HeldOut:
        if read.read_at is None:
            table = np.stack([agreement(*read.pair(step)) for step in read.steps])
            halves = [(self.even, _best(read, table[:, ~self.even])), (~self.even, _best(read, table[:, self.even]))]
        else:
            halves = [(np.ones_like(self.even), read.read_at)]
        columns = np.full((4, len(self.even)), np.nan)
        for step in {step for _, step in halves}:
            at_step = self._at(read, step, words_only)
            for rows, chosen in halves:
                if chosen == step:
                    columns[:, rows] = at_step[:, rows]
        return _HeldOut(*columns)

    def _at(self, read: Pairing, step: int, words_only: bool) -> NDArray[np.float64]:
        """A and its controls at one step, one column for each row."""
        u, v = read.pair(step)
        recordings = self.recordings
        shuffle = shuffled_agreement(u, v, position=recordings.output, text=recordings.example)
        wrong = np.full(len(u), np.nan)
        if read.wrong is not None:
            wrong = agreement(u, read.wrong(step))
        elif recordings.translating and not words_only:
            wrong = other_word_agreement(u, v, text=recordings.example, word=self.words)
        columns = np.stack([agreement(u, v), self.random, shuffle, wrong])
        return columns * self.is_word[first_maximum(u)] if words_only else columns


def _best(read: Pairing, table: NDArray[np.float64]) -> int:
    """The step of highest mean over the columns, the first of equals; the last step where there are none."""
    return read.steps[int(np.argmax(table.mean(axis=1)))] if table.shape[1] else read.steps[-1]


def position_kinds(recordings: Recordings) -> NDArray[np.int64]:
    """The place in `KINDS` of every input position of every row."""
    run = recordings.run
    if recordings.translating:
        source = run.pairs(_split(recordings)).source
        tokens = _tokens(run.tokeniser())
    else:
        source, tokens = run.split(_split(recordings)).ids, list(run.vocabulary().words)
    kinds = np.array([KINDS.index("punctuation" if is_punctuation(token) else "word") for token in tokens])
    kinds[[BOS, EOS]] = KINDS.index("bos"), KINDS.index("eos")
    rows = source.take(np.asarray(recordings.example, dtype=np.int64))
    found: NDArray[np.int64] = kinds[rows.values]
    return found


def is_punctuation(token: str) -> bool:
    """Whether a token consists of punctuation only; emoji and currency signs are words.

    >>> [is_punctuation(token) for token in (",", "▁...", "n't", "$", "")]
    [True, True, False, False, True]
    """
    marks = token.replace("▁", "")
    return all(unicodedata.category(mark)[0] in "PZC" or unicodedata.category(mark) in ("Sk", "Sm") for mark in marks)


def top_positions(recordings: Recordings) -> tuple[TopPosition, ...]:
    """Where the highest weight lies at each standard model's step of lowest loss."""
    kinds, shares = position_kinds(recordings), []
    for seed in recordings.seeds:
        top = kinds[first_maximum(recordings.quantity("standard", seed, "alpha", recordings.best_step(seed)))]
        share = {kind: float(np.mean(top == i)) for i, kind in enumerate(KINDS)}
        shares.append(TopPosition(seed, **share))
    return tuple(shares)


def measure_gate(recordings: Recordings) -> Gate:
    """Whether the standard models learned more than the most frequent label or word, by an interval.

    The step of a model is that of lowest validation loss on one half of the texts, its accuracy that on the other half.
    Translations must also have a BLEU of two or more, and match their own references better than those of other
    sentences: a model that ignores its source can learn to write, too.
    """
    seeds, labels = recordings.seeds, recordings.trace("standard", recordings.seeds[0]).label()
    run = recordings.run
    outputs = run.pairs("train").outputs.values if recordings.translating else run.split("train").labels
    frequent = int(np.argmax(np.bincount(outputs)))
    correct = np.stack([_correct(recordings, seed) for seed in seeds])
    baseline = np.broadcast_to(labels == frequent, correct.shape)
    sample = SeedsAndTexts.of([correct, baseline], [(seed,) for seed in seeds], recordings.example)
    accuracy = decisive(nested_share(sample), len(seeds))
    gain = decisive(nested_estimate(sample, lambda means: means[0] - means[1]), len(seeds))
    texts = sample.totals.shape[2]
    gate = Gate(gain.low > 0, texts, accuracy, _answer(recordings, frequent), float(np.mean(baseline)), gain)
    if recordings.translating:
        lines = [_best_line(recordings, ModelSpec("standard", seed)) for seed in seeds]
        bleu = float(np.mean([line["bleu"] for line in lines]))
        above = nested_normal([line["bleu_gain"] for line in lines], [line["bleu_gain_se"] for line in lines], texts)
        bleu_gain = decisive(above, len(seeds))
        passed = gate.passed and bleu >= MIN_BLEU and bleu_gain.low > 0
        return replace(gate, passed=passed, bleu=bleu, bleu_gain=bleu_gain)
    logistic = float(run.model(ModelSpec("logistic", 0)).metrics()[-1]["accuracy"])
    return replace(gate, logistic=logistic, preflight=None if gate.passed else _preflight(recordings))


def twin_accuracies(recordings: Recordings) -> dict[Twin, Estimate]:
    """Accuracy of the uniform twins and of the bag-of-words proxies, at their steps of lowest loss.

    A model that knows no more than the baseline can agree with another only in what both learned by heart. None of
    translations: a bag of words rarely guesses the next word, however well it knows which words go together, and there
    the control of another output word of the same sentence catches what was learned by heart.
    """
    accuracies: dict[Twin, Estimate] = {}
    if recordings.translating:
        return accuracies
    n, config = len(recordings.example), recordings.run.config()
    for kind in get_args(Twin):
        models = dict.fromkeys(model_of(config, ModelSpec(kind, seed)) for seed in recordings.seeds)
        right = [_best_line(recordings, model)["accuracy"] for model in models]
        errors = [math.sqrt(share * (1 - share) / n) for share in right]
        accuracies[kind] = decisive(nested_normal(right, errors, n), len(right))
    return accuracies


def _correct(recordings: Recordings, seed: int) -> Rows:
    """1 where a standard model is right, at the step of lowest loss on the other half of the texts."""
    trace = recordings.trace("standard", seed)
    loss = np.stack([np.logaddexp(0.0, -trace.log_odds(step).astype(np.float64)) for step in trace.steps])
    even = np.unique(recordings.example, return_inverse=True)[1] % 2 == 0
    rows = np.empty(len(even))
    for half in (even, ~even):
        others = loss[:, ~half] if (~half).any() else loss
        step = trace.steps[int(np.argmin(others.mean(axis=1)))]
        rows[half] = trace.correct(step)[half]
    return rows


def _best_line(recordings: Recordings, model: ModelSpec) -> dict[str, Any]:
    folder = recordings.run.model(model)
    step = int(folder.summary()["best_step"])
    return next(line for line in folder.metrics() if line["step"] == step)


def _answer(recordings: Recordings, frequent: int) -> str:
    if recordings.translating:
        return _tokens(recordings.run.tokeniser())[frequent].replace("▁", "")
    return str(recordings.labels[frequent])


def _tokens(tokeniser: object) -> list[str]:
    if isinstance(tokeniser, Subwords):
        return [tokeniser.processor.id_to_piece(i) for i in range(len(tokeniser))]
    assert isinstance(tokeniser, Words)
    return list(tokeniser.vocabulary.words)


def _split(recordings: Recordings) -> str:
    return "validation" if recordings.split == "validation" else "train_sample"


def _preflight(recordings: Recordings) -> str:
    """What counts of words and labels say of the training texts: learnable, uninformative or unclear."""
    train = recordings.run.split("train")
    inner = ~np.isin(train.ids.values, (BOS, EOS))
    lengths = np.bincount(train.ids.row_of[inner], minlength=len(train))
    words = Ragged.from_lengths(train.ids.values[inner], lengths)
    worded = np.flatnonzero(lengths > 0)
    if len(worded) < 2:
        return "uninformative"
    return informativeness(words.take(worded), label_targets(train.labels[worded])).verdict
