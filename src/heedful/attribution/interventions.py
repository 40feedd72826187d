"""Interventions on a model: other attention weights, and erased words.

Weights are permuted, made uniform, or moved as far as they go while the prediction stays. Words that an explanation
ranks first are erased, to see whether the prediction needs them (comprehensiveness and sufficiency).
"""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attribution.attention_maps import EVERYWHERE, RANDOM, layer_name, query_rows
from heedful.attribution.interface import BatchChange, Keep, Numbers, Passage, PassageBatch, Query, Subject, numbers
from heedful.metrics import entropy as metrics
from heedful.metrics.faithfulness import aopc, comprehensiveness, sufficiency
from heedful.models.adversary import jensen_shannon, total_variation

MapOf = Callable[[Tensor], Tensor]  # attention (B, H, Q, L) of a layer → its map of words (B, W)
TOLERANCE = 0.01
PENALTY = 10.0
LEARNING_RATE = 0.3
NOISE, TILT = 0.1, 0.25  # the search starts near α, where the divergence has a gradient, shifted towards equal weights
MAX_DIVERGENCE = math.log(2)


def prediction_changes(
    subject: Subject, passages: Sequence[Passage], probabilities: Float[Numbers, "B K"], seed: int
) -> dict[str, Numbers]:
    """How far predictions move (total variation) and whether the label changes, by `tvd/permuted/all layers` etc."""
    result: dict[str, Numbers] = {}
    layers = subject.network.layers
    scopes = {EVERYWHERE: None} | {layer_name(layer): layer for layer in range(layers) if layers > 1}
    for scope, layer in scopes.items():
        for kind, change in (("permuted", permuted(seed, layer)), ("uniform", uniform(layer))):
            changed = subject.with_attention(passages, change)
            result[f"tvd/{kind}/{scope}"] = metrics.total_variation(probabilities, changed)
            result[f"flip/{kind}/{scope}"] = (probabilities.argmax(1) != changed.argmax(1)).astype(np.float64)
    return result


def permuted(seed: int, layer: int | None = None) -> BatchChange:
    """Each row's non-zero weights in random order; in one layer, or in all.

    The order depends on the seed, the passage and the layer, never on the rest of the batch.
    """

    def change(batch: PassageBatch, number: int, alpha: Tensor) -> Tensor:
        if layer not in (None, number):
            return alpha
        keys = [passage_rng(passage, seed, number).random(alpha.shape[1:]) for passage in batch.passages]
        return permute(alpha, torch.from_numpy(np.stack(keys)).to(alpha.device))

    return change


def uniform(layer: int | None = None) -> BatchChange:
    """Equal weights wherever a row has any; in one layer, or in all."""
    return lambda batch, number, alpha: equalise(alpha) if layer in (None, number) else alpha


def permute(alpha: Float[Tensor, "*rows L"], keys: Float[Tensor, "*rows L"]) -> Float[Tensor, "*rows L"]:
    """Weights moved among the positions that are not 0, in the order of the keys there.

    >>> permute(torch.tensor([0.7, 0.0, 0.2, 0.1]), torch.tensor([0.3, 0.1, 0.2, 0.4]))
    tensor([0.2000, 0.0000, 0.7000, 0.1000])
    """
    empty = (alpha == 0).to(keys.dtype)
    positions = torch.argsort(empty, dim=-1, stable=True)
    order = torch.argsort(keys + 2 * empty, dim=-1)  # keys are below 1: positions without weight come last
    return torch.zeros_like(alpha).scatter(-1, positions, alpha.gather(-1, order))


