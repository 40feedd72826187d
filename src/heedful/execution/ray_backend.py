"""Jobs on a Ray cluster: one task each, with its needs of cores and GPUs; its files are brought home.

Files arrive piece by piece in `.incoming-heedful`, a folder of our own below the store, and are put into place by one
rename. Only in that folder is anything ever removed.
"""

import inspect
import os
import platform
import queue
import secrets
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from heedful.errors import ConfigError, HeedfulError, MissingExtraError, RunError
from heedful.execution.pool import Job, OnEvent, Shared, StoppedError, WorkerDiedError, call
from heedful.storage.run_files import OWN_NAMES, files_below, listed, member_name, open_regular, refuse_irregular

PIECE = 8_000_000  # bytes sent at a time
INCOMING = ".incoming-heedful"


def pieces(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Every file below a folder by its relative name, in pieces; hidden files and symbolic links are left out.

    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("whole")
    >>> list(pieces(folder))
    [('a.txt', b'whole')]
    """
    for path in files_below(folder):
        if path.name.startswith("."):
            continue
        name = path.relative_to(folder).as_posix()
        with open_regular(path) as file:
            yield name, file.read(PIECE)
            while piece := file.read(PIECE):
                yield name, piece


def incoming_folder(store: Path) -> Path:
    """The folder below the store where files arrive, made where there is none; a symbolic link is refused."""
    folder = store / INCOMING
    if folder.is_symlink():
        raise RunError(f"{folder} is a symbolic link, but files arrive there before they are moved; remove it")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def clear_incoming(store: Path) -> None:
    """Remove what was on its way to a driver that was killed; only for the process that holds the store's lock."""
    folder = store / INCOMING
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder, ignore_errors=True)


