"""Models that snell2021 trains beside its studies: copying, the keyword task, and the linear translator of A.1.

Copying (§3.3, §5.2, §6.2): model and training are those of the released code: one-layer LSTMs of width 256, bilinear
attention, a tanh layer, embeddings N(0, 1), fresh sequences at every step, Adam 1e-3. A run ends when 99 % of held-out
words are right, or at the budget, fixed beforehand; a run that does not get there is *censored*, not a failure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import special, stats

from heedful.config import EncoderName, ModelConfig, StudyConfig, TrainConfig, TranslatorConfig
from heedful.data.batching import Batch, PairBatch, collate, copying_batches, training_batches
from heedful.data.ragged import Ragged
from heedful.data.subwords import EncodedPairs
from heedful.data.synthetic.tasks import LENGTH, TYPES, stream_texts
from heedful.data.vocabulary import EOS
from heedful.execution.pool import OnEvent
from heedful.metrics.agreement import agreement, random_agreement, shuffled_agreement
from heedful.metrics.statistics import Estimate
from heedful.metrics.translation_quality import corpus_bleu
from heedful.models.classifier import AttentionClassifier, lexical_probe
from heedful.models.training import build_optimiser
from heedful.models.training import train as train_model
from heedful.models.translator import Translator, translate, translator_probe
from heedful.papers.experiment import Answer, Unit, study_folder
from heedful.papers.snell2021.config import CopyingBudget, KeywordBudget, LinearBudget
from heedful.storage.serialization import content, from_mapping
from heedful.studies.run_directory import RunDirectory
from heedful.theory.optimal import optimal_attention

# The words of each task, and no others: with 20 types that never occur, copying 40 of 60 words takes about 110 steps
# in place of 50.
WORDS = {"copy-permutation": LENGTH, "copy-mixture": 2 * LENGTH, "copy-vocab": TYPES, "permute": TYPES}
HELD_OUT = 1_000_003  # seed of the sequences that accuracy is measured on
LEARNED = 0.99
GOOD, BAD = 0.95, 0.6  # accuracies that make a single head good, and below which it is bad
# Where γ is read in the keyword task.
PLACES = {"keyword": "γ at the keyword", "next": "γ one position later", "mean": "γ on average", "last": "γ at the end"}


def curve_unit(task: str, seed: int, sizes: CopyingBudget) -> Unit:
    """One seed's training on one task."""
    return _unit(f"{task}-{seed}", task, sizes, sizes.steps, seed=seed)


def head_unit(name: str, variant: str, heads: Sequence[int], order: int, sizes: CopyingBudget) -> Unit:
    """Training on permutations with one head for each of these seeds; the rest of the model is the same for all.

    variant: a name in `sizes.variants`. order: seed of the order of the data.
    """
    chosen = replace(sizes, translator=sizes.variants[variant])
    return _unit(name, "copy-permutation", chosen, sizes.head_steps, seed=0, heads=list(heads), order=order)


def candidate_unit(variant: str, head: int, sizes: CopyingBudget) -> Unit:
    """Which kind of head the initialisation of this seed is."""
    unit = head_unit(f"head-{variant}-{head}", variant, [head], 0, sizes)
    arguments = {name: value for name, value in unit.arguments.items() if name not in ("order", "heads", "task")}
    return Unit(
        unit.name, f"{__name__}:head_kind", arguments | {"head": head, "orders": list(range(sizes.head_orders))}
    )


