"""Copying (snell2021 §3.3, §5.2, §6.2): how long it takes to learn, and on what that depends.

The model and its training are those of the released code: one-layer LSTMs of width 256, bilinear attention, a tanh
layer, embeddings N(0, 1), fresh sequences at every step, Adam 1e-3. A run ends when 99 % of held-out words are right,
or at the budget, fixed beforehand; a run that does not get there is *censored*, not failed for ever.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

from heedful.config import ModelConfig, StudyConfig, TrainConfig, TranslatorConfig
from heedful.data.batching import Batch, PairBatch, collate, copying_batches, training_batches
from heedful.data.ragged import Ragged
from heedful.data.subwords import EncodedPairs
from heedful.data.synthetic.tasks import LENGTH, TYPES, stream_texts
from heedful.data.vocabulary import EOS
from heedful.execution.worker import Report
from heedful.metrics.agreement import agreement, random_agreement, shuffled_agreement
from heedful.metrics.bleu import corpus_bleu
from heedful.metrics.statistics import Estimate
from heedful.models.classifier import AttentionClassifier, lexical_probe
from heedful.models.training import build_optimiser, train
from heedful.models.translator import Translator, translate, translator_probe
from heedful.papers.units import Unit
from heedful.storage.serialization import content, from_mapping
from heedful.studies.run_directory import RunDirectory
from heedful.theory.optimal import optimal_attention

# The words of each task, and no others: with 20 types that never occur, copying 40 of 60 words takes about 110 steps
# in place of 50.
WORDS = {"copy-permutation": LENGTH, "copy-mixture": 2 * LENGTH, "copy-vocab": TYPES, "permute": TYPES}
HELD_OUT = 1_000_003  # seed of the sequences that accuracy is measured on
LEARNED = 0.99
COPYING = TranslatorConfig(layers=1, bidirectional=False, attention="bilinear", output="tanh", dropout=0.0)


@dataclass(frozen=True)
class CopyingBudget:
    """Sizes of the copying experiments."""

    seeds: int
    steps: int
    mixture_seeds: int
    permute_seeds: int
    head_candidates: int
    head_runs: int
    head_steps: int
    heads: int = 8
    batch_size: int = 64
    evaluate_every: int = 10
    held_out: int = 64
    translator: TranslatorConfig = COPYING


_TINY = TranslatorConfig(
    embedding=16, hidden=16, layers=1, bidirectional=False, attention="bilinear", output="tanh", dropout=0.0
)
COPYING_BUDGETS = {
    "smoke": CopyingBudget(2, 4, 2, 2, 3, 2, 4, heads=2, batch_size=4, evaluate_every=2, held_out=4, translator=_TINY),
    "quick": CopyingBudget(20, 200, 8, 4, 10, 4, 120),
    "paper": CopyingBudget(20, 1500, 20, 20, 40, 20, 400, batch_size=128),
}


def curve_unit(task: str, seed: int, sizes: CopyingBudget) -> Unit:
    """One seed's training on one task."""
    return Unit(f"{task}-{seed}", f"{__name__}:learning_curve", _arguments(task, sizes, sizes.steps) | {"seed": seed})


def head_unit(name: str, heads: Sequence[int], order: int, sizes: CopyingBudget) -> Unit:
    """Training on permutations with heads of these initialisations; the rest of the model is the same for all.

    order: seed of the order of the data.
    """
    arguments = _arguments("copy-permutation", sizes, sizes.head_steps)
    return Unit(name, f"{__name__}:learning_curve", arguments | {"seed": 0, "heads": list(heads), "order": order})


def _arguments(task: str, sizes: CopyingBudget, steps: int) -> dict[str, Any]:
    return {
        "task": task,
        "steps": steps,
        "batch_size": sizes.batch_size,
        "every": sizes.evaluate_every,
        "held_out": sizes.held_out,
        "translator": content(sizes.translator),
    }


