"""Analysis of recorded traces: agreements between α, β and Δ, entropy, alignment error.

Two conventions (SPEC §2), for each seed A of a study and its successor B:

*own*    α and Δ of A at its last step; β of A at its last step; β^uf and α^fr of A's own models.
*cross*  α and Δ of A at its best-validation step; β, β^uf and α^fr of B's models; the proxy or logistic probe as first
         argument. This is what the paper's released code does, and what its numbers match.

Quantities of another model are read at the recorded step of highest agreement, as in the paper (A.7).

Kendall's τ-b can take the place of A, and the sample of training texts that of the validation texts (snell2021,
Tables 3, 4, 7 and 8).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heedful.data.parallel import Alignment
from heedful.data.ragged import Ragged
from heedful.data.subwords import EncodedPairs
from heedful.metrics.agreement import (
    agreement,
    contextualised_agreement,
    contextualised_estimate,
    maximum_over_steps,
    random_agreement,
    shuffled_agreement,
)
from heedful.metrics.entropy import normalised_entropy
from heedful.metrics.rank import kendall_tau_b
from heedful.metrics.statistics import (
    Estimate,
    NestedEstimate,
    SeedsAndTexts,
    mean_over_seeds,
    nested_share,
    nested_tau,
)
from heedful.metrics.translation_quality import (
    Link,
    Links,
    alignment_scores,
    attention_between_words,
    chance_aer,
    diagonal_links,
    links_from_attention,
)
from heedful.studies.result import AgreementResult, AlignmentResult, Convention, Curve, decisive
from heedful.studies.run_directory import ModelKind, ModelSpec, Recorded, RunDirectory, model_of
from heedful.tracing.store import WRONG, Trace

Rows = NDArray[np.float64]  # one value per output word
MeasureName = Literal["agreement", "kendall"]


class Recordings:
    """The recorded quantities of every model at every step, each read once."""

    def __init__(self, run: RunDirectory, split: Recorded = "validation") -> None:
        self.run, self.split = run, split
        config = run.config()
        self.seeds, self.translating = config.seeds, run.is_translation()
        self.trace: Callable[[ModelKind, int], Trace] = cache(
            lambda kind, seed: run.model(model_of(config, ModelSpec(kind, seed))).trace(split)
        )
        self.quantity: Callable[[ModelKind, int, str, int], Ragged] = cache(
            lambda kind, seed, name, step: self.trace(kind, seed).quantity(name, step)
        )
        first = self.trace("standard", self.seeds[0])
        self.example, self.output = first.example(), first.output()
        self.lengths = first.quantity("alpha", first.steps[0]).lengths
        self.labels: list[str] = run.data_summary()["labels"]

    def other(self, seed: int) -> int:
        """The seed that a seed is compared with: its successor."""
        return self.seeds[(self.seeds.index(seed) + 1) % len(self.seeds)]

    def steps(self, kind: ModelKind, seed: int) -> tuple[int, ...]:
        """The steps at which a model was recorded."""
        return self.trace(kind, seed).steps

    def best_step(self, seed: int) -> int:
        """The standard model's step of lowest validation loss, the first of equals."""
        return int(self.run.model(ModelSpec("standard", seed)).summary()["best_step"])

    def correct(self, kind: ModelKind, seed: int, step: int) -> Rows:
        """1 where the model's prediction was right."""
        return self.trace(kind, seed).correct(step).astype(np.float64)

    def probe(self, kind: ModelKind, seed: int) -> Ragged:
        """β^px or β^log of each position, on the log-odds scale."""
        return self.quantity(kind, seed, "beta_logit", self.steps(kind, seed)[-1])

    def wrong_probe(self, kind: ModelKind, seed: int, step: int) -> Ragged:
        """β, β^uf, β^px or β^log of each position for a wrong label, on the log-odds scale; classification only."""
        if len(self.labels) > 2:
            return self.quantity(kind, seed, WRONG, step)
        right = self.quantity(kind, seed, "beta_logit", step)
        return Ragged(-right.values, right.offsets)


@dataclass(frozen=True)
class _Measure:
    """A measure of two quantities: a value per row, the number of ties (or undefined rows), and its chance levels."""

    rows: Callable[[Ragged, Ragged], tuple[Rows, int]]
    shuffled: Callable[[Ragged, Ragged, Recordings], Rows]
    random: Callable[[NDArray[np.int64]], float]
    estimate: Callable[[SeedsAndTexts], NestedEstimate]
    limits: tuple[float, float]


