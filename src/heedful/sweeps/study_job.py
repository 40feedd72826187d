"""One study of a sweep as a job: the same code in a worker of this machine and on a node of a cluster."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from heedful.config import StudyConfig
from heedful.errors import DataError, HeedfulError
from heedful.execution.worker import OnEvent
from heedful.storage.atomic_files import valid_path
from heedful.storage.manifest import RESULT
from heedful.storage.serialization import digest
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import ModelSpec, RunDirectory
from heedful.studies.study import run_study
from heedful.studies.training import train_model


def run_one_study(
    *,
    folder: str,
    config: StudyConfig,
    device: str = "cpu",
    shared: Callable[[], Any] | None = None,
    report: OnEvent = lambda event: None,
) -> None:
    """Train, record and measure one study on one thread of this process; a finished study is left alone.

    shared: returns the data, and is called only where this machine does not have the file.
    """
    if finished_result(folder, config) is not None:
        return
    single_threaded()
    run_study(
        config,
        folder,
        corpus=None if shared is None or valid_path(Path(config.data), DataError).exists() else shared(),
        device=device,
        train=_train_here,
        on_progress=report,
        on_stage=lambda stage: report({"stage": stage}),
    )


def finished_result(folder: Path | str, config: StudyConfig) -> StudyResult | None:
    """The result of a study that is finished and undamaged, with these settings; else None."""
    run = RunDirectory(folder)
    try:
        result = run.result() if RESULT in run.manifest().files else None
    except (HeedfulError, OSError):
        return None
    return result if result and result.config_digest == digest(config) else None


def single_threaded() -> None:
    """Let this thread's arithmetic use one core: sums are in one order, whatever the machine."""
    import torch
    from threadpoolctl import threadpool_limits

    os.environ |= {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    threadpool_limits(1)
    torch.set_num_threads(1)


def _train_here(
    run: RunDirectory, specs: Sequence[ModelSpec], *, device: str, on_progress: OnEvent, **of_processes: Any
) -> None:
    """What `studies.training.train_all` does, without processes of its own."""
    for spec in specs:
        train_model(run, spec, device=device, report=on_progress)
        on_progress({"model": spec.name, "done": True})