def _unit(name: str, task: str, sizes: CopyingBudget, steps: int, **more: Any) -> Unit:
    arguments = {
        "task": task,
        "steps": steps,
        "batch_size": sizes.batch_size,
        "every": sizes.evaluate_every,
        "held_out": sizes.held_out,
        "translator": content(sizes.translator),
    }
    return Unit(name, f"{__name__}:learning_curve", arguments | more)


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
    enough: float | None = None,
    device: torch.device,
    report: OnEvent,
) -> dict[str, Any]:
    """Token accuracy on held-out sequences every `every` steps until it is learned or `steps` are over.

    enough: the accuracy that counts as learned, `LEARNED` by default. Returns `steps`, `accuracy` and `learned`, the
    step at which it was reached (None: not by the last).
    """
    vocabulary, goal = EOS + 1 + WORDS[task], LEARNED if enough is None else enough
    model = build_model(from_mapping(TranslatorConfig, translator), vocabulary, seed, heads).to(device)
    batches = copying_batches(task, batch_size, seed=seed if order is None else order, device=device)
    test = next(copying_batches(task, held_out, seed=HELD_OUT, device=device))
    optimiser = build_optimiser(model, TrainConfig(steps=steps, evaluate_at=(steps,)))
    curve: dict[str, Any] = {"steps": [], "accuracy": [], "learned": None}
    for step in range(steps + 1):
        if step % every == 0 or step == steps:
            curve["steps"].append(step)
            curve["accuracy"].append(_accuracy(model, test))
            report({"step": step, "steps": steps, "accuracy": curve["accuracy"][-1]})
            if curve["accuracy"][-1] >= goal:
                return curve | {"learned": step}
        if step < steps:
            optimiser.zero_grad(set_to_none=True)
            model.loss(next(batches)).backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return curve


def head_kind(*, head: int, orders: Sequence[int], **arguments: Any) -> dict[str, Any]:
    """`kind`: good or bad if a model with this head alone is so in every order of the data, else None.

    Good is 95 % within the steps, bad below 60 % at their end. The first order that differs ends the trial; `accuracy`
    has the last one of each that was tried.
    """
    kinds: list[str | None] = []
    accuracy = []
    for order in orders:
        curve = learning_curve(task="copy-permutation", heads=[head], order=order, enough=GOOD, **arguments)
        accuracy.append(curve["accuracy"][-1])
        kinds.append("good" if curve["learned"] is not None else "bad" if accuracy[-1] < BAD else None)
        if kinds[-1] is None or kinds[-1] != kinds[0]:
            return {"kind": None, "accuracy": accuracy}
    return {"kind": kinds[0], "accuracy": accuracy}


def build_model(config: TranslatorConfig, vocabulary: int, seed: int, heads: Sequence[int] | None) -> Translator:
    """A copying model; with `heads`, one head for each of these seeds, everything else as `seed` alone makes it."""
    torch.manual_seed(seed)
    base = Translator(config, vocabulary)
    if heads is None:
        return base
    model = Translator(replace(config, heads=len(heads)), vocabulary)
    shared = {name: tensor for name, tensor in base.state_dict().items() if not name.startswith(("scorer.", "values."))}
    model.load_state_dict(shared, strict=False)
    for k, head in enumerate(heads):
        torch.manual_seed(head)
        for parts in (model.scorer.weights, model.values):
            if len(parts):
                parts[k].reset_parameters()  # type: ignore[operator]
    return model


@torch.no_grad()
def _accuracy(model: Translator, batch: PairBatch) -> float:
    output = model(batch)
    guess = model.read(output.context, output.states).argmax(-1)
    return float((guess == batch.target_out).float().mean())


def median_time(curves: Sequence[Answer]) -> float:
    """The median step to 99 %; NaN where fewer than half of the runs got there."""
    times = sorted(curve["learned"] for curve in curves if curve["learned"] is not None)
    half = (len(curves) + 1) // 2
    return float(times[half - 1]) if len(times) >= half else float("nan")


def share_learned(curves: Sequence[Answer]) -> Estimate:
    """The share of runs that got to 99 %, with Wilson's 95 % interval.

    >>> share_learned([{"learned": 40}, {"learned": None}]).value
    0.5
    """
    reached = sum(curve["learned"] is not None for curve in curves)
    interval = stats.binomtest(reached, len(curves)).proportion_ci(method="wilson")
    return Estimate(reached / len(curves), float(interval.low), float(interval.high), len(curves))


