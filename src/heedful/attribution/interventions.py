"""Interventions on a model: other attention weights, and erased words.

Weights are permuted, made uniform, or moved as far as they go while the prediction stays. Words that an explanation
ranks first are erased, to see whether the prediction needs them (comprehensiveness and sufficiency).
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.attribution.attention_maps import EVERYWHERE, RANDOM, head_of, is_head, layer_name, layer_of, query_rows
from heedful.attribution.interface import (
    PADDING,
    BatchChange,
    Keep,
    Numbers,
    Passage,
    PassageBatch,
    Subject,
    check_finite,
    numbers,
    within,
)
from heedful.attribution.network import PredictingNetwork
from heedful.attribution.weighted_maps import norms_of
from heedful.metrics import entropy as metrics
from heedful.metrics.faithfulness import aopc, comprehensiveness, sufficiency
from heedful.models.adversary import jensen_shannon, total_variation

MapOf = Callable[[Tensor], Tensor]  # attention (B, H, Q, L) of a layer → its map of words (B, W)
Visible = Callable[[PassageBatch, int, Tensor], Tensor]  # (batch, layer, α) → which places may get weight
TOLERANCE = 0.01
PENALTY = 10.0
LEARNING_RATE = 0.3
NOISE, TILT = 0.1, 0.25  # the search starts near α, where the divergence has a gradient, shifted towards equal weights
FLOOR = 1e-4  # the search gives visible places at least this share of an even weight, so that zeros have a gradient
PROBES = (0.0, 0.01, 0.1, 1.0)  # scales of the random inputs that show which places a layer can see
MAX_DIVERGENCE = math.log(2)


def prediction_changes(
    subject: Subject, passages: Sequence[Passage], probabilities: Float[Numbers, "B K"], seed: int, headline: str = ""
) -> dict[str, Numbers]:
    """How far predictions move (total variation) and whether the label changes, by `tvd/permuted/all layers` etc.

    In all layers at once, in each layer alone, and in the single head of the headline map, if it shows one.
    """
    subject.require_change("replacing attention")
    visible, layers = visible_places(subject), subject.network.layers
    scopes: dict[str, tuple[int | None, int | None]] = {EVERYWHERE: (None, None)}
    scopes |= {layer_name(layer): (layer, None) for layer in range(layers)}
    if is_head(headline):
        scopes[headline] = (layer_of(headline), head_of(headline))
    kinds: dict[str, Callable[..., BatchChange]] = {"permuted": partial(permuted, seed), "uniform": uniform}
    only = layer_name(0) if layers == 1 else ""  # the only layer is all layers
    changes = {
        (kind, scope): (layer, change(layer, head, visible=visible))
        for scope, (layer, head) in scopes.items()
        if scope != only
        for kind, change in kinds.items()
    }
    resumed = {layer for layer, _ in changes.values() if layer is not None and subject.resumes_at(layer)}

    def of_batch(batch: PassageBatch) -> Numbers:
        states = subject.states(batch) if resumed else ()
        found = []
        for layer, change in changes.values():
            if layer is not None and layer in resumed:  # the layers below are not run again
                found.append(subject.resume(batch, layer, states[layer], partial(change, batch)))
            else:
                found.append(subject.probabilities(batch, change=partial(change, batch)))
            check_finite(found[-1], batch)
        return numbers(torch.stack(found, dim=1))

    predicted: Numbers = np.stack(subject.map(passages, of_batch), axis=1)
    changed = dict(zip(changes, predicted, strict=True))
    result: dict[str, Numbers] = {}
    for scope in scopes:
        for kind in kinds:
            moved = changed[kind, EVERYWHERE if scope == only else scope]
            result[f"tvd/{kind}/{scope}"] = metrics.total_variation(probabilities, moved)
            result[f"flip/{kind}/{scope}"] = (probabilities.argmax(1) != moved.argmax(1)).astype(np.float64)
    return result


def visible_places(subject: Subject) -> Visible:
    """Which places each layer's attention may read: all but padding and what the architecture masks.

    A weight of 0 does not show that a place is masked: a saturated softmax and a sparse projection give it to places
    that they could read. A place is masked if its weight is 0 in every head for random inputs of every scale too, for
    which a layer gives weight to all that it can see. Without an input of one length (in encoder–decoders), all source
    places are visible. The subject keeps what was found for a length.
    """
    known = subject.visible

    def probed(batch: PassageBatch) -> list[Tensor]:
        like = subject.network.embed(batch.pieces)
        L = like.shape[1]
        if L not in known:
            draw = torch.randn(1, *like.shape[1:], generator=torch.Generator().manual_seed(L), dtype=torch.float64)
            inputs = torch.cat([scale * draw for scale in PROBES]).to(like)
            seen: dict[int, Tensor] = {}

            def look(layer: int, alpha: Tensor) -> Tensor:
                places = (alpha > 0).any(0).any(0)
                seen[layer] = seen[layer] | places if layer in seen else places
                return alpha

            for some in torch.split(inputs, within(subject.max_tokens)(L)):
                network = subject.placed(batch.take(torch.zeros(len(some), dtype=torch.long, device=like.device)))
                with torch.no_grad():
                    if isinstance(network, PredictingNetwork):  # which keeps no attention
                        network.predict(some, change=look)
                    else:
                        network.run(some, change=look)
            known[L] = [seen[layer] for layer in range(subject.network.layers)]
        return known[L]

    def visible(batch: PassageBatch, layer: int, alpha: Tensor) -> Tensor:
        places = batch.mask[:, None, None].expand_as(alpha)
        if batch.before is not None or alpha.shape[2] == 1:
            return places
        return places & (probed(batch)[layer] | (alpha != 0).any(1, keepdim=True))

    return visible


def permuted(
    seed: int, layer: int | None = None, head: int | None = None, *, visible: Visible | None = None
) -> BatchChange:
    """Each row's weights in random order; in one layer (or one head of it), or in all.

    visible: which places may get weight; all that have any, if it is not given. The order depends on the seed, the
    passage and the layer, never on the rest of the batch.
    """

    def change(batch: PassageBatch, number: int, alpha: Tensor) -> Tensor:
        if layer not in (None, number):
            return alpha
        draws = [passage_rng(passage, seed, number) for passage in batch.passages]
        keys = _drawn(batch, alpha, lambda b, shape: draws[b].random(shape))
        places, moved = _places(visible, batch, number, alpha), torch.empty_like(alpha)
        for k, own in enumerate(keys):
            moved[:, k] = permute(alpha[:, k], own, places[:, k])
        return _in_head(head, alpha, moved)

    return change


def uniform(layer: int | None = None, head: int | None = None, *, visible: Visible | None = None) -> BatchChange:
    """Equal weights wherever a row may have any; in one layer (or one head of it), or in all."""

    def change(batch: PassageBatch, number: int, alpha: Tensor) -> Tensor:
        if layer not in (None, number):
            return alpha
        return _in_head(head, alpha, equalise(alpha, _places(visible, batch, number, alpha)))

    return change


def _drawn(
    batch: PassageBatch, alpha: Tensor, draw: Callable[[int, tuple[int, int]], NDArray[np.float64]]
) -> Iterator[Float[Tensor, "B Q L"]]:
    """Random numbers for each weight of a layer, head by head, drawn for each passage without its padding.

    draw: of a passage's number in the batch and a shape.
    """
    B, H, Q, L = alpha.shape
    for _ in range(H):
        values = np.zeros((B, Q, L))
        for b, passage in enumerate(batch.passages):
            length = len(passage.pieces)
            rows = length if Q == L else Q
            values[b, :rows, :length] = draw(b, (rows, length))
        yield torch.from_numpy(values).to(alpha.device)


def _places(visible: Visible | None, batch: PassageBatch, layer: int, alpha: Tensor) -> Tensor:
    return alpha != 0 if visible is None else visible(batch, layer, alpha)


def _in_head(head: int | None, alpha: Tensor, changed: Tensor) -> Tensor:
    """The changed attention in one head, the model's own in the others."""
    if head is None:
        return changed
    chosen = torch.arange(alpha.shape[1], device=alpha.device)[:, None, None] == head
    return torch.where(chosen, changed, alpha)


