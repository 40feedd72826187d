"""Error rates of studies: verdicts on corpora of known truth, coverage of intervals, and noise through the analysis.

Three measurements, each made of steps that are cached, so that an interrupted calibration continues:

1. Every corpus of `corpora.KNOWN` is studied several times, with other data and other seeds each time.
2. Many seeds are trained on one corpus with many validation texts. Their mean on all texts is the population value.
   Groups of five seeds, each with its own sample of texts, should cover it in 95 % of cases.
3. Attention and probes that have nothing to do with each other go through the analysis of a study thousands of times.
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
from scipy import stats

from calibration.corpora import KNOWN, PAIRS, PAIRS_VALIDATION, QUESTIONS, TRAIN, VALIDATION, polar_words
from heedful.api import study_config
from heedful.config import StudyConfig
from heedful.data.ragged import Ragged
from heedful.execution.pool import Job, OnEvent, run_jobs
from heedful.html import symbol
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

SETS, SEEDS = 3, 5  # studies of each corpus, and seeds of each study
COVERAGE_SEEDS, COVERAGE_TEXTS, GROUP_TEXTS = 40, 1600, 200
RESAMPLED, CHUNK = 100, 20  # groups drawn at random, and how many one job measures
REPETITIONS, NOISE_CHUNK = 1000, 125
NOISE_TEXTS, NOISE_STEPS = 60, 10
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
    """All three measurements, or a short version of them; finished steps in `work` are kept.

    names: only these corpora, and neither coverage nor noise.
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

    sets, chosen = (1 if short else SETS), names or tuple(KNOWN)
    studies = run(
        [
            Job(f"{name}-{k}", "calibration.studies:study_job", {"name": name, "data": k, "work": str(work)})
            for k in range(sets)
            for name in chosen
        ]
    )
    report: dict[str, Any] = {
        "sizes": _sizes(sets),
        "studies": studies,
    }
    if not names:
        report["noise"] = run(_noise_jobs(NOISE_CHUNK // 5 if short else REPETITIONS))
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


def judged(study: dict[str, Any]) -> dict[str, int]:
    """How many answers of a study are right, open and wrong, and whether it praises what is not there.

    >>> judged({"corpus": "shuffled-six", "passed": True, "answers": {}})
    {'right': 0, 'open': 0, 'wrong': 1, 'praise': 1}
    """
    known, passed, answers = KNOWN[study["corpus"]], study["passed"], study["answers"]
    counts = {"right": 0, "open": 0, "wrong": 0, "praise": 0}
    if known.learnable is not None:
        counts["right" if passed == known.learnable else "wrong"] += 1
        counts["praise"] |= int(passed and not known.learnable)
    for question, must in known.must.items():
        answer = answers.get(question, "not asked")
        if must == "no praise":
            counts["right" if answer != "yes" else "wrong"] += 1
        else:
            counts["right" if answer == must else "wrong" if answer in ("yes", "no") else "open"] += 1
        counts["praise"] |= int(answer == "yes" and must in ("no", "no praise"))
    return counts


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


def covered(coverage: dict[str, Any], which: str, key: str, quantity: str) -> tuple[int, int]:
    """How many intervals of the groups contain the population value, of how many.

    >>> group = {"A(alpha,beta) own": {"value": [0.5, 0.4, 0.6]}}
    >>> covered({"population": group, "disjoint": [group, group]}, "disjoint", "A(alpha,beta) own", "value")
    (2, 2)
    """
    population = coverage["population"][key][quantity][0]
    intervals = [group[key][quantity][1:] for group in coverage[which]]
    return sum(low <= population <= high for low, high in intervals), len(intervals)


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


def _sizes(sets: int) -> dict[str, Any]:
    texts, pairs = settings("one-keyword", range(SEEDS)), settings("translation", range(SEEDS))
    return {
        "sets": sets,
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


def rows(values: dict[str, Any]) -> str:
    """The results as Markdown."""
    sizes, studies = values["sizes"], values["studies"]
    lines = [
        "## Studies",
        "",
        f"Each corpus is studied {sizes['sets']} times, each time with other texts and {sizes['seeds']} other seeds. "
        f"Texts: {sizes['train']:,} for training, {sizes['validation']:,} for validation; a BiLSTM of "
        f"{sizes['hidden']} per direction with embeddings of {sizes['embedding']}, {sizes['steps']} steps. Pairs: "
        f"{sizes['pairs']:,} and {sizes['pairs_validation']:,}; width {sizes['pairs_hidden']}, "
        f"{sizes['pairs_steps']} steps. What each corpus must be answered, and why, is in `calibration/corpora.py`. "
        "The translations are generated: their lexicon is known, and small models learn it in these few steps, while "
        "those of a real corpus such as `toy-de-en` stay behind the gate.",
        "",
        "| corpus | truth | model learned | accuracy, baseline | right | open | wrong | false praise |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    total = dict.fromkeys(("right", "open", "wrong", "praise"), 0)
    possible = 0
    for name, known in KNOWN.items():
        own = [study for study in studies if study["corpus"] == name]
        if not own:
            continue
        counts = [judged(study) for study in own]
        sums = {key: sum(count[key] for count in counts) for key in total}
        total = {key: total[key] + sums[key] for key in total}
        possible += len(own) if _can_praise(name) else 0
        must = {True: "must", False: "must not", None: "may"}[known.learnable]
        accuracy, baseline = (100 * float(np.mean([study[key] for study in own])) for key in ("accuracy", "baseline"))
        lines.append(
            f"| {name} | {known.truth} | {must}; {sum(study['passed'] for study in own)} of {len(own)} "
            f"| {accuracy:.1f} %, {baseline:.1f} % | {sums['right']} | {sums['open']} | {sums['wrong']} "
            f"| {sums['praise'] if _can_praise(name) else '–'} |"
        )
    answers = total["right"] + total["open"] + total["wrong"]
    lines += [
        "",
        "*Right, open, wrong* count the gate and every question whose answer follows from how the corpus is made. "
        "*Open* is *unclear*, or *not asked* behind a closed gate. *False praise* counts studies that say *yes* where "
        "the truth is no, or pass the gate on noise.",
        "",
        f"- right: {share(total['right'], answers)}",
        f"- wrong: {share(total['wrong'], answers)}",
        f"- false praise: {share(total['praise'], possible)} studies",
        "",
        *_answer_table(studies),
    ]
    if "coverage" in values:
        lines += _coverage_rows(values["coverage"], sizes)
    if "noise" in values:
        lines += _noise_rows(values["noise"], sizes)
    return "\n".join(lines)


def _can_praise(name: str) -> bool:
    known = KNOWN[name]
    return known.learnable is False or any(must != "yes" for must in known.must.values())


def _answer_table(studies: list[dict[str, Any]]) -> list[str]:
    """How often each question was answered how, by corpus: yes, unclear, no; a star marks what must come."""
    lines = [
        "Answers, as *yes / unclear / no* over the studies of a corpus (a dash: not asked); bold where one must come:",
        "",
        f"| corpus | {' | '.join(QUESTIONS)} |",
        f"|---|{'--:|' * len(QUESTIONS)}",
    ]
    for name, known in KNOWN.items():
        own = [study["answers"] for study in studies if study["corpus"] == name]
        cells = []
        for question in QUESTIONS:
            counts = [sum(answers[question] == answer for answers in own) for answer in ("yes", "unclear", "no")]
            cell = " / ".join(map(str, counts)) if any(counts) else "–"
            cells.append(f"**{cell}**" if question in known.must and any(counts) else cell)
        if own:
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _coverage_rows(coverage: dict[str, Any], sizes: dict[str, Any]) -> list[str]:
    lines = [
        "### Coverage of the 95 % interval",
        "",
        f"{coverage['seeds']} seeds of one corpus, whose words go with labels in three of four cases, on "
        f"{coverage['texts']:,} validation texts: their mean is the population value. A group has {sizes['seeds']} "
        f"seeds and {sizes['group_texts']} texts. Disjoint groups share neither; resampled groups are drawn at random "
        "and overlap, so their shares are less certain than their number suggests.",
        "",
        "| agreement | population | disjoint groups | resampled groups |",
        "|---|--:|--:|--:|",
    ]
    for name, convention in MEASURED:
        for quantity in ("value", "excess"):
            key = f"{name} {convention}"
            of = coverage["population"][key][quantity][0]
            cells = [covered(coverage, which, key, quantity) for which in ("disjoint", "resampled")]
            shown = [f"{k} of {n} ({100 * k / n:.0f} %)" for k, n in cells]
            label = "A" if quantity == "value" else "excess"
            lines.append(f"| {symbol(name)}, {convention}, {label} | {100 * of:.1f} % | {' | '.join(shown)} |")
    return [*lines, ""]


def _noise_rows(noise: list[dict[str, Any]], sizes: dict[str, Any]) -> list[str]:
    lines = [
        "### Noise through the analysis",
        "",
        f"Random attention and random probes of {sizes['seeds']} seeds at {sizes['noise_steps']} steps on "
        f"{sizes['noise_texts']} texts: how often the answer is *yes*. *Unrelated*: they have nothing to do with each "
        "other. *Strength*: attention follows the size of the probe's logit, and the label it speaks for is random.",
        "",
        "| noise | own | cross | both |",
        "|---|--:|--:|--:|",
    ]
    for kind in NOISES:
        parts = [part for part in noise if part["kind"] == kind]
        repetitions = sum(part["repetitions"] for part in parts)
        cells = [share(sum(part["yes"][name] for part in parts), repetitions) for name in ("own", "cross", "both")]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return [*lines, ""]


def share(count: int, total: int) -> str:
    """A share with its exact 95 % interval (Clopper and Pearson 1934).

    >>> share(0, 30)
    '0 of 30 (0.0 %, at most 11.6 %)'
    """
    if total == 0:
        return "0 of 0"
    ends = stats.binomtest(count, total).proportion_ci(0.95, method="exact")
    interval = f"at most {100 * ends.high:.1f} %" if count == 0 else f"{100 * ends.low:.1f} to {100 * ends.high:.1f} %"
    return f"{count:,} of {total:,} ({100 * count / total:.1f} %, {interval})"
