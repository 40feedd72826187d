"""Dry run of a study: its models, and an estimate of the time and disk space that it needs.

A few real training steps and one real evaluation of each kind of model are timed on the real data, in a temporary
folder that is then deleted; the rest is arithmetic.
"""

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.config import StudyConfig
from heedful.data.corpus import Corpus
from heedful.data.parallel import ParallelCorpus
from heedful.data.subwords import EncodedPairs
from heedful.data.vocabulary import EncodedSplit
from heedful.execution.pool import Event
from heedful.storage.run_files import files_below, listed
from heedful.storage.serialization import content, digest
from heedful.studies.run_directory import ModelKind, ModelSpec, RunDirectory, model_specs, sample_indices
from heedful.studies.study import prepare_data
from heedful.studies.training import train_all

SAMPLE = 64  # validation texts to evaluate
WARM, TIMED = 2, 12  # steps before the timed ones, and timed steps
PROXY_STEPS = 60


@dataclass(frozen=True)
class PlannedModel:
    """One model to be trained: its steps at most, its evaluations, and the expected time and disk space."""

    name: str
    steps: int
    evaluations: int
    seconds: float
    disk: int  # bytes


@dataclass(frozen=True)
class StudyPlan:
    """The plan of a study. Times and sizes are estimates; a proxy that stops early takes less."""

    config: StudyConfig
    data: dict[str, Any]
    models: tuple[PlannedModel, ...]
    jobs: int
    seconds: float  # of training and recording, `jobs` models at a time
    disk: int  # bytes of the run's folder, without its page

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {**content(self), "config_digest": digest(self.config)}


@dataclass(frozen=True)
class _Cost:
    """The measured cost of one kind of model."""

    step: float
    evaluation: float  # seconds, of the whole validation split
    trace: float  # bytes of one recorded step of the whole validation split
    weights: int


def rehearse(
    config: StudyConfig,
    *,
    corpus: Corpus | ParallelCorpus | None = None,
    jobs: int | None = None,
    device: str = "auto",
) -> StudyPlan:
    """Time a few steps of each kind of model, and estimate the whole study.

    >>> plan = rehearse(study_config("reviews.csv"))           # doctest: +SKIP
    >>> plan.seconds, plan.disk                                # doctest: +SKIP
    (214.0, 61_300_000)
    """
    with tempfile.TemporaryDirectory(prefix="heedful-") as folder:
        run = RunDirectory(Path(folder) / "run")
        run.claim(_shortened(config))
        prepare_data(run, replace(config, train_sample=0), corpus)
        kept = _size(run.root)
        share = _keep_sample(run, config)
        firsts = _one_of_each(model_specs(config))
        begun = time.monotonic()
        seen: dict[str, list[tuple[float, int]]] = {spec.name: [] for spec in firsts}

        def clock(line: Event) -> None:
            if "step" in line and (line.get("loss") is not None or line.get("accuracy") is not None):
                seen[line["model"]].append((time.monotonic() - begun, line["step"]))

        train_all(run, firsts, jobs=1, device=device, on_progress=clock)
        costs = _costs(run, firsts, seen, share)
        start = max(seen[firsts[0].name][0][0] - costs[firsts[0].kind].evaluation * share, 0.0)
        data = run.data_summary()
    scheduled = replace(config, proxy=replace(config.proxy, train=config.proxy.schedule(data["train"]), epochs=None))
    models = tuple(_planned(spec, scheduled, costs) for spec in model_specs(config))
    width = min(jobs or os.cpu_count() or 1, len(models))
    return StudyPlan(
        config=config,
        data=data,
        models=models,
        jobs=width,
        seconds=start + makespan([model.seconds for model in models], width),
        disk=kept + sum(model.disk for model in models),
    )


def makespan(seconds: Sequence[float], width: int) -> float:
    """The time until the last job ends, if `width` workers take the jobs in order, each as soon as it is free.

    >>> makespan([3.0, 3.0, 2.0, 2.0], 2), makespan([5.0], 4)
    (5.0, 5.0)
    """
    free = np.zeros(width)
    for each in seconds:
        free[free.argmin()] += each
    return float(free.max())


def _shortened(config: StudyConfig) -> StudyConfig:
    """The same study with few steps. The proxy never stops early, since its patience is a share of its steps."""
    train = replace(config.train, steps=WARM + 1 + TIMED, evaluate_at=(0, WARM, WARM + 1, WARM + 1 + TIMED))
    proxy = replace(config.proxy.train, steps=PROXY_STEPS, evaluate_at=(0, WARM, WARM + 1, PROXY_STEPS))
    return replace(config, train=train, proxy=replace(config.proxy, train=proxy, epochs=None), train_sample=0)


def _keep_sample(run: RunDirectory, config: StudyConfig) -> float:
    """Keep only some validation texts; returns their share of everything that the study records."""
    load = run.pairs if run.is_translation() else run.split
    validation = load("validation")
    cells, beside = _cells(validation), _cells(load("train")).mean()
    chosen = sample_indices(len(validation), SAMPLE)
    validation.take(chosen).save(run.data_path("validation.parquet"))
    summary = run.data_summary()
    run.finish_data(run.config(), summary["digest"])
    total = cells.sum() + beside * min(config.train_sample, summary["train"])
    return float(cells[chosen].sum() / total)


def _cells(examples: EncodedSplit | EncodedPairs) -> NDArray[np.int64]:
    """The number of values of a recorded quantity, for each text or pair."""
    if isinstance(examples, EncodedSplit):
        return examples.lengths
    return examples.source.lengths * examples.target.lengths


def _one_of_each(specs: Sequence[ModelSpec]) -> list[ModelSpec]:
    """One model of each kind that costs differently; models with frozen attention cost as much as learned ones."""
    kinds: dict[ModelKind, ModelSpec] = {}
    for spec in specs:
        kinds.setdefault("standard" if spec.kind in ("uniform", "attention-only") else spec.kind, spec)
    return list(kinds.values())


def _costs(
    run: RunDirectory, specs: Sequence[ModelSpec], seen: dict[str, list[tuple[float, int]]], share: float
) -> dict[ModelKind, _Cost]:
    costs: dict[ModelKind, _Cost] = {}
    for spec in specs:
        folder, times = run.model(spec), seen[spec.name]
        traces = listed(folder.trace_folder(), "*.parquet")
        trace = sum(path.stat().st_size for path in traces) / len(traces) / share
        weights = _size(folder.root / "checkpoints")
        if spec.kind in ("logistic", "lexicon"):
            costs[spec.kind] = _Cost(0.0, folder.summary()["seconds"], trace, weights)
            continue
        (_, _), (before, _), (one, first), (end, last) = times
        step = max((end - one - (one - before)) / (last - first - 1), 0.0)
        costs[spec.kind] = _Cost(step, max(one - before - step, 0.0) / share, trace, weights)
    return costs


def _planned(spec: ModelSpec, config: StudyConfig, costs: dict[ModelKind, _Cost]) -> PlannedModel:
    cost = costs[spec.kind if spec.kind in costs else "standard"]
    if spec.kind in ("logistic", "lexicon"):
        return PlannedModel(spec.name, 0, 1, cost.evaluation, int(cost.trace * (5 if spec.kind == "lexicon" else 1)))
    train = config.proxy.train if spec.kind == "proxy" else config.train
    evaluations = len(train.evaluate_at)
    seconds = train.steps * cost.step + evaluations * cost.evaluation
    recorded = 1 if spec.kind == "proxy" else evaluations
    return PlannedModel(spec.name, train.steps, evaluations, seconds, int(recorded * cost.trace + cost.weights))


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in files_below(folder))
