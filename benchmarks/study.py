"""A study of SST, seed by seed: training, evaluation and agreement; and `make demo`.

Ours is what a study runs: one single-threaded process per core, each with a seed of its own. The peer is a loop as the
released code of snell2021 is described: packed sequences, PyTorch's default Adam, all cores for one model, results in
Python lists, agreement counted word by word. Both train the standard model, its uniform twin and the one of which only
attention learns on the same texts, and record α and β, and Δ of the standard model, before and
after training. Proxies and logistic regression are left out on both sides.

It is short: the texts are so few that training sees each as often as 1,000 steps see those of the whole corpus.
"""

import atexit
import contextlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection
from typing import Any, Literal

import numpy as np
import torch
from benchmarks.case import Case, Limit
from benchmarks.copying import with_threads
from benchmarks.products import share_of_products
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.config import ModelConfig, TrainConfig
from heedful.data.batching import batch_indices, training_batches
from heedful.data.loading import open_data
from heedful.data.ragged import Ragged
from heedful.data.vocabulary import PAD, EncodedSplit, encode
from heedful.metrics.agreement import agreement
from heedful.models.classifier import AttentionClassifier
from heedful.models.frozen import AttentionTraining, FrozenStates
from heedful.models.training import Trainable, train
from heedful.tracing.recorder import record

Kind = Literal["learned", "uniform", "only"]
KINDS: tuple[Kind, ...] = ("learned", "uniform", "only")
BATCH, STEPS = 32, 20
TRAINED, RECORDED = 128, 100  # texts: five epochs
PERCENT = 5
DEMO = ("study", "rotten-tomatoes", "--steps", "300", "--seeds", "2")
PAIRS: tuple[tuple[str, Kind, str, Kind], ...] = (
    ("alpha", "learned", "beta", "learned"),
    ("alpha", "learned", "beta", "uniform"),
    ("delta", "learned", "beta", "uniform"),
    ("alpha", "learned", "alpha", "only"),
)
Recorded = dict[str, list[list[float]]]


def cases(quick: bool) -> Iterator[Case]:
    cores, texts = os.cpu_count() or 1, sst()
    workers = [Worker(seed) for seed in range(cores)]
    check_same(texts)
    for bucketed, batches in ((True, "bucketed by length, our default"), (False, "the same as the peer's")):
        yield Case(
            work=f"SST study per seed: 3 models, {STEPS} steps (5 epochs of {TRAINED} texts), {RECORDED} texts "
            f"recorded twice, agreement; {cores} seeds on {cores} cores; batches {batches}",
            peer=f"packed sequences, default Adam, Python lists, {cores} threads",
            ours=lambda bucketed=bucketed: together(workers, bucketed),
            theirs=with_threads(cores, lambda: by_hand(texts, seed=0)),
            bar=4,
            share=1 / cores,
            account=lambda ratio, bucketed=bucketed: share_of_products(lambda: our_seed(texts, 0, bucketed), ratio),
            cpu_elsewhere=lambda: sum(worker.cpu for worker in workers),
        )


def limits(quick: bool) -> Iterator[Limit]:
    if quick:
        return
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "heedful", *DEMO, "--out", f"{folder}/demo"], check=True)
        yield Limit("`make demo` once it is installed", "s", time.perf_counter() - began, 150, "at most")


class Texts:
    """Some training and validation texts of SST, and the size of their vocabulary."""

    def __init__(self, train: EncodedSplit, recorded: EncodedSplit, words: int) -> None:
        self.train, self.recorded, self.words = train, recorded, words


def sst() -> Texts:
    encoded = encode(open_data("sst"), min_count=3)
    train, recorded = (
        split.take(np.arange(n)) for split, n in ((encoded.train, TRAINED), (encoded.validation, RECORDED))
    )
    return Texts(train, recorded, len(encoded.vocabulary))


def our_seed(texts: Texts, seed: int, bucketed: bool) -> list[float]:
    """The agreements of one seed, as a study of ours computes them."""
    config = TrainConfig(steps=STEPS, batch_size=BATCH, evaluate_at=(0, STEPS), bucketed=bucketed)
    last: dict[Kind, Mapping[str, Ragged]] = {}
    for kind in KINDS:
        torch.manual_seed(seed)
        model = AttentionClassifier(ModelConfig(), texts.words, 2, kind)
        states = FrozenStates(model, texts.recorded) if kind == "only" else None

        def see(step: int, loss: float, kind: Kind = kind, model: Any = model, states: Any = states) -> None:
            last[kind] = record(model, texts.recorded, saliency=kind == "learned", states=states).quantities

        trained: Trainable = AttentionTraining(model, texts.train) if kind == "only" else model
        train(trained, training_batches(texts.train, BATCH, seed, bucketed=bucketed), config, see)
    names = {"alpha": "alpha", "beta": "beta_logit", "delta": "delta"}
    return [float(agreement(last[k][names[u]], last[m][names[v]]).mean()) for u, k, v, m in PAIRS]


