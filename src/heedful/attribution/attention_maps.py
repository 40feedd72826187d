"""Attention maps of a model: of one head, of a layer, of all layers, and rollout; as shares of the words.

A map and an importance have the same form, `Importance`: one row for each passage, normalised to sum 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from heedful.attribution.interface import LONG, Numbers, Passage, PassageBatch, Subject, numbers
from heedful.attribution.network import Query
from heedful.data.ragged import Ragged, offsets_of
from heedful.errors import DataError

MEAN, ROLLOUT = "mean", "rollout"
NORM, WEIGHTED_GRADIENT, ZEROED = " × norm", " × gradient", " value zeroing"  # after the name of the weights' map
GRADIENT, PRODUCT = "gradient", "gradient × input"
INTEGRATED, DELETION = "integrated gradients", "leave one out"
HIDDEN, HIDDEN_PRODUCT = "hidden gradient", "hidden gradient × state"
HIDDEN_INTEGRATED, HIDDEN_DELETION = "hidden integrated gradients", "hidden leave one out"
RANDOM = "random order"
EVERYWHERE = "all layers"
ROWS_AT_ONCE = 256  # of a product of two maps, so that it takes the place of the first


def layer_name(layer: int, head: int | None = None) -> str:
    """The name of a map; names count from 1.

    >>> layer_name(0), layer_name(1, 0)
    ('layer 1', 'layer 2 head 1')
    """
    return f"layer {layer + 1}" if head is None else f"{layer_name(layer)} head {head + 1}"


def is_head(name: str) -> bool:
    """Whether a map shows a single head.

    >>> is_head("layer 2 head 1"), is_head("layer 2")
    (True, False)
    """
    return " head " in name


def is_hidden(name: str) -> bool:
    """Whether an importance is of hidden states rather than of input words.

    >>> is_hidden("hidden leave one out"), is_hidden("leave one out")
    (True, False)
    """
    return name.startswith("hidden ")


def weights_of(name: str) -> str:
    """The map of the weights that a map is made of: itself, or that of a layer or head without what is weighted in.

    >>> weights_of("layer 2 head 1 × norm"), weights_of("layer 2"), weights_of("rollout")
    ('layer 2 head 1', 'layer 2', 'rollout')
    """
    for suffix in (NORM, WEIGHTED_GRADIENT, ZEROED):
        name = name.removesuffix(suffix)
    return name


def layer_of(name: str) -> int | None:
    """The layer of a map, counted from 0; None where it covers several.

    >>> layer_of("layer 2 head 1"), layer_of("mean")
    (1, None)
    """
    return int(name.split()[1]) - 1 if name.startswith("layer ") else None


def head_of(name: str) -> int | None:
    """The head of a map, counted from 0; None where it covers several.

    >>> head_of("layer 2 head 1"), head_of("layer 2")
    (0, None)
    """
    return int(name.split()[3]) - 1 if is_head(name) else None


@dataclass(frozen=True, eq=False)
class Importance(Ragged):
    """One row per passage, or per hidden state of each passage in turn; the absolute values of a row sum to 1.

    Where nothing matters (every gradient or difference is 0), and where the only word of a text would have to be
    deleted, there is nothing to divide: all words get the same share, and `undefined` is true for the row.
    """

    undefined: NDArray[np.bool_]


@dataclass(frozen=True)
class Reading:
    """A model's predictions for passages, and its attention.

    attention: one array (layers, heads, words) per passage, from the positions that explain the prediction. rollout:
    one array (words,) per passage; None where attention is not self-attention.
    """

    probabilities: Float[Numbers, "B K"]
    attention: tuple[Numbers, ...]
    rollout: tuple[Numbers | None, ...]


def read_attention(subject: Subject, passages: Sequence[Passage]) -> Reading:
    """Run the model; attention is summed over the pieces of a word.

    Of texts longer than `LONG` pieces, where the network lets its attention be replaced, each layer's is seen when it
    is computed, and only the rows of the query are kept: a long text needs the memory of one layer.
    """
    query, network = subject.network.query, subject.network

    def of_batch(batch: PassageBatch) -> list[tuple[Numbers, Numbers, Numbers | None]]:
        weights, rows = subject.reading(batch), dict[int, Tensor]()
        flow: Tensor | None = None

        def keep(layer: int, alpha: Tensor) -> Tensor:
            nonlocal flow
            rows[layer] = query_rows(alpha, query, weights).clone()  # a view would keep the whole layer
            flow = None if layer != len(rows) - 1 or (layer and flow is None) else _flow_through(flow, alpha)
            return alpha

        is_long = batch.pieces.shape[1] > LONG
        if is_long and network.can_change and network.parts is None and batch.before is None:
            probabilities = subject.probabilities(batch, change=keep)
        else:
            output = subject.run(batch)
            probabilities = output.probabilities
            for layer, alpha in enumerate(output.attention):
                keep(layer, alpha)
        attention = torch.stack([rows[layer] for layer in range(network.layers)], dim=1)
        flows: Sequence[Numbers | None] = [None] * len(attention)
        if flow is not None and batch.before is None:
            flows = batch.words_of(query_rows(flow[:, None], query, weights)[:, 0])
        return list(zip(numbers(probabilities), batch.words_of(attention), flows, strict=True))

    probabilities, attention, flows = zip(*subject.map(passages, of_batch), strict=True)
    return Reading(np.stack(probabilities), attention, flows)


def attention_maps(
    passages: Sequence[Passage],
    attention: Sequence[Numbers],
    flows: Sequence[Numbers | None],
    *,
    include_special: bool = False,
) -> dict[str, Importance]:
    """Every map by its name, one row per passage: `layer 2 head 1`, `layer 2` (its mean), `mean`, `rollout`.

    attention, flows: as in `Reading`. Rows cover the explained words and sum to 1. A layer with one head, and a network
    with one layer, have one map for both.
    """
    layers, heads, _ = attention[0].shape
    rows: dict[str, list[Numbers]] = {}
    for layer in range(layers):
        for head in range(heads) if heads > 1 else ():
            rows[layer_name(layer, head)] = [alpha[layer, head] for alpha in attention]
        rows[layer_name(layer)] = [alpha[layer].mean(0) for alpha in attention]
    if layers > 1:
        rows[MEAN] = [alpha.mean((0, 1)) for alpha in attention]
    known = [flow for flow in flows if flow is not None]
    if len(known) == len(passages):
        rows[ROLLOUT] = known
    return {name: shares(passages, row, include_special=include_special) for name, row in rows.items()}


SINKS = ("first", "separator", "punctuation")


def sink_shares(passages: Sequence[Passage], rows: Sequence[Numbers]) -> dict[str, tuple[Numbers, Numbers]]:
    """The share of weight on places that often hold it without being read, and their share of all words, by kind.

    first: the first word of the input, mostly a special one; separator: the other special words; punctuation: words
    without a letter or digit. rows: of all words of each passage.

    >>> passage = Passage(0, ("[CLS]", "good", "!", "[SEP]"), (True, False, False, True), (1, 7, 8, 2), (0, 1, 2, 3))
    >>> weight, places = sink_shares([passage], [np.array([0.1, 0.1, 0.2, 0.6])])["separator"]
    >>> float(weight[0]), float(places[0])
    (0.6, 0.25)
    """
    result = {}
    for kind in SINKS:
        shares_of = []
        for passage, row in zip(passages, rows, strict=True):
            special = np.array(passage.special, dtype=bool)
            first = np.arange(len(special)) == 0
            marks = np.array([not any(c.isalnum() for c in word) for word in passage.words], dtype=bool)
            chosen = {"first": first, "separator": special & ~first, "punctuation": marks & ~special & ~first}[kind]
            total = float(row.sum())
            shares_of.append((float(row[chosen].sum()) / total if total > 0 else np.nan, float(chosen.mean())))
        result[kind] = (np.array([w for w, _ in shares_of]), np.array([p for _, p in shares_of]))
    return result


def shares(
    passages: Sequence[Passage], rows: Sequence[Numbers], *, include_special: bool = False, signed: bool = False
) -> Importance:
    """Absolute values of all words as shares of the explained words, one row per passage; signed: with their signs.

    >>> passage = Passage(0, ("<s>", "good", "film"), (True, False, False), (1, 7, 8), (0, 1, 2))
    >>> shares([passage], [np.array([0.6, 0.3, -0.1])]).values
    array([0.75, 0.25])
    >>> shares([passage], [np.array([0.6, 0.3, -0.1])], signed=True).values
    array([ 0.75, -0.25])
    """
    kept = [row[p.explained(include_special=include_special)] for p, row in zip(passages, rows, strict=True)]
    values, lengths = np.concatenate(kept).astype(np.float64), np.array([len(row) for row in kept], dtype=np.int64)
    return normalised(values if signed else np.abs(values), lengths)


def normalised(values: Numbers, lengths: NDArray[np.int64]) -> Importance:
    """Rows divided by the sums of their absolute values, in place; equal shares where a row is all 0.

    >>> normalised(np.array([1.0, 3.0, 0.0, 0.0]), np.array([2, 2])).values
    array([0.25, 0.75, 0.5 , 0.5 ])
    """
    offsets = offsets_of(lengths)
    tops = np.maximum.reduceat(np.abs(values), offsets[:-1]) if len(lengths) else np.empty(0)
    if not np.isfinite(tops).all():
        raise DataError(f"row {int(np.argmax(~np.isfinite(tops)))} has a gradient that is not a finite number")
    undefined = tops == 0
    values /= np.repeat(np.where(undefined, 1, tops), lengths)  # first by the largest: tiny numbers must not sum to 0
    values[np.repeat(undefined, lengths)] = 1
    if len(lengths):
        values /= np.repeat(np.add.reduceat(np.abs(values), offsets[:-1]), lengths)
    return Importance(values, offsets, undefined)


def query_rows(
    alpha: Float[Tensor, "B H Q L"], query: Query, weights: Float[Tensor, "B Q"] | None = None
) -> Float[Tensor, "B H L"]:
    """Attention from the positions that explain the prediction; weights: of the positions, see `Subject.reading`.

    >>> query_rows(torch.eye(2)[None, None], "last")
    tensor([[[0., 1.]]])
    """
    if weights is not None:
        return torch.einsum("bq,bhql->bhl", weights.to(alpha.dtype), alpha)
    if query == "mean":
        return alpha.mean(2)
    return alpha[:, :, 0 if query == "first" else -1]


def needed_rows(
    alpha: Float[Tensor, "B H Q L"], query: Query, weights: Float[Tensor, "B Q"] | None = None
) -> tuple[Float[Tensor, "B H R L"], Float[Tensor, "B R"] | None]:
    """The rows of attention that `query_rows` reads, and their weights: it gives the same for these as for all.

    >>> needed_rows(torch.eye(3)[None, None], "last")[0]
    tensor([[[[0., 0., 1.]]]])
    >>> alpha, weights = needed_rows(torch.eye(3)[None, None], "at", torch.tensor([[0.0, 1.0, 0.0]]))
    >>> query_rows(alpha, "at", weights)
    tensor([[[0., 1., 0.]]])
    """
    if weights is not None:
        read = (weights != 0).any(0).nonzero()[:, 0]
        return alpha[:, :, read], weights[:, read]
    if query == "mean":
        return alpha, None
    return alpha[:, :, :1] if query == "first" else alpha[:, :, -1:], None


def rollout(attention: Sequence[Float[Tensor, "B H Q L"]]) -> Float[Tensor, "B L L"] | None:
    """Attention followed through the layers (Abnar & Zuidema 2020), half of each position being its own.

        Ã_l = ½(mean over heads of A_l) + ½I, rows to sum 1;   rollout = Ã_N ⋯ Ã_1

    None unless every layer is self-attention over L > 1 positions.

    >>> rollout([torch.tensor([[[[0.0, 1.0], [0.0, 1.0]]]])]).float()
    tensor([[[0.5000, 0.5000],
             [0.0000, 1.0000]]])
    """
    flow: Tensor | None = None
    for alpha in attention:
        flow = _flow_through(flow, alpha)
        if flow is None:
            return None
    return flow


def _flow_through(flow: Float[Tensor, "B L L"] | None, alpha: Float[Tensor, "B H Q L"]) -> Tensor | None:
    """One layer of `rollout` more; flow: through the layers below, None at the first."""
    if alpha.shape[2] != alpha.shape[3] or alpha.shape[3] == 1:
        return None
    B, H, _, L = alpha.shape
    mixed = torch.zeros(B, L, L, dtype=torch.float64, device=alpha.device)
    for head in range(H):  # one by one: a copy of all heads in double precision would be twice the layer
        mixed += alpha[:, head]
    mixed /= 2 * H
    mixed.diagonal(dim1=1, dim2=2).add_(0.5)
    mixed /= mixed.sum(-1, keepdim=True)
    if flow is not None:
        for some in torch.split(mixed, ROWS_AT_ONCE, dim=1):
            some.copy_(some @ flow)
    return mixed
