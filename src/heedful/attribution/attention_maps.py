"""Which attention a reader is shown: of one head, of a layer, of all layers, or followed through them."""

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.attribution.forward import Importance, normalised
from heedful.attribution.interface import Passage, Query

MEAN, ROLLOUT = "mean", "rollout"
GRADIENT, PRODUCT = "gradient", "gradient × input"
INTEGRATED, DELETION = "integrated gradients", "leave one out"
HIDDEN, HIDDEN_PRODUCT = "hidden gradient", "hidden gradient × state"
HIDDEN_INTEGRATED, HIDDEN_DELETION = "hidden integrated gradients", "hidden leave one out"
RANDOM = "random order"
EVERYWHERE = "all layers"


def layer_name(layer: int, head: int | None = None) -> str:
    """A map's name; people count from 1.

    >>> layer_name(0), layer_name(1, 0)
    ('layer 1', 'layer 2 head 1')
    """
    return f"layer {layer + 1}" if head is None else f"{layer_name(layer)} head {head + 1}"


def is_head(name: str) -> bool:
    """Whether a map is of one head alone.

    >>> is_head("layer 2 head 1"), is_head("layer 2")
    (True, False)
    """
    return " head " in name


def is_hidden(name: str) -> bool:
    """Whether an importance is of hidden states, not of the words that are read.

    >>> is_hidden("hidden leave one out"), is_hidden("leave one out")
    (True, False)
    """
    return name.startswith("hidden ")


def layer_of(name: str) -> int | None:
    """The layer that a map is of, counted from 0; None where it is of several.

    >>> layer_of("layer 2 head 1"), layer_of("mean")
    (1, None)
    """
    return int(name.split()[1]) - 1 if name.startswith("layer ") else None


def head_of(name: str) -> int | None:
    """The head that a map is of, counted from 0; None where it is of several.

    >>> head_of("layer 2 head 1"), head_of("layer 2")
    (0, None)
    """
    return int(name.split()[3]) - 1 if is_head(name) else None


def attention_maps(
    passages: Sequence[Passage],
    attention: Sequence[NDArray[np.float64]],
    flows: Sequence[NDArray[np.float64] | None],
    *,
    include_special: bool = False,
) -> dict[str, Importance]:
    """Every map by its name, one row per passage: `layer 2 head 1`, `layer 2` (its mean), `mean`, `rollout`.

    attention: of each passage, (layers, heads, words); flows: its rollout, where there is one. Rows are of the words
    asked about and sum to 1. A head that is its whole layer, and a layer that is the whole
    network, are not shown twice.
    """
    layers, heads, _ = attention[0].shape
    rows: dict[str, list[NDArray[np.float64]]] = {}
    for layer in range(layers):
        for head in range(heads) if heads > 1 else ():
            rows[layer_name(layer, head)] = [alpha[layer, head] for alpha in attention]
        rows[layer_name(layer)] = [alpha[layer].mean(0) for alpha in attention]
    if layers > 1:
        rows[MEAN] = [alpha.mean((0, 1)) for alpha in attention]
    followed = [flow for flow in flows if flow is not None]
    if len(followed) == len(passages):
        rows[ROLLOUT] = followed
    return {name: shares(passages, row, include_special=include_special) for name, row in rows.items()}


def asked(passage: Passage, *, include_special: bool = False) -> NDArray[np.bool_]:
    """The words that an explanation speaks of: all but the special ones, or all.

    >>> asked(Passage(0, ("<s>", "good"), (True, False), (1, 7), (0, 1)))
    array([False,  True])
    """
    return ~np.array(passage.special, dtype=bool) | include_special


def shares(
    passages: Sequence[Passage], rows: Sequence[NDArray[np.float64]], *, include_special: bool = False
) -> Importance:
    """Values of all words as shares of the words asked about, one row per passage; without sign.

    >>> passage = Passage(0, ("<s>", "good", "film"), (True, False, False), (1, 7, 8), (0, 1, 2))
    >>> shares([passage], [np.array([0.6, 0.3, 0.1])]).values
    array([0.75, 0.25])
    """
    kept = [np.abs(row[asked(p, include_special=include_special)]) for p, row in zip(passages, rows, strict=True)]
    return normalised(np.concatenate(kept), np.array([len(row) for row in kept], dtype=np.int64))


def of_query(alpha: Float[Tensor, "B H Q L"], query: Query) -> Float[Tensor, "B H L"]:
    """Attention from the places that explain the prediction.

    >>> of_query(torch.eye(2)[None, None], "last")
    tensor([[[0., 1.]]])
    """
    if query == "mean":
        return alpha.mean(2)
    return alpha[:, :, 0 if query == "first" else -1]


def rollout(attention: Sequence[Float[Tensor, "B H Q L"]]) -> Float[Tensor, "B L L"] | None:
    """Attention followed through the layers (Abnar & Zuidema 2020): each place passes on half of what it is.

        Ã_l = ½(mean over heads of A_l) + ½I, rows to sum 1;   rollout = Ã_N ⋯ Ã_1

    None unless every layer looks from each of L > 1 places at the same L.

    >>> rollout([torch.tensor([[[[0.0, 1.0], [0.0, 1.0]]]])]).float()
    tensor([[[0.5000, 0.5000],
             [0.0000, 1.0000]]])
    """
    if any(alpha.shape[2] != alpha.shape[3] or alpha.shape[3] == 1 for alpha in attention):
        return None
    flow = torch.eye(attention[0].shape[-1], dtype=torch.float64, device=attention[0].device)[None]
    for alpha in attention:
        mixed = alpha.double().mean(1) / 2 + torch.eye(alpha.shape[-1], dtype=torch.float64, device=alpha.device) / 2
        flow = mixed / mixed.sum(-1, keepdim=True) @ flow
    return flow