_MEASURES: dict[MeasureName, _Measure] = {
    "agreement": _Measure(
        lambda u, v: agreement(u, v, return_ties=True),
        lambda u, v, seen: shuffled_agreement(u, v, position=seen.output, text=seen.example),
        random_agreement,
        nested_share,
        (0.0, 1.0),
    ),
    # τ of unrelated orders is 0 on average whatever the length; a matched shuffle is left to A.
    "kendall": _Measure(
        lambda u, v: kendall_tau_b(u, v, return_undefined=True),
        lambda u, v, seen: np.zeros(len(u)),
        lambda lengths: 0.0,
        nested_tau,
        (-1.0, 1.0),
    ),
}


@dataclass(frozen=True)
class Pairing:
    """A(u, v) for one seed: the two quantities at each recorded step of the model whose quantity varies.

    wrong: v of a wrong label, where v is a probe of a classifier.
    """

    steps: tuple[int, ...]
    pair: Callable[[int], tuple[Ragged, Ragged]]
    read_from: tuple[ModelKind, int]
    read_at: int | None  # None: at the step of highest agreement
    wrong: Callable[[int], Ragged] | None = None


@dataclass(frozen=True)
class _Reading:
    """One seed's agreement, read at one step."""

    rows: Rows
    shuffle: Rows
    ties: int
    curve: tuple[float, ...]
    step: int
    accuracy: float
    split_half: float


def measure_agreements(recordings: Recordings, measure: MeasureName = "agreement") -> tuple[AgreementResult, ...]:
    """All agreements of a study under both conventions; `kendall` takes τ-b in place of A."""
    by, results = _MEASURES[measure], []
    for convention in ("own", "cross"):
        climb = _climb(recordings, convention, by)
        for name in _names(recordings.translating, convention):
            pairings = [pairing(recordings, name, convention, A) for A in recordings.seeds]
            results.append(_summarise(recordings, name, convention, pairings, climb, by))
    return tuple(results)


def final_performance(recordings: Recordings) -> Estimate:
    """ξ*: the standard models' performance at the end of training."""
    rows = [recordings.correct("standard", seed, recordings.steps("standard", seed)[-1]) for seed in recordings.seeds]
    return _over_trainings(recordings, rows, nested_share)


def attention_entropy(recordings: Recordings) -> tuple[Curve, Estimate]:
    """H̃ of the standard models' attention over training, and at the end."""
    seeds, steps = recordings.seeds, recordings.steps("standard", recordings.seeds[0])
    table = [
        [normalised_entropy(recordings.quantity("standard", seed, "alpha", step)) for seed in seeds] for step in steps
    ]
    final = _over_trainings(recordings, table[-1], nested_share)
    return Curve(steps, tuple(float(np.nanmean(rows)) for rows in table)), final


def _over_trainings(
    recordings: Recordings,
    rows: Sequence[Rows],
    estimate: Callable[[SeedsAndTexts], NestedEstimate],
    partners: Sequence[int] | None = None,
) -> Estimate:
    """The mean of some rows, one array for each seed, with the interval that decides; undefined rows are counted.

    partners: the other seed that each one's rows involve, where they compare two.
    """
    involved = [tuple(sorted({A, B})) for A, B in zip(recordings.seeds, partners or recordings.seeds, strict=True)]
    sample = SeedsAndTexts.of([rows], involved, recordings.example)
    mean = decisive(estimate(sample), len(recordings.seeds))
    return replace(mean, undefined=int(np.isnan(rows).any(axis=0).sum()))


def _names(translating: bool, convention: Convention) -> tuple[str, ...]:
    def between(probe: str) -> str:
        return f"A(beta_uf,{probe})" if convention == "own" else f"A({probe},beta_uf)"

    names = ["A(alpha,beta)", "A(alpha,beta_uf)", between("beta_px"), "A(delta,beta_uf)"]
    names += ["A(alpha,alpha_ibm)"] if translating else [between("beta_log"), "A(alpha,alpha_fr)"]
    return (*names, "A(alpha,alpha_hat)") if convention == "cross" else tuple(names)


# The quantities that vary with the steps of a pairing: the kind of model, and the name under which they are stored.
_MOVING: dict[str, tuple[ModelKind, str]] = {
    "beta": ("standard", "beta_logit"),
    "beta_uf": ("uniform", "beta_logit"),
    "alpha_hat": ("standard", "alpha"),
    "alpha_fr": ("attention-only", "alpha"),
}