def equalise(alpha: Float[Tensor, "*rows L"]) -> Float[Tensor, "*rows L"]:
    """Each row's weight shared equally among the positions that have any.

    >>> equalise(torch.tensor([0.7, 0.0, 0.3]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    used = (alpha != 0).to(alpha.dtype)
    return used * alpha.sum(-1, keepdim=True) / used.sum(-1, keepdim=True).clamp_min(1)


def passage_rng(passage: Passage, *seeds: int) -> np.random.Generator:
    """A random generator for one passage, the same in any batch.

    >>> passage = Passage.of_pieces(3, [7])
    >>> passage_rng(passage, 0).integers(1000) == passage_rng(passage, 0).integers(1000)
    np.True_
    """
    return np.random.default_rng([passage.text, len(passage.before), *seeds])


def adversarial_divergence(
    subject: Subject,
    passages: Sequence[Passage],
    *,
    layer: int = -1,
    head: int | None = None,
    steps: int = 100,
    tolerance: float = TOLERANCE,
    include_special: bool = False,
    seed: int = 0,
) -> Numbers:
    """The divergence (JSD in nats, in [0, ln 2]) of the most different map with the same prediction; 0 if none.

    layer: whose map it is, the last by default; head: for the map of a single head. The prediction counts as the same
    if its label is and if it moves by no more than `tolerance` in total variation. Deterministic under the seed, and
    the same in any batch.
    """
    subject.require_change("the search for another attention")

    def of_batch(batch: PassageBatch) -> Numbers:
        map_of = _map_of_words(subject.network.query, batch, head, include_special)
        return _search(subject, batch, map_of, layer, steps, tolerance, seed)

    return np.array(subject.map(passages, of_batch, gradients=True))


def reweighted(alpha: Float[Tensor, "*rows L"], scores: Float[Tensor, "*rows L"]) -> Float[Tensor, "*rows L"]:
    """α · exp(score), each row normalised to its former total.

    >>> reweighted(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([math.log(3.0), 0.0, 9.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    used, limits = alpha > 0, torch.finfo(alpha.dtype)
    logs = torch.where(used, _log(alpha) + scores, -limits.max)
    return logs.softmax(-1) * used * alpha.sum(-1, keepdim=True)


def _search(
    subject: Subject, batch: PassageBatch, map_of: MapOf, layer: int, steps: int, tolerance: float, seed: int
) -> Numbers:
    with torch.no_grad():
        original = subject.run(batch)
    original_map, label = map_of(original.attention[layer]), original.probabilities.argmax(1)
    best = torch.zeros(len(batch.passages), dtype=torch.float64, device=original_map.device)
    scores = [_random_scores(batch, number, alpha, seed) for number, alpha in enumerate(original.attention)]
    with torch.no_grad():
        scores[layer] -= TILT * _log(original.attention[layer])
    optimiser = torch.optim.Adam(scores, lr=LEARNING_RATE)
    for _ in range(steps):
        attention = [reweighted(alpha, score) for alpha, score in zip(original.attention, scores, strict=True)]
        probabilities = subject.run(batch, change=lambda number, _: attention[number]).probabilities  # noqa: B023
        divergence = jensen_shannon(map_of(attention[layer]), original_map)
        moved = total_variation(probabilities, original.probabilities)
        allowed = (moved <= tolerance) & (probabilities.argmax(1) == label)
        best = torch.maximum(best, torch.where(allowed, divergence, 0.0).detach())
        gradients = torch.autograd.grad((PENALTY * moved - divergence).sum(), scores, materialize_grads=True)
        for score, gradient in zip(scores, gradients, strict=True):
            score.grad = gradient
        optimiser.step()
    return numbers(best.clamp(0.0, MAX_DIVERGENCE))


def _map_of_words(query: Query, batch: PassageBatch, head: int | None, include_special: bool) -> MapOf:
    belongs = np.zeros((*batch.pieces.shape, max(len(passage.words) for passage in batch.passages)))
    for b, passage in enumerate(batch.passages):
        word = np.array(passage.word)
        belongs[b, np.arange(len(word)), word] = passage.explained(include_special=include_special)[word]
    to_words = torch.from_numpy(belongs).to(batch.pieces.device)

    def map_of(alpha: Tensor) -> Tensor:
        heads = query_rows(alpha, query).double()
        words = torch.einsum("bl,blw->bw", heads.mean(1) if head is None else heads[:, head], to_words)
        return words / words.sum(-1, keepdim=True).clamp_min(torch.finfo(words.dtype).tiny)

    return map_of


def _random_scores(batch: PassageBatch, layer: int, alpha: Tensor, seed: int) -> Tensor:
    noise = np.stack([passage_rng(passage, seed, layer).standard_normal(alpha.shape[1:]) for passage in batch.passages])
    return (NOISE * torch.from_numpy(noise)).to(alpha).requires_grad_()


def _log(alpha: Tensor) -> Tensor:
    return alpha.clamp_min(torch.finfo(alpha.dtype).tiny).log()


def erasures(
    subject: Subject, passages: Sequence[Passage], rankings: Mapping[str, Sequence[Numbers]]
) -> dict[str, Numbers]:
    """Areas over the perturbation curves, as `comprehensiveness/<ranking>` and `sufficiency/<ranking>`.

    rankings: one row of scores per passage, a score for each word that is not special. NaN where all scores are equal,
    so that there is no order. A shortened text that several rankings need is predicted once.
    """
    index = [i for _ in rankings for i in range(len(passages))]
    rows = [row for ranking in rankings.values() for row in ranking]
    predict = _cached_predictions(subject, passages, index)
    flat = np.array([np.ptp(row) == 0 for row in rows])
    result: dict[str, Numbers] = {}
    for measure, function in (("comprehensiveness", comprehensiveness), ("sufficiency", sufficiency)):
        areas = np.where(flat, np.nan, aopc(function(rows, predict))).reshape(len(rankings), len(passages))
        result |= {f"{measure}/{name}": area for name, area in zip(rankings, areas, strict=True)}
    return result


def random_orders(passages: Sequence[Passage], seed: int, number: int) -> dict[str, list[Numbers]]:
    """Random rankings of each passage's words, numbered by name."""
    return {
        f"{RANDOM} {k}": [passage_rng(p, seed, k).random(int(p.explained().sum())) for p in passages]
        for k in range(1, number + 1)
    }


def average_random_orders(values: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Replace the values of several random orders by their mean, under one name.

    >>> average_random_orders({"auprc/random order 1": np.array([0.2]), "auprc/random order 2": np.array([0.4])})
    {'auprc/random order': array([0.3])}
    """
    kept = {name: row for name, row in values.items() if f"/{RANDOM} " not in name}
    several: dict[str, list[Numbers]] = {}
    for name in (name for name in values if name not in kept):  # in their order: sums depend on it in the last bit
        several.setdefault(f"{name.split('/')[0]}/{RANDOM}", []).append(values[name])
    return kept | {name: np.mean(rows, axis=0) for name, rows in sorted(several.items())}


def _cached_predictions(
    subject: Subject, passages: Sequence[Passage], index: Sequence[int]
) -> Callable[[Keep], Numbers]:
    """`predict(keep)` for rows that may belong to the same passage; no text is predicted twice."""
    plain = [passage.explained() for passage in passages]
    known: dict[tuple[int, bytes], float] = {}

    def predict(keep: Keep) -> Numbers:
        kept = []
        for i, row in zip(index, keep, strict=True):
            words = np.ones(len(plain[i]), dtype=bool)  # special words always stay
            words[plain[i]] = row[: int(plain[i].sum())]
            kept.append(words)
        keys = [(i, words.tobytes()) for i, words in zip(index, kept, strict=True)]
        new = {key: words for key, words in zip(keys, kept, strict=True) if key not in known}
        predicted = subject.predict([passages[i] for i, _ in new], list(new.values()))
        known.update(zip(new, predicted.tolist(), strict=True))
        return np.array([known[key] for key in keys])

    return predict
