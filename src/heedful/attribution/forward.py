"""A model cut open at its seams, so that importance can be taken at each: what every measure of it asks of a model.

    tokens → embed → encode → score → project → read → probabilities

Anything that can be called in these parts will do; a model that cannot is `Forward.closed`, and has the importances of
its input alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.data.batching import PairBatch
from heedful.data.ragged import Ragged
from heedful.errors import ConfigError, DataError
from heedful.models.classifier import AttentionClassifier
from heedful.models.encoders import Encoder, LSTMEncoder
from heedful.models.projections import project
from heedful.models.training import undisturbed
from heedful.models.translator import Translator


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


Tokens = Int[Tensor, "B L"]
Mask = Bool[Tensor, "B L"]
Targets = Int[Tensor, " B"]


@dataclass(frozen=True)
class Importance(Ragged):
    """One row per text, or per hidden state of each text in turn; every row is normalised to sum 1.

    Where nothing matters (every gradient or difference is 0), and where the only token of a text would have to be
    deleted, there is nothing to divide: all positions get the same share, and `undefined` is true of the row.
    """

    undefined: NDArray[np.bool_]


@dataclass(frozen=True)
class Part:
    """Some texts of a batch, cut to the longest of them; `text` says which they are."""

    tokens: Tensor
    mask: Tensor
    text: Tensor


class TextBatch:
    """The texts asked about, their real tokens first; and the class of each that ŷ is about, once it is known."""

    def __init__(self, forward: Forward, tokens: Tensor, mask: Tensor, targets: Tensor | None) -> None:
        self.forward, self.tokens, self.mask = forward, tokens, mask
        self.lengths: NDArray[np.int64] = mask.sum(1).cpu().numpy()
        self.chosen = torch.full((len(tokens),), -1, device=tokens.device) if targets is None else targets

    @classmethod
    def of(cls, forward: Forward, tokens: Tensor, mask: Tensor, targets: Tensor | None = None) -> "TextBatch":
        """Masked tokens go to the right, where padding belongs."""
        if tokens.shape != mask.shape:
            raise DataError(f"tokens have shape {tuple(tokens.shape)}, the mask {tuple(mask.shape)}; they must agree")
        empty = (~mask.any(1)).nonzero()
        if len(empty):
            raise DataError(f"text {int(empty[0])} has every token masked; every text needs one")
        order = torch.argsort((~mask).to(torch.uint8), dim=1, stable=True)
        return cls(forward, tokens.gather(1, order), mask.gather(1, order), targets)

    @property
    def offsets(self) -> NDArray[np.int64]:
        """Where each text begins when all real tokens stand in one line."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    def choose(self, probabilities: Tensor, text: Tensor) -> Tensor:
        """ŷ of each row: the class asked for, or the one predicted for the whole text, which has to come first."""
        if probabilities.ndim != 2 or len(probabilities) != len(text):
            raise DataError(
                f"the model gave probabilities of shape {tuple(probabilities.shape)} for {len(text)} texts; "
                "they must be (texts, classes)"
            )
        if not bool(torch.isfinite(probabilities).all()):
            row = int(text[int((~torch.isfinite(probabilities)).any(1).nonzero()[0])])
            raise DataError(f"the model's prediction for text {row} is not a number")
        if probabilities.shape[1] == 1:
            return probabilities[:, 0]
        unknown = self.chosen[text] < 0
        if bool(unknown.any()):
            self.chosen = self.chosen.clone()
            self.chosen[text[unknown]] = probabilities.detach().argmax(1)[unknown]
        return probabilities.gather(1, self.chosen[text][:, None])[:, 0]

    def parts(self, texts: Callable[[int], int]) -> Iterator[Part]:
        """All texts, shortest first, at most texts(longest) at a time."""
        order = np.argsort(self.lengths, kind="stable")
        start = 0
        while start < len(order):
            end = start + 1
            while end < len(order) and end + 1 - start <= texts(int(self.lengths[order[end]])):
                end += 1
            index = torch.from_numpy(order[start:end]).to(self.tokens.device)
            longest = int(self.lengths[order[end - 1]])
            yield Part(self.tokens[index, :longest], self.mask[index, :longest], index)
            start = end

    def gather(
        self, values: Callable[[Part], Tensor], texts: Callable[[int], int], *, gradients: bool
    ) -> NDArray[np.float64]:
        """`values` of every part, at the real tokens of each text in turn; the model is left as it was found."""
        rows: list[NDArray[np.float64]] = [np.empty(0)] * len(self.lengths)
        with undisturbed(self.forward.modules), torch.set_grad_enabled(gradients):
            for part in self.parts(texts):
                matrix = values(part).detach().double().cpu().numpy()
                for b, row in zip(part.text.tolist(), matrix, strict=True):
                    rows[b] = row[: self.lengths[b]]
        return np.concatenate(rows) if rows else np.empty(0)


