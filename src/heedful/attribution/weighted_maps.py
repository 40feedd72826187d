"""Maps made of attention and of what it does: norms of contributions, gradients of weights, and zeroed values.

    norm           ‖Σ_h α_h f_h(x)‖₂        how much attention takes over from a word (Kobayashi et al. 2020)
    grad           Σ_{h,q} α · max(0, ∂ŷ/∂α)  weights that raise the prediction (Barkan et al. 2021; Chefer et al. 2021)
    value-zeroing  1 − cos(x̃, x̃ without the values of a word)  how far the layer's output turns (Mohebbi et al. 2023)

Each is the map of one layer or head, or of all layers (their mean for norms, their sum for gradients). Pieces are
summed into words, except in value zeroing, where all pieces of a word are zeroed together.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from heedful.attribution.attention_maps import head_of, layer_of, needed_rows, query_rows
from heedful.attribution.importance import gradient_of
from heedful.attribution.interface import Numbers, Passage, PassageBatch, Subject, numbers, target_probability, within
from heedful.attribution.network import Output
from heedful.attribution.value_vectors import Entered, contribution_norms, states_values, value_vectors

WeightedRows = list[Numbers] | None  # one value for each word of each passage; None where the model does not allow it


def norm_map(subject: Subject, passages: Sequence[Passage], of: str) -> WeightedRows:
    """Norms of what attention takes over from each word. of: a layer, a head, or anything else for all layers."""
    layers = _layers(subject, of)

    def of_batch(batch: PassageBatch) -> list[Numbers | None]:
        total = torch.zeros((), device=batch.pieces.device)
        for layer in layers:
            entered = subject.entered(batch, layer)
            norms = norms_of(subject, batch, layer, head_of(of), entered)
            if norms is None:
                return [None] * len(batch.passages)
            total = total + norms(entered[0])
        return [*batch.words_of(total / len(layers))]

    return _known(subject.map(passages, of_batch, at_once=within(max(1, subject.max_tokens // 4))))


def norms_of(
    subject: Subject, batch: PassageBatch, layer: int, head: int | None = None, entered: Entered | None = None
) -> Callable[[Tensor], Tensor] | None:
    """A function of a layer's attention (B, H, Q, L): the norms of its contributions (B, L) to what the head reads."""
    vectors, weights = value_vectors(subject, batch, layer, entered), subject.reading(batch)
    query = subject.network.query
    if vectors is None:
        return None
    chosen = slice(None) if head is None else slice(head, head + 1)

    def norms(alpha: Tensor) -> Tensor:
        rows, shares = needed_rows(alpha[:, chosen], query, weights)
        return query_rows(contribution_norms(rows, vectors[:, chosen])[:, None], query, shares)[:, 0]

    return norms


def gradient_map(subject: Subject, passages: Sequence[Passage], of: str) -> WeightedRows:
    """Σ α · max(0, ∂ŷ/∂α) over heads and query positions, for passages with a target."""
    if not subject.network.can_change:
        return None
    layers, head = _layers(subject, of), head_of(of)

    def of_batch(batch: PassageBatch) -> list[Numbers]:
        used: dict[int, Tensor] = {}

        def keep(number: int, alpha: Tensor) -> Tensor:
            used[number] = alpha if alpha.requires_grad else alpha.detach().requires_grad_()
            return used[number]

        if len(layers) == 1 and subject.resumes_at(layers[0]):  # no gradient is needed of the layers below
            predicted = subject.resume(batch, layers[0], subject.states_at(batch, layers[0]), keep)
        else:
            embedded = subject.network.embed(batch.pieces).detach().requires_grad_()
            predicted = subject.probabilities(batch, embedded, keep)
        y = target_probability(predicted, batch)
        weights = [used[layer] for layer in layers]
        total = torch.zeros((), device=batch.pieces.device)
        for alpha, gradient in zip(weights, gradient_of(y, weights), strict=True):
            for number in range(alpha.shape[1]) if head is None else (head,):  # one by one, in double precision
                raised = alpha[:, number].double() * gradient[:, number].double().clamp_min(0)
                total = total + raised.sum(1)
        return batch.words_of(total)

    return subject.map(passages, of_batch, gradients=True)


