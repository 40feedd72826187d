"""Recorded traces become agreements: which α meets which β, at which step, against which chance.

Two conventions (SPEC §2), for each seed A of a study and its successor B:

*own*    α and Δ of A at its last step; β of A at its last step; β^uf and α^fr of A's own twins.
*cross*  α and Δ of A at its best-validation step; β, β^uf and α^fr of B's models; the proxy or logistic probe as first
         argument. It is what the paper's released code does, and what its numbers match.

Quantities of a twin are read at the recorded step where agreement is highest, as the paper does (A.7).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from heedful.data.tokens import EncodedSplit
from heedful.measure.agreement import agreement, random_agreement, shuffled_agreement
from heedful.measure.entropy import normalised_entropy
from heedful.measure.ragged import Ragged
from heedful.measure.trajectory import contextualised_agreement, contextualised_estimate, maximum_over_steps
from heedful.measure.uncertainty import Estimate, bootstrap_mean, mean_over_seeds
from heedful.studies.result import AgreementResult, Convention, Curve
from heedful.studies.run import ModelKind, ModelSpec, Run

Rows = NDArray[np.float64]  # one value per text


class Recordings:
    """Every model's quantities at every recorded step, read once."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.validation: EncodedSplit = run.split("validation")
        self.quantity = cache(self._quantity)
        self.correct = cache(self._correct)

    def steps(self, kind: ModelKind, seed: int) -> tuple[int, ...]:
        """The steps at which a model was recorded."""
        return self.run.model(ModelSpec(kind, seed)).trace().steps

    def best_step(self, kind: ModelKind, seed: int) -> int:
        """The step of best validation accuracy, the first of equals."""
        return int(self.run.model(ModelSpec(kind, seed)).summary()["best_step"])

    def _quantity(self, kind: ModelKind, seed: int, name: str, step: int) -> Ragged:
        return self.run.model(ModelSpec(kind, seed)).trace().quantity(name, step)

    def _correct(self, kind: ModelKind, seed: int, step: int) -> Rows:
        return self.run.model(ModelSpec(kind, seed)).trace().correct(step).astype(np.float64)

    def probe(self, kind: ModelKind, seed: int) -> Ragged:
        """β^px or β^log of each position, on the log-odds scale."""
        table = load_file(self.run.model(ModelSpec(kind, seed)).probe_path)["word_log_odds"]
        split = self.validation
        label = np.repeat(split.labels, split.lengths)
        return Ragged(table[split.ids, label].astype(np.float64), split.offsets)


@dataclass(frozen=True)
class Pairing:
    """A(u, v) for one seed: the two quantities at each step that v's (or u's) model was recorded."""

    steps: tuple[int, ...]
    pair: Callable[[int], tuple[Ragged, Ragged]]
    read_from: tuple[ModelKind, int]
    maximise: bool


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


def measure_agreements(run: Run) -> tuple[tuple[AgreementResult, ...], Estimate]:
    """All agreements of a study under both conventions, and ξ* (the other seed's final performance)."""
    seeds = run.config().seeds
    recordings = Recordings(run)
    results = []
    final = [recordings.correct("standard", seed, recordings.steps("standard", seed)[-1]) for seed in seeds]
    for convention in ("own", "cross"):
        for name in _names(convention):
            pairings = [
                _pairing(recordings, name, convention, A, seeds[(i + 1) % len(seeds)]) for i, A in enumerate(seeds)
            ]
            results.append(_summarise(recordings, name, convention, pairings))
    return tuple(results), bootstrap_mean(np.mean(final, axis=0))


def attention_entropy(run: Run) -> tuple[Curve, Estimate]:
    """H̃ of the standard models' attention over training, and at the end."""
    recordings = Recordings(run)
    seeds = run.config().seeds
    steps = recordings.steps("standard", seeds[0])
    table = [
        np.mean([normalised_entropy(recordings.quantity("standard", s, "alpha", step)) for s in seeds], axis=0)
        for step in steps
    ]
    return Curve(steps, tuple(float(np.nanmean(row)) for row in table)), bootstrap_mean(table[-1])


def _names(convention: Convention) -> tuple[str, ...]:
    between = ("A(beta_uf,beta_px)", "A(beta_uf,beta_log)")
    if convention == "cross":
        between = ("A(beta_px,beta_uf)", "A(beta_log,beta_uf)")
    names = ("A(alpha,beta)", "A(alpha,beta_uf)", between[0], "A(delta,beta_uf)", between[1], "A(alpha,alpha_fr)")
    return (*names, "A(alpha,alpha_hat)") if convention == "cross" else names


