"""One study of a sweep, carried out: the same code on this machine and on any node of a cluster."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.config import StudyConfig
from heedful.data.corpus import Corpus
from heedful.data.parallel import ParallelCorpus
from heedful.errors import HeedfulError
from heedful.execution.pool import OnProgress
from heedful.execution.worker import Report
from heedful.reports.pages import write_report
from heedful.storage.checksums import check, read_sealed
from heedful.storage.serialization import content, digest, from_mapping
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory
from heedful.studies.study import run_study


@dataclass(frozen=True)
class StudyJob:
    """A study to be carried out in a folder; it crosses to other processes as plain values."""

    folder: str
    config: StudyConfig
    device: str = "cpu"

    @property
    def name(self) -> str:
        """The study's folder without what stands before it."""
        return Path(self.folder).name

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"folder": self.folder, "config": content(self.config), "device": self.device}

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "StudyJob":
        """The inverse of `to_dict`.

        >>> order = StudyJob("runs/a", StudyConfig("sst"))
        >>> StudyJob.from_dict(order.to_dict()) == order
        True
        """
        return cls(plain["folder"], from_mapping(StudyConfig, plain["config"]), plain["device"])


def finished(folder: Path | str, config: StudyConfig) -> StudyResult | None:
    """The result of a study that is finished, as it was written, and the one that was asked for; else None."""
    run = RunDirectory(folder)
    try:
        check(run.result_path, read_sealed(run.manifest_path)["result"])
        result = StudyResult.load(run.result_path)
    except (HeedfulError, OSError, KeyError):
        return None
    return result if result.config_digest == digest(config) else None


def carry_out(order: StudyJob, report: Report, *, corpus: Corpus | ParallelCorpus | None = None) -> None:
    """Train, record, measure and write one study and its page, in this process and on one thread."""
    if finished(order.folder, order.config) is None:
        single_threaded()
        run_study(
            order.config,
            order.folder,
            corpus=corpus,
            device=order.device,
            train=_train_here,
            on_progress=report,
            on_stage=lambda stage: report({"stage": stage}),
        )
    report({"stage": "writing the report"})
    write_report(Path(order.folder))


def single_threaded() -> None:
    """Let this thread's arithmetic use one core: sums in one order, whatever the machine."""
    import torch
    from threadpoolctl import threadpool_limits

    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    threadpool_limits(1)
    torch.set_num_threads(1)


def _train_here(
    run: RunDirectory, specs: Sequence[ModelSpec], *, device: str, on_progress: OnProgress, **of_processes: Any
) -> None:
    """What `execution.pool.train_all` does, without processes of its own."""
    from heedful.studies.training import train_model

    for spec in specs:
        train_model(run, spec, device=device, report=on_progress)
        on_progress({"model": spec.name, "done": True})