def learning_curve(
    *,
    task: str,
    seed: int,
    steps: int,
    batch_size: int,
    every: int,
    held_out: int,
    translator: Mapping[str, Any],
    heads: Sequence[int] | None = None,
    order: int | None = None,
    device: torch.device,
    report: Report,
) -> dict[str, Any]:
    """Token accuracy on held-out sequences every `every` steps until it is learned or `steps` are over.

    Returns `steps`, `accuracy` and `learned`, the step at which 99 % was reached (None: not by the last).
    """
    vocabulary = EOS + 1 + WORDS[task]
    model = build_model(from_mapping(TranslatorConfig, translator), vocabulary, seed, heads).to(device)
    batches = copying_batches(task, batch_size, seed=seed if order is None else order, device=device)
    test = next(copying_batches(task, held_out, seed=HELD_OUT, device=device))
    optimiser = build_optimiser(model, TrainConfig(steps=steps, evaluate_at=(steps,)))
    seen: dict[str, Any] = {"steps": [], "accuracy": [], "learned": None}
    for step in range(steps + 1):
        if step % every == 0 or step == steps:
            seen["steps"].append(step)
            seen["accuracy"].append(_accuracy(model, test))
            report({"step": step, "steps": steps, "accuracy": seen["accuracy"][-1]})
            if seen["accuracy"][-1] >= LEARNED:
                return seen | {"learned": step}
        if step < steps:
            optimiser.zero_grad(set_to_none=True)
            model.loss(next(batches)).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return seen


def build_model(config: TranslatorConfig, vocabulary: int, seed: int, heads: Sequence[int] | None) -> Translator:
    """A copying model; with `heads`, one head for each of these seeds, everything else as `seed` alone makes it."""
    torch.manual_seed(seed)
    base = Translator(config, vocabulary)
    if heads is None:
        return base
    model = Translator(replace(config, heads=len(heads)), vocabulary)
    shared = {name: tensor for name, tensor in base.state_dict().items() if not name.startswith("scorer.")}
    model.load_state_dict(shared, strict=False)
    for weight, head in zip(model.scorer.weights, heads, strict=True):
        torch.manual_seed(head)
        weight.reset_parameters()  # type: ignore[operator]
    return model


@torch.no_grad()
def _accuracy(model: Translator, batch: PairBatch) -> float:
    output = model(batch)
    guess = model.read(output.context, output.states).argmax(-1)
    return float((guess == batch.target_out).float().mean())


def learning_times(curves: Sequence[Mapping[str, Any]], steps: int) -> stats.CensoredData:
    """Steps to 99 % of each run, right-censored at the budget."""
    times = [curve["learned"] if curve["learned"] is not None else steps for curve in curves]
    return stats.CensoredData.right_censored(times, [curve["learned"] is None for curve in curves])


def median_time(curves: Sequence[Mapping[str, Any]]) -> float:
    """The median step to 99 %; NaN where fewer than half of the runs got there."""
    times = sorted(curve["learned"] for curve in curves if curve["learned"] is not None)
    half = (len(curves) + 1) // 2
    return float(times[half - 1]) if len(times) >= half else float("nan")


def share_learned(curves: Sequence[Mapping[str, Any]]) -> Estimate:
    """How many of the runs got to 99 %, with Wilson's 95 % interval.

    >>> share_learned([{"learned": 40}, {"learned": None}]).value
    0.5
    """
    reached = sum(curve["learned"] is not None for curve in curves)
    interval = stats.binomtest(reached, len(curves)).proportion_ci(method="wilson")
    return Estimate(reached / len(curves), float(interval.low), float(interval.high), len(curves))


def slower(first: Sequence[Mapping[str, Any]], second: Sequence[Mapping[str, Any]], steps: int) -> tuple[float, float]:
    """Log-rank test that the first runs take longer to learn than the second: z, above 0 if so, and one-sided p.

    Both are NaN where no run of either learned: nothing happened that could be compared.
    """
    if not any(curve["learned"] is not None for curve in (*first, *second)):
        return float("nan"), float("nan")
    with np.errstate(invalid="ignore", divide="ignore"):
        test = stats.logrank(learning_times(first, steps), learning_times(second, steps), alternative="less")
    return -float(test.statistic), float(test.pvalue)  # scipy counts what was learned, not what took long


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


KEYWORD_BUDGETS = {
    "smoke": KeywordBudget(2, 4, 2, batch_size=4, held_out=8, model=ModelConfig(8, hidden=8, scorer_hidden=8)),
    "quick": KeywordBudget(5, 120, 10),
    "paper": KeywordBudget(20, 500, 10, held_out=1000),
}


def keyword_unit(seed: int, sizes: KeywordBudget) -> Unit:
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


