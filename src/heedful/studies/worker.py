"""Train models of a study and record them: `python -m heedful.studies.worker RUN DEVICE`.

A process of its own, single-threaded: one per core beats two threads, and a script needs no `__main__` guard. Models
to train come in on standard input, progress goes out on standard output, one JSON object a line. Started by
`execution.pool`, it ends with the process that started it.
"""

import sys
import time
from pathlib import Path
from typing import get_args

import torch

from heedful.errors import HeedfulError
from heedful.execution.worker import Report, answering
from heedful.models.training import choose_device
from heedful.studies import classification, translation
from heedful.studies.run_directory import ModelKind, ModelSpec, RunDirectory
from heedful.studies.training import Job


def train_model(
    run: RunDirectory, spec: ModelSpec, *, device: str = "auto", report: Report = lambda line: None
) -> None:
    """Train, evaluate, record and store one model of a study; nothing happens where that was done before.

    A training that was broken off goes on from its last checkpoint.
    """
    job = Job(run, spec, choose_device(device), report)
    if job.folder.is_done():
        return
    started = time.perf_counter()
    work = translation.train_model if run.config().task == "translation" else classification.train_model
    summary = {"kind": spec.kind, "seed": spec.seed, **work(job)}
    seconds = round(time.perf_counter() - started, 1)
    job.folder.finish(summary | {"seconds": seconds, "identity": run.identity()})
    job.folder.drop_states()


def main(arguments: list[str], report: Report) -> int:
    """Train the models named on standard input, `KIND SEED` a line; an error of ours is one JSON line, exit code 2."""
    run, device = RunDirectory(Path(arguments[0])), arguments[1]
    torch.set_num_threads(1)
    for order in sys.stdin:
        kind, seed = order.split()
        assert kind in get_args(ModelKind)
        spec = ModelSpec(kind, int(seed))  # type: ignore[arg-type]
        try:
            train_model(run, spec, device=device, report=report)
        except HeedfulError as error:
            report({"model": spec.name, "error": str(error)})
            return 2
        report({"model": spec.name, "done": True})
    return 0


if __name__ == "__main__":
    with answering() as report:
        sys.exit(main(sys.argv[1:], report))
