"""Does β stay where the keyword is (snell2021 §6.1, Figure 7)?

A sequence of 40 words is positive if and only if the word 1 occurs in it, at l*. Under uniform attention the log-odds
γ_l = ln(β^uf_l / (1 − β^uf_l)) of positive sequences are followed at l*, at l* + 1, on average, and at the last
position L. The sequences have no `<bos>` or `<eos>`: L is the last word.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import torch

from heedful.config import ModelConfig, TrainConfig
from heedful.data.batch import Batch
from heedful.data.synthetic import LENGTH, stream_texts
from heedful.data.tokens import EOS
from heedful.model.classifier import AttentionClassifier, lexical_probe
from heedful.model.train import train
from heedful.papers.units import Unit
from heedful.studies.answers import Report
from heedful.typed import content, from_mapping

HELD_OUT = 1_000_003  # seed of the sequences that γ is measured on
PLACES = ("keyword", "next", "mean", "last")


@dataclass(frozen=True)
class KeywordBudget:
    """Sizes of the keyword experiment; `early` is the step at which Hypothesis 2 is asked about."""

    seeds: int
    steps: int
    early: int
    every: int = 2
    batch_size: int = 32
    held_out: int = 200
    model: ModelConfig = field(default_factory=ModelConfig)

    @property
    def evaluate_at(self) -> tuple[int, ...]:
        """Every 2 steps to 60, then every 10."""
        dense = range(0, min(60, self.steps), self.every)
        return tuple(sorted({*dense, *range(60, self.steps, 10), self.early, self.steps}))


BUDGETS = {
    "smoke": KeywordBudget(2, 4, 2, batch_size=4, held_out=8, model=ModelConfig(8, hidden=8, scorer_hidden=8)),
    "quick": KeywordBudget(5, 120, 10),
    "paper": KeywordBudget(20, 500, 10, held_out=1000),
}


def unit(seed: int, sizes: KeywordBudget) -> Unit:
    """One seed's training."""
    arguments = content(sizes) | {"seed": seed, "evaluate_at": list(sizes.evaluate_at)}
    return Unit(f"keyword-{seed}", f"{__name__}:follow", {k: arguments[k] for k in _WANTED})


_WANTED = ("seed", "steps", "evaluate_at", "batch_size", "held_out", "model")


def follow(
    *,
    seed: int,
    steps: int,
    evaluate_at: list[int],
    batch_size: int,
    held_out: int,
    model: Mapping[str, Any],
    device: torch.device,
    report: Report,
) -> dict[str, Any]:
    """Train one uniform model; returns `steps` and the mean γ at each of `PLACES` at each of them."""
    torch.manual_seed(seed)
    classifier = AttentionClassifier(from_mapping(ModelConfig, model), EOS + 1 + LENGTH, 2, "uniform").to(device)
    test = next(_batches(held_out, HELD_OUT, device))
    seen: dict[str, Any] = {"steps": [], **{place: [] for place in PLACES}}

    def see(step: int, loss: float) -> None:
        seen["steps"].append(step)
        for place, value in gamma_by_place(classifier, test).items():
            seen[place].append(value)
        report({"step": step, "steps": steps})

    config = TrainConfig(steps=steps, batch_size=batch_size, evaluate_at=tuple(evaluate_at))
    train(classifier, _batches(batch_size, seed, device), config, see)
    return seen


@torch.no_grad()
def gamma_by_place(model: AttentionClassifier, batch: Batch) -> dict[str, float]:
    """Mean γ over the positive sequences whose keyword is not their last word, at each of `PLACES`."""
    output = model.from_embeddings(model.embedding(batch.tokens), batch.mask)
    gamma = lexical_probe(model, output.hidden, batch.labels).cpu().numpy()
    is_key = (batch.tokens == EOS + 1).cpu().numpy()
    rows = np.flatnonzero(is_key.any(axis=1) & ~is_key[:, -1])
    at = is_key[rows].argmax(axis=1)
    chosen = gamma[rows]
    each = {
        "keyword": chosen[np.arange(len(rows)), at],
        "next": chosen[np.arange(len(rows)), at + 1],
        "mean": chosen.mean(axis=1),
        "last": chosen[:, -1],
    }
    return {place: float(values.mean()) for place, values in each.items()}


def _batches(size: int, seed: int, device: torch.device) -> Iterator[Batch]:
    stream = stream_texts("keyword", seed=seed)
    while True:
        texts, labels = zip(*islice(stream, size), strict=True)
        tokens = torch.tensor([[EOS + int(word) for word in text.split()] for text in texts], device=device)
        mask = torch.ones_like(tokens, dtype=torch.bool)
        yield Batch(tokens, mask, torch.tensor(labels, device=device), np.arange(size))
