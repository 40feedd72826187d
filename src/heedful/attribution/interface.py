"""What an audit asks of a model, whoever made it: embeddings in; probabilities, attention and hidden states out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.errors import DataError

Query = Literal["first", "last", "mean", "only"]
Change = Callable[[int, Tensor], Tensor]  # (layer, α (B, H, Q, L)) → the α to use in its place


@dataclass(frozen=True)
class Output:
    """One reading of B inputs of L pieces each, none of them padding.

    probabilities: of every label, or of every next output piece. attention: of each layer, from Q places to the L
    pieces. hidden: what each layer's attention reads, one state per piece.
    """

    probabilities: Float[Tensor, "B K"]
    attention: tuple[Float[Tensor, "B H Q L"], ...]
    hidden: tuple[Float[Tensor, "B L D"], ...]


@runtime_checkable
class Network(Protocol):
    """A model that has been opened for an audit: eager attention, nothing else changed.

    query: the first place explains the prediction (a classification token), the last (a decoder), all of them averaged,
    or the only one there is (Q = 1).
    """

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """Those to be held in evaluation mode."""

    @property
    def query(self) -> Query:
        """Which of the Q places of `Output.attention` explain the prediction."""

    @property
    def layers(self) -> int:
        """How many layers of attention there are."""

    @property
    def heads(self) -> int:
        """How many heads each of them has."""

    @property
    def can_change(self) -> bool:
        """Whether another attention can be put in place of its own."""

    def embed(self, pieces: Int[Tensor, "B L"]) -> Float[Tensor, "B L E"]:
        """Embeddings that `run` takes in place of pieces, with nothing of their position in them."""

    def run(
        self, embedded: Float[Tensor, "B L E"], before: Int[Tensor, "B T"] | None = None, change: Change | None = None
    ) -> Output:
        """Read B inputs of one length; differentiable. before: of an encoder–decoder, the output pieces so far."""

    def randomised(self, seed: int) -> "Network | None":
        """The same architecture with fresh random parameters; None where nobody knows how to make one."""


@dataclass(frozen=True)
class Passage:
    """A text as a model reads it, or a source sentence and one output word of its translation.

    text: its place in the data. words: as a reader sees them; special: those that the tokeniser added. pieces: what the
    model reads, one or more to a word; word: of which word each piece is a part. target: the label or output piece
    asked about, by number, and `output` by name; -1 and "" until the model has been asked. label: the right one, where
    known. before: of an encoder–decoder, the output pieces before this one. cut: pieces that truncation took away.
    """

    text: int
    words: tuple[str, ...]
    special: tuple[bool, ...]
    pieces: tuple[int, ...]
    word: tuple[int, ...]
    target: int = -1
    output: str = ""
    label: str | None = None
    before: tuple[int, ...] = ()
    cut: int = 0

    def __post_init__(self) -> None:
        if len(self.words) != len(self.special):
            raise DataError(
                f"text {self.text}: {len(self.words)} words, but {len(self.special)} say if they are special"
            )
        if len(self.pieces) != len(self.word):
            raise DataError(f"text {self.text}: {len(self.pieces)} pieces, but {len(self.word)} belong to words")

    def words_of(self, values: NDArray[np.floating]) -> NDArray[np.float64]:
        """Values of pieces (last axis) summed into their words.

        >>> Passage(0, ("un", "do"), (False, False), (7, 8, 9), (0, 0, 1)).words_of(np.array([0.1, 0.2, 0.7])).round(2)
        array([0.3, 0.7])
        """
        summed = np.zeros((*values.shape[:-1], len(self.words)))
        np.add.at(summed.T, list(self.word), values.T)
        return summed

    def without(self, keep: NDArray[np.bool_]) -> "tuple[int, ...]":
        """The pieces of the words that are kept, in order."""
        return tuple(piece for piece, word in zip(self.pieces, self.word, strict=True) if keep[word])


@runtime_checkable
class Reader(Protocol):
    """Texts become passages: the tokeniser's side of a model."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the model's labels, in order; none where it writes sentences."""

    def read(self, number: int, text: str, label: str | None = None) -> Passage:
        """A text of the data, its words and pieces; long ones are cut, and the passage says by how much."""
