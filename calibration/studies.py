"""Error rates of studies: verdicts on corpora of known truth, coverage of intervals, and noise through the analysis.

Four measurements, each made of steps that are cached, so that an interrupted calibration continues:

1. Every corpus of `corpora.KNOWN` is studied several times, with other data and other seeds each time.
2. Many seeds are trained on one corpus with many validation texts. Their mean on all texts is the population value.
   Groups of five seeds, each with its own sample of texts, should cover it in 95 % of cases.
3. Attention and probes that have nothing to do with each other go through the analysis of a study thousands of times.
4. Attention is trained on frozen words of many seeds: where does it form? It explains answers to the last question.

`study_rows` shows them on the page.
"""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from calibration.corpora import KNOWN, PAIRS, PAIRS_VALIDATION, QUESTIONS, TRAIN, VALIDATION, polar_words
from heedful.api import study_config
from heedful.config import StudyConfig
from heedful.data.ragged import Ragged
from heedful.execution.pool import Job, OnEvent, run_jobs
from heedful.metrics.agreement import first_maximum
from heedful.metrics.statistics import Estimate
from heedful.storage.serialization import digest
from heedful.storage.step_cache import StepCache
from heedful.studies.analysis import Recordings
from heedful.studies.evidence import evidence_of
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory, model_specs
from heedful.studies.study import open_study, run_study
from heedful.studies.training import train_all, train_model
from heedful.studies.verdict import answer_from

RULE_SETS = (0, 1, 2)  # data and seeds that were seen while the rules of the verdict were made
HELD_OUT_SETS = tuple(range(100, 108))  # data and seeds that no rule was made with
SEEDS = 5  # of each study
COVERAGE_SEEDS, COVERAGE_TEXTS, GROUP_TEXTS = 40, 1600, 200
RESAMPLED, CHUNK = 100, 20  # groups drawn at random, and how many one job measures
REPETITIONS, NOISE_CHUNK = 1000, 125
NOISE_TEXTS, NOISE_STEPS = 60, 10
FROZEN_SEEDS = 20
KEYWORDS = {"one-keyword": ("key",), "two-keywords": ("plus", "minus")}
MEASURED = (("A(alpha,beta)", "own"), ("A(alpha,beta)", "cross"), ("A(alpha,beta_uf)", "cross"))
NOISES = ("unrelated", "strength")

_TRAIN = {"steps": 150, "learning_rate": 0.01, "evaluate_at": (0, 10, 25, 50, 100, 150)}
_PROXY = {"train": {"steps": 200, "learning_rate": 0.01, "evaluate_at": (0, 50, 100, 150, 200)}}
_PAIRS_TRAIN = {"steps": 300, "learning_rate": 0.01, "evaluate_at": (0, 50, 100, 200, 300)}


def settings(name: str, seeds: Sequence[int]) -> StudyConfig:
    """The settings of a study of a corpus: the model of budget `smoke`, and enough steps to learn."""
    translating = name in KNOWN and KNOWN[name].translation
    config = study_config(
        name,
        budget="smoke",
        task="translation" if translating else "classification",
        seeds=tuple(seeds),
        min_count=1,
        train=_PAIRS_TRAIN if translating else _TRAIN,
        proxy=_PROXY,
    )
    return replace(config, max_train=None, max_validation=None)


