"""A model cut open at its seams, so that importance can be taken at each: what every measure of it asks of a model.

    tokens → embed → encode → score → project → read → probabilities

Anything that can be called in these parts will do; a model that cannot is `Forward.closed`, and has the importances of
its input alone.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.errors import DataError


@dataclass(frozen=True)
class States:
    """What an encoder makes of texts: a hidden state per position, and whatever else the prediction needs of a text."""

    hidden: Float[Tensor, "B L D"]
    aside: tuple[Tensor, ...] = ()  # first axis B

    def rows(self, index: Int[Tensor, " R"]) -> "States":
        """The texts named, as often as they are named; one text again and again is not copied."""
        if len(index) and bool((index == index[0]).all()):
            one, n = index[:1], len(index)
            hidden, *aside = (part[one].expand(n, *part.shape[1:]) for part in (self.hidden, *self.aside))
            return States(hidden, tuple(aside))
        return States(self.hidden[index], tuple(part[index] for part in self.aside))

    def detached(self) -> "States":
        """The same numbers, with no way back to the embeddings."""
        return States(self.hidden.detach(), tuple(part.detach() for part in self.aside))


@dataclass(frozen=True)
class LSTMParts:
    """Says that `encode` is one LSTM layer in one or two directions, each text padded on the right and read alone.

    `finish(hidden, last, text)` makes `States` of its outputs (both directions side by side) and of the state (h, c)
    after each direction's last token; it treats every position alike and alone. Deletions and Jacobians then share what
    the variants of a text have in common.
    """

    ahead: nn.LSTM
    back: nn.LSTM | None
    finish: Callable[[Tensor, Sequence[tuple[Tensor, Tensor]], Tensor], States]


@dataclass(frozen=True)
class Forward:
    """The parts of a model; `modules` are those to be held in evaluation mode while they run.

    embed    tokens (B, L) → embeddings (B, L, E)
    encode   embeddings, mask (B, L), text (B,) → `States`; row b is made of text[b] of the batch that was asked about
    score    `States` → scores, first axis B
    project  scores, mask → α, of the scores' shape
    read     `States`, α → probabilities (B, K), K = 1 where two classes or one chosen word have one probability

    Texts are padded on the right, and no padding reaches a real position. From `score` on a position that is masked is
    as good as removed, wherever it stands.
    """

    embed: Callable[[Tensor], Tensor]
    encode: Callable[[Tensor, Tensor, Tensor], States]
    score: Callable[[States], Tensor]
    project: Callable[[Tensor, Tensor], Tensor]
    read: Callable[[States, Tensor], Tensor]
    modules: tuple[nn.Module, ...] = ()
    lstm: LSTMParts | None = None
    is_open: bool = True

    @classmethod
    def closed(
        cls,
        embed: Callable[[Tensor], Tensor],
        predict: Callable[[Tensor, Tensor, Tensor], Tensor],
        modules: tuple[nn.Module, ...] = (),
    ) -> "Forward":
        """A model known only by `embed` and `predict(embeddings, mask, text)` → probabilities (B, K).

        >>> embed = lambda tokens: tokens[..., None].float()
        >>> forward = Forward.closed(embed, lambda e, mask, text: (e[..., 0] * mask).sum(1, keepdim=True).sigmoid())
        >>> forward.is_open
        False
        """
        return cls(
            embed,
            encode=lambda embedded, mask, text: States(embedded, (mask, text)),
            score=lambda states: states.hidden[..., 0],
            project=lambda scores, mask: mask,
            read=lambda states, alpha: predict(states.hidden, *states.aside),
            modules=modules,
            is_open=False,
        )

    def predict(self, states: States, mask: Bool[Tensor, "B L"], *, attach: bool = True) -> Tensor:
        """Probabilities (B, K) from hidden states on; `attach=False` lets no gradient through the attention weights."""
        alpha = self.project(self.score(states), mask)
        return self.read(states, alpha if attach else alpha.detach())

    def require_open(self, wanted: str) -> None:
        """Refuse what needs hidden states of a model that does not show them."""
        if not self.is_open:
            raise DataError(f"{wanted} needs a model's hidden states; this one gives only its predictions")


@contextmanager
def undisturbed(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Evaluation mode, no gradients for parameters; after it all is as it was: modes, `requires_grad`, random state.

    cuDNN stays out: it has no backward pass for recurrent layers in evaluation mode.
    """
    modes = [(part, part.training) for module in modules for part in module.modules()]
    needs = [(p, p.requires_grad) for module in modules for p in module.parameters()]
    random = torch.get_rng_state()
    try:
        for module in modules:
            module.eval()
        for parameter, _ in needs:
            parameter.requires_grad_(False)
        with torch.backends.cudnn.flags(enabled=False):
            yield
    finally:
        for part, mode in modes:
            part.training = mode
        for parameter, need in needs:
            parameter.requires_grad_(need)
        torch.set_rng_state(random)
