"""Whatever a model is made of and whatever state it is in, an audit leaves it bit for bit as it was."""

import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from torch import nn

from heedful.attribution.interface import Subject
from heedful.attribution.modules import ModuleNetwork
from heedful.attribution.network import Output
from heedful.audits.audit import AuditSettings, run_audit
from tests.audits.constructed import READER, WORDS, passages

QUICK = AuditSettings(integrated_steps=2, adversary_steps=2, random_orders=1, resamples=9)
D = 4


class Built(nn.Module):
    """An embedding, parts that may remember what they read, a head or two, and an output."""

    def __init__(self, parts, heads):
        super().__init__()
        make = {
            "linear": lambda: nn.Linear(D, D),
            "norm": lambda: nn.BatchNorm1d(D),
            "dropout": lambda: nn.Dropout(0.5),
            "noise": lambda: nn.RReLU(),
            "recurrent": lambda: nn.GRU(D, D, batch_first=True),
        }
        self.embedding = nn.Embedding(len(WORDS), D)
        self.parts = nn.ModuleList(make[part]() for part in parts)
        self.scores, self.output = nn.Linear(D, heads), nn.Linear(D, 2)

    def run(self, embedded, change):
        hidden = embedded
        for part in self.parts:
            if isinstance(part, nn.GRU):
                hidden = part(hidden)[0]
            else:
                hidden = (
                    part(hidden.transpose(1, 2)).transpose(1, 2) if isinstance(part, nn.BatchNorm1d) else part(hidden)
                )
        alpha = self.scores(hidden).transpose(1, 2).softmax(-1)[:, :, None]
        alpha = alpha if change is None else change(0, alpha)
        pooled = (alpha[:, :, 0] @ hidden).mean(1)
        return Output(self.output(pooled).softmax(-1), (alpha,), (hidden,))


def state(model):
    """All that could have been disturbed."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return (
        {name: (value.data_ptr(), value.clone()) for name, value in model.state_dict().items()},
        {name: (p.requires_grad, p.grad is not None and p.grad.clone()) for name, p in model.named_parameters()},
        [(part.training, *(dict(getattr(part, hook)) for hook in hooks)) for part in model.modules()],
        torch.get_rng_state(),
        np.random.get_state()[1].copy(),
    )


def same(first, second):
    if isinstance(first, torch.Tensor):
        return torch.equal(first, second)
    if isinstance(first, np.ndarray):
        return np.array_equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(same(value, second[key]) for key, value in first.items())
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return first == second


@settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
)
@given(
    parts=st.lists(st.sampled_from(["linear", "norm", "dropout", "noise", "recurrent"]), max_size=3),
    heads=st.integers(1, 2),
    seed=st.integers(0, 99),
)
def test_an_audit_leaves_a_model_as_it_found_it(parts, heads, seed):
    torch.manual_seed(seed)
    draw = random.Random(seed)
    model = Built(parts, heads)
    seen = []
    for part in model.modules():
        part.training = draw.random() < 0.5
    for parameter in model.parameters():
        parameter.requires_grad_(draw.random() < 0.5)
        parameter.grad = torch.ones_like(parameter) if draw.random() < 0.5 else None
    model.output.register_forward_hook(lambda *_: seen.append(1))
    network = ModuleNetwork((model,), model.embedding, model.run, layers=1, heads=heads, can_change=True)
    before = state(model)
    with tempfile.TemporaryDirectory() as out:
        run_audit(Subject(network, READER), passages(3), out=out, settings=QUICK)
    assert seen
    assert same(before, state(model))


PLAIN = """
import random, tempfile
from heedful.audits.audit import AuditSettings, run_audit
from tests.audits.constructed import passages, stacked
before = random.getstate()
settings = AuditSettings(integrated_steps=2, adversary_steps=2, random_orders=1, resamples=9)
run_audit(stacked(), passages(3), out=tempfile.mkdtemp(), settings=settings)
assert random.getstate() == before
"""


def test_python_draws_the_same_numbers_afterwards():
    """In a process of its own: the types that tests check are checked at random places."""
    root = Path(__file__).resolve().parents[2]
    subprocess.run([sys.executable, "-c", PLAIN], cwd=root, check=True)