def permute(
    alpha: Float[Tensor, "*rows L"], keys: Float[Tensor, "*rows L"], visible: Bool[Tensor, "*rows L"]
) -> Float[Tensor, "*rows L"]:
    """Weights moved among the visible places, in the order of the keys there.

    >>> keys, visible = torch.tensor([0.3, 0.1, 0.2, 0.4]), torch.tensor([True, False, True, True])
    >>> permute(torch.tensor([0.7, 0.0, 0.3, 0.0]), keys, visible)
    tensor([0.3000, 0.0000, 0.7000, 0.0000])
    """
    masked = (~visible).to(keys.dtype)
    positions = torch.argsort(masked, dim=-1, stable=True)
    order = torch.argsort(keys + 2 * masked, dim=-1)  # keys are below 1: masked places come last
    return torch.zeros_like(alpha).scatter(-1, positions, alpha.gather(-1, order))


def equalise(alpha: Float[Tensor, "*rows L"], visible: Bool[Tensor, "*rows L"]) -> Float[Tensor, "*rows L"]:
    """Each row's weight shared equally among the visible places.

    >>> equalise(torch.tensor([1.0, 0.0, 0.0]), torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    places = visible.to(alpha.dtype)
    return places * (alpha.sum(-1, keepdim=True) / places.sum(-1, keepdim=True).clamp_min(1))


def passage_rng(passage: Passage, *seeds: int) -> np.random.Generator:
    """A random generator for one passage, the same in any batch.

    >>> passage = Passage.of_pieces(3, [7])
    >>> passage_rng(passage, 0).integers(1000) == passage_rng(passage, 0).integers(1000)
    np.True_
    """
    return np.random.default_rng([passage.text, len(passage.before), *seeds])


@dataclass(frozen=True)
class OtherMap:
    """The most different map that was found to give the same prediction.

    divergence: from the model's own map, JSD in nats, in [0, ln 2]; 0 if none was found. weights: of the explained
    words, as shares; probability: of the passage's target under it. Both are the model's own where none was found.
    """

    divergence: float
    weights: Numbers
    probability: float


def other_maps(
    subject: Subject,
    passages: Sequence[Passage],
    *,
    layer: int | None = -1,
    head: int | None = None,
    steps: int = 100,
    tolerance: float = TOLERANCE,
    include_special: bool = False,
    seed: int = 0,
    norm: bool = False,
) -> list[OtherMap]:
    """The most different map with the same prediction, by gradient ascent on the weights that the map shows.

    layer: whose map it is, the last by default; head: for the map of a single head. norm: the map is that of norms of
    contributions, in place of weights (`weighted_maps.norm_map`). Only those weights are changed. The
    prediction counts as the same if its label is and if it moves by no more than `tolerance` in total variation.
    Deterministic under the seed, and the same in any batch.
    """
    subject.require_change("the search for another attention")
    number = range(subject.network.layers)[-1 if layer is None else layer]
    visible = visible_places(subject)

    def of_batch(batch: PassageBatch) -> list[OtherMap]:
        map_of = _map_of_words(subject, batch, head, include_special, number if norm else None)
        return _search(subject, batch, map_of, visible, number, head, steps, tolerance, seed, include_special)

    # A step that begins at the layer costs the same for one text and for many, so the batches are full.
    return subject.map(passages, of_batch, gradients=True, padding=math.inf if subject.resumes_at(number) else PADDING)


def reweighted(
    alpha: Float[Tensor, "*rows L"], scores: Float[Tensor, "*rows L"], visible: Bool[Tensor, "*rows L"]
) -> Float[Tensor, "*rows L"]:
    """α · exp(score) over the visible places, each row normalised to its former total.

    A visible place counts with at least `FLOOR` of an even share, so that a score can raise a weight of 0.

    >>> visible = torch.tensor([True, True, False])
    >>> reweighted(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([math.log(3.0), 0.0, 9.0]), visible)
    tensor([0.7500, 0.2500, 0.0000])
    """
    total = alpha.sum(-1, keepdim=True)
    logs = torch.where(visible, _log(alpha, visible) + scores, -torch.finfo(alpha.dtype).max)
    return logs.softmax(-1) * visible * total


def _search(
    subject: Subject,
    batch: PassageBatch,
    map_of: MapOf,
    visible: Visible,
    layer: int,
    head: int | None,
    steps: int,
    tolerance: float,
    seed: int,
    include_special: bool,
) -> list[OtherMap]:
    with torch.no_grad():
        original = subject.run(batch)
    own, label, rows = original.attention[layer], original.probabilities.argmax(1), subject.rows_read(layer)
    alpha, own_map = own.float() if own.dtype.itemsize < 4 else own, map_of(own)
    start, places = alpha[:, :, rows], visible(batch, layer, own)[:, :, rows]
    others = alpha[:, :, rows.stop or alpha.shape[2] :]  # rows that no prediction depends on
    best = torch.zeros(len(batch.passages), dtype=torch.float64, device=own_map.device)
    weights = own_map.clone()
    target = original.probabilities.gather(1, batch.targets[:, None].clamp_min(0))[:, 0].double()
    scores = _random_scores(batch, layer, alpha, seed)[:, :, rows]
    scores = (scores - TILT * torch.where(places, _log(start, places), 0.0)).requires_grad_()
    optimiser = torch.optim.Adam([scores], lr=LEARNING_RATE)
    changed_to = subject.changed(batch, layer, original.hidden[layer])
    for _ in range(steps):
        changed = torch.cat([_in_head(head, start, reweighted(start, scores, places)), others], dim=2)
        put = changed.to(own.dtype)
        predicted = changed_to(None, lambda number, given: put if number == layer else given)  # noqa: B023
        divergence = jensen_shannon(map_of(changed), own_map)
        moved = total_variation(predicted, original.probabilities)
        allowed = (moved <= tolerance) & (predicted.argmax(1) == label) & (divergence > best)
        best = torch.where(allowed, divergence, best).detach()
        weights = torch.where(allowed[:, None], map_of(changed), weights).detach()
        chosen = predicted.gather(1, batch.targets[:, None].clamp_min(0))[:, 0]
        target = torch.where(allowed, chosen.double(), target).detach()
        (found,) = torch.autograd.grad((PENALTY * moved - divergence).sum(), [scores], materialize_grads=True)
        scores.grad = found.nan_to_num(0.0, 0.0, 0.0)  # under other weights the prediction may be no number
        optimiser.step()
    found_maps = zip(
        batch.passages, best.clamp(0.0, MAX_DIVERGENCE).tolist(), numbers(weights), target.tolist(), strict=True
    )
    return [
        OtherMap(d, w[: len(p.words)][p.explained(include_special=include_special)], y) for p, d, w, y in found_maps
    ]


def _map_of_words(
    subject: Subject, batch: PassageBatch, head: int | None, include_special: bool, norms_at: int | None
) -> MapOf:
    """The map of words of a layer's attention. norms_at: the layer whose contributions are weighed, if they are."""
    belongs = np.zeros((*batch.pieces.shape, max(len(passage.words) for passage in batch.passages)))
    for b, passage in enumerate(batch.passages):
        word = np.array(passage.word)
        belongs[b, np.arange(len(word)), word] = passage.explained(include_special=include_special)[word]
    to_words, weights = torch.from_numpy(belongs).to(batch.pieces.device), subject.reading(batch)
    norms = None if norms_at is None else norms_of(subject, batch, norms_at, head)

    def of_pieces(alpha: Tensor) -> Tensor:
        if norms is not None:
            return norms(alpha)
        heads = query_rows(alpha, subject.network.query, weights).double()
        return heads.mean(1) if head is None else heads[:, head]

    def map_of(alpha: Tensor) -> Tensor:
        words = torch.einsum("bl,blw->bw", of_pieces(alpha), to_words)
        return words / words.sum(-1, keepdim=True).clamp_min(torch.finfo(words.dtype).tiny)

    return map_of