def measure(
    work: Path, jobs: int, *, short: bool = False, on_event: OnEvent = lambda event: None, names: Sequence[str] = ()
) -> dict[str, Any]:
    """All measurements, or a short version of them; finished steps in `work` are kept.

    names: only the studies of these corpora.
    """
    steps, seconds = StepCache(work / "steps"), 0.0

    def run(waiting: Sequence[Job]) -> list[dict[str, Any]]:
        """The answers of jobs, each computed once."""
        nonlocal seconds
        keys = [f"{job.name}-{_identity(job)}" for job in waiting]
        missing = [
            replace(job, arguments={**job.arguments, "step": (steps.folder, key)})
            for job, key in zip(waiting, keys, strict=True)
            if steps.get(key) is None
        ]
        run_jobs(missing, workers=jobs, on_event=on_event)
        answers = [answer for key in keys if (answer := steps.get(key)) is not None]
        seconds += sum(answer.pop("seconds") for answer in answers)
        return answers

    sets = RULE_SETS[:1] if short else (*RULE_SETS, *HELD_OUT_SETS)
    studies = run(
        [
            Job(f"{name}-{k}", "calibration.studies:study_job", {"name": name, "data": k, "work": str(work)})
            for k in sets
            for name in names or tuple(KNOWN)
        ]
    )
    report: dict[str, Any] = {
        "sizes": measured_sizes(),
        "studies": studies,
    }
    if not names:
        report["noise"] = run(_noise_jobs(NOISE_CHUNK // 5 if short else REPETITIONS))
        report["frozen"] = run(_frozen_jobs(work, 4 if short else FROZEN_SEEDS))
        report["coverage"] = _coverage(work, jobs, run, on_event, short=short)
        seconds += report["coverage"].pop("seconds")
    return {**report, "cpu_seconds": round(seconds)}


def _identity(job: Job) -> str:
    """A digest of everything that decides the answer of a job: its arguments, and the settings of its studies."""
    decisive = {name: value for name, value in job.arguments.items() if name not in ("work", "run")}
    corpus = str(job.arguments.get("name", "polar-words"))
    return digest({**decisive, "settings": digest(settings(corpus, range(SEEDS)))})[:12]


def cached(function: Callable[..., dict[str, Any]]) -> Callable[..., None]:
    """A job that stores its answer, with its seconds of CPU time, under a key of a `StepCache`."""

    def job(*, step: tuple[Path, str], report: OnEvent, **arguments: Any) -> None:
        started = time.process_time()
        answer = function(**arguments, report=report)
        StepCache(step[0]).put(step[1], {**answer, "seconds": round(time.process_time() - started, 1)})

    return job


def _study(*, name: str, data: int, work: str, report: OnEvent) -> dict[str, Any]:
    """One study of a known corpus, in this process, and what its verdict says."""
    known, seeds = KNOWN[name], [SEEDS * data + k for k in range(SEEDS)]
    result = run_study(
        settings(name, seeds),
        Path(work) / "studies" / f"{name}-{data}",
        corpus=known.make(data),
        train=_train_here,
        device="cpu",
        on_progress=report,
    )
    return {"corpus": name, "set": data, **summary(result)}


study_job = cached(_study)


def _train_here(run: RunDirectory, specs: Sequence[ModelSpec], *, on_progress: OnEvent, **_: Any) -> None:
    for spec in specs:
        train_model(run, spec, device="cpu", report=on_progress)


def summary(result: StudyResult) -> dict[str, Any]:
    """What the verdict of a study says, as plain values."""
    gate = result.verdict.gate
    assert gate is not None
    return {
        "status": result.verdict.status,
        "passed": gate.passed,
        "accuracy": gate.accuracy.value,
        "baseline": gate.baseline,
        "bleu": gate.bleu,
        "answers": {name: each.answer for name, each in zip(QUESTIONS, result.verdict.questions, strict=True)},
    }


class SampledRecordings(Recordings):
    """Some seeds of a study and some of its texts: a smaller study, drawn from a larger one."""

    def __init__(self, whole: Recordings, seeds: Sequence[int], rows: Sequence[int] | None = None) -> None:
        taken = np.arange(len(whole.example)) if rows is None else np.asarray(rows, dtype=np.int64)
        self.run, self.split, self.translating, self.labels = whole.run, whole.split, whole.translating, whole.labels
        self.seeds, self.trace = tuple(seeds), whole.trace
        self.quantity = cache(lambda kind, seed, name, step: whole.quantity(kind, seed, name, step).take(taken))
        self.example, self.output, self.lengths = whole.example[taken], whole.output[taken], whole.lengths[taken]


def _coverage(
    work: Path,
    jobs: int,
    run: Callable[[Sequence[Job]], list[dict[str, Any]]],
    on_event: OnEvent,
    *,
    short: bool,
) -> dict[str, Any]:
    """Train many seeds of one corpus, and count how often groups of five cover the value of them all."""
    count, texts = (10, 400) if short else (COVERAGE_SEEDS, COVERAGE_TEXTS)
    config, folder = settings("polar-words", range(count)), work / f"coverage-{count}-{texts}"
    with open_study(config, folder, corpus=polar_words(0, texts), device="cpu", on_progress=on_event) as study:
        specs = [spec for spec in model_specs(config) if spec.kind in ("standard", "uniform")]
        started = _seconds_of_workers()
        train_all(study.run, specs, jobs=jobs, device="cpu", on_progress=on_event, lock=study.lock)
        steps, key = StepCache(work / "steps"), f"{folder.name}-training"
        seconds = (steps.get(key) or {"seconds": 0.0})["seconds"] + _seconds_of_workers() - started
        steps.put(key, {"seconds": seconds})
    name, common = "calibration.studies:coverage_job", {"run": str(folder), "texts": texts}
    rng = np.random.default_rng(0)
    order, texts_order = rng.permutation(count), rng.permutation(texts)
    disjoint = [
        [order[k : k + SEEDS].tolist(), _part(texts_order, k // SEEDS, count // SEEDS)] for k in range(0, count, SEEDS)
    ]
    drawn = [
        [sorted(rng.choice(count, SEEDS, False).tolist()), sorted(rng.choice(texts, GROUP_TEXTS, False).tolist())]
        for _ in range(20 if short else RESAMPLED)
    ]
    chunks = [drawn[k : k + CHUNK] for k in range(0, len(drawn), CHUNK)]
    answers = run(
        [
            Job("population", name, {**common, "groups": [[list(range(count)), None]]}),
            Job("disjoint", name, {**common, "groups": disjoint}),
            *(Job(f"resampled-{k}", name, {**common, "groups": chunk}) for k, chunk in enumerate(chunks)),
        ]
    )
    population, first, *rest = (answer["groups"] for answer in answers)
    return {
        "seconds": seconds,
        "seeds": count,
        "texts": texts,
        "population": population[0],
        "disjoint": first,
        "resampled": [group for part in rest for group in part],
    }


def _seconds_of_workers() -> float:
    """CPU time of all worker processes that have ended."""
    used = os.times()
    return used.children_user + used.children_system


def _part(order: np.ndarray[Any, Any], k: int, parts: int) -> list[int]:
    return sorted(np.array_split(order, parts)[k].tolist())


def _measure_groups(*, run: str, texts: int, groups: list[list[Any]], report: OnEvent) -> dict[str, Any]:
    """The evidence of each group of seeds and texts."""
    whole = Recordings(RunDirectory(run))
    assert len(whole.example) == texts
    measured = []
    for k, (seeds, rows) in enumerate(groups):
        recordings = SampledRecordings(whole, seeds, rows)
        evidence = {f"{name} {convention}": evidence_of(recordings, name, convention) for name, convention in MEASURED}
        measured.append({key: _both(each.value_seeds, each.excess_seeds) for key, each in evidence.items()})
        report({"step": k + 1, "steps": len(groups)})
    return {"groups": measured}


coverage_job = cached(_measure_groups)


def _both(value: Estimate, excess: Estimate) -> dict[str, list[float]]:
    return {key: [each.value, each.low, each.high] for key, each in (("value", value), ("excess", excess))}


class NoiseRecordings(Recordings):
    """Random attention and random probes of `SEEDS` seeds at `NOISE_STEPS` steps, on texts of unequal length.

    unrelated: they have nothing to do with each other. strength: attention follows the size of the probe's logit, as
    two parts of one encoder may, but its sign, and so the label it speaks for, is random.
    """

    def __init__(self, kind: str, rng: np.random.Generator) -> None:
        self.seeds, self.translating, self.labels = tuple(range(SEEDS)), False, ["no", "yes"]
        self.lengths = rng.choice((7, 11, 17, 23, 29), size=NOISE_TEXTS)
        self.example, self.output = np.arange(NOISE_TEXTS, dtype=np.int32), np.zeros(NOISE_TEXTS, dtype=np.int32)
        self.trace = cache(
            lambda kind, seed: SimpleNamespace(steps=tuple(range(NOISE_STEPS)), label=lambda: self.output)
        )
        places = int(self.lengths.sum())
        strength, sign = rng.exponential(size=places), rng.choice([-1.0, 1.0], size=places)

        def draw(model: str, seed: int, name: str, step: int) -> Ragged:
            noise = rng.exponential(size=places)
            if kind == "unrelated":
                values = noise if name == "alpha" else noise * rng.choice([-1.0, 1.0], size=places)
            else:
                values = (strength + 0.3 * noise) * (1.0 if name == "alpha" else sign)
            return Ragged.from_lengths(values, self.lengths)

        self.quantity = cache(draw)

    def best_step(self, seed: int) -> int:
        """Attention is read at the last step."""
        return NOISE_STEPS - 1


def _noise_jobs(repetitions: int) -> list[Job]:
    size = min(NOISE_CHUNK, repetitions)
    return [
        Job(f"noise-{kind}-{k}", "calibration.studies:noise_job", {"kind": kind, "seed": k, "repetitions": size})
        for kind in NOISES
        for k in range(repetitions // size)
    ]


def _noise(*, kind: str, seed: int, repetitions: int, report: OnEvent) -> dict[str, Any]:
    """How often noise gets the answer *yes*: by own, by cross, and by both."""
    rng, counts = np.random.default_rng([seed, NOISES.index(kind)]), {"own": 0, "cross": 0, "both": 0}
    for k in range(repetitions):
        recordings = NoiseRecordings(kind, rng)
        own, cross = (
            answer_from(evidence_of(recordings, "A(alpha,beta_uf)", convention).decisive_excess) == "yes"
            for convention in ("own", "cross")
        )
        for name, answer in (("own", own), ("cross", cross), ("both", own and cross)):
            counts[name] += answer
        report({"step": k + 1, "steps": repetitions})
    return {"kind": kind, "repetitions": repetitions, "yes": counts}


noise_job = cached(_noise)


def _frozen_jobs(work: Path, seeds: int) -> list[Job]:
    return [
        Job(f"frozen-{name}", "calibration.studies:frozen_job", {"name": name, "seeds": seeds, "work": str(work)})
        for name in KEYWORDS
    ]


def _frozen(*, name: str, seeds: int, work: str, report: OnEvent) -> dict[str, Any]:
    """Models whose attention alone is trained: in how many texts with a keyword the highest weight lies on it."""
    config, folder = settings(name, range(seeds)), Path(work) / f"frozen-{name}-{seeds}"
    specs = [spec for spec in model_specs(config) if spec.kind == "attention-only"]
    with open_study(config, folder, corpus=KNOWN[name].make(0), device="cpu", on_progress=report) as study:
        _train_here(study.run, specs, on_progress=report)
        run = study.run
    texts, words = run.split("validation").ids, run.vocabulary().words
    planted = np.isin(texts.values, [words.index(word) for word in KEYWORDS[name]])
    having = np.bincount(texts.row_of[planted], minlength=len(texts)) > 0
    traces = [run.model(spec).trace() for spec in specs]
    tops = [first_maximum(trace.quantity("alpha", trace.steps[-1])) for trace in traces]
    return {"corpus": name, "shares": [float(planted[top][having].mean()) for top in tops]}


frozen_job = cached(_frozen)


def measured_sizes() -> dict[str, Any]:
    """The sizes of the studies, for the page."""
    texts, pairs = settings("one-keyword", range(SEEDS)), settings("translation", range(SEEDS))
    return {
        "seeds": SEEDS,
        "train": TRAIN,
        "validation": VALIDATION,
        "pairs": PAIRS,
        "pairs_validation": PAIRS_VALIDATION,
        "steps": texts.train.steps,
        "pairs_steps": pairs.train.steps,
        "embedding": texts.model.embedding,
        "hidden": texts.model.hidden,
        "pairs_hidden": pairs.translator.hidden,
        "group_texts": GROUP_TEXTS,
        "noise_texts": NOISE_TEXTS,
        "noise_steps": NOISE_STEPS,
    }