def _pairing(recordings: Recordings, name: str, convention: Convention, A: int, B: int) -> Pairing:
    """Which model, step and quantity stand for each argument."""
    twin = A if convention == "own" else B
    at = recordings.steps("standard", A)[-1] if convention == "own" else recordings.best_step("standard", A)
    kinds: dict[str, ModelKind] = {
        "beta": "standard",
        "alpha_hat": "standard",
        "beta_uf": "uniform",
        "alpha_fr": "attention-only",
    }
    u_name, v_name = name[2:-1].split(",")
    moving = v_name if v_name in kinds else u_name
    kind = kinds[moving]
    stored = {"beta": "beta_logit", "beta_uf": "beta_logit", "alpha_hat": "alpha", "alpha_fr": "alpha"}

    def quantity(which: str, step: int) -> Ragged:
        if which in stored:
            return recordings.quantity(kind, twin, stored[which], step)
        if which == "beta_px":
            return recordings.probe("proxy", A)
        if which == "beta_log":
            return recordings.probe("logistic", 0)
        return recordings.quantity("standard", A, which, at)

    maximise = not (convention == "own" and moving == "beta") and moving != "alpha_hat"
    return Pairing(
        recordings.steps(kind, twin),
        lambda step: (quantity(u_name, step), quantity(v_name, step)),
        (kind, twin),
        maximise,
    )


def _read(recordings: Recordings, pairing: Pairing) -> _Reading:
    table = np.stack([agreement(*pairing.pair(step)) for step in pairing.steps])
    chosen = maximum_over_steps(table, pairing.steps)
    step = chosen.step if pairing.maximise else pairing.steps[-1]
    u, v = pairing.pair(step)
    rows, ties = agreement(u, v, return_ties=True)
    accuracy = float(recordings.correct(*pairing.read_from, step).mean())
    return _Reading(rows, shuffled_agreement(u, v), ties, chosen.curve, step, accuracy, chosen.split_half)


def _summarise(
    recordings: Recordings, name: str, convention: Convention, pairings: list[Pairing]
) -> AgreementResult:
    readings = [_read(recordings, pairing) for pairing in pairings]
    rows = np.mean([reading.rows for reading in readings], axis=0)
    shuffle = np.mean([reading.shuffle for reading in readings], axis=0)
    maximised = pairings[0].maximise
    per_seed = tuple(float(reading.rows.mean()) for reading in readings)
    xi, reached = _contextualise(recordings, convention, readings)
    return AgreementResult(
        name=name,
        convention=convention,
        estimate=bootstrap_mean(rows),
        shuffle=bootstrap_mean(shuffle),
        excess=bootstrap_mean(rows - shuffle),
        random=random_agreement(recordings.validation.lengths),
        ties=sum(reading.ties for reading in readings),
        per_seed=per_seed,
        over_seeds=mean_over_seeds(per_seed),
        curve=Curve(pairings[0].steps, tuple(np.mean([r.curve for r in readings], axis=0).tolist())),
        chosen_steps=tuple(r.step for r in readings) if maximised else None,
        accuracy_there=tuple(r.accuracy for r in readings) if maximised else None,
        split_half=float(np.mean([r.split_half for r in readings])) if maximised else None,
        xi=xi,
        xi_reached=reached,
    )


def _contextualise(
    recordings: Recordings, convention: Convention, readings: list[_Reading]
) -> tuple[Estimate, bool]:
    """ξ with its interval over texts, averaged over seeds; reached only where every seed reached it."""
    seeds = recordings.run.config().seeds
    curves, performances, reached = [], [], []
    for i, A in enumerate(seeds):
        B = seeds[(i + 1) % len(seeds)]
        to_other = _pairing(recordings, "A(alpha,alpha_hat)", convention, A, B)
        other_steps = recordings.steps("standard", B)
        curve = np.stack([agreement(*to_other.pair(step)) for step in other_steps])
        performance = np.stack([recordings.correct("standard", B, step) for step in other_steps])
        curves.append(curve)
        performances.append(performance)
        xi = contextualised_agreement(
            float(readings[i].rows.mean()), other_steps, curve.mean(axis=1), performance.mean(axis=1)
        )
        reached.append(xi.reached)
    return contextualised_estimate([r.rows for r in readings], curves, performances), all(reached)
