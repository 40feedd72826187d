"""Questions put to a model about passages: many at a time, none of them padded, the model left as it was found."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.attribution.attention_maps import of_query, rollout
from heedful.attribution.interface import Change, Network, Output, Passage, Reader
from heedful.errors import DataError
from heedful.models.training import undisturbed

T = TypeVar("T")
Numbers = NDArray[np.float64]
Keep = NDArray[np.bool_]  # one for each word of a passage
MAX_TOKENS = 4096


@dataclass(frozen=True)
class PassageBatch:
    """Passages of one length (some of their words may have been deleted), and their places among those asked about."""

    places: tuple[int, ...]
    passages: tuple[Passage, ...]
    pieces: Int[Tensor, "B L"]
    before: Int[Tensor, "B T"] | None

    @property
    def targets(self) -> Int[Tensor, " B"]:
        """The output that each passage asks about."""
        return torch.tensor([passage.target for passage in self.passages], device=self.pieces.device)


@dataclass(frozen=True)
class Reading:
    """What a model makes of passages: probabilities of every output, and where it looks for the one it gives.

    attention: one array (layers, heads, words) per passage, from the places that explain the prediction. rollout: one
    array (words,) per passage; None where attention is not of the text on itself.
    """

    probabilities: Float[NDArray[np.float64], "B K"]
    attention: tuple[Numbers, ...]
    rollout: tuple[Numbers | None, ...]


class Subject:
    """A model under audit: its network, and the reader whose passages it is asked about.

    At most `max_tokens` pieces are held at once (a passage that is longer is held alone), a quarter of them where
    gradients are taken.
    """

    def __init__(self, network: Network, reader: Reader, *, max_tokens: int = MAX_TOKENS) -> None:
        self.network, self.reader, self.max_tokens = network, reader, max_tokens
        weights = (weight for module in network.modules for weight in module.parameters())
        self.device = next((weight.device for weight in weights), torch.device("cpu"))

    def decide(self, passages: Sequence[Passage]) -> tuple[Passage, ...]:
        """The same passages; those that ask about no output yet ask about the one the model gives."""
        unasked = [i for i, passage in enumerate(passages) if passage.target < 0]
        found = self.ask([passages[i] for i in unasked], lambda batch: _highest(self.run(batch).probabilities))
        target = {i: passage.target for i, passage in enumerate(passages)} | dict(zip(unasked, found, strict=True))
        return tuple(
            replace(passage, target=target[i], output=passage.output or self.name_of(target[i]))
            for i, passage in enumerate(passages)
        )

    def name_of(self, output: int) -> str:
        """A label's name; an output piece's number."""
        labels = self.reader.labels
        return labels[output] if output < len(labels) else str(output)

    def read(self, passages: Sequence[Passage]) -> Reading:
        """Probabilities and attention, the pieces of a word summed."""

        def answer(batch: PassageBatch) -> list[tuple[Numbers, Numbers, Numbers | None]]:
            output = self.run(batch)
            rows = torch.stack([of_query(alpha, self.network.query) for alpha in output.attention], dim=1)
            rolled = rollout(output.attention) if batch.before is None else None
            flow = (
                [None] * len(rows) if rolled is None else numbers(of_query(rolled[:, None], self.network.query)[:, 0])
            )
            return [
                (p, passage.words_of(row), None if flowed is None else passage.words_of(flowed))
                for passage, p, row, flowed in zip(
                    batch.passages, numbers(output.probabilities), numbers(rows), flow, strict=True
                )
            ]

        probabilities, attention, flows = zip(*self.ask(passages, answer), strict=True)
        return Reading(np.stack(probabilities), attention, flows)

    def predict(self, passages: Sequence[Passage], keep: Sequence[Keep]) -> Numbers:
        """ŷ of each passage's target without the words that are not kept; special words stay, whatever is asked.

        NaN where nothing would be left to read.
        """
        left = [_without(passage, wanted) for passage, wanted in zip(passages, keep, strict=True)]
        possible = [i for i, passage in enumerate(left) if passage.pieces]
        result = np.full(len(passages), np.nan)
        result[possible] = self.ask(
            [left[i] for i in possible], lambda batch: numbers(chosen(self.run(batch).probabilities, batch))
        )
        return result

    def with_attention(
        self, passages: Sequence[Passage], changed: Callable[[PassageBatch], Change]
    ) -> Float[NDArray[np.float64], "B K"]:
        """Probabilities when the model uses another attention than its own."""
        self.require_change()
        return np.stack(self.ask(passages, lambda batch: numbers(self.run(batch, change=changed(batch)).probabilities)))

    def require_change(self) -> None:
        """Refuse what needs another attention of a network that knows only its own."""
        if not self.network.can_change:
            raise DataError("no other attention can be put into this network")

    def run(self, batch: PassageBatch, embedded: Tensor | None = None, change: Change | None = None) -> Output:
        """The network's reading of a batch, or of embeddings in its place; an error where it is not as promised."""
        network = self.network
        output = network.run(network.embed(batch.pieces) if embedded is None else embedded, batch.before, change)
        B, L = batch.pieces.shape
        shapes = [tuple(alpha.shape) for alpha in output.attention]
        if len(shapes) != network.layers or any(
            len(shape) != 4 or (shape[0], shape[1], shape[3]) != (B, network.heads, L) for shape in shapes
        ):
            raise DataError(
                f"the network gave attention of shapes {shapes}; it has {network.layers} layers, each of shape "
                f"({B}, {network.heads}, Q, {L})"
            )
        if not bool(torch.isfinite(output.probabilities).all()):
            row = int((~torch.isfinite(output.probabilities)).any(1).nonzero()[0])
            raise DataError(f"text {batch.passages[row].text}: the model's prediction is not a number")
        return output

    def ask(
        self,
        passages: Sequence[Passage],
        answer: Callable[[PassageBatch], Sequence[T] | Numbers],
        *,
        gradients: bool = False,
    ) -> list[T]:
        """`answer` of every passage, in order; gradients are those of inputs, never of the model's parameters."""
        found: dict[int, T] = {}
        with undisturbed(self.network.modules), torch.set_grad_enabled(gradients):
            for batch in self._batches(passages, self.max_tokens // 4 if gradients else self.max_tokens):
                found.update(zip(batch.places, answer(batch), strict=True))
        return [found[i] for i in range(len(passages))]

    def _batches(self, passages: Sequence[Passage], limit: int) -> Iterator[PassageBatch]:
        def size(i: int) -> tuple[int, int]:
            return len(passages[i].pieces), len(passages[i].before)

        for (length, said), group in groupby(sorted(range(len(passages)), key=size, reverse=True), size):
            places = list(group)
            if length == 0:
                raise DataError(f"text {passages[places[0]].text} has nothing in it to read")
            at_once = max(1, limit // (length + said))
            for start in range(0, len(places), at_once):
                some = tuple(passages[i] for i in places[start : start + at_once])
                pieces = torch.tensor([passage.pieces for passage in some], device=self.device)
                before = torch.tensor([passage.before for passage in some], device=self.device) if said else None
                yield PassageBatch(tuple(places[start : start + at_once]), some, pieces, before)


def chosen(probabilities: Float[Tensor, "B K"], batch: PassageBatch) -> Float[Tensor, " B"]:
    """ŷ: the probability of each passage's target."""
    K, wanted = probabilities.shape[1], batch.targets
    if not bool(((wanted >= 0) & (wanted < K)).all()):
        raise DataError(f"outputs {wanted.tolist()} are asked about, but the model has those from 0 to {K - 1}")
    return probabilities.gather(1, wanted[:, None])[:, 0]


def numbers(tensor: Tensor) -> Numbers:
    """A tensor as an array of doubles."""
    array: Numbers = tensor.detach().double().cpu().numpy()
    return array


def _highest(probabilities: Tensor) -> list[int]:
    found: list[int] = probabilities.argmax(1).tolist()
    return found


def _without(passage: Passage, keep: Keep) -> Passage:
    """What is left of a passage when words that are neither kept nor special are deleted."""
    kept = keep | np.array(passage.special, dtype=bool)
    return replace(passage, pieces=passage.without(kept), word=tuple(word for word in passage.word if kept[word]))
