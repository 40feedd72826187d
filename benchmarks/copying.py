"""Training the copying model (snell2021 §3.3) with every core busy, per step of one seed.

Ours is what a study runs: one single-threaded process per core, each training a seed of its own. The peers train one
seed with as many threads as there are cores, as PyTorch does when nobody says otherwise.
"""

import atexit
import contextlib
import multiprocessing
import os
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import TypeVar

import torch
from benchmarks.case import Case
from benchmarks.products import share_of_products
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.config import TrainConfig, TranslatorConfig
from heedful.data.batching import PairBatch, copying_batches
from heedful.data.synthetic.tasks import TYPES
from heedful.data.vocabulary import EOS
from heedful.models.training import build_optimiser
from heedful.models.translator import Translator

T = TypeVar("T")
WIDTH, BATCH, STEPS = 256, 128, 3
VOCABULARY = EOS + 1 + TYPES
CONFIG = TranslatorConfig(
    embedding=WIDTH, hidden=WIDTH, layers=1, bidirectional=False, attention="bilinear", output="tanh", dropout=0.0
)


def cases(quick: bool) -> Iterator[Case]:
    cores = os.cpu_count() or 1
    pipes = [start_process(seed) for seed in range(cores)]
    check_same_model()
    for peer, step_by_step, bar in (
        (f"nn.LSTM, the decoder step by step, {cores} threads", True, 4),
        (f"nn.LSTM over whole sequences, default Adam, {cores} threads", False, 1.4),
    ):
        torch.manual_seed(0)
        model = Peer(step_by_step)
        yield Case(
            work=f"copying model, training, {STEPS} steps of {cores} seeds on {cores} cores",
            peer=peer,
            ours=lambda: train_everywhere(pipes),
            theirs=with_threads(cores, training(model.loss, torch.optim.Adam(model.parameters(), lr=1e-3), seed=0)),
            bar=bar,
            share=1 / (cores * STEPS),
            account=what_stops_us,
        )


class Peer(nn.Module):
    """The same network as anyone would write it."""

    def __init__(self, step_by_step: bool) -> None:
        super().__init__()
        self.step_by_step = step_by_step
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.encoder = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.decoder = nn.LSTM(WIDTH, WIDTH, batch_first=True)
        self.attention = nn.Linear(WIDTH, WIDTH, bias=False)
        self.hidden = nn.Linear(2 * WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, batch: PairBatch) -> Tensor:
        hidden, state = self.encoder(self.embedding(batch.source))
        told = self.embedding(batch.target_in)
        if not self.step_by_step:
            return self.read(self.decoder(told, state)[0], hidden)
        logits = []
        for t in range(told.shape[1]):
            s, state = self.decoder(told[:, t : t + 1], state)
            logits.append(self.read(s, hidden))
        return torch.cat(logits, dim=1)

    def read(self, states: Tensor, hidden: Tensor) -> Tensor:
        alpha = (self.attention(states) @ hidden.transpose(1, 2)).softmax(-1)
        return self.output(self.hidden(torch.cat([alpha @ hidden, states], dim=-1)).tanh())

    def loss(self, batch: PairBatch) -> Tensor:
        return F.cross_entropy(self(batch).flatten(0, 1), batch.target_out.flatten())


def check_same_model() -> None:
    """With the same weights the peers and ours have the same loss."""
    torch.manual_seed(0)
    ours, batch = Translator(CONFIG, VOCABULARY), next(copying_batches("copy-vocab", BATCH))
    for peer in (Peer(True), Peer(False)):
        pairs = (
            (peer.embedding, ours.embedding),
            (peer.encoder, ours.encoder.forwards[0]),
            (peer.decoder, ours.decoder),
            (peer.attention, ours.scorer.weights[0]),
            (peer.hidden, ours.context_in),
            (peer.output, ours.output),
        )
        for theirs, mine in pairs:
            theirs.load_state_dict(mine.state_dict())
        torch.testing.assert_close(peer.loss(batch), ours.loss(batch))


def training(loss: Callable[[PairBatch], Tensor], optimiser: torch.optim.Optimizer, seed: int) -> Callable[[], float]:
    drawn = copying_batches("copy-vocab", BATCH, seed=seed)

    def step() -> float:
        optimiser.zero_grad(set_to_none=True)
        value = loss(next(drawn))
        value.backward()
        optimiser.step()
        return value.item()

    return step


def what_stops_us(ratio: float) -> str:
    """The share of matrix products in our step."""
    torch.manual_seed(0)
    model = Translator(CONFIG, VOCABULARY)
    step = training(model.loss, build_optimiser(model, TrainConfig()), seed=0)
    return share_of_products(lambda: [step() for _ in range(STEPS)], ratio)


def with_threads(count: int, run: Callable[[], T]) -> Callable[[], T]:
    def threaded() -> T:
        before = torch.get_num_threads()
        torch.set_num_threads(count)
        try:
            return run()
        finally:
            torch.set_num_threads(before)

    return threaded


def start_process(seed: int) -> Connection:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=train_on_demand, args=(there, seed), daemon=True)
    process.start()
    atexit.register(process.terminate)
    return here


def train_on_demand(pipe: Connection, seed: int) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = Translator(CONFIG, VOCABULARY)
    step = training(model.loss, build_optimiser(model, TrainConfig()), seed)
    with contextlib.suppress(EOFError):
        while True:
            steps = pipe.recv()
            pipe.send([step() for _ in range(steps)])


def train_everywhere(pipes: list[Connection]) -> list[list[float]]:
    for pipe in pipes:
        pipe.send(STEPS)
    return [pipe.recv() for pipe in pipes]
