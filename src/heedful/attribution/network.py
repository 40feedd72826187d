"""What a model must offer to be explained (`Network`), and what it may offer besides.

Our classifiers and translators, Hugging Face models and any `nn.Module` fulfil `Network`. A network that can be padded,
run from one of its layers on, or split into steps (`ModelParts`) is explained in less time, with the same numbers.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

Query = Literal["first", "last", "mean", "weighted", "at", "only"]
Pieces = Int[Tensor, "B L"]
Embedded = Float[Tensor, "B L E"]
Before = Int[Tensor, "B T"] | None  # the output pieces so far
Change = Callable[[int, Tensor], Tensor]  # (layer, α (B, H, Q, L)) → the α to use in its place


@dataclass(frozen=True)
class Output:
    """The result of running a model on B inputs of L pieces each.

    probabilities: of every label, or of every next output piece. attention: of each layer, from Q positions to the L
    pieces. hidden: the states that each layer's attention reads, one per piece; final: those that the last layer
    returns, where they are known; the first of them alone where the head reads no other and no other was computed.
    """

    probabilities: Float[Tensor, "B K"]
    attention: tuple[Float[Tensor, "B H Q L"], ...]
    hidden: tuple[Float[Tensor, "B L D"], ...]
    final: Float[Tensor, "B F D"] | None = None


@runtime_checkable
class Network(Protocol):
    """A model that returns its attention and hidden states.

    query: which of the Q positions of `Output.attention` explain the prediction: the first (a classification token),
    the last (a decoder), the mean of all, a weighted mean (see `WeighingNetwork`), those that the input's `Layout`
    names (the word that is labelled, the ends of an answer), or the only one there is (Q = 1).
    """

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """The modules to keep in evaluation mode."""

    @property
    def query(self) -> Query:
        """Which of the Q positions of `Output.attention` explain the prediction."""

    @property
    def layers(self) -> int:
        """How many layers of attention there are."""

    @property
    def heads(self) -> int:
        """How many heads each layer has."""

    @property
    def can_change(self) -> bool:
        """Whether `run` can replace the model's attention."""

    @property
    def parts(self) -> "ModelParts | None":
        """The steps of `run` as separate functions; None of a model that can only be run as a whole."""

    def embed(self, pieces: Pieces) -> Embedded:
        """Embeddings that `run` takes, without position information."""

    def run(self, embedded: Embedded, before: Before = None, change: Change | None = None) -> Output:
        """Run on B inputs of one length; differentiable. before: of an encoder–decoder, the output pieces so far."""

    def randomised(self, seed: int) -> "Network | None":
        """The same architecture with new random parameters; None where that is not possible."""


@runtime_checkable
class PaddingNetwork(Network, Protocol):
    """A network that can be run on inputs of different lengths together, padded on the right.

    pads: whether padding changes nothing, which is tried when the model is opened.
    """

    pads: bool

    def run_padded(self, embedded: Embedded, mask: Bool[Tensor, "B L"], change: Change | None = None) -> Output:
        """As `run`; mask: which positions are no padding."""


@runtime_checkable
class PredictingNetwork(Network, Protocol):
    """A network that predicts with less work where neither attention nor hidden states are asked for."""

    def predict(
        self, embedded: Embedded, mask: Bool[Tensor, "B L"] | None = None, change: Change | None = None
    ) -> Float[Tensor, "B K"]:
        """The probabilities that `run` gives, or `run_padded` with a mask; differentiable."""


@runtime_checkable
class ResumingNetwork(Network, Protocol):
    """A network that can be run from one of its layers on, so that the layers below are computed once."""

    def states(
        self, embedded: Embedded, mask: Bool[Tensor, "B L"] | None = None, change: Change | None = None
    ) -> tuple[Float[Tensor, "B L D"], ...]:
        """The hidden states that `run` gives, or `run_padded` with a mask, without its attention; differentiable."""

    def resumes_at(self, layer: int) -> bool:
        """Whether `resume` gives the same as a run of the whole network."""

    def reads_first_row(self, layer: int) -> bool:
        """Whether the prediction depends on a layer's attention from the first position alone."""

    def resume(
        self,
        layer: int,
        states: Float[Tensor, "B L D"],
        mask: Bool[Tensor, "B L"] | None = None,
        change: Change | None = None,
        remembered: dict[nn.Module, Any] | None = None,
        everywhere: bool = False,
    ) -> Float[Tensor, "B K"]:
        """The probabilities for these states at the input of a layer; differentiable.

        remembered: filled with what the layer computes from the states alone, for further runs on the same tensor.
        everywhere: whether all positions are computed, also those that the prediction does not depend on.
        """


