"""Signed attributions of captum's, of the same models: gradient · input and integrated gradients."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from heedful.errors import MissingExtraError
from heedful.measure.importance import MAX_TOKENS_BACKWARD
from heedful.measure.importance_batch import Batch, Mask, Part, Targets, Tokens
from heedful.measure.importance_forward import Forward
from heedful.measure.ragged import Ragged

Predict = Callable[[Tensor, Tensor, Tensor], Tensor]


def gradient_input(
    forward: Forward,
    tokens: Tokens,
    mask: Mask,
    *,
    attach: bool = True,
    targets: Targets | None = None,
    max_tokens: int = MAX_TOKENS_BACKWARD,
) -> Ragged:
    """e_i · ∂ŷ/∂e_i for every token: what ŷ would lose, to first order, if the embedding were 0. Signed."""
    captum = _captum("gradient · input")

    def attribute(predict: Predict, embedded: Tensor, part: Part) -> Tensor:
        found: Tensor = captum.InputXGradient(predict).attribute(
            embedded, additional_forward_args=(part.mask, part.text)
        )
        return found

    return _signed(forward, tokens, mask, attach, targets, max_tokens, attribute)


def integrated_gradients(
    forward: Forward,
    tokens: Tokens,
    mask: Mask,
    *,
    steps: int = 50,
    attach: bool = True,
    targets: Targets | None = None,
    baseline: Callable[[Tensor], Tensor] | None = None,
    max_tokens: int = MAX_TOKENS_BACKWARD,
) -> Ragged:
    """The integral of (e_i − e⁰_i) · ∂ŷ/∂e_i from embeddings e⁰ to the text's own (Sundararajan et al. 2017). Signed.

    A text's row sums to ŷ − ŷ(e⁰), but for the error of `steps` points of Gauss–Legendre quadrature. baseline: e⁰ of
    tokens (B, L), embeddings of 0 unless said.
    """
    captum = _captum("integrated gradients")

    def attribute(predict: Predict, embedded: Tensor, part: Part) -> Tensor:
        found: Tensor = captum.IntegratedGradients(predict).attribute(
            embedded,
            baselines=None if baseline is None else baseline(part.tokens).detach(),
            additional_forward_args=(part.mask, part.text),
            n_steps=steps,
            internal_batch_size=max(len(embedded), max_tokens // embedded.shape[1]),
        )
        return found

    return _signed(forward, tokens, mask, attach, targets, max_tokens, attribute)


def _signed(
    forward: Forward,
    tokens: Tensor,
    mask: Tensor,
    attach: bool,
    targets: Tensor | None,
    max_tokens: int,
    attribute: Callable[[Predict, Tensor, Part], Tensor],
) -> Ragged:
    if not attach:
        forward.require_open("attach=False")
    batch = Batch.of(forward, tokens, mask, targets)

    def predict(embedded: Tensor, mask: Tensor, text: Tensor) -> Tensor:
        states = forward.encode(embedded, mask, text)
        y = batch.choose(forward.predict(states, mask, attach=attach), text)
        depends = y.requires_grad or not embedded.requires_grad
        return y if depends else y + 0 * embedded.sum((1, 2))  # captum asks for the gradient even where there is none

    def values(part: Part) -> Tensor:
        embedded = forward.embed(part.tokens).detach()
        with torch.no_grad():
            predict(embedded, part.mask, part.text)  # the class is that of the whole text, not of a point on the way
        return attribute(predict, embedded.requires_grad_(), part).sum(-1)

    flat = batch.gather(values, lambda longest: max(1, max_tokens // longest), gradients=True)
    return Ragged(flat, batch.offsets)


def _captum(purpose: str) -> Any:
    try:
        import captum.attr
    except ImportError:
        raise MissingExtraError("captum", "hf", purpose) from None
    return captum.attr
