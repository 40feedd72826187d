"""Dry run of an audit: how many forward passes it needs, and an estimate of its time.

A forward pass is one text of its full length, read once; a backward pass counts as another. One text of middle length
and the longest one are timed; the rest is arithmetic.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from heedful.attribution.attention_maps import layer_of
from heedful.attribution.importance import can_integrate, deleted_spans, gradient_of
from heedful.attribution.interface import Passage, PassageBatch, Subject, target_probability
from heedful.audits.audit import prepared, sampled, turns_of_random_models
from heedful.config import AuditSettings
from heedful.errors import DataError

RANKINGS = 5  # orders of words that are erased besides the random ones: the map shown and four importances
LEVELS = 5  # shares of words that are erased; with as many that are kept, they add up to so many whole texts


@dataclass(frozen=True)
class AuditPlan:
    """The plan of an audit. passes: forward passes of each measure; seconds: an estimate for all of them.

    timed: the numbers of pieces of the texts that were timed.
    """

    texts: int
    passages: int
    longest: int
    passes: dict[str, int]
    seconds: float
    timed: tuple[int, ...]
    settings: dict[str, Any]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def rehearse_audit(subject: Subject, passages: Sequence[Passage], settings: AuditSettings) -> AuditPlan:
    """Estimate the time of an audit of these passages; nothing is written, and the model is left as it was found."""
    explainable = [passage for passage in passages if passage.pieces and passage.explained().any()]
    if not explainable:
        raise DataError(f"none of {len(passages)} passages has a word to explain")
    drawn = sampled(explainable, settings)
    subject = prepared(subject, settings)
    by_length = sorted(drawn, key=lambda passage: len(passage.pieces))
    middle, longest = by_length[len(by_length) // 2], by_length[-1]
    seconds = {len(passage.pieces): _timed(subject, passage) for passage in (middle, longest)}
    counts = [forward_passes(subject, passage, settings, len(drawn)) for passage in drawn]
    total = sum(
        sum(count.values()) * _at_length(len(passage.pieces), seconds)
        for count, passage in zip(counts, drawn, strict=True)
    )
    return AuditPlan(
        texts=len({passage.text for passage in drawn}),
        passages=len(drawn),
        longest=len(longest.pieces),
        passes={name: math.ceil(sum(count[name] for count in counts)) for name in counts[0]},
        seconds=total,
        timed=tuple(sorted(seconds)),
        settings=asdict(settings),
    )


def forward_passes(subject: Subject, passage: Passage, settings: AuditSettings, passages: int) -> dict[str, float]:
    """The forward passes that each measure needs for one passage of so many.

    >>> from heedful.attribution.modules import ModuleNetwork
    >>> network = ModuleNetwork((), lambda pieces: None, lambda embedded, change: None, layers=1, heads=1)
    >>> settings = AuditSettings(integrated_steps=0, measures=("tau",))
    >>> forward_passes(Subject(network), Passage.of_pieces(0, [7, 8, 9]), settings, 1)
    {'tau': 7.0}
    """
    network, models = subject.network, settings.random_models
    layer = layer_of(settings.headline) if settings.headline else network.layers - 1

    def above_of(number: int | None) -> float:
        """The share of the layers that are run from this one on."""
        return (network.layers - number) / network.layers if number is not None and subject.resumes_at(number) else 1.0

    above, changed_layers = above_of(layer), sum(map(above_of, range(network.layers)))
    words = len(deleted_spans(passage, settings.spans))
    integrated = 2 * settings.integrated_steps if can_integrate() else 0
    leave_one_out = words + 1
    needed = {
        "tau": 1 + 2 + integrated + leave_one_out,  # attention, gradients, integrated gradients, leave one out
        "hidden": 2 + above * (integrated + leave_one_out),
        "random": turns_of_random_models(models, passages) * (3 + leave_one_out) if models else 0,
        "erasure": (RANKINGS + settings.random_orders) * LEVELS,
        "changes": 1 + 2 * (1 + changed_layers) if network.can_change else 0,  # permuted and uniform, in all and each
        "adversary": above * 2 * settings.adversary_steps if network.can_change else 0,
    }
    runs = {"norm": network.heads + 5, "grad": 2, "value-zeroing": words}  # of the model for each map
    made = sum(count for method, count in runs.items() if method in settings.maps)
    models = turns_of_random_models(models, passages) if "random" in settings.measures and models else 0
    needed["maps"] = (1 + models) * made + LEVELS * (len(settings.maps) - 1) * ("erasure" in settings.measures)
    return {name: float(count) for name, count in needed.items() if name in settings.measures}


def _timed(subject: Subject, passage: Passage) -> float:
    """Seconds of one forward pass, from a forward and a backward pass of as many copies as are run at once."""
    copies = max(1, min(8, subject.max_tokens // 4 // len(passage.pieces)))
    taken: list[float] = []

    def of_batch(batch: PassageBatch) -> list[None]:
        embedded = subject.network.embed(batch.pieces).detach().requires_grad_()
        start = time.perf_counter()
        gradient_of(target_probability(subject.run(batch, embedded).probabilities, batch), (embedded,))
        taken.append((time.perf_counter() - start) / 2 / len(batch.passages))
        return [None] * len(batch.passages)

    (targeted,) = subject.with_targets([passage])  # also warms up
    subject.map([targeted] * copies, of_batch, gradients=True)
    return float(np.median(taken))


def _at_length(length: int, seconds: dict[int, float]) -> float:
    """Seconds of a forward pass at some length: a power of it, between 1 and 2, through the times that are known.

    >>> _at_length(40, {10: 1.0, 20: 2.0}), _at_length(10, {20: 3.0})
    (4.0, 1.5)
    """
    (first, short), (last, long) = min(seconds.items()), max(seconds.items())
    power = 1.0
    if last > first:
        power = float(np.clip(math.log(long / short) / math.log(last / first), 1.0, 2.0))
    return float(short * (length / first) ** power)