@runtime_checkable
class WeighingNetwork(Network, Protocol):
    """A network whose head reads several positions, in shares that depend on the text (query "weighted")."""

    def reading(self, embedded: Embedded, mask: Bool[Tensor, "B L"]) -> Float[Tensor, "B L"]:
        """The share of each position; they sum to 1."""


@dataclass(frozen=True)
class Layout:
    """What a model is told of the positions of its input, besides their embeddings.

    segments: which of two texts each piece belongs to (`token_type_ids`). at: the positions where the output is read.
    """

    segments: Int[Tensor, "B L"] | None = None
    at: Int[Tensor, "B P"] | None = None

    def rows(self, index: Int[Tensor, " R"]) -> "Layout":
        """The layout of the rows at these indices."""
        return Layout(*(None if part is None else part[index] for part in (self.segments, self.at)))


@runtime_checkable
class PlacedNetwork(Network, Protocol):
    """A network whose inputs may have a layout."""

    def with_layout(self, layout: Layout) -> "Network":
        """The same network, for inputs of this layout."""


@dataclass(frozen=True)
class States:
    """Hidden states, one per position, and whatever else the prediction needs (`aside`, first axis B)."""

    hidden: Float[Tensor, "B L D"]
    aside: tuple[Tensor, ...] = ()

    def rows(self, index: Int[Tensor, " R"]) -> "States":
        """The rows at these indices, repeated as the indices are; copies of a single row share its memory."""
        if len(index) and bool((index == index[0]).all()):
            one, n = index[:1], len(index)
            hidden, *aside = (part[one].expand(n, *part.shape[1:]) for part in (self.hidden, *self.aside))
            return States(hidden, tuple(aside))
        return States(self.hidden[index], tuple(part[index] for part in self.aside))


@dataclass(frozen=True)
class LSTMLayer:
    """States that `ModelParts.encode` is one LSTM layer in one or two directions, so that the fast path applies.

    `finish(hidden, last, before)` makes `States` of the layer's outputs (both directions side by side) and of the state
    (h, c) after each direction's last token. It treats each position separately.
    """

    forward: nn.LSTM
    backward: nn.LSTM | None
    finish: Callable[[Tensor, Sequence[tuple[Tensor, Tensor]], Tensor | None], States]


@dataclass(frozen=True)
class ModelParts:
    """The steps of a model with one layer of attention: embed → encode → score → project → read.

    encode   embeddings (B, L, E), mask (B, L), output pieces so far (B, T) or None → `States`
    score    `States` → scores, first axis B
    project  scores, mask → α (B, H, Q, L)
    read     `States`, α → probabilities (B, K)
    values   `States` → what each head takes over from each position (B, H, L, D), linear in α; None if not known

    Inputs may be padded on the right, and padding changes nothing at other positions. From `score` on, a masked
    position has the same effect as a removed one, wherever it is.
    """

    encode: Callable[[Tensor, Tensor, Tensor | None], States]
    score: Callable[[States], Tensor]
    project: Callable[[Tensor, Tensor], Tensor]
    read: Callable[[States, Tensor], Tensor]
    lstm: LSTMLayer | None = None
    values: Callable[[States], Tensor] | None = None

    def output(self, states: States, mask: Bool[Tensor, "B L"], change: Change | None = None) -> Output:
        """Everything from the hidden states on."""
        alpha = self.project(self.score(states), mask)
        alpha = alpha if change is None else change(0, alpha)
        return Output(self.read(states, alpha), (alpha,), (states.hidden,))