def slower(first: Sequence[Answer], second: Sequence[Answer], steps: int) -> tuple[float, float]:
    """Log-rank test that the first runs take longer to learn than the second: z, above 0 if so, and one-sided p.

    Runs that did not learn are right-censored at the budget. Both are NaN where no run of either learned: there is
    nothing to compare.
    """
    if not any(curve["learned"] is not None for curve in (*first, *second)):
        return float("nan"), float("nan")
    times = []
    for curves in (first, second):
        censored = [curve["learned"] is None for curve in curves]
        reached = [steps if curve["learned"] is None else curve["learned"] for curve in curves]
        times.append(stats.CensoredData.right_censored(reached, censored))
    with np.errstate(invalid="ignore", divide="ignore"):
        test = stats.logrank(*times, alternative="less")
    return -float(test.statistic), float(test.pvalue)  # scipy compares how often runs learn, not how long they take


def keyword_unit(encoder: EncoderName, seed: int, sizes: KeywordBudget) -> Unit:
    """One seed's training of one encoder on the keyword task under uniform attention."""
    arguments = {name: content(getattr(sizes, name)) for name in ("steps", "batch_size", "held_out")}
    arguments |= {"model": content(replace(sizes.model, encoder=encoder))}
    arguments |= {"seed": seed, "evaluate_at": list(sizes.evaluate_at)}
    return Unit(f"keyword-{encoder}-{seed}", f"{__name__}:follow_keyword", arguments)


def follow_keyword(
    *,
    seed: int,
    steps: int,
    evaluate_at: list[int],
    batch_size: int,
    held_out: int,
    model: Mapping[str, Any],
    device: torch.device,
    report: OnEvent,
) -> dict[str, Any]:
    """Train one uniform model; returns `steps` and the mean γ at each of `PLACES` at each of them."""
    torch.manual_seed(seed)
    classifier = AttentionClassifier(from_mapping(ModelConfig, model), EOS + 1 + LENGTH, 2, "uniform").to(device)
    test = next(_keyword_batches(held_out, HELD_OUT, device))
    seen: dict[str, Any] = {"steps": [], **{place: [] for place in PLACES}}

    def at_step(step: int, loss: float) -> None:
        seen["steps"].append(step)
        for place, value in gamma_by_place(classifier, test).items():
            seen[place].append(value)
        report({"step": step, "steps": steps})

    config = TrainConfig(steps=steps, batch_size=batch_size, evaluate_at=tuple(evaluate_at))
    train_model(classifier, _keyword_batches(batch_size, seed, device), config, at_step)
    return seen


@torch.no_grad()
def gamma_by_place(model: AttentionClassifier, batch: Batch) -> dict[str, float]:
    """Mean γ over the positive sequences whose keyword is not their last word, at each of `PLACES`."""
    output = model.from_embeddings(model.embedding(batch.tokens), batch.mask)
    gamma = lexical_probe(model, output.hidden, batch.labels).cpu().numpy()
    is_key = (batch.tokens == EOS + 1).cpu().numpy()
    rows = np.flatnonzero(is_key.any(axis=1) & ~is_key[:, -1])
    keyword, chosen = is_key[rows].argmax(axis=1), gamma[rows]
    each = {
        "keyword": gamma[rows, keyword],
        "next": gamma[rows, keyword + 1],
        "mean": chosen.mean(axis=1),
        "last": chosen[:, -1],
    }
    return {place: float(values.mean()) for place, values in each.items()}


def _keyword_batches(size: int, seed: int, device: torch.device) -> Iterator[Batch]:
    stream = stream_texts("keyword", seed=seed)
    while True:
        texts, labels = zip(*islice(stream, size), strict=True)
        tokens = torch.tensor([[EOS + int(word) for word in text.split()] for text in texts], device=device)
        mask = torch.ones_like(tokens, dtype=torch.bool)
        yield Batch(tokens, mask, torch.tensor(labels, device=device), np.arange(size))


def linear_unit(seed: int, study: StudyConfig, sizes: LinearBudget) -> Unit:
    """One seed's training of the linear translator on the data of a study, and its optimal attention."""
    arguments = {
        "seed": seed,
        "run": study_folder(study),
        "translator": content(replace(study.translator, output="linear")),
        "train": content(study.train.changed(steps=sizes.steps)),
        "sentences": sizes.sentences,
    }
    return Unit(f"linear-{seed}", f"{__name__}:optimal_of_trained", arguments, paths=("run",), study=study, part="data")


