"""Integrated gradients: of the words that are read, and of the states that a layer's attention reads."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib.util import find_spec

import torch
from torch import Tensor

from heedful.attribution.forward import Forward
from heedful.attribution.importance import integrated_gradients
from heedful.attribution.interface import Passage
from heedful.attribution.model_queries import Numbers, PassageBatch, Subject
from heedful.attribution.taps import find_states
from heedful.errors import MissingExtraError

Predict = Callable[[Tensor, Tensor, Tensor], Tensor]


def can_integrate() -> bool:
    """Whether captum, which does it, is installed."""
    try:
        return find_spec("captum.attr") is not None
    except (ImportError, ValueError):
        return False


def why_not() -> str:
    """What is said where it is not.

    >>> why_not().startswith("integrated gradients were left out: ")
    True
    """
    return f"integrated gradients were left out: {MissingExtraError('captum', 'hf', 'taking them')}"


def integrated(subject: Subject, passages: Sequence[Passage], steps: int) -> list[Numbers]:
    """∫ e · ∂ŷ/∂e on the way from embeddings of 0 to a passage's own, summed into words. Signed.

    A row sums to ŷ − ŷ(0), but for the error of `steps` points.
    """

    def answer(batch: PassageBatch) -> list[Numbers]:
        def predict(embedded: Tensor, mask: Tensor, text: Tensor) -> Tensor:
            return subject.run(_rows(batch, text), embedded).probabilities

        return _integrals(subject, batch, batch.pieces, predict, steps, subject.network.embed)

    return subject.ask(passages, answer, gradients=True)


def hidden_integrated(subject: Subject, passages: Sequence[Passage], layer: int, steps: int) -> list[Numbers] | None:
    """∫ (h − h⁰) · ∂ŷ/∂h on the way to the states h that a layer's attention reads, summed into words. Signed.

    h⁰ are the states that the network makes of embeddings of 0, from which the integrals of inputs start too: states of
    0 are none that it could make, and layer norms jump there. A row sums to ŷ − ŷ(h⁰). None where other states than its
    own cannot be put into the network.
    """

    def answer(batch: PassageBatch) -> list[Numbers | None]:
        embedded = subject.network.embed(batch.pieces).detach()
        place = find_states(lambda given: subject.run(batch, given).hidden[layer], embedded)
        if place is None:
            return [None] * len(batch.passages)

        def predict(states: Tensor, mask: Tensor, text: Tensor) -> Tensor:
            some = _rows(batch, text)
            found: Tensor = place.put(lambda given: subject.run(some, given).probabilities, embedded[text], states)
            return found

        with torch.no_grad():
            nothing = subject.run(batch, torch.zeros_like(embedded)).hidden[layer]
        numbered = torch.arange(len(embedded), device=embedded.device)[:, None].expand(batch.pieces.shape)
        return [*_integrals(subject, batch, numbered, predict, steps, _by_row(place.states), _by_row(nothing))]

    found = subject.ask(passages, answer, gradients=True)
    known = [row for row in found if row is not None]
    return known if len(known) == len(passages) else None


def _integrals(
    subject: Subject,
    batch: PassageBatch,
    tokens: Tensor,
    predict: Predict,
    steps: int,
    end: Callable[[Tensor], Tensor],
    start: Callable[[Tensor], Tensor] | None = None,
) -> list[Numbers]:
    """Of every passage, from what `start` makes of tokens (0 unless said) to what `end` does."""
    forward = Forward.closed(end, predict, subject.network.modules)
    mask = torch.ones_like(tokens, dtype=torch.bool)
    limit = max(1, subject.max_tokens // 4)
    rows = integrated_gradients(
        forward, tokens, mask, steps=steps, targets=batch.targets, baseline=start, max_tokens=limit
    )
    return [passage.words_of(rows[b]) for b, passage in enumerate(batch.passages)]


def _by_row(states: Tensor) -> Callable[[Tensor], Tensor]:
    """States by the numbers of their rows, which stand in for tokens."""
    return lambda numbered: states[numbered[:, 0]]


def _rows(batch: PassageBatch, text: Tensor) -> PassageBatch:
    """Those passages of a batch, as often as they are named."""
    some = tuple(batch.passages[i] for i in text.tolist())
    return replace(
        batch,
        places=(),
        passages=some,
        pieces=batch.pieces[text],
        before=None if batch.before is None else batch.before[text],
    )