@dataclass(frozen=True)
class LinearBudget:
    """Sizes of the linear translator's experiment; its data are those of the study of the same corpus."""

    seeds: int
    sentences: int  # validation sentences whose words' optimal attention is found
    steps: int | None = None  # None: as the study's translator


LINEAR_BUDGETS = {
    "smoke": LinearBudget(2, 3),
    "quick": LinearBudget(5, 30, steps=400),
    "paper": LinearBudget(5, 200),
}


def linear_unit(seed: int, study: StudyConfig, run: RunDirectory, sizes: LinearBudget) -> Unit:
    """One seed's training and its optimal attention."""
    arguments = {
        "seed": seed,
        "data": study.data,
        "translator": content(replace(study.translator, output="linear")),
        "train": content(study.train.changed(steps=sizes.steps)),
        "sentences": sizes.sentences,
    }
    return Unit(f"linear-{seed}", f"{__name__}:optimal_of_trained", arguments, {"run": str(run.root)})


def optimal_of_trained(
    *,
    seed: int,
    data: str,
    translator: Mapping[str, Any],
    train: Mapping[str, Any],
    sentences: int,
    run: str,
    device: torch.device,
    report: Report,
) -> dict[str, Any]:
    """Train one linear translator on the study's data; compare α^opt with β and with the α that was learned."""
    source, tokeniser = RunDirectory(Path(run)), RunDirectory(Path(run)).tokeniser()
    validation = source.pairs("validation")
    chosen = validation.take(np.arange(min(sentences, len(validation))))
    torch.manual_seed(seed)
    model = Translator(from_mapping(TranslatorConfig, translator), len(tokeniser)).to(device)
    _train(model, source, from_mapping(TrainConfig, train), seed, device, report)
    report({"step": 1, "steps": 1})
    rows = _rows(model, chosen, device)
    opt, beta, alpha, text = rows["alpha_opt"], rows["beta"], rows["alpha"], rows["text"]
    output = np.concatenate([np.arange(n) for n in np.bincount(text)])
    said = [tokeniser.decode(ids) for ids in translate(model, chosen)]
    return {
        "text": text.tolist(),
        "agreement": agreement(opt, beta).tolist(),
        "shuffle": [None if np.isnan(s) else s for s in shuffled_agreement(opt, beta, position=output, text=text)],
        "learned_agreement": agreement(opt, alpha).tolist(),
        "random": random_agreement(beta.lengths),
        "gap": float(rows["gap"].max()),
        "accuracy": float(rows["correct"].mean()),
        "bleu": corpus_bleu(said, [tokeniser.decode(target) for target in chosen.target]).score,
    }


def _train(
    model: Translator,
    run: RunDirectory,
    config: TrainConfig,
    seed: int,
    device: torch.device,
    report: Report,
) -> None:
    def at_step(step: int, loss: float) -> None:
        report({"step": step, "steps": config.steps, **({} if np.isnan(loss) else {"loss": loss})})

    train(model, training_batches(run.pairs("train"), config.batch_size, seed, device=device), config, at_step)
    model.eval()


@torch.no_grad()
def _rows(model: Translator, pairs: EncodedPairs, device: torch.device) -> dict[str, Any]:
    """α^opt, β and α of every output word, sentence by sentence."""
    found: dict[str, list[Any]] = {name: [] for name in ("alpha_opt", "beta", "alpha", "text", "gap", "correct")}
    for m in range(len(pairs)):
        batch = collate(pairs, np.array([m]), device)
        output = model(batch)
        words = batch.target_out[0].cpu().numpy()
        gamma, gamma_state = (model.output(x[0]).double().cpu().numpy() for x in (output.hidden, output.states))
        best = optimal_attention(np.broadcast_to(gamma, (len(words), *gamma.shape)), gamma_state, words)
        found["alpha_opt"] += list(best.alpha)
        found["beta"] += list(translator_probe(model, output.hidden, output.states, batch.target_out)[0].cpu().numpy())
        found["alpha"] += list(output.alpha[0, 0].cpu().numpy())
        found["text"] += [m] * len(words)
        found["gap"] += best.gap.tolist()
        logits = model.read(output.context, output.states)[0]
        found["correct"] += (logits.argmax(-1) == batch.target_out[0]).tolist()
    arrays = {name: np.array(found[name]) for name in ("text", "gap", "correct")}
    return arrays | {name: Ragged.of(found[name]) for name in ("alpha_opt", "beta", "alpha")}
