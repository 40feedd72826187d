"""Decoding: a trained translator writes sentences, greedily or with a beam, many at a time."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heedful.data.batch import evaluation_batches
from heedful.data.subwords import EncodedPairs
from heedful.data.tokens import BOS, EOS, PAD
from heedful.errors import ConfigError
from heedful.model.translator import Translator


def translate(
    model: Translator, pairs: EncodedPairs, *, beam: int = 1, max_length: int | None = None, max_tokens: int = 8192
) -> list[list[int]]:
    """The ids of each source's translation, without its ends; the model is left as it was found.

    max_length: words before a sentence is cut off; twice the source's length and ten more where it is left out.
    """
    if beam < 1:
        raise ConfigError(f"the beam is {beam}; it must be 1 or more")
    device = next(model.parameters()).device
    result: list[list[int]] = [[] for _ in range(len(pairs))]
    training = model.training
    model.eval()
    try:
        for batch in evaluation_batches(pairs, max_tokens=max(1, max_tokens // beam), device=device):
            limits = 2 * batch.source_mask.sum(1) + 10
            if max_length is not None:
                limits = torch.full_like(limits, max_length)
            ids = beam_search(model, batch.source, batch.source_mask, limits, beam)
            for place, row in zip(batch.index, ids, strict=True):
                result[int(place)] = row
    finally:
        model.train(training)
    return result


@torch.no_grad()
def beam_search(
    model: Translator,
    source: Int[Tensor, "B L"],
    mask: Bool[Tensor, "B L"],
    limits: Int[Tensor, " B"],
    beam: int,
) -> list[list[int]]:
    """The most probable of `beam` hypotheses for each source, by the sum of log-probabilities; beam 1 is greedy.

    A finished hypothesis keeps its place and its score. Each source has its own length limit, so that a sentence is
    translated the same alone and in a batch.
    """
    B = len(source)
    hidden, state = model.encode(model.embedding(source), mask)
    hidden, mask = hidden.repeat_interleave(beam, 0), mask.repeat_interleave(beam, 0)
    state = (state[0].repeat_interleave(beam, 1).contiguous(), state[1].repeat_interleave(beam, 1).contiguous())
    words = torch.full((B * beam, 1), BOS, device=source.device)
    scores = hidden.new_full((B, beam), -torch.inf)
    scores[:, 0] = 0.0  # the copies of the start are one hypothesis
    done = torch.zeros(B * beam, dtype=torch.bool, device=source.device)
    for length in range(int(limits.max())):
        log_p, state = _step(model, words[:, -1:], state, hidden, mask)
        log_p = _keep_finished(log_p, done)
        V = log_p.shape[-1]
        totals = (scores.view(B * beam, 1) + log_p).view(B, beam * V)
        scores, chosen = totals.topk(beam, dim=1)
        parent = (chosen // V + torch.arange(B, device=source.device)[:, None] * beam).view(-1)
        words = torch.cat([words[parent], (chosen % V).view(-1, 1)], dim=1)
        state = (state[0][:, parent].contiguous(), state[1][:, parent].contiguous())
        done = done[parent] | (words[:, -1] == EOS) | (length + 1 >= limits.repeat_interleave(beam))
        if bool(done.all()):
            break
    best = scores.argmax(1) + torch.arange(B, device=source.device) * beam
    return [[int(w) for w in row if w not in (BOS, EOS, PAD)] for row in words[best].tolist()]


def _step(
    model: Translator,
    word: Int[Tensor, "N 1"],
    state: tuple[Float[Tensor, "layers N D"], Float[Tensor, "layers N D"]],
    hidden: Float[Tensor, "N L D"],
    mask: Bool[Tensor, "N L"],
) -> tuple[Float[Tensor, "N V"], tuple[Float[Tensor, "layers N D"], Float[Tensor, "layers N D"]]]:
    states, state = model.decoder(model.embedding(word), state)
    context, _ = model.attend(states, hidden, mask)
    logits = model.read(context, states)[:, 0]
    logits[:, [PAD, BOS]] = -torch.inf
    return logits.log_softmax(-1), state


def _keep_finished(log_p: Float[Tensor, "N V"], done: Bool[Tensor, " N"]) -> Float[Tensor, "N V"]:
    """A finished hypothesis can only go on with padding, at no cost."""
    log_p[done] = -torch.inf
    log_p[done, PAD] = 0.0
    return log_p