def pairing(recordings: Recordings, name: str, convention: Convention, A: int, other: int | None = None) -> Pairing:
    """The model, step and quantity of each argument; other: the seed that A is compared with, unless its successor."""
    u_name, v_name = name[2:-1].split(",")
    last, best = recordings.steps("standard", A)[-1], recordings.best_step(A)
    at = last if convention == "own" else best
    if v_name == "alpha_ibm":
        lexicon = recordings.quantity("lexicon", 0, "alpha", 1)
        return Pairing(
            recordings.steps("standard", A),
            lambda step: (recordings.quantity("standard", A, "alpha", step), lexicon),
            ("standard", A),
            at,
        )
    moving = v_name if v_name in _MOVING else u_name
    kind, stored = _MOVING[moving]
    successor = recordings.other(A) if other is None else other
    twin = successor if convention == "cross" or moving == "alpha_hat" else A
    counted: dict[str, tuple[ModelKind, int]] = {"beta_px": ("proxy", A), "beta_log": ("logistic", 0)}

    def quantity(which: str, step: int) -> Ragged:
        if which == moving:
            return recordings.quantity(kind, twin, stored, step)
        if which in counted:
            return recordings.probe(*counted[which])
        return recordings.quantity("standard", A, which, at)

    def wrong(step: int) -> Ragged:
        if v_name == moving:
            return recordings.wrong_probe(kind, twin, step)
        model = counted[v_name]
        return recordings.wrong_probe(*model, recordings.steps(*model)[-1])

    steps = recordings.steps(kind, twin)
    maximise = moving in ("beta_uf", "alpha_fr") or (moving == "beta" and convention == "cross")
    read_at = None if maximise else steps[-1]
    of_probe = v_name.startswith("beta") and not recordings.translating
    return Pairing(
        steps,
        lambda step: (quantity(u_name, step), quantity(v_name, step)),
        (kind, twin),
        read_at,
        wrong if of_probe else None,
    )


def _read(recordings: Recordings, read: Pairing, by: _Measure) -> _Reading:
    table = np.stack([by.rows(*read.pair(step))[0] for step in read.steps])
    chosen = maximum_over_steps(table, list(read.steps), groups=recordings.example)
    step = chosen.step if read.read_at is None else read.read_at
    u, v = read.pair(step)
    rows, ties = by.rows(u, v)
    shuffle = by.shuffled(u, v, recordings)
    accuracy = float(recordings.correct(*read.read_from, step).mean())
    return _Reading(rows, shuffle, ties, chosen.curve, step, accuracy, chosen.split_half)


def _summarise(
    recordings: Recordings,
    name: str,
    convention: Convention,
    pairings: Sequence[Pairing],
    climb: Sequence[tuple[tuple[int, ...], Rows, Rows]],
    by: _Measure,
) -> AgreementResult:
    readings = [_read(recordings, each, by) for each in pairings]
    partners = [recordings.other(A) for A in recordings.seeds] if convention == "cross" else None
    rows, shuffle = [reading.rows for reading in readings], [reading.shuffle for reading in readings]
    excess = [own - other for own, other in zip(rows, shuffle, strict=True)]
    maximised = pairings[0].read_at is None
    per_seed = tuple(float(np.nanmean(reading.rows)) for reading in readings)
    defined = ~np.isnan(np.concatenate([[r.rows for r in readings], *(curve for _, curve, _ in climb)])).any(axis=0)
    xi = contextualised_estimate(
        [r.rows[defined] for r in readings],
        [curve[:, defined] for _, curve, _ in climb],
        [performance[:, defined] for _, _, performance in climb],
        groups=recordings.example[defined],
    )
    alone = [
        contextualised_agreement(value, list(steps), np.nanmean(curve, axis=1), performance.mean(axis=1)).value
        for value, (steps, curve, performance) in zip(per_seed, climb, strict=True)
    ]
    heights = np.mean([np.nanmean(curve, axis=1) for _, curve, _ in climb], axis=0)
    together = float(np.mean(per_seed))
    return AgreementResult(
        name=name,
        convention=convention,
        estimate=_over_trainings(recordings, rows, by.estimate, partners),
        shuffle=_over_trainings(recordings, shuffle, by.estimate, partners),
        excess=_over_trainings(recordings, excess, nested_tau, partners),
        random=by.random(recordings.lengths),
        ties=sum(reading.ties for reading in readings),
        per_seed=per_seed,
        over_seeds=mean_over_seeds(list(per_seed), by.limits),
        curve=Curve(pairings[0].steps, tuple(np.mean([r.curve for r in readings], axis=0).tolist())),
        chosen_steps=tuple(r.step for r in readings) if maximised else None,
        accuracy_there=tuple(r.accuracy for r in readings) if maximised else None,
        split_half=float(np.mean([r.split_half for r in readings])) if maximised else None,
        xi=xi,
        xi_reached=bool(np.any(heights > together)),
        xi_bleu=_xi_bleu(recordings, together, climb[0][0], heights) if recordings.translating else None,
        xi_per_seed=tuple(alone),
    )