def normalised(values: NDArray[np.float64], lengths: NDArray[np.int64]) -> Importance:
    """Rows that sum to 1, in place; the same share everywhere where a row is all 0.

    >>> normalised(np.array([1.0, 3.0, 0.0, 0.0]), np.array([2, 2])).values
    array([0.25, 0.75, 0.5 , 0.5 ])
    """
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    tops = np.maximum.reduceat(values, offsets[:-1]) if len(lengths) else np.empty(0)
    if not np.isfinite(tops).all():
        raise DataError(f"row {int(np.argmax(~np.isfinite(tops)))} has a gradient that is not a finite number")
    undefined = tops == 0
    values /= np.repeat(np.where(undefined, 1, tops), lengths)  # first by the largest: tiny numbers must not sum to 0
    values[np.repeat(undefined, lengths)] = 1
    if len(lengths):
        values /= np.repeat(np.add.reduceat(values, offsets[:-1]), lengths)
    return Importance(values, offsets, undefined)


def classifier_forward(model: AttentionClassifier) -> Forward:
    """A classifier: σ(logit) of two classes, softmax of more.

    >>> from heedful.config import ModelConfig
    >>> from heedful.attribution.importance import g_y_h
    >>> forward = classifier_forward(AttentionClassifier(ModelConfig(embedding=3, hidden=2), vocabulary=7, classes=2))
    >>> g_y_h(forward, torch.tensor([[4, 5, 6]]), torch.tensor([[True, True, True]])).lengths
    array([3])
    """
    name = "uniform" if model.mode == "uniform" else model.config.projection

    def read(states: States, alpha: Tensor) -> Tensor:
        logits = model.from_attention(alpha, states.hidden)
        return logits.sigmoid() if logits.shape[1] == 1 else logits.softmax(-1)

    return Forward(
        embed=model.embedding,
        encode=lambda embedded, mask, text: States(model.encoder(model.dropout(embedded), mask)[0]),
        score=lambda states: model.scorer(states.hidden),
        project=lambda scores, mask: project(name, scores, mask, model.config.projection_parameter),
        read=read,
        modules=(model,),
        lstm=_lstm_parts(model.encoder, lambda hidden, last, text: States(hidden)),
    )


def translator_forward(model: Translator, batch: PairBatch, position: Int[Tensor, " B"]) -> Forward:
    """A translator at output position `position[b]` of pair b: the probability of its word there, all before it given.

    The decoder's state is part of what is encoded: deleting a source token changes where the decoder starts from.
    """
    rows = torch.arange(len(batch.source), device=batch.source.device)
    last = batch.target_mask.sum(1) - 1
    if len(position) != len(rows) or bool(((position < 0) | (position > last)).any()):
        raise ConfigError(f"positions {position.tolist()} must lie in 0 … {last.tolist()}, one for each pair")
    words = batch.target_out[rows, position]

    def decode(hidden: Tensor, start: tuple[Tensor, Tensor], text: Tensor) -> States:
        told = model.embedding(batch.target_in[text, : int(position.max()) + 1])
        states, _ = model.decoder(told, start)
        return States(hidden, (states[torch.arange(len(text), device=text.device), position[text]], words[text]))

    def encode(embedded: Tensor, mask: Tensor, text: Tensor) -> States:
        return decode(*model.encode(embedded, mask), text)

    def finish(hidden: Tensor, last: Sequence[tuple[Tensor, Tensor]], text: Tensor) -> States:
        h, c = (torch.stack(parts).mean(0, keepdim=True) for parts in zip(*last, strict=True))
        return decode(model.bridge(hidden), (h, c), text)

    def project_heads(scores: Tensor, mask: Tensor) -> Tensor:
        name = "uniform" if model.mode == "uniform" else "softmax"
        return project(name, scores, mask[:, None].expand_as(scores))

    def read(states: States, alpha: Tensor) -> Tensor:
        s, word = states.aside
        context = torch.einsum("bhl,bld->bd", alpha, states.hidden)
        return model.read(context, s).softmax(-1).gather(1, word[:, None])

    return Forward(
        embed=model.embedding,
        encode=encode,
        score=lambda states: model.scorer(states.aside[0][:, None], states.hidden)[:, :, 0],
        project=project_heads,
        read=read,
        modules=(model,),
        lstm=_lstm_parts(model.encoder, finish),
    )


def _lstm_parts(encoder: Encoder, finish: object) -> LSTMParts | None:
    """An encoder of one LSTM layer; None of any other."""
    if not isinstance(encoder, LSTMEncoder) or len(encoder.forwards) > 1:
        return None
    ahead = encoder.forwards[0]
    back = encoder.backwards[0] if len(encoder.backwards) else None
    assert isinstance(ahead, nn.LSTM)
    assert back is None or isinstance(back, nn.LSTM)
    return LSTMParts(ahead, back, finish)  # type: ignore[arg-type]
