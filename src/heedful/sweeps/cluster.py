"""Studies on a Ray cluster: one task each, with its needs of cores and GPUs, and its files brought home."""

import inspect
import os
import secrets
import threading
from pathlib import Path
from typing import Any

from heedful.config import StudyConfig
from heedful.data.corpus import Corpus
from heedful.data.loading import open_data
from heedful.data.parallel import ParallelCorpus
from heedful.errors import ConfigError, DataError, HeedfulError, RunError
from heedful.execution.ray_backend import connect, in_words
from heedful.execution.worker import Report
from heedful.storage.atomic_files import usable
from heedful.sweeps.crew import AttemptError, as_attempt_error
from heedful.sweeps.file_transfer import Arrival
from heedful.sweeps.node import NodeOrder, on_node, versions
from heedful.sweeps.study_job import StudyJob

MOST_AT_ONCE = 256  # tasks handed to the cluster at a time, unless asked otherwise


class RayCrew:
    """Tasks of a Ray cluster. A worker or node that dies fails an attempt, and the next goes to another.

    address: of the cluster's head, `auto` for the one on this machine; where it is left out and `RAY_ADDRESS` is not
    set, a cluster of this machine alone is started and ended with the sweep. shared: whether nodes see the store under
    the path that it has here; found out at each node where left out.
    """

    def __init__(
        self,
        store: Path,
        *,
        address: str | None = None,
        jobs: int | None = None,
        cpus: int | float = 1,
        gpus: int | float = 0,
        shared: bool | None = None,
    ) -> None:
        if cpus < 0 or gpus < 0 or cpus + gpus == 0:
            raise ConfigError(f"a study cannot need {cpus} cores and {gpus} GPUs")
        self.width = jobs or MOST_AT_ONCE
        self._ray = connect(address)
        self._needs = {"num_cpus": cpus, "num_gpus": gpus}
        self._refuse_too_much()
        self._mark = Path(os.path.abspath(store)) / f".seen-{secrets.token_hex(8)}"
        self._shared = shared
        self._running: set[Any] = set()
        self._corpora: dict[tuple[Any, ...], Any] = {}
        self._lock = threading.Lock()
        self._stopped = False
        how = {"max_retries": 0, "num_returns": "streaming", "scheduling_strategy": "SPREAD"}
        self._task = self._ray.remote(**how, **self._needs)(inspect.unwrap(on_node))  # Ray must see a generator
        self._mark.touch()

    def attempt(self, order: StudyJob, report: Report) -> None:
        """Hand a study to the cluster, pass on what it says, and bring its files home unless they are there already."""
        asked = NodeOrder(
            order.to_dict(), str(self._mark), self._shared, os.getcwd(), os.environ.get("HEEDFUL_DATA"), versions()
        )
        with self._lock:
            if self._stopped:
                raise AttemptError("the sweep was stopped")
            lines = self._task.remote(asked, [self._corpus(order.config)])
            self._running.add(lines)
        try:
            with Arrival(Path(order.folder)) as arrival:
                for reference in lines:
                    line = self._ray.get(reference)
                    if "error" in line:
                        raise as_attempt_error(line)
                    if line.get("finished"):
                        return
                    if "file" in line:
                        arrival.add(line["file"], line["bytes"])
                    elif line.get("whole"):
                        arrival.settle()
                    else:
                        report(line)
                raise AttemptError("the task ended without a word", died=True)
        except self._ray.exceptions.RayError as error:
            raise AttemptError(f"the cluster lost it: {in_words(error)}", died=True) from None
        finally:
            with self._lock:
                self._running.discard(lines)

    def stop(self) -> None:
        """Cancel what is under way, and leave the cluster as it was."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for lines in running:
            self._ray.cancel(lines, force=True)
        self._mark.unlink(missing_ok=True)
        self._ray.shutdown()

    def about(self) -> dict[str, Any]:
        """The cluster and what each study takes of it."""
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        return {"on": "ray", "ray": self._ray.__version__, "nodes": len(nodes), "needs": self._needs}

    def _refuse_too_much(self) -> None:
        """No node will ever have what a study needs: say so, rather than wait for ever."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        wanted = {"CPU": self._needs["num_cpus"], "GPU": self._needs["num_gpus"]}
        if not any(all(node.get(name, 0) >= amount for name, amount in wanted.items()) for node in nodes):
            there = "; ".join(f"{node.get('CPU', 0):g} cores and {node.get('GPU', 0):g} GPUs" for node in nodes)
            self._ray.shutdown()
            raise RunError(
                f"no node of the cluster has {wanted['CPU']:g} cores and {wanted['GPU']:g} GPUs; they have {there}"
            )

    def _corpus(self, config: StudyConfig) -> Any:
        """A user's own file, read here and sent along, since not every node has it; None for data with a name."""
        if not usable(Path(config.data), DataError).exists():
            return None
        settings = {
            "target": config.target,
            "task": config.task,
            "text": config.text,
            "label": config.label,
            "validation": config.validation,
            "test": config.test,
            "lower": config.lower,
        }
        key = (config.data, *settings.values())
        if key not in self._corpora:
            try:
                corpus: Corpus | ParallelCorpus = open_data(config.data, **settings)  # type: ignore[arg-type]
            except HeedfulError as error:
                raise AttemptError(str(error)) from None
            self._corpora[key] = self._ray.put(corpus)
        return self._corpora[key]