def value_zeroing_map(subject: Subject, passages: Sequence[Passage], of: str) -> WeightedRows:
    """How far the output of a layer turns where the values of a word are 0: 1 − cos, at the positions the head reads.

    Zeroed values are the same as weights of 0 that are not shared out among the other words. Of a network that states
    its value vectors, the output of a layer is that of its attention. None for maps of several layers.
    """
    layer, head = layer_of(of), head_of(of)
    if layer is None:
        return None

    def of_batch(batch: PassageBatch) -> list[Numbers | None]:
        output, weights = subject.run(batch), subject.reading(batch)
        if states_values(subject.network):
            vectors = value_vectors(subject, batch, layer)
            assert vectors is not None
            return [*_without_runs(batch, output.attention[layer], vectors, subject, head)]
        own = _after(output, layer)
        if own is None or not subject.network.can_change:
            return [None] * len(batch.passages)
        word = torch.tensor(
            [passage.word + (-1,) * (batch.pieces.shape[1] - len(passage.word)) for passage in batch.passages],
            device=own.device,
        )
        variants = [(b, w) for b, passage in enumerate(batch.passages) for w in sorted(set(passage.word))]
        result = [np.zeros(len(passage.words)) for passage in batch.passages]
        at_once = within(subject.max_tokens)(batch.pieces.shape[1])
        for begin in range(0, len(variants), at_once):
            chunk = variants[begin : begin + at_once]
            row = torch.tensor([b for b, _ in chunk], device=own.device)
            zeroed = word[row] == torch.tensor([w for _, w in chunk], device=own.device)[:, None]

            def change(number: int, alpha: Tensor, zeroed: Tensor = zeroed) -> Tensor:
                if number != layer:
                    return alpha
                places = zeroed[:, None, None].expand_as(alpha).clone()
                if head is not None:
                    places[:, :head] = places[:, head + 1 :] = False
                return alpha.masked_fill(places, 0.0)

            turned = _after(subject.run(batch.take(row), change=change, finite=False), layer)
            assert turned is not None
            distance = _distance(own[row], turned)[:, None, :, None]
            reads = query_rows(distance, subject.network.query, None if weights is None else weights[row])[:, 0, 0]
            for (b, w), value in zip(chunk, numbers(reads), strict=True):
                result[b][w] = value
        return [*result]

    return _known(subject.map(passages, of_batch))


def _without_runs(
    batch: PassageBatch, alpha: Tensor, vectors: Tensor, subject: Subject, head: int | None
) -> list[Numbers]:
    """Value zeroing where a layer's output is that of its attention, Σ α f."""
    parts = torch.einsum("bhql,bhld->bqld", alpha.double(), vectors.double())
    own = parts.sum(2, keepdim=True)
    if head is not None:
        parts = alpha[:, head, :, :, None].double() * vectors[:, head, None].double()
    sums = torch.zeros(*parts.shape[:2], max(len(p.words) for p in batch.passages), parts.shape[3], dtype=parts.dtype)
    for b, passage in enumerate(batch.passages):
        places = torch.tensor(passage.word)
        sums[b].index_add_(1, places, parts[b, :, : len(places)].cpu())
    turned = query_rows(_distance(own, own - sums.to(own))[:, None], subject.network.query, subject.reading(batch))[
        :, 0
    ]
    return [row[: len(p.words)] for p, row in zip(batch.passages, numbers(turned), strict=True)]


def _after(output: Output, layer: int) -> Tensor | None:
    """The states that a layer returns, if they are known."""
    return output.hidden[layer + 1] if layer + 1 < len(output.hidden) else output.final


def _distance(first: Tensor, second: Tensor) -> Tensor:
    return (1 - torch.nn.functional.cosine_similarity(first.double(), second.double(), dim=-1)).clamp_min(0)


def _layers(subject: Subject, of: str) -> range:
    layer = layer_of(of)
    return range(subject.network.layers) if layer is None else range(layer, layer + 1)


def _known(rows: Sequence[Numbers | None]) -> WeightedRows:
    known = [row for row in rows if row is not None]
    return known if len(known) == len(rows) else None
