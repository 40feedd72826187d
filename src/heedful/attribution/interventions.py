"""Does the prediction move when attention is another? Weights permuted, or made equal, in all layers or in one."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.attribution.attention_maps import EVERYWHERE, asked, layer_name, of_query
from heedful.attribution.interface import Change, Passage, Query
from heedful.attribution.model_queries import Numbers, PassageBatch, Subject, numbers
from heedful.metrics.divergence import total_variation
from heedful.models.adversary import jensen_shannon, total_variation_loss


def movements(
    subject: Subject, passages: Sequence[Passage], probabilities: Float[NDArray[np.float64], "B K"], seed: int
) -> dict[str, Numbers]:
    """How far predictions move (total variation) and whether the label does, by `tvd/permuted/all layers` and so on."""
    found: dict[str, Numbers] = {}
    layers = subject.network.layers
    places = {EVERYWHERE: None} | {layer_name(layer): layer for layer in range(layers) if layers > 1}
    for place, layer in places.items():
        for kind, change in (("permuted", permuted(seed, layer)), ("uniform", uniform(layer))):
            moved = subject.with_attention(passages, change)
            found[f"tvd/{kind}/{place}"] = total_variation(probabilities, moved)
            found[f"flip/{kind}/{place}"] = (probabilities.argmax(1) != moved.argmax(1)).astype(np.float64)
    return found


def permuted(seed: int, layer: int | None = None) -> Callable[[PassageBatch], Change]:
    """Each row's weights in random order among the places that have any; of one layer, or of all.

    The order depends on the seed, the passage and the layer, never on what else is in the batch.
    """

    def of(batch: PassageBatch) -> Change:
        def change(where: int, alpha: Tensor) -> Tensor:
            if layer not in (None, where):
                return alpha
            keys = [draw(passage, seed, where).random(alpha.shape[1:]) for passage in batch.passages]
            return permute(alpha, torch.from_numpy(np.stack(keys)).to(alpha.device))

        return change

    return of


def uniform(layer: int | None = None) -> Callable[[PassageBatch], Change]:
    """The same weight at every place of a row that has any; of one layer, or of all."""

    def of(batch: PassageBatch) -> Change:
        return lambda where, alpha: level(alpha) if layer in (None, where) else alpha

    return of


def permute(alpha: Float[Tensor, "*rows L"], keys: Float[Tensor, "*rows L"]) -> Float[Tensor, "*rows L"]:
    """Weights moved among the places that are not 0, in the order of the keys there.

    >>> permute(torch.tensor([0.7, 0.0, 0.2, 0.1]), torch.tensor([0.3, 0.1, 0.2, 0.4]))
    tensor([0.2000, 0.0000, 0.7000, 0.1000])
    """
    empty = (alpha == 0).to(keys.dtype)
    places = torch.argsort(empty, dim=-1, stable=True)
    order = torch.argsort(keys + 2 * empty, dim=-1)  # keys are below 1: places without weight come last
    return torch.zeros_like(alpha).scatter(-1, places, alpha.gather(-1, order))


def level(alpha: Float[Tensor, "*rows L"]) -> Float[Tensor, "*rows L"]:
    """Each row's weight shared equally among the places that have any.

    >>> level(torch.tensor([0.7, 0.0, 0.3]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    used = (alpha != 0).to(alpha.dtype)
    return used * alpha.sum(-1, keepdim=True) / used.sum(-1, keepdim=True).clamp_min(1)


def draw(passage: Passage, *seeds: int) -> np.random.Generator:
    """Random numbers that are a passage's own, whatever it is asked together with.

    >>> passage = Passage(3, ("a",), (False,), (7,), (0,))
    >>> draw(passage, 0).integers(1000) == draw(passage, 0).integers(1000), draw(passage, 0) is draw(passage, 1)
    (np.True_, False)
    """
    return np.random.default_rng([passage.text, len(passage.before), *seeds])


Show = Callable[[Tensor], Tensor]
TOLERANCE = 0.01
PENALTY = 10.0
LEARNING_RATE = 0.3
NOISE, TILT = 0.1, 0.25  # the search starts beside α, where divergence has a gradient, and on the side of even weights
MOST = math.log(2)


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
    """JSD in nats, in [0, ln 2], of the most different map found for each passage; 0 where none was.

    layer: whose map is shown, the last unless said; head: where it is that of one head alone. Deterministic under the
    seed, and the same in any batch.
    """
    subject.require_change()

    def answer(batch: PassageBatch) -> Numbers:
        shown = _shown(subject.network.query, batch, head, include_special)
        return _search(subject, batch, shown, layer, steps, tolerance, seed)

    return np.array(subject.ask(passages, answer, gradients=True))


def tilted(alpha: Float[Tensor, "*rows L"], scores: Float[Tensor, "*rows L"]) -> Float[Tensor, "*rows L"]:
    """α · exp(s), each row with the weight that it had.

    >>> tilted(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([math.log(3.0), 0.0, 9.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    used, limits = alpha > 0, torch.finfo(alpha.dtype)
    logs = torch.where(used, _log(alpha) + scores, -limits.max)
    return logs.softmax(-1) * used * alpha.sum(-1, keepdim=True)


def _search(
    subject: Subject, batch: PassageBatch, shown: Show, layer: int, steps: int, tolerance: float, seed: int
) -> Numbers:
    with torch.no_grad():
        given = subject.run(batch)
    original, label = shown(given.attention[layer]), given.probabilities.argmax(1)
    best = torch.zeros(len(batch.passages), dtype=torch.float64, device=original.device)
    scores = [_start(batch, number, alpha, seed) for number, alpha in enumerate(given.attention)]
    with torch.no_grad():
        scores[layer] -= TILT * _log(given.attention[layer])
    optimiser = torch.optim.Adam(scores, lr=LEARNING_RATE)
    for _ in range(steps):
        attention = [tilted(alpha, score) for alpha, score in zip(given.attention, scores, strict=True)]
        probabilities = subject.run(batch, change=lambda number, _: attention[number]).probabilities  # noqa: B023
        diverged = jensen_shannon(shown(attention[layer]), original)
        moved = total_variation_loss(probabilities, given.probabilities)
        allowed = (moved <= tolerance) & (probabilities.argmax(1) == label)
        best = torch.maximum(best, torch.where(allowed, diverged, 0.0).detach())
        gradients = torch.autograd.grad((PENALTY * moved - diverged).sum(), scores, materialize_grads=True)
        for score, gradient in zip(scores, gradients, strict=True):
            score.grad = gradient
        optimiser.step()
    return numbers(best.clamp(0.0, MOST))


def _shown(query: Query, batch: PassageBatch, head: int | None, include_special: bool) -> Show:
    """Attention (B, H, Q, L) of a layer as the map of words (B, W) that a reader is shown."""
    belongs = torch.zeros(*batch.pieces.shape, max(len(passage.words) for passage in batch.passages))
    for b, passage in enumerate(batch.passages):
        told = asked(passage, include_special=include_special)
        for piece, word in enumerate(passage.word):
            belongs[b, piece, word] = float(told[word])
    onto = belongs.double().to(batch.pieces.device)

    def show(alpha: Tensor) -> Tensor:
        heads = of_query(alpha, query).double()
        words = torch.einsum("bl,blw->bw", heads.mean(1) if head is None else heads[:, head], onto)
        return words / words.sum(-1, keepdim=True).clamp_min(torch.finfo(words.dtype).tiny)

    return show


def _start(batch: PassageBatch, layer: int, alpha: Tensor, seed: int) -> Tensor:
    noise = np.stack([draw(passage, seed, layer).standard_normal(alpha.shape[1:]) for passage in batch.passages])
    return (NOISE * torch.from_numpy(noise)).to(alpha).requires_grad_()


def _log(alpha: Tensor) -> Tensor:
    return alpha.clamp_min(torch.finfo(alpha.dtype).tiny).log()