class Peer(nn.Module):
    """The same classifier over packed sequences."""

    def __init__(self, words: int, kind: Kind) -> None:
        super().__init__()
        config = ModelConfig()
        self.kind = kind
        self.embedding = nn.Embedding(words, config.embedding, padding_idx=PAD)
        self.lstm = nn.LSTM(config.embedding, config.hidden, batch_first=True, bidirectional=True)
        self.attention = nn.Sequential(
            nn.Linear(512, config.scorer_hidden), nn.ReLU(), nn.Linear(config.scorer_hidden, 1)
        )
        self.output = nn.Linear(512, 1)
        if kind == "only":
            self.requires_grad_(False)
            self.attention.requires_grad_(True)

    def forward(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        packed = nn.utils.rnn.pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        scores = hidden.new_zeros(hidden.shape[:2]) if self.kind == "uniform" else self.attention(hidden).squeeze(-1)
        padding = torch.arange(hidden.shape[1]) >= lengths[:, None]
        alpha = scores.masked_fill(padding, -torch.inf).softmax(-1)
        return self.output((alpha[..., None] * hidden).sum(1)).squeeze(-1), alpha, hidden


def by_hand(texts: Texts, seed: int) -> list[float]:
    """The agreements of one seed, by a loop."""
    last: dict[Kind, Recorded] = {}
    for kind in KINDS:
        torch.manual_seed(seed)
        model = Peer(texts.words, kind)
        optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-3)
        last[kind] = looked_at(model, texts.recorded)
        step = epoch = 0
        while step < STEPS:
            for index in batch_indices(texts.train.lengths, BATCH, seed, epoch, bucketed=False):
                tokens, lengths, labels = padded(texts.train, index.tolist())
                logits, _, _ = model(model.embedding(tokens), lengths)
                optimiser.zero_grad()
                F.binary_cross_entropy_with_logits(logits, labels).backward()
                optimiser.step()
                step += 1
            epoch += 1
        last[kind] = looked_at(model, texts.recorded)
    return [agreeing(last[k][u], last[m][v]) for u, k, v, m in PAIRS]


def looked_at(model: Peer, split: EncodedSplit) -> Recorded:
    """α, β (on the log-odds scale) and, of the standard model, Δ of every text, as lists."""
    seen: Recorded = {"alpha": [], "beta": [], "delta": []}
    for start in range(0, len(split), BATCH):
        tokens, lengths, labels = padded(split, range(start, min(start + BATCH, len(split))))
        with torch.set_grad_enabled(model.kind == "learned"):
            embedded = model.embedding(tokens).detach().requires_grad_(model.kind == "learned")
            logits, alpha, hidden = model(embedded, lengths)
            found = {"alpha": alpha, "beta": (2 * labels[:, None] - 1) * model.output(hidden).squeeze(-1)}
            if model.kind == "learned":
                loss = F.binary_cross_entropy_with_logits(logits, labels, reduction="sum")
                found["delta"] = -(embedded * torch.autograd.grad(loss, embedded)[0]).sum(-1)
        for name, values in found.items():
            seen[name] += [row[:n] for row, n in zip(values.tolist(), lengths.tolist(), strict=True)]
    return seen


def padded(split: EncodedSplit, index: Any) -> tuple[Tensor, Tensor, Tensor]:
    rows = [torch.tensor(split.text(i).tolist()) for i in index]
    labels = torch.tensor([float(split.labels[i]) for i in index])
    return nn.utils.rnn.pad_sequence(rows, True, PAD), torch.tensor([len(row) for row in rows]), labels


def agreeing(first: list[list[float]], second: list[list[float]]) -> float:
    count = 0
    for u, v in zip(first, second, strict=True):
        chosen = v[u.index(max(u))]
        count += 100 * sum(value > chosen for value in v) < PERCENT * len(v)
    return count / len(first)


def check_same(texts: Texts) -> None:
    """With the same weights, ours and the peer's α, β and Δ are the same, and so is agreement."""
    torch.manual_seed(0)
    ours, theirs = AttentionClassifier(ModelConfig(), texts.words, 2), Peer(texts.words, "learned")
    directions = ((ours.encoder.forwards[0], ""), (ours.encoder.backwards[0], "_reverse"))
    own = {f"lstm.{name}{side}": weight for lstm, side in directions for name, weight in lstm.state_dict().items()}
    own |= {f"attention.0.{name}": weight for name, weight in ours.scorer.hidden.state_dict().items()}
    own |= {f"attention.2.{name}": weight for name, weight in ours.scorer.out.state_dict().items()}
    own |= {f"output.{name}": weight for name, weight in ours.output.state_dict().items()}
    theirs.load_state_dict(own | {"embedding.weight": ours.embedding.weight})
    seen, recorded = looked_at(theirs, texts.recorded), record(ours, texts.recorded).quantities
    for name, stored in (("alpha", "alpha"), ("beta", "beta_logit"), ("delta", "delta")):
        np.testing.assert_allclose(np.concatenate(seen[name]), recorded[stored].values, rtol=1e-3, atol=1e-5)
    mean = float(agreement(recorded["alpha"], recorded["beta_logit"]).mean())
    np.testing.assert_allclose(agreeing(seen["alpha"], seen["beta"]), mean, atol=1 / RECORDED)


class Worker:
    """A process with one thread that computes one seed whenever it is asked; cpu: the seconds it has spent."""

    def __init__(self, seed: int) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, there = context.Pipe()
        self.cpu = 0.0
        process = context.Process(target=compute_on_demand, args=(there, seed), daemon=True)
        process.start()
        atexit.register(process.terminate)
        self.pipe.recv()  # it is ready

    def result(self) -> list[float]:
        agreements, seconds = self.pipe.recv()
        self.cpu += seconds
        return list(agreements)


def compute_on_demand(pipe: Connection, seed: int) -> None:
    torch.set_num_threads(1)
    texts = sst()
    pipe.send("ready")
    with contextlib.suppress(EOFError):
        while True:
            bucketed = pipe.recv()
            began = time.process_time()
            pipe.send((our_seed(texts, seed, bucketed), time.process_time() - began))


def together(workers: list[Worker], bucketed: bool) -> list[list[float]]:
    for worker in workers:
        worker.pipe.send(bucketed)
    return [worker.result() for worker in workers]