def _climb(recordings: Recordings, convention: Convention, by: _Measure) -> list[tuple[tuple[int, ...], Rows, Rows]]:
    """For each seed, A(α, α̂(τ)) with the other seed's attention and that one's performance p̂(τ), (steps, rows) each."""
    climb = []
    for A in recordings.seeds:
        to_other = pairing(recordings, "A(alpha,alpha_hat)", convention, A)
        curve = np.stack([by.rows(*to_other.pair(step))[0] for step in to_other.steps])
        performance = np.stack([recordings.correct(*to_other.read_from, step) for step in to_other.steps])
        climb.append((to_other.steps, curve, performance))
    return climb


def _xi_bleu(recordings: Recordings, value: float, steps: Sequence[int], heights: Rows) -> float:
    """ξ with p̂ the BLEU (snell2021, Tables 4, 6 and 8), read once from the means over seeds."""
    name = "bleu" if recordings.split == "validation" else "train_bleu"
    curves = [
        [line[name] for line in recordings.run.model(ModelSpec("standard", seed)).metrics()]
        for seed in recordings.seeds
    ]
    return contextualised_agreement(value, list(steps), heights, np.mean(curves, axis=0)).value


_APART = 1_000_000  # between the target positions of two seeds


def measure_alignment(recordings: Recordings) -> AlignmentResult | None:
    """Alignment error rates of α over training and of α^IBM; None where there are no gold alignments."""
    pairs = recordings.run.pairs("validation") if recordings.translating else None
    if pairs is None or pairs.alignments is None:
        return None
    seeds, steps = recordings.seeds, recordings.steps("standard", recordings.seeds[0])

    def error(step: int) -> Estimate:
        per_seed = [word_links(recordings.quantity("standard", seed, "alpha", step), pairs) for seed in seeds]
        return _error(per_seed, pairs.alignments or ())

    errors = [error(step) for step in steps]
    iterations = recordings.steps("lexicon", 0)
    first, last = (word_links(recordings.quantity("lexicon", 0, "alpha", k), pairs) for k in (1, iterations[-1]))
    sides = (pairs.source_words, pairs.target_words)
    L, T = (np.array([words.max() + 1 for words in side]) for side in sides)  # words of each sentence
    sure, possible = zip(*((gold.sure, gold.possible) for gold in pairs.alignments), strict=True)
    return AlignmentResult(
        attention=Curve(steps, tuple(estimate.value for estimate in errors)),
        untrained=errors[0],
        trained=errors[-1],
        counting=_error([first], pairs.alignments),
        model_1=_error([last], pairs.alignments),
        diagonal=_error([[diagonal_links(int(s), int(t)) for s, t in zip(L, T, strict=True)]], pairs.alignments),
        chance=chance_aer(sure, L, T, possible),
    )


def word_links(alpha: Ragged, pairs: EncodedPairs) -> list[frozenset[Link]]:
    """Each target word linked to the source word it attends to most; `<bos>` and `<eos>` are left out."""
    first, matrices = pairs.outputs.offsets.tolist(), []
    for m in range(len(pairs)):
        matrix = np.stack([alpha[r] for r in range(first[m], first[m + 1])])
        matrices.append(attention_between_words(matrix, pairs.source_words[m], pairs.target_words[m][1:]))
    return links_from_attention(matrices)


def _error(per_seed: Sequence[Sequence[Links]], gold: Sequence[Alignment]) -> Estimate:
    """AER pooled over seeds, its interval over sentences: a sentence's links of all seeds are drawn together."""

    def together(links: Sequence[Links]) -> set[tuple[int, int]]:
        return {(s, t + k * _APART) for k, one in enumerate(links) for s, t in one}

    n = len(per_seed)
    links = [together([seed[m] for seed in per_seed]) for m in range(len(gold))]
    sure, possible = ([together([getattr(g, kind)] * n) for g in gold] for kind in ("sure", "possible"))
    return alignment_scores(links, sure, possible).aer