def optimal_of_trained(
    *,
    seed: int,
    run: str,
    translator: Mapping[str, Any],
    train: Mapping[str, Any],
    sentences: int,
    device: torch.device,
    report: OnEvent,
) -> dict[str, Any]:
    """Train one linear translator on a study's data; compare α^opt with β and with the α that was learned."""
    source = RunDirectory(Path(run))
    tokeniser, validation = source.tokeniser(), source.pairs("validation")
    chosen = validation.take(np.arange(min(sentences, len(validation))))
    torch.manual_seed(seed)
    model = Translator(from_mapping(TranslatorConfig, translator), len(tokeniser)).to(device)
    config = from_mapping(TrainConfig, train)

    def at_step(step: int, loss: float) -> None:
        report({"step": step, "steps": config.steps, **({} if np.isnan(loss) else {"loss": loss})})

    batches = training_batches(source.pairs("train"), config.batch_size, seed, device=device)
    model.eval()
    untrained = _rows(model, chosen, device)
    model.train()
    train_model(model, batches, config, at_step)
    model.eval()
    report({"step": 1, "steps": 1})
    rows = _rows(model, chosen, device)
    random = _rows(model, chosen, device, np.random.default_rng(seed))
    opt, beta, alpha, text = rows["alpha_opt"], rows["beta"], rows["alpha"], rows["text"]
    output = np.concatenate([np.arange(n) for n in np.bincount(text)])
    translations = [tokeniser.decode(ids) for ids in translate(model, chosen)]
    return {
        "text": text.tolist(),
        "agreement": agreement(opt, beta).tolist(),
        "shuffle": [None if np.isnan(s) else s for s in shuffled_agreement(opt, beta, position=output, text=text)],
        "learned_agreement": agreement(opt, alpha).tolist(),
        "untrained": agreement(untrained["alpha_opt"], untrained["beta"]).tolist(),
        "random_logits": agreement(random["alpha_opt"], random["beta"]).tolist(),
        "random": random_agreement(beta.lengths),
        "gap": float(rows["gap"].max()),
        "accuracy": float(rows["correct"].mean()),
        "bleu": corpus_bleu(translations, [tokeniser.decode(target) for target in chosen.target]).score,
    }


@torch.no_grad()
def _rows(
    model: Translator, pairs: EncodedPairs, device: torch.device, random: np.random.Generator | None = None
) -> dict[str, Any]:
    """α^opt, β and α of every output word, sentence by sentence.

    random: draw the logits of α^opt and β, normal with the spread of the model's: the control without any structure.
    """
    rows: dict[str, list[Any]] = {name: [] for name in ("alpha_opt", "beta", "alpha", "text", "gap", "correct")}
    for m in range(len(pairs)):
        batch = collate(pairs, np.array([m]), device)
        output = model(batch)
        words = batch.target_out[0].cpu().numpy()
        single = model.pool_one(output.hidden)
        gamma, gamma_state = (model.output(x[0]).double().cpu().numpy() for x in (single, output.states))
        beta = translator_probe(model, output.hidden, output.states, batch.target_out)[0].cpu().numpy()
        if random is not None:
            gamma, gamma_state = (random.normal(0.0, logits.std(), logits.shape) for logits in (gamma, gamma_state))
            alone = special.log_softmax(gamma[None] + gamma_state[:, None], axis=-1)
            beta = alone[np.arange(len(words)), :, words]
        best = optimal_attention(np.broadcast_to(gamma, (len(words), *gamma.shape)), gamma_state, words)
        rows["alpha_opt"] += list(best.alpha)
        rows["beta"] += list(beta)
        rows["alpha"] += list(output.alpha[0, 0].cpu().numpy())
        rows["text"] += [m] * len(words)
        rows["gap"] += best.gap.tolist()
        logits = model.read(output.context, output.states)[0]
        rows["correct"] += (logits.argmax(-1) == batch.target_out[0]).tolist()
    arrays = {name: np.array(rows[name]) for name in ("text", "gap", "correct")}
    return arrays | {name: Ragged.of(rows[name]) for name in ("alpha_opt", "beta", "alpha")}
