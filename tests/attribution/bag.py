"""A small model that can be differentiated by hand, and all attribution methods by name."""

import numpy as np
import torch
from torch import nn

from heedful.attribution.attention_maps import normalised, shares
from heedful.attribution.importance import d_y_h, d_y_x, g_h_x, gradients
from heedful.attribution.interface import Passage, Subject
from heedful.attribution.modules import OpenNetwork
from heedful.attribution.network import ModelParts, States
from heedful.models.adversary import probabilities

TYPES, E = 29, 3
MAX_TOKENS = 65_536


class Bag(nn.Module):
    """h = tanh(Ae), a = vᵀh, α = softmax, p = σ or softmax of Wc: everything differentiable by hand."""

    def __init__(self, classes=2, seed=0):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = nn.Embedding(TYPES, E)
        self.inner = nn.Linear(E, 5)
        self.context = nn.Parameter(torch.randn(5))
        self.output = nn.Linear(5, 1 if classes == 2 else classes)
        self.dropout = nn.Dropout(0.5)
        self.double().eval()

    def parts(self) -> ModelParts:
        def read(states, alpha):
            pooled = torch.einsum("bl,bld->bd", alpha[:, 0, 0], states.hidden)
            return probabilities(self.output(self.dropout(pooled)))

        return ModelParts(
            encode=lambda embedded, mask, before: States(self.inner(embedded).tanh()),
            score=lambda states: states.hidden @ self.context,
            project=lambda scores, mask: scores.masked_fill(~mask, -torch.inf).softmax(-1)[:, None, None],
            read=read,
        )

    def subject(self, *, padded=True, max_tokens=MAX_TOKENS) -> Subject:
        return Subject(OpenNetwork(self, self.embedding, self.parts()), max_tokens=max_tokens, padded=padded)


def texts(lengths, seed=0, target=1):
    draw = np.random.default_rng(seed)
    return [Passage.of_pieces(i, draw.integers(0, TYPES, n).tolist(), target=target) for i, n in enumerate(lengths)]


def share(values):
    values = np.asarray(values, dtype=float)
    return values / values.sum(-1, keepdims=True)


def of_states(subject, passages, **options):
    matrices = g_h_x(subject, passages, **options)
    lengths = np.array([len(matrix) for matrix in matrices])
    return normalised(np.concatenate([matrix.ravel() for matrix in matrices]), np.repeat(lengths, lengths))


METHODS = {
    "g_y_x": lambda subject, some, **o: shares(some, gradients(subject, some, **o).g_y_x),
    "g_y_h": lambda subject, some, **o: shares(some, [row[0] for row in gradients(subject, some, **o).g_y_h]),
    "g_h_x": of_states,
    "d_y_x": lambda subject, some: shares(some, d_y_x(subject, some)),
    "d_y_h": lambda subject, some: shares(some, d_y_h(subject, some)),
}
G_Y_X, G_Y_H, G_H_X, D_Y_X, D_Y_H = METHODS.values()
