"""Which words a prediction depends on, by four accounts; and on which hidden states, by the same four."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from heedful.attribution.attention_maps import (
    DELETION,
    GRADIENT,
    HIDDEN,
    HIDDEN_DELETION,
    HIDDEN_INTEGRATED,
    HIDDEN_PRODUCT,
    INTEGRATED,
    PRODUCT,
    asked,
    shares,
)
from heedful.attribution.forward import Importance
from heedful.attribution.integrated_gradients import can_integrate, hidden_integrated, integrated
from heedful.attribution.interface import Change, Passage
from heedful.attribution.model_queries import Numbers, PassageBatch, Subject, chosen, numbers


def hidden_leave_one_out(subject: Subject, passages: Sequence[Passage], layer: int) -> list[Numbers]:
    """|ŷ − ŷ_{−w}| where a layer's attention cannot see the states of w (D_ŷ(I) of meister2021, Eq. 6).

    What attention gave to w, the other places share as they shared the rest; of a softmax that is what the remaining
    scores give. 0 of special words, and of a word that is all there is.
    """
    rows = [(i, int(w)) for i, passage in enumerate(passages) for w in np.flatnonzero(asked(passage))]
    some = [passages[i] for i, _ in rows]

    def changed(batch: PassageBatch) -> Change:
        words = [rows[place][1] for place in batch.places]
        hidden = [[of == word for of in p.word] for word, p in zip(words, batch.passages, strict=True)]
        return _of_layer(layer, torch.tensor(hidden, device=batch.pieces.device))

    targets = np.array([passage.target for passage in some])
    whole = subject.with_attention(passages, lambda batch: lambda where, alpha: alpha)
    without = subject.with_attention(some, changed)[np.arange(len(some)), targets]
    result = [np.zeros(len(passage.words)) for passage in passages]
    for (i, w), y in zip(rows, without, strict=True):
        alone = all(word == w for word in passages[i].word)
        result[i][w] = 0.0 if alone else abs(whole[i, passages[i].target] - y)
    return result


def unseen(alpha: Float[Tensor, "B H Q L"], hidden: Bool[Tensor, "B L"]) -> Float[Tensor, "B H Q L"]:
    """Attention that cannot see some pieces; each row keeps the weight it had, unless all of it was there.

    >>> unseen(torch.tensor([[[[0.5, 0.25, 0.25]]]]), torch.tensor([[True, False, False]]))
    tensor([[[[0.0000, 0.5000, 0.5000]]]])
    """
    left = alpha * ~hidden[:, None, None]
    rest = left.sum(-1, keepdim=True)
    return left * (alpha.sum(-1, keepdim=True) / rest.where(rest > 0, torch.ones_like(rest)))


def _of_layer(layer: int, hidden: Bool[Tensor, "B L"]) -> Callable[[int, Tensor], Tensor]:
    return lambda where, alpha: unseen(alpha, hidden) if where == layer else alpha


@dataclass(frozen=True)
class Importances:
    """Rows of the words asked about that sum to 1, one per passage: of inputs by name, of states by name and layer.

    A row that is `undefined` belongs to a prediction that nothing matters to.
    """

    inputs: dict[str, Importance]
    hidden: dict[str, dict[int, Importance]]


def importances(
    subject: Subject,
    passages: Sequence[Passage],
    *,
    steps: int = 50,
    include_special: bool = False,
    layer: int | None = None,
) -> Importances:
    """Importance of words for the output that each passage asks about.

    gradient               Σ ‖∂ŷ/∂e‖₂ over the pieces of a word
    gradient × input       |Σ e · ∂ŷ/∂e|
    integrated gradients   |Σ ∫ e · ∂ŷ/∂e|, from embeddings of 0, at `steps` points; left out where that is 0, or
                           where captum is not installed
    leave one out          |ŷ − ŷ without the word|, the rest read anew; 0 of special words, which always stay

    and of the states that each layer's attention reads:

    hidden gradient              Σ ‖∂ŷ/∂h‖₂
    hidden gradient × state      |Σ h · ∂ŷ/∂h|
    hidden integrated gradients  |Σ ∫ (h − h⁰) · ∂ŷ/∂h|, h⁰ of embeddings of 0; of `layer` alone, where that can be done
    hidden leave one out         |ŷ − ŷ with the word hidden from attention|, of `layer` alone, where that can be done
    """

    def share(rows: Sequence[Numbers]) -> Importance:
        return shares(passages, rows, include_special=include_special)

    found = subject.ask(passages, lambda batch: _gradients(subject, batch), gradients=True)
    inputs = {GRADIENT: share([row[0] for row in found]), PRODUCT: share([row[1] for row in found])}
    integrates = steps > 0 and can_integrate()
    if integrates:
        inputs[INTEGRATED] = share(integrated(subject, passages, steps))
    inputs[DELETION] = share(leave_one_out(subject, passages))
    hidden = {
        name: {of: share([row[first + 2 * of] for row in found]) for of in range(len(found[0]) // 2 - 1)}
        for name, first in ((HIDDEN, 2), (HIDDEN_PRODUCT, 3))
    }
    if layer is not None and integrates:
        states = hidden_integrated(subject, passages, layer, steps)
        if states is not None:
            hidden[HIDDEN_INTEGRATED] = {layer: share(states)}
    if layer is not None and subject.network.can_change:
        hidden[HIDDEN_DELETION] = {layer: share(hidden_leave_one_out(subject, passages, layer))}
    return Importances(inputs, hidden)


def leave_one_out(subject: Subject, passages: Sequence[Passage]) -> list[Numbers]:
    """|ŷ − ŷ_{−w}| of every word; 0 of special words, and of a word that is all there is."""
    whole = [np.ones(len(passage.words), dtype=bool) for passage in passages]
    rows = [(i, word) for i, passage in enumerate(passages) for word in np.flatnonzero(asked(passage))]
    without = [np.arange(len(whole[i])) != word for i, word in rows]
    predicted = subject.predict(passages, whole)
    shortened = subject.predict([passages[i] for i, _ in rows], without)
    result = [np.zeros(len(passage.words)) for passage in passages]
    for (i, word), y in zip(rows, shortened, strict=True):
        result[i][word] = 0.0 if np.isnan(y) else abs(predicted[i] - y)
    return result


def _gradients(subject: Subject, batch: PassageBatch) -> list[Numbers]:
    """Of every passage, by one backward: gradient and gradient × input of its words, then those of each layer."""
    embedded = subject.network.embed(batch.pieces).detach().requires_grad_()
    output = subject.run(batch, embedded)
    wanted = (embedded, *output.hidden)
    gradients = _gradient(chosen(output.probabilities, batch), wanted)
    pairs = [
        (torch.linalg.vector_norm(gradient, dim=-1), (state * gradient).sum(-1))
        for state, gradient in zip(wanted, gradients, strict=True)
    ]
    rows = np.stack([numbers(row) for pair in pairs for row in pair], axis=1)
    return [passage.words_of(row) for passage, row in zip(batch.passages, rows, strict=True)]


def _gradient(of: Tensor, wanted: Sequence[Tensor]) -> list[Tensor]:
    """∂(sum)/∂wanted; 0 where the one does not depend on the other."""
    linked = [of.requires_grad and tensor.requires_grad for tensor in wanted]
    inputs = [tensor for tensor, is_linked in zip(wanted, linked, strict=True) if is_linked]
    found = iter(torch.autograd.grad(of.sum(), inputs, materialize_grads=True) if inputs else ())
    return [
        next(found) if is_linked else torch.zeros_like(tensor) for tensor, is_linked in zip(wanted, linked, strict=True)
    ]