def _random_scores(batch: PassageBatch, layer: int, alpha: Tensor, seed: int) -> Tensor:
    draws = [passage_rng(passage, seed, layer) for passage in batch.passages]
    noise = _drawn(batch, alpha, lambda b, shape: draws[b].standard_normal(shape))
    return torch.stack([(NOISE * head).to(alpha) for head in noise], dim=1)


def _log(alpha: Tensor, visible: Tensor) -> Tensor:
    even = alpha.sum(-1, keepdim=True) / visible.sum(-1, keepdim=True).clamp_min(1)
    floor = (FLOOR * even).clamp_min(torch.finfo(alpha.dtype).tiny)
    return torch.maximum(alpha, floor).log()


def erasures(
    subject: Subject, passages: Sequence[Passage], rankings: Mapping[str, Sequence[Numbers]]
) -> dict[str, Numbers]:
    """Areas over the perturbation curves, as `comprehensiveness/<ranking>` and `sufficiency/<ranking>`.

    rankings: one row of scores per passage, a score for each word that is not special. NaN where all scores are equal,
    so that there is no order. A shortened text that several rankings need is predicted once.
    """
    index = [i for _ in rankings for i in range(len(passages))]
    rows = [row for ranking in rankings.values() for row in ranking]
    measures = {"comprehensiveness": comprehensiveness, "sufficiency": sufficiency}
    wanted: list[Keep] = []

    def note(keep: Keep) -> Numbers:
        wanted.append(keep)
        return np.zeros(len(keep))

    for function in measures.values():  # first only to see what is needed: it is predicted in full batches
        function(rows, note)
    predict = _known_predictions(subject, passages, index, wanted)
    flat = np.array([np.ptp(row) == 0 for row in rows])
    result: dict[str, Numbers] = {}
    for measure, function in measures.items():
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


def _known_predictions(
    subject: Subject, passages: Sequence[Passage], index: Sequence[int], wanted: Sequence[Keep]
) -> Callable[[Keep], Numbers]:
    """`predict(keep)` of all that is wanted, for rows that may belong to one passage; no text is predicted twice."""
    plain = [passage.explained() for passage in passages]

    def kept(keep: Keep) -> Iterator[tuple[tuple[int, bytes], Keep]]:
        for i, row in zip(index, keep, strict=True):
            words = np.ones(len(plain[i]), dtype=bool)  # special words always stay
            words[plain[i]] = row[: int(plain[i].sum())]
            yield (i, words.tobytes()), words

    new = {key: words for keep in wanted for key, words in kept(keep)}
    predicted = subject.predict([passages[i] for i, _ in new], list(new.values()))
    known = dict(zip(new, predicted.tolist(), strict=True))
    return lambda keep: np.array([known[key] for key, _ in kept(keep)])
