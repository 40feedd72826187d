"""What an audit asks of a model, whoever made it: embeddings in; probabilities, attention and hidden states out."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

from jaxtyping import Float, Int
from torch import Tensor, nn

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
