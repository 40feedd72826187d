"""Copying runs: one model trained on one task by one recipe, followed until it is learned.

Two times are read off a run, both censored at the budget: until 99 % of held-out words are right, and until attention
agrees with what it is at the end of the run.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.config import TrainConfig, TranslatorConfig
from heedful.data.batching import PairBatch, copying_batches
from heedful.data.synthetic.tasks import LENGTH, generated_pairs, stream_numbers, types_of
from heedful.data.vocabulary import EOS
from heedful.execution.pool import OnEvent
from heedful.metrics.agreement import agreement
from heedful.models.guidance import AttentionGuide
from heedful.models.lexicon import Lexicon, ibm_model_1
from heedful.models.training import build_optimiser
from heedful.models.transformer import build_translator
from heedful.models.translator import PairModel
from heedful.papers.experiment import Unit
from heedful.papers.heedful2026.config import Intervention
from heedful.papers.snell2021.config import CopyingBudget
from heedful.papers.snell2021.models import HELD_OUT, LEARNED
from heedful.preflights.preflight import run_preflight
from heedful.storage.serialization import content, from_mapping

INFORMATIVE = "copy-vocab"  # what is mixed in
SHORTEST = 5  # words of a sequence at the start of a curriculum
HALF = 0.5  # accuracy below which a run is begun anew
RESTARTED, DONATED = 1_000, 500_000  # added to the seed of a run that begins anew, and of a donor
COUNTED = 2_000  # sequences from which α^IBM is counted
AGREED = 0.9  # share of output words whose attention agrees with that at the end, from which on it counts as learned


def copying_unit(
    task: str, seed: int, sizes: CopyingBudget, recipe: Intervention | None = None, model: str = ""
) -> Unit:
    """One seed's training on one task; with the plain recipe it is the same unit as without one.

    model: what the model is called in the unit's name, where it is not the LSTM of the other experiments.
    """
    arguments = {
        "task": task,
        "seed": seed,
        "steps": sizes.steps,
        "batch_size": sizes.batch_size,
        "every": sizes.evaluate_every,
        "held_out": sizes.held_out,
        "translator": content(sizes.translator),
    }
    plain, changed = content(Intervention()), content(recipe or Intervention())
    if changed != plain:
        arguments["recipe"] = changed
    changes = [f"{name}={value}" for name, value in changed.items() if value != plain[name]]
    named = [model.replace(" ", "-")] if model else []
    kind = "-".join(
        [*named, task.replace(":", "-"), f"batch={sizes.batch_size}", f"every={sizes.evaluate_every}", *changes]
    )
    return Unit(f"{kind}-{seed}", f"{__name__}:follow_copying", arguments)


def follow_copying(
    *,
    task: str,
    seed: int,
    steps: int,
    batch_size: int,
    every: int,
    held_out: int,
    translator: Mapping[str, Any],
    recipe: Mapping[str, Any] | None = None,
    device: torch.device,
    report: OnEvent,
) -> dict[str, Any]:
    """Train one copying model until 99 % of held-out words are right, or `steps` are over.

    Returns `steps`, and at each of them `accuracy` and `agreement`, of attention with that at the end of the run; and
    the steps at which accuracy (`learned`) and attention (`attended`) were there, None where not by the last. All steps
    are counted from the release of attention; `before` are those before it.
    """
    run = from_mapping(Intervention, recipe or {})
    config = from_mapping(TranslatorConfig, translator)
    config = replace(config, heads=run.heads, embedding_scale=run.embedding_scale)
    vocabulary = EOS + 1 + (max(types_of(task), types_of(INFORMATIVE)) if run.informative else types_of(task))
    batches = recipe_batches(task, batch_size, run, seed, device)
    test = held_out_batch(task, held_out, device)
    guide = AttentionGuide(_count(task), run.guide_steps) if run.guide_steps else None
    curve: dict[str, Any] = {"steps": [], "accuracy": [], "learned": None, "before": run.uniform_steps, "restarts": 0}
    maps: list[NDArray[np.floating[Any]]] = []

    def begin() -> tuple[PairModel, torch.optim.Optimizer]:
        model = _fresh(config, vocabulary, seed + RESTARTED * curve["restarts"]).to(device)
        if run.donor:
            transplant(model, _donor(config, vocabulary, task, batch_size, run, seed, device), run.donor)
        return model, build_optimiser(model, TrainConfig(steps=steps, evaluate_at=(steps,)))

    model, optimiser = begin()
    for step in range(-run.uniform_steps, steps + 1):
        model.mode = "uniform" if step < 0 else "learned"
        if step >= 0 and (step % every == 0 or step == steps):
            accuracy, alpha = evaluate(model, test)
            curve["steps"].append(step)
            curve["accuracy"].append(accuracy)
            maps.append(alpha)
            report({"step": step, "steps": steps, "accuracy": accuracy})
            if accuracy >= LEARNED:
                curve["learned"] = step
                break
            if run.restart_after and step > 0 and step % run.restart_after == 0 and accuracy < HALF:
                curve["restarts"] += 1
                model, optimiser = begin()
        if step < steps:
            optimiser.zero_grad(set_to_none=True)
            batch = next(batches)
            loss = model.loss(batch) if guide is None else guide.loss(model, batch, step)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
    return curve | attention_times(curve["steps"], maps, curve["learned"])


def recipe_batches(task: str, size: int, run: Intervention, seed: int, device: torch.device) -> Iterator[PairBatch]:
    """The batches of a run, step by step: scrambled, cut short or mixed as its recipe says."""
    own = copying_batches(task, size, seed=seed, device=device)
    mixed = max(1, round(run.informative * size)) if run.informative else 0
    others = copying_batches(INFORMATIVE, mixed, seed=seed, device=device) if mixed else None
    for step in itertools.count(-run.uniform_steps):
        batch = next(own)
        if run.scrambled and step < 0:
            batch = scrambled(batch)
        if 0 <= step < run.curriculum_steps:
            batch = shortened(batch, SHORTEST + (LENGTH - SHORTEST) * step // run.curriculum_steps)
        if others is not None:
            extra = next(others)
            batch = replace(
                batch,
                source=torch.cat([extra.source, batch.source[mixed:]]),
                target_in=torch.cat([extra.target_in, batch.target_in[mixed:]]),
                target_out=torch.cat([extra.target_out, batch.target_out[mixed:]]),
            )
        yield batch


def scrambled(batch: PairBatch) -> PairBatch:
    """Every source with the target of the sequence before it: words are the same, but none goes with any other."""
    return replace(batch, target_in=batch.target_in.roll(1, 0), target_out=batch.target_out.roll(1, 0))


def shortened(batch: PairBatch, length: int) -> PairBatch:
    """The first words of every sequence, and its end."""

    def cut(tokens: torch.Tensor) -> torch.Tensor:
        return torch.cat([tokens[:, :length], tokens[:, -1:]], dim=1)

    short, start = batch.source_mask[:, : length + 1], batch.target_in[:, : length + 1]
    return PairBatch(cut(batch.source), short, start, cut(batch.target_out), short, batch.index)


def _fresh(config: TranslatorConfig, vocabulary: int, seed: int) -> PairModel:
    torch.manual_seed(seed)
    return build_translator(config, vocabulary)


def _donor(
    config: TranslatorConfig, vocabulary: int, task: str, size: int, run: Intervention, seed: int, device: torch.device
) -> PairModel:
    """Another model, of another initialisation, trained on the same task: the uniform twin for its knowledge."""
    donor = _fresh(config, vocabulary, seed + DONATED).to(device)
    donor.mode = "learned" if run.donor == "attention" else "uniform"
    optimiser = build_optimiser(donor, TrainConfig(steps=run.donor_steps, evaluate_at=(run.donor_steps,)))
    batches = copying_batches(task, size, seed=seed + DONATED, device=device)
    for _ in range(run.donor_steps):
        optimiser.zero_grad(set_to_none=True)
        donor.loss(next(batches)).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return donor


def transplant(model: PairModel, donor: PairModel, part: str) -> None:
    """Copy the parameters of one part.

    "knowledge": the embeddings and the output network. "twin": these and the recurrent layers. "attention": the scorer.
    """
    everything = {name for name, _ in model.named_parameters()}
    attention = {name for name in everything if name.startswith("scorer.")}
    recurrent = {name for name in everything if name.startswith(("encoder.", "decoder.", "bridge."))}
    parts = {
        "knowledge": everything - attention - recurrent,
        "twin": everything - attention,
        "attention": attention,
    }
    model.load_state_dict({name: donor.state_dict()[name].clone() for name in parts[part]}, strict=False)


def _count(task: str) -> Lexicon:
    """IBM Model 1 of sequences of the task, as a study counts them; ids are those of the batches."""
    sources, targets = (side[:COUNTED].astype(np.int32) + EOS for side in next(stream_numbers(task, seed=HELD_OUT + 1)))
    return ibm_model_1(list(sources), list(targets))


def held_out_batch(task: str, size: int, device: torch.device) -> PairBatch:
    """The sequences on which a run is followed; always without noise, since noise cannot be learned."""
    clean = "copy-noise:0" if task.startswith("copy-noise") else task
    return next(copying_batches(clean, size, seed=HELD_OUT, device=device))


@torch.no_grad()
def evaluate(model: PairModel, batch: PairBatch) -> tuple[float, NDArray[np.floating[Any]]]:
    """Token accuracy under teacher forcing, and attention, averaged over heads: one row per output word."""
    output = model(batch)
    guess = model.read(output.context, output.states).argmax(-1)
    accuracy = float((guess == batch.target_out).float().mean())
    alpha = output.alpha.mean(1).flatten(0, 1).cpu().numpy()
    return accuracy, alpha


def attention_times(
    steps: Sequence[int], maps: Sequence[NDArray[np.floating[Any]]], learned: int | None
) -> dict[str, list[float] | int | None]:
    """`agreement` of each map with the last, and `attended`, the step from which on it is at least 90 %.

    Agreement is Eq. 10 of snell2021 for the first position alone: of 41 positions the top 5 % are two, and then any
    position agrees with attention to a single one. A run that did not learn has no attention to get to: it is censored,
    as its accuracy is.

    >>> flat, sharp = np.full((1, 40), 0.025), np.eye(40)[[7]]
    >>> attention_times([0, 5, 10], [flat, sharp, sharp], 10)["attended"]
    5
    """
    curve = [float(agreement(alpha, maps[-1], percent=1).mean()) for alpha in maps]
    below = [k for k, share in enumerate(curve) if share < AGREED]
    first = below[-1] + 1 if below else 0
    return {"agreement": curve, "attended": None if learned is None else steps[first]}


def statistic_unit(task: str, pairs: int) -> Unit:
    """Preflight of a task's data."""
    name = f"preflight-{task.replace(':', '-')}"
    return Unit(name, f"{__name__}:count_pairs", {"task": task, "pairs": pairs}, version=2)


def count_pairs(*, task: str, pairs: int, device: torch.device, report: OnEvent) -> dict[str, Any]:
    """The statistics of preflight, from the data alone."""
    found = run_preflight(generated_pairs(task, size=pairs))
    report({"step": 1, "steps": 1})
    statistics = {k: v for k, v in found.statistics.to_dict().items() if isinstance(v, dict)}
    assert found.candidates is not None
    return {"verdict": found.verdict, "candidates": found.candidates.value, **statistics}
