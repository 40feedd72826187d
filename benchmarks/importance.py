"""Importances of a BiLSTM classifier (300 → 256 per direction) against doing the same one at a time, and captum.

Captum cannot delete a token: it puts a baseline (padding) in its place and runs the whole text again, 64 at a time.
That is the same number of texts read, one token longer than ours. Ours deletes.
"""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from benchmarks.case import Case, Point
from captum.attr import FeatureAblation
from torch import Tensor

from heedful.attribution import importance
from heedful.attribution.forward import Forward, classifier_forward
from heedful.attribution.importance import gradient_input, integrated_gradients
from heedful.config import ModelConfig
from heedful.models.classifier import AttentionClassifier

MEASURES: list[Callable[[Forward, Tensor, Tensor], importance.Importance]] = [
    importance.g_y_x,
    importance.g_y_h,
    importance.g_h_x,
    importance.d_y_x,
    importance.d_y_h,
]


def cases(quick: bool) -> Iterator[Case]:
    model = classifier()
    forward = classifier_forward(model)
    for count, shortest, longest, bar in ((100, 15, 26, 8), (2, 196, 205, 4)):
        tokens, mask = texts(count, shortest, longest)
        given = max(1, count // (20 if quick else 5))
        rows = [row[keep] for row, keep in zip(tokens, mask, strict=True)]
        found, expected = importance.d_y_x(forward, tokens, mask), deleted(model, rows[0])
        np.testing.assert_allclose(found[0], expected, atol=1e-4)
        for peer, one, least in (
            ("one deletion at a time", deleted, bar),
            ("captum FeatureAblation, 64 at a time, a baseline token for deletion", ablated, 2),
        ):
            yield Case(
                work=f"deletion leave-one-out, BiLSTM 300→256, {count} texts of about {(shortest + longest) // 2}",
                peer=peer,
                ours=lambda t=tokens, m=mask: importance.d_y_x(forward, t, m),
                theirs=lambda one=one, rows=rows[:given]: [one(model, row) for row in rows],
                bar=least,
                share=sum(map(len, rows[:given])) / sum(map(len, rows)),
            )
    for length in (20, 200):
        tokens, mask = texts(1, length, length + 1)
        ours = importance.g_h_x(forward, tokens, mask).values.reshape(length, length)
        np.testing.assert_allclose(ours, one_state_at_a_time(model, tokens, mask), atol=1e-5)
        yield Case(
            f"g_h_x, BiLSTM 300→256, {length} states of one text",
            "one backward pass per state",
            ours=lambda t=tokens, m=mask: importance.g_h_x(forward, t, m),
            theirs=lambda t=tokens, m=mask: one_state_at_a_time(model, t, m),
            bar=4,
        )


def growth() -> Iterator[Point]:
    forward = classifier_forward(classifier())
    for measure in [*MEASURES, gradient_input, integrated_gradients]:
        for length in (20, 200, 2_000, 5_000):
            tokens, mask = texts(1, length, length + 1)
            yield Point(
                f"{measure.__name__}, BiLSTM 300→256, one text",
                f"{length:,} tokens",
                lambda f=measure, t=tokens, m=mask: f(forward, t, m),
            )


def classifier() -> AttentionClassifier:
    torch.manual_seed(0)
    return AttentionClassifier(ModelConfig(), vocabulary=5_000, classes=2).eval()


def texts(count: int, shortest: int, longest: int) -> tuple[Tensor, Tensor]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(shortest, longest, size=count)
    mask = torch.from_numpy(np.arange(lengths.max()) < lengths[:, None])
    return torch.from_numpy(rng.integers(4, 5_000, size=mask.shape)) * mask, mask


@torch.no_grad()
def deleted(model: AttentionClassifier, row: Tensor) -> np.ndarray:
    def ask(tokens: Tensor) -> Tensor:
        return model(tokens[None], torch.ones(1, len(tokens), dtype=torch.bool)).logits.sigmoid()[0, 0]

    whole = ask(row)
    drop = torch.stack([(whole - ask(torch.cat([row[:i], row[i + 1 :]]))).abs() for i in range(len(row))])
    return (drop / drop.sum()).numpy()


@torch.no_grad()
def ablated(model: AttentionClassifier, row: Tensor) -> np.ndarray:
    def ask(tokens: Tensor) -> Tensor:
        return model(tokens, torch.ones_like(tokens, dtype=torch.bool)).logits.sigmoid()[:, 0]

    drop = FeatureAblation(ask).attribute(row[None], baselines=0, perturbations_per_eval=64)[0].abs()
    return (drop / drop.sum()).numpy()


def one_state_at_a_time(model: AttentionClassifier, tokens: Tensor, mask: Tensor) -> np.ndarray:
    embedded = model.embedding(tokens).detach().requires_grad_()
    norms = model.encoder(embedded, mask)[0].norm(dim=-1)[0]
    rows = [torch.autograd.grad(norm, embedded, retain_graph=True)[0][0].norm(dim=-1) for norm in norms]
    jacobian = torch.stack(rows)
    return (jacobian / jacobian.sum(1, keepdim=True)).numpy()
