"""The main job: a corpus becomes trained models, recorded, measured and judged."""

import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from heedful.config import StudyConfig
from heedful.data.corpus import Corpus
from heedful.data.loading import open_data
from heedful.data.parallel import ParallelCorpus
from heedful.errors import DataError, RunError
from heedful.execution.pool import OnProgress
from heedful.storage.atomic_files import json_text, remove_temporary_files, sha256
from heedful.storage.checksums import write_checksummed_json
from heedful.storage.locks import directory_lock
from heedful.storage.manifest import source_commit
from heedful.storage.serialization import digest
from heedful.studies.analysis import (
    Recordings,
    attention_entropy,
    final_performance,
    measure_agreements,
    measure_alignment,
)
from heedful.studies.repair import known_data, mend
from heedful.studies.result import ModelSummary, StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory, model_specs
from heedful.studies.training import train_all
from heedful.studies.verdict import judge


def run_study(
    config: StudyConfig,
    out: Path | str,
    *,
    corpus: Corpus | ParallelCorpus | None = None,
    jobs: int | None = None,
    device: str = "auto",
    train: Callable[..., None] = train_all,
    on_progress: OnProgress = lambda line: None,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> StudyResult:
    """Train, record and measure everything a study has, in `out`; what was finished there before is kept.

    However often it was killed, and whatever of its files was damaged, the result is that of an undisturbed run, byte
    for byte. One process at a time works in `out`.

    corpus: the data where they are not a name or a file that `config.data` can say. train: what trains the models,
    called as `train_all` is.
    """
    with open_study(config, out, corpus=corpus, device=device, on_progress=on_progress, on_stage=on_stage) as study:
        on_stage("training")
        train(study.run, model_specs(config), jobs=jobs, device=device, on_progress=on_progress, lock=study.lock)
        on_stage("measuring")
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
    started: float
    repaired: list[str]

    def finish(self, result: StudyResult) -> None:
        """Write the result, then the manifest with its checksum."""
        seconds = time.time() - self.started
        manifest = _manifest(self.config, self.run.data_summary()["digest"], self.device, seconds, self.repaired)
        _save(self.run, result, manifest)


@contextmanager
def open_study(
    config: StudyConfig,
    out: Path | str,
    *,
    corpus: Corpus | ParallelCorpus | None = None,
    device: str = "auto",
    on_progress: OnProgress = lambda line: None,
    on_stage: Callable[[str], None] = lambda stage: None,
) -> Iterator[OpenStudy]:
    """Lock a study's run directory, set damaged files aside and write the data: everything before training."""
    run = RunDirectory(out)
    run.refuse_foreign()
    repaired: list[str] = []

    def tell(notice: str) -> None:
        repaired.append(notice)
        on_progress({"model": run.root.name, "notice": notice})

    with directory_lock(run.root) as lock:
        started = time.time()
        remove_temporary_files(run.root)
        mend(run, config, tell)
        run.claim(config)
        on_stage("reading the data")
        prepare_data(run, config, corpus)
        yield OpenStudy(run, config, lock, device, started, repaired)


def _save(run: RunDirectory, result: StudyResult, manifest: dict[str, Any]) -> None:
    """Write the result, then the manifest that vouches for it; at no instant does one vouch for another result."""
    if not (run.result_path.exists() and run.result_path.read_text(encoding="utf-8") == json_text(result.to_dict())):
        run.manifest_path.unlink(missing_ok=True)
        result.save(run.result_path)
    write_checksummed_json(run.manifest_path, manifest | {"result": sha256(run.result_path)})


def analyse(run: RunDirectory) -> StudyResult:
    """The result of a run whose models are all trained."""
    config = run.config()
    recordings = Recordings(run)
    agreements = measure_agreements(recordings)
    entropy, entropy_final = attention_entropy(recordings)
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
        verdict=judge(agreements),
        alignment=measure_alignment(recordings) if config.task == "translation" else None,
    )


def prepare_data(run: RunDirectory, config: StudyConfig, corpus: Corpus | ParallelCorpus | None) -> None:
    """Read the data and keep what the models will be given; a run that has its data only checks that they still are."""
    try:
        corpus = corpus or open_data(
            config.data,
            config.target,
            task=config.task,
            text=config.text,
            label=config.label,
            validation=config.validation,
            test=config.test,
            lower=config.lower,
        )
    except DataError:
        if not run.has_data():
            raise
        return  # the data are gone, but the run has all it needs
    whole = run.has_data()
    if {corpus.digest()} != ({run.data_summary()["digest"]} if whole else known_data(run) or {corpus.digest()}):
        raise RunError(f"{config.data} has changed since {run.root} was begun; choose another --out")
    if whole:
        return
    # Imported here: both need torch, which nothing else in this process does.
    if isinstance(corpus, ParallelCorpus):
        from heedful.studies.translation import prepare as prepare_pairs

        prepare_pairs(run, config, corpus)
    else:
        from heedful.studies.classification import prepare as prepare_texts

        prepare_texts(run, config, corpus)
    run.seal_data(config, corpus.digest())


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


def _manifest(
    config: StudyConfig, data_digest: str, device: str, seconds: float, set_aside: list[str]
) -> dict[str, Any]:
    """Where, when and with what: all that may differ between two runs of the same study."""
    packages = ("heedful", "torch", "numpy", "scipy", "scikit-learn", "polars", "pyarrow")
    return {
        "command": ["heedful", *sys.argv[1:]] if Path(sys.argv[0]).name == "heedful" else None,
        "versions": {"python": platform.python_version()} | {name: metadata.version(name) for name in packages},
        "commit": source_commit(),
        "config_digest": digest(config),
        "data_digest": data_digest,
        "seeds": list(config.seeds),
        "device": device,
        "machine": {"system": platform.platform(), "cores": os.cpu_count()},
        "finished": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "seconds": round(seconds, 1),
        "set_aside": set_aside,
    }
