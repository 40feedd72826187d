"""Importances of a BiLSTM classifier (300 → 256 per direction) against doing the same one at a time, and captum.

Captum cannot delete a token: it puts a baseline (padding) in its place and runs the whole text again, 64 at a time.
That is the same number of texts read, one token longer than ours. Ours deletes.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from benchmarks.case import Case, Point
from benchmarks.products import share_of_products
from captum.attr import FeatureAblation
from torch import Tensor

from heedful.attribution.importance import d_y_h, d_y_x, g_h_x, gradients, integrated_gradients
from heedful.attribution.interface import Passage, Subject
from heedful.attribution.modules import classifier_network
from heedful.config import ModelConfig
from heedful.models.classifier import AttentionClassifier

METHODS: list[Callable[..., Any]] = [gradients, g_h_x, d_y_x, d_y_h, integrated_gradients]


def cases(quick: bool) -> Iterator[Case]:
    model = classifier()
    subject = subject_of(model)
    for count, shortest, longest, bar in ((100, 15, 26, 8), (2, 196, 205, 4)):
        passages = texts(count, shortest, longest)
        given = max(1, count // (20 if quick else 5))
        rows = [torch.tensor(passage.pieces) for passage in passages]
        np.testing.assert_allclose(share(d_y_x(subject, passages)[0]), deleted(model, rows[0]), atol=1e-4)

        def ours(passages: list[Passage] = passages) -> Any:
            return d_y_x(subject, passages)

        for peer, one, least in (
            ("one deletion at a time", deleted, bar),
            ("captum FeatureAblation, 64 at a time, a baseline token for deletion", ablated, 2),
        ):
            yield Case(
                work=f"deletion leave-one-out, BiLSTM 300→256, {count} texts of about {(shortest + longest) // 2}",
                peer=peer,
                ours=ours,
                theirs=lambda one=one, rows=rows[:given]: [one(model, row) for row in rows],
                bar=least,
                share=sum(map(len, rows[:given])) / sum(map(len, rows)),
                account=lambda ratio, ours=ours: share_of_products(ours, ratio),
            )
    for length in (20, 200):
        passages = texts(1, length, length + 1)
        tokens = torch.tensor([passages[0].pieces])
        np.testing.assert_allclose(share(g_h_x(subject, passages)[0]), one_state_at_a_time(model, tokens), atol=1e-5)
        yield Case(
            f"g_h_x, BiLSTM 300→256, {length} states of one text",
            "one backward pass per state",
            ours=lambda passages=passages: g_h_x(subject, passages),
            theirs=lambda tokens=tokens: one_state_at_a_time(model, tokens),
            bar=4,
        )


def growth() -> Iterator[Point]:
    subject = subject_of(classifier())
    for method in METHODS:
        for length in (20, 200, 2_000, 5_000):
            passages = texts(1, length, length + 1)
            yield Point(
                f"{method.__name__}, BiLSTM 300→256, one text",
                f"{length:,} tokens",
                lambda method=method, passages=passages: method(subject, passages),
            )


def classifier() -> AttentionClassifier:
    torch.manual_seed(0)
    return AttentionClassifier(ModelConfig(), vocabulary=5_000, classes=2).eval()


def subject_of(model: AttentionClassifier) -> Subject:
    return Subject(classifier_network(model), max_tokens=65_536, padded=True)


def texts(count: int, shortest: int, longest: int) -> list[Passage]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(shortest, longest, size=count)
    return [Passage.of_pieces(i, rng.integers(4, 5_000, size=n).tolist(), target=1) for i, n in enumerate(lengths)]


def share(rows: np.ndarray) -> np.ndarray:
    return rows / rows.sum(-1, keepdims=True)


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


def one_state_at_a_time(model: AttentionClassifier, tokens: Tensor) -> np.ndarray:
    embedded = model.embedding(tokens).detach().requires_grad_()
    norms = model.encoder(embedded, torch.ones_like(tokens, dtype=torch.bool))[0].norm(dim=-1)[0]
    rows = [torch.autograd.grad(norm, embedded, retain_graph=True)[0][0].norm(dim=-1) for norm in norms]
    jacobian = torch.stack(rows)
    return (jacobian / jacobian.sum(1, keepdim=True)).numpy()
