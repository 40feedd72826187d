"""Does the prediction move when attention is another? Weights permuted, or made equal, in all layers or in one."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.audits.asking import Batch, Numbers, Subject
from heedful.audits.names import EVERYWHERE, layer_name
from heedful.audits.network import Change
from heedful.audits.passage import Passage
from heedful.measure.divergence import total_variation


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


def permuted(seed: int, layer: int | None = None) -> Callable[[Batch], Change]:
    """Each row's weights in random order among the places that have any; of one layer, or of all.

    The order depends on the seed, the passage and the layer, never on what else is in the batch.
    """

    def of(batch: Batch) -> Change:
        def change(where: int, alpha: Tensor) -> Tensor:
            if layer not in (None, where):
                return alpha
            keys = [draw(passage, seed, where).random(alpha.shape[1:]) for passage in batch.passages]
            return permute(alpha, torch.from_numpy(np.stack(keys)).to(alpha.device))

        return change

    return of


def uniform(layer: int | None = None) -> Callable[[Batch], Change]:
    """The same weight at every place of a row that has any; of one layer, or of all."""

    def of(batch: Batch) -> Change:
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
