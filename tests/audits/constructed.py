"""Networks whose attention is known by construction, and passages for them."""

import math

import numpy as np
import torch
from torch import nn

from heedful.attribution.interface import Passage, Subject
from heedful.attribution.modules import ModuleNetwork, WordReader
from heedful.attribution.network import Output

LABELS = ("bad", "good")
FILLER = tuple(f"w{i}" for i in range(23))
WORDS = ("<s>", "dull", "fine", *FILLER)
READER = WordReader({word: i for i, word in enumerate(WORDS)}, LABELS, first=("<s>", 0))


class Pooled(nn.Module):
    """One head that looks sharply at the one word with a polarity, dull or fine; hidden states vary with every word.

    `listens`: the prediction is read off Σ α_i v_i, so that attention decides everything; otherwise off the mean of v,
    so that attention is ignored.
    """

    def __init__(self, *, listens: bool = True, seed: int = 0) -> None:
        super().__init__()
        self.listens = listens
        table = 0.1 * torch.randn(len(WORDS), 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        table[:, 0] = 0.3 * torch.linspace(-1, 1, len(WORDS))  # no two words are alike, so that orders are defined
        table[0, 0], table[1, 0], table[2, 0] = 0.0, -4.0, 4.0
        self.embedding = nn.Embedding.from_pretrained(table, freeze=False)
        self.dropout = nn.Dropout(0.5)

    def run(self, embedded, change):
        hidden = self.dropout(embedded).tanh()
        alpha = (5 * hidden[..., 0].abs()).softmax(-1)[:, None, None]
        alpha = alpha if change is None else change(0, alpha)
        value = hidden[..., 0]
        weights = alpha[:, 0, 0] if self.listens else torch.full_like(value, 1 / value.shape[1])
        scale = 4.0 if self.listens else 4.0 * value.shape[1] / 8
        logit = scale * (weights * value).sum(-1)
        return Output(torch.stack([-logit, logit], dim=-1).div(2).softmax(-1), (alpha,), (hidden,))


def pooled(*, listens: bool = True, fresh: bool = True, seed: int = 0, can_change: bool = True) -> Subject:
    model = Pooled(listens=listens, seed=seed)

    def another(seed):
        other = pooled(listens=listens, fresh=False, seed=seed + 1)
        with torch.no_grad():
            other.network.modules[0].embedding.weight.copy_(scatter(seed, len(WORDS), 4))
        return other.network

    network = ModuleNetwork(
        (model,),
        model.embedding,
        model.run,
        layers=1,
        heads=1,
        query="first",
        can_change=can_change,
        fresh=another if fresh else lambda seed: None,
    )
    return Subject(network, READER)


def scatter(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


class Stack(nn.Module):
    """Layers of self-attention with places, residuals and feed-forward parts, as transformers have them."""

    def __init__(
        self, *, layers: int = 2, heads: int = 3, classes: int = 2, causal: bool = False, seed: int = 0
    ) -> None:
        super().__init__()
        self.heads, self.causal, D = heads, causal, 4 * heads
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(len(WORDS), D)
            self.places = nn.Parameter(torch.randn(64, D) / 2)
            self.inward = nn.ModuleList(nn.Linear(D, 3 * D) for _ in range(layers))
            self.onward = nn.ModuleList(nn.Linear(D, D) for _ in range(layers))
            self.output = nn.Linear(D, classes)
            self.dropout = nn.Dropout(0.5)
        with torch.no_grad():
            for layer in self.inward:
                layer.weight.mul_(2.5)
        self.double()

    def run(self, embedded, change):
        B, L, D = embedded.shape
        state = embedded + self.places[:L]
        attention, hidden = [], []
        for number, (inward, onward) in enumerate(zip(self.inward, self.onward, strict=True)):
            hidden.append(state)
            q, k, v = inward(state).view(B, L, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
            if self.causal:
                scores = scores.masked_fill(torch.ones(L, L, dtype=torch.bool).triu(1), -torch.inf)
            alpha = scores.softmax(-1)
            alpha = alpha if change is None else change(number, alpha)
            attention.append(alpha)
            state = state + self.dropout((alpha @ v).transpose(1, 2).reshape(B, L, D))
            state = state + onward(state).tanh()
        read = state[:, -1] if self.causal else state[:, 0]
        return Output(self.output(read).softmax(-1), tuple(attention), tuple(hidden))


def stacked(
    *, layers: int = 2, heads: int = 3, causal: bool = False, seed: int = 0, classes: int = 2, **options
) -> Subject:
    model = Stack(layers=layers, heads=heads, causal=causal, seed=seed, classes=classes)
    network = ModuleNetwork(
        (model,),
        model.embedding,
        model.run,
        layers=layers,
        heads=heads,
        query="last" if causal else "first",
        can_change=True,
        fresh=lambda other: stacked(layers=layers, heads=heads, causal=causal, seed=seed + other + 1).network,
    )
    return Subject(network, READER, **options)


def texts(n: int = 12, *, seed: int = 0, lengths: tuple[int, ...] = (5, 7, 8)) -> list[tuple[str, str]]:
    """Fillers around one word that gives the label away."""
    draw = np.random.default_rng(seed)
    made = []
    for i in range(n):
        words = list(draw.choice(FILLER, lengths[i % len(lengths)], replace=False))
        words[int(draw.integers(len(words)))] = ("dull", "fine")[i % 2]
        made.append((" ".join(words), LABELS[i % 2]))
    return made


def passages(n: int = 12, *, seed: int = 0, lengths: tuple[int, ...] = (5, 7, 8)) -> list[Passage]:
    return [READER.read(i, text, label) for i, (text, label) in enumerate(texts(n, seed=seed, lengths=lengths))]


def in_pieces(n: int = 5, *, seed: int = 0) -> list[Passage]:
    """Words of one to three pieces, and a special word at either end."""
    draw = np.random.default_rng(seed)
    made = []
    for i in range(n):
        sizes = [1, *draw.integers(1, 4, 3 + i % 3).tolist(), 1]
        pieces = [0, *draw.integers(1, len(WORDS), sum(sizes) - 2).tolist(), 0]
        word = tuple(np.repeat(np.arange(len(sizes)), sizes).tolist())
        special = (True, *(False for _ in sizes[2:]), True)
        made.append(Passage(i, tuple(f"v{j}" for j in range(len(sizes))), special, tuple(pieces), word))
    return made
