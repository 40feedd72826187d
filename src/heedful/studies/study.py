"""A study: train the models on a corpus, record them, measure and judge the results."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from heedful.config import StudyConfig
from heedful.data.corpus import Corpus
from heedful.data.loading import open_data, task_of
from heedful.data.parallel import ParallelCorpus
from heedful.errors import DataError, RunError
from heedful.execution.pool import OnEvent
from heedful.storage.locks import directory_lock
from heedful.storage.manifest import RunClock
from heedful.storage.serialization import digest
from heedful.studies.analysis import (
    Recordings,
    attention_entropy,
    final_performance,
    measure_agreements,
    measure_alignment,
)
from heedful.studies.evidence import measure_gate, top_positions, twin_accuracies, with_evidence
from heedful.studies.result import ModelSummary, StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory, model_specs, repair_run, trained_identities
from heedful.studies.verdict import judge


def run_study(
    config: StudyConfig,
    out: Path | str,
    *,
    corpus: Corpus | ParallelCorpus | None = None,
    jobs: int | None = None,
    device: str = "auto",
    train: Callable[..., None] | None = None,
    on_progress: OnEvent = lambda event: None,
) -> StudyResult:
    """Train, record and measure the models of a study in `out`; finished steps that are there already are kept.

    However often it is killed, and whichever of its files are damaged, the result is that of an uninterrupted run, byte
    for byte. One process at a time works in `out`.

    corpus: the data, where `config.data` is not a name or a file. train: trains the models in place of `train_all`.
    """
    if train is None:
        from heedful.studies.training import train_all  # needs torch, which reports do without

        train = train_all
    with open_study(config, out, corpus=corpus, device=device, on_progress=on_progress) as study:
        on_progress({"stage": "training"})
        train(study.run, model_specs(config), jobs=jobs, device=device, on_progress=on_progress, lock=study.lock)
        on_progress({"stage": "measuring"})
        result = analyse(study.run)
        study.finish(result)
    return result


@dataclass(frozen=True)
class OpenStudy:
    """A study whose run directory this process has locked, and whose data are there; its models may be trained.

    lock: the descriptor that holds the lock, for workers to inherit. repaired: a sentence for each damaged file.
    """

    run: RunDirectory
    config: StudyConfig
    lock: int
    device: str
    clock: RunClock
    repaired: list[str]

    def finish(self, result: StudyResult) -> None:
        """Write the result, then the manifest with its checksum."""
        self.clock.finish(
            self.run.root,
            result,
            config_digest=result.config_digest,
            data_digest=result.data["digest"],
            seeds=self.config.seeds,
            device=self.device,
            set_aside=self.repaired,
        )


@contextmanager
def open_study(
    config: StudyConfig,
    out: Path | str,
    *,
    corpus: Corpus | ParallelCorpus | None = None,
    device: str = "auto",
    on_progress: OnEvent = lambda event: None,
) -> Iterator[OpenStudy]:
    """Lock a study's run directory, set damaged files aside and write the data: everything before training."""
    run, clock = RunDirectory(out), RunClock("study")
    run.refuse_foreign()
    repaired: list[str] = []

    def notify(notice: str) -> None:
        repaired.append(notice)
        on_progress({"model": run.root.name, "notice": notice})

    with directory_lock(run.root) as lock:
        repair_run(run, config, notify)
        clock.begin(run.root)
        on_progress({"stage": "reading the data"})
        prepare_data(run, config, corpus)
        yield OpenStudy(run, config, lock, device, clock, repaired)


def analyse(run: RunDirectory) -> StudyResult:
    """The result of a run whose models are all trained."""
    config = run.config()
    recordings = Recordings(run)
    agreements = with_evidence(recordings, measure_agreements(recordings))
    entropy, entropy_final = attention_entropy(recordings)
    gate, twins, tops = measure_gate(recordings), twin_accuracies(recordings), top_positions(recordings)
    return StudyResult(
        task=config.task,
        data=run.data_summary(),
        budget=config.budget,
        seeds=config.seeds,
        config_digest=digest(config),
        models=tuple(_model_summary(run, spec) for spec in model_specs(config)),
        agreements=agreements,
        random_agreement=agreements[0].random,
        xi_final=final_performance(recordings),
        entropy=entropy,
        entropy_final=entropy_final,
        verdict=judge(agreements, gate, len(config.seeds), twins, tops),
        alignment=measure_alignment(recordings),
        top_positions=tops,
    )


def prepare_data(run: RunDirectory, config: StudyConfig, corpus: Corpus | ParallelCorpus | None) -> None:
    """Read the data and store what the models get; a run that has its data only checks that they are the same."""
    try:
        corpus = corpus or open_data(config.data, config.target, **config.reading())
    except DataError:
        if not run.data.is_done():
            raise
        return  # the data are gone, but the run has all it needs
    stored = run.data.is_done()
    known = {run.data_summary()["digest"]} if stored else {each["data"] for each in trained_identities(run)}
    if known and known != {corpus.digest()}:
        raise RunError(f"{config.data} has changed since {run.root} was begun; choose another --out")
    if stored:
        return
    of_task = import_module(f"heedful.studies.{task_of(corpus)}")  # needs torch, as nothing else in this process does
    of_task.prepare(run, config, corpus)
    run.finish_data(config, corpus.digest())


def _model_summary(run: RunDirectory, spec: ModelSpec) -> ModelSummary:
    folder = run.model(spec)
    metrics = folder.metrics()
    return ModelSummary(
        name=spec.name,
        kind=spec.kind,
        seed=spec.seed,
        steps=tuple(line["step"] for line in metrics),
        accuracy=tuple(line["accuracy"] for line in metrics),
        bleu=tuple(line["bleu"] for line in metrics if "bleu" in line),
        loss=tuple(line.get("loss", math.nan) for line in metrics),
        best_step=folder.summary()["best_step"],
    )
