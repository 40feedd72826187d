"""Could another attention give the same prediction? It is looked for, passage by passage (Jain & Wallace 2019, §4.2.2).

    maximise  JSD(map, map shown) − λ · TVD(prediction, prediction given)

over free scores s in every layer, head and row, α' ∝ α · exp(s): what attention cannot see (α = 0) stays unseen. The
map is the one that a reader is shown, of one head or of a layer's together, special words left out; what counts is the
highest JSD met on the way at which the prediction has moved by no more than a tolerance and the label not at all.

Departure: the paper's models have one attention, from which the prediction is read directly. Here all layers may change
so that the shown one can.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.audits.asking import Batch, Numbers, Subject, numbers
from heedful.audits.changes import draw
from heedful.audits.maps import asked, of_query
from heedful.audits.network import Query
from heedful.audits.passage import Passage
from heedful.model.adversary import jensen_shannon, total_variation

Show = Callable[[Tensor], Tensor]
TOLERANCE = 0.01
PENALTY = 10.0
LEARNING_RATE = 0.3
NOISE, TILT = 0.1, 0.25  # the search starts beside α, where divergence has a gradient, and on the side of even weights
MOST = math.log(2)


def adversarial_divergence(
    subject: Subject,
    passages: Sequence[Passage],
    *,
    layer: int = -1,
    head: int | None = None,
    steps: int = 100,
    tolerance: float = TOLERANCE,
    include_special: bool = False,
    seed: int = 0,
) -> Numbers:
    """JSD in nats, in [0, ln 2], of the most different map found for each passage; 0 where none was.

    layer: whose map is shown, the last unless said; head: where it is that of one head alone. Deterministic under the
    seed, and the same in any batch.
    """
    subject.require_change()

    def answer(batch: Batch) -> Numbers:
        shown = _shown(subject.network.query, batch, head, include_special)
        return _search(subject, batch, shown, layer, steps, tolerance, seed)

    return np.array(subject.ask(passages, answer, gradients=True))


def tilted(alpha: Float[Tensor, "*rows L"], scores: Float[Tensor, "*rows L"]) -> Float[Tensor, "*rows L"]:
    """α · exp(s), each row with the weight that it had.

    >>> tilted(torch.tensor([0.5, 0.5, 0.0]), torch.tensor([math.log(3.0), 0.0, 9.0]))
    tensor([0.7500, 0.2500, 0.0000])
    """
    used, limits = alpha > 0, torch.finfo(alpha.dtype)
    logs = torch.where(used, _log(alpha) + scores, -limits.max)
    return logs.softmax(-1) * used * alpha.sum(-1, keepdim=True)


def _search(
    subject: Subject, batch: Batch, shown: Show, layer: int, steps: int, tolerance: float, seed: int
) -> Numbers:
    with torch.no_grad():
        given = subject.run(batch)
    original, label = shown(given.attention[layer]), given.probabilities.argmax(1)
    best = torch.zeros(len(batch.passages), dtype=torch.float64, device=original.device)
    scores = [_start(batch, number, alpha, seed) for number, alpha in enumerate(given.attention)]
    with torch.no_grad():
        scores[layer] -= TILT * _log(given.attention[layer])
    optimiser = torch.optim.Adam(scores, lr=LEARNING_RATE)
    for _ in range(steps):
        attention = [tilted(alpha, score) for alpha, score in zip(given.attention, scores, strict=True)]
        probabilities = subject.run(batch, change=lambda number, _: attention[number]).probabilities  # noqa: B023
        diverged = jensen_shannon(shown(attention[layer]), original)
        moved = total_variation(probabilities, given.probabilities)
        allowed = (moved <= tolerance) & (probabilities.argmax(1) == label)
        best = torch.maximum(best, torch.where(allowed, diverged, 0.0).detach())
        gradients = torch.autograd.grad((PENALTY * moved - diverged).sum(), scores, materialize_grads=True)
        for score, gradient in zip(scores, gradients, strict=True):
            score.grad = gradient
        optimiser.step()
    return numbers(best.clamp(0.0, MOST))


def _shown(query: Query, batch: Batch, head: int | None, include_special: bool) -> Show:
    """Attention (B, H, Q, L) of a layer as the map of words (B, W) that a reader is shown."""
    belongs = torch.zeros(*batch.pieces.shape, max(len(passage.words) for passage in batch.passages))
    for b, passage in enumerate(batch.passages):
        told = asked(passage, include_special=include_special)
        for piece, word in enumerate(passage.word):
            belongs[b, piece, word] = float(told[word])
    onto = belongs.double().to(batch.pieces.device)

    def show(alpha: Tensor) -> Tensor:
        heads = of_query(alpha, query).double()
        words = torch.einsum("bl,blw->bw", heads.mean(1) if head is None else heads[:, head], onto)
        return words / words.sum(-1, keepdim=True).clamp_min(torch.finfo(words.dtype).tiny)

    return show


def _start(batch: Batch, layer: int, alpha: Tensor, seed: int) -> Tensor:
    noise = np.stack([draw(passage, seed, layer).standard_normal(alpha.shape[1:]) for passage in batch.passages])
    return (NOISE * torch.from_numpy(noise)).to(alpha).requires_grad_()


def _log(alpha: Tensor) -> Tensor:
    return alpha.clamp_min(torch.finfo(alpha.dtype).tiny).log()