class Arrival(AbstractContextManager["Arrival"]):
    """Files that arrive for a folder of the store; `settle` moves all of them into its place at once.

    >>> store = Path(tempfile.mkdtemp())
    >>> with Arrival(store / "study", store) as arrival:
    ...     arrival.add("models/a.txt", b"who")
    ...     arrival.add("models/a.txt", b"le")
    ...     arrival.settle()
    >>> (store / "study" / "models" / "a.txt").read_text()
    'whole'
    """

    def __init__(self, home: Path, store: Path) -> None:
        self._home, self._store = home, store
        self._scratch: Path | None = None

    def __exit__(self, *error: object) -> None:
        if self._scratch is not None:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def add(self, name: str, piece: bytes) -> None:
        """Append a piece to a file; a name that would leave the folder is refused."""
        path = self._files() / member_name(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(piece)

    def settle(self) -> None:
        """Replace a run's files in the folder by those that arrived.

        Files that are not a run's own stay, as do damaged ones that were set aside. A folder that is a link is refused.
        """
        new = self._files()
        self._home.parent.mkdir(parents=True, exist_ok=True)
        if self._home.is_symlink():
            raise RunError(f"{self._home} is a symbolic link; no link of a run is followed: remove it")
        if self._home.exists():
            refuse_irregular(self._home)
            old = new.parent / "old"
            os.replace(self._home, old)
            others = [path for path in listed(old, "*") if path.name not in OWN_NAMES]
            for kept in (*others, *(path for path in files_below(old) if ".damaged-" in path.name)):
                place = new / kept.relative_to(old)
                if os.path.lexists(kept) and not os.path.lexists(place):
                    place.parent.mkdir(parents=True, exist_ok=True)
                    os.replace(kept, place)
        os.replace(new, self._home)

    def _files(self) -> Path:
        if self._scratch is None:
            self._scratch = Path(tempfile.mkdtemp(dir=incoming_folder(self._store)))
            (self._scratch / "new").mkdir()
        return self._scratch / "new"


MAX_TASKS = 256  # handed to the cluster at a time, where no other number is given
DECIDING = ("heedful", "torch", "numpy", "scipy", "scikit-learn")  # packages whose versions decide results
Answer = tuple[Literal["event", "file", "settle", "done", "error"], Any]


class RayPool:
    """Tasks of a Ray cluster. A job whose worker or node died may be run again, on another.

    address: of the cluster's head, `auto` for the one on this machine; see `connect`. A cluster that this process has
    joined already is used, and not left. store: the folder below which jobs write. shared: whether nodes see the store
    under the path that it has here; each node looks, where left out.
    """

    remote = True

    def __init__(
        self,
        *,
        address: str | None = None,
        width: int | None = None,
        cpus: int | float = 1,
        gpus: int | float = 0,
        store: Path | None = None,
        shared: bool | None = None,
    ) -> None:
        if cpus < 0 or gpus < 0 or cpus + gpus == 0:
            raise ConfigError(f"a job cannot need {cpus} cores and {gpus} GPUs")
        ray: Any = sys.modules.get("ray")
        self._joined_here = ray is None or not ray.is_initialized()
        self._ray = connect(address) if self._joined_here else ray
        self._needs = {"num_cpus": cpus, "num_gpus": gpus}
        self._refuse_too_much()
        self.width = width or MAX_TASKS
        self._store, self._mark, self._shared_store = None, "", shared
        if store is not None:
            self._store = Path(os.path.abspath(store))
            mark = incoming_folder(self._store) / f"seen-{secrets.token_hex(8)}"
            mark.touch()
            self._mark = str(mark)
        self._running: set[Any] = set()
        self._references: dict[str, Any] = {}  # of shared objects, by key
        self._lock = threading.Lock()
        self._stopped = False
        how = {"max_retries": 0, "num_returns": "streaming", "scheduling_strategy": "SPREAD"}
        self._task = self._ray.remote(**how, **self._needs)(inspect.unwrap(run_on_node))  # Ray must see a generator

    def run(self, job: Job, on_event: OnEvent = lambda event: None) -> Any:
        """Hand a job to the cluster, pass on its events, and bring its files home unless they are there already."""
        sent, mirror = replace(job, shared=None), os.environ.get("HEEDFUL_DATA")
        order = NodeOrder(sent, self._mark, self._shared_store, os.getcwd(), mirror, versions())
        with self._lock:
            if self._stopped:
                raise StoppedError("the pool was stopped")
            answers = self._task.remote(order, self._reference(job.shared))
            self._running.add(answers)
        try:
            return self._follow(job, answers, on_event)
        except self._ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None) or error
            raise WorkerDiedError(f"the job failed on its node: {type(cause).__name__}: {cause}") from error
        except self._ray.exceptions.RayError as error:
            if self._stopped:
                raise StoppedError("the pool was stopped") from None
            raise WorkerDiedError(f"the cluster lost it: {first_line(error)}", killed=True) from None
        finally:
            with self._lock:
                self._running.discard(answers)

    def stop(self) -> None:
        """Cancel what is under way, and leave the cluster if it was joined for this pool."""
        with self._lock:
            if self._stopped:
                return
            self._stopped = True
            running = list(self._running)
        for answers in running:
            self._ray.cancel(answers, force=True)
        if self._store is not None:
            Path(self._mark).unlink(missing_ok=True)
            with suppress(OSError):  # something is still arriving
                Path(self._mark).parent.rmdir()
        if self._joined_here:
            self._ray.shutdown()

    def about(self) -> dict[str, Any]:
        """The cluster, and what each job takes of it."""
        nodes = [node for node in self._ray.nodes() if node["Alive"]]
        return {"on": "ray", "ray": self._ray.__version__, "nodes": len(nodes), "needs": self._needs}

    def cores(self) -> int:
        """The number of cores of the whole cluster."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _follow(self, job: Job, answers: Any, on_event: OnEvent) -> Any:
        home = Path(job.folder or ".")
        with Arrival(home, self._store or home) as arrival:
            for reference in answers:
                kind, content = self._ray.get(reference)
                if kind == "event":
                    content.setdefault("model", job.name)
                    on_event(content)
                elif kind == "file":
                    arrival.add(*content)
                elif kind == "settle":
                    arrival.settle()
                elif kind == "error":
                    raise content
                else:
                    return content
        raise WorkerDiedError("the task ended without a result", killed=True)

    def _reference(self, shared: Shared | None) -> list[Any]:
        """A reference in a list, which the node can leave unfetched."""
        if shared is None:
            return []
        if shared.key not in self._references:
            self._references[shared.key] = self._ray.put(shared.value)
        return [self._references[shared.key]]

    def _refuse_too_much(self) -> None:
        """Raise an error if no node has what a job needs, rather than wait for ever."""
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        wanted = {"CPU": self._needs["num_cpus"], "GPU": self._needs["num_gpus"]}
        if not any(all(node.get(name, 0) >= amount for name, amount in wanted.items()) for node in nodes):
            there = "; ".join(f"{node.get('CPU', 0):g} cores and {node.get('GPU', 0):g} GPUs" for node in nodes)
            if self._joined_here:
                self._ray.shutdown()
            raise RunError(
                f"no node of the cluster has {wanted['CPU']:g} cores and {wanted['GPU']:g} GPUs; they have {there}"
            )


@dataclass(frozen=True)
class NodeOrder:
    """A job on its way to a node.

    mark: a file of the driver's store, by which a node sees whether it shares the store. cwd, mirror: the driver's
    working directory and its mirror of corpora, used where the node has them too. versions: those that must be equal.
    """

    job: Job
    mark: str
    shared_store: bool | None
    cwd: str
    mirror: str | None
    versions: Mapping[str, str]


def run_on_node(order: NodeOrder, shared: list[Any]) -> Iterator[Answer]:
    """Run one job on a node: its events, then its files where the store is not shared, then its result or error.

    shared: at most one reference, fetched when the job calls `shared()`.
    """
    if difference := _version_difference(order.versions):
        yield "error", RunError(difference)
        return
    if os.path.isdir(order.cwd):
        os.chdir(order.cwd)
    if order.mirror and "HEEDFUL_DATA" not in os.environ and os.path.isdir(order.mirror):
        os.environ["HEEDFUL_DATA"] = order.mirror
    yield "event", {"stage": f"on {platform.node()}", "pid": os.getpid()}
    arguments, scratch = dict(order.job.arguments), None
    if order.job.folder is not None:
        folder = Path(order.job.folder)
        if not (os.path.exists(order.mark) if order.shared_store is None else order.shared_store):
            scratch = Path(tempfile.mkdtemp(prefix="heedful-"))
            folder = scratch / folder.name
        arguments["folder"] = str(folder)
    try:
        for kind, content in _answers(order.job.function, arguments, shared):
            if kind == "done" and scratch is not None:
                yield from (("file", piece) for piece in pieces(folder))
                yield "settle", None
            yield kind, content
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def _answers(function: str, arguments: Mapping[str, Any], shared: list[Any]) -> Iterator[Answer]:
    """Events of a job while it runs in a thread, then its result or error; other exceptions are raised."""
    answers: queue.SimpleQueue[Answer | BaseException] = queue.SimpleQueue()

    def fetch() -> Any:
        import ray

        return ray.get(shared[0])

    def work() -> None:
        try:
            result = call(
                function,
                arguments,
                report=lambda event: answers.put(("event", event)),
                shared=fetch if shared else None,
            )
            answers.put(("done", result))
        except HeedfulError as error:
            answers.put(("error", error))
        except BaseException as error:
            answers.put(error)

    threading.Thread(target=work, daemon=True).start()
    while True:
        answer = answers.get()
        if isinstance(answer, BaseException):
            raise answer
        yield answer
        if answer[0] != "event":
            return


@cache
def versions() -> Mapping[str, str]:
    """The versions of the packages that decide results, here.

    >>> "torch" in versions()
    True
    """
    return {name: metadata.version(name) for name in DECIDING}


def _version_difference(wanted: Mapping[str, str]) -> str | None:
    here = versions()
    other = [
        f"{f'{name} {here[name]}' if name in here else f'no {name}'} instead of {version}"
        for name, version in wanted.items()
        if here.get(name) != version
    ]
    return f"node {platform.node()} has {', '.join(other)}; results would not be the same" if other else None


def connect(address: str | None) -> Any:
    """Ray, joined to the cluster at an address or at `RAY_ADDRESS`, else to one started on this machine alone.

    Ray's own search for clusters is not used: it hangs on the remains of a cluster that has ended, and takes other
    people's. No usage statistics are sent, and there is no dashboard.
    """
    address = address or os.environ.get("RAY_ADDRESS")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        import ray
    except ImportError:
        raise MissingExtraError("ray", "ray", "--on ray") from None
    if address is not None and address.startswith("ray://"):
        raise ConfigError(
            f"{address}: heedful joins a cluster rather than calling it from outside; run `ray start --address=…` on "
            "this machine, then give --address auto"
        )
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        quiet |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    try:
        ray.init(address=address or "local", **quiet)
    except (ConnectionError, TimeoutError, ValueError, RuntimeError) as error:
        if address is None:
            raise RunError(f"Ray does not start: {first_line(error)}; see `ray status`") from None
        raise RunError(
            f"no Ray cluster answers at {address}: {first_line(error)}; see `ray status`, and where the cluster asks "
            "for a token, say RAY_AUTH_MODE=token here too"
        ) from None
    return ray


def first_line(error: BaseException) -> str:
    """The first line of an error's message, without a full stop.

    >>> first_line(ValueError("no node.\\nIts log: …"))
    'no node'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0].rstrip(".") if lines else type(error).__name__
