"""What happens at a node of a cluster: one study is carried out, and all that is said of it goes to the driver."""

import os
import platform
import queue
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from heedful.errors import DataError, HeedfulError
from heedful.storage.atomic_files import usable
from heedful.sweeps.file_transfer import pieces
from heedful.sweeps.study_job import StudyJob, carry_out

DECIDING = ("heedful", "torch", "numpy", "scipy", "scikit-learn")  # versions that decide results


@dataclass(frozen=True)
class NodeOrder:
    """An order on its way to a node.

    mark: a file of the driver's store, by which a node sees whether it shares it. cwd, mirror: the driver's folder and
    its mirror of corpora, used where the node has them too. wanted: versions that must be the same.
    """

    order: dict[str, Any]
    mark: str
    shared: bool | None
    cwd: str
    mirror: str | None
    wanted: dict[str, str]


def on_node(asked: NodeOrder, corpora: list[Any]) -> Iterator[dict[str, Any]]:
    """Carry out one study, line by line: progress, then its files where the store is not shared, then `finished`.

    corpora: at most one reference to the data, fetched where the node does not have them.
    """
    if other := _differs(asked.wanted):
        yield {"error": other}
        return
    if os.path.isdir(asked.cwd):
        os.chdir(asked.cwd)
    if asked.mirror and "HEEDFUL_DATA" not in os.environ and os.path.isdir(asked.mirror):
        os.environ["HEEDFUL_DATA"] = asked.mirror
    shared = os.path.exists(asked.mark) if asked.shared is None else asked.shared
    order = StudyJob.from_dict(asked.order)
    yield {"stage": f"on {platform.node()}", "pid": os.getpid()}
    scratch = None if shared else Path(tempfile.mkdtemp(prefix="heedful-"))
    try:
        if scratch is not None:
            order = StudyJob(str(scratch / order.name), order.config, order.device)
        failed = False
        for line in _followed(order, corpora):
            failed = failed or "error" in line
            yield line
        if failed:
            return
        if scratch is not None:
            for name, piece in pieces(Path(order.folder)):
                yield {"file": name, "bytes": piece}
            yield {"whole": True}
        yield {"finished": True}
    finally:
        if scratch is not None:
            shutil.rmtree(scratch, ignore_errors=True)


def versions() -> dict[str, str]:
    """The versions that decide results, here.

    >>> "torch" in versions()
    True
    """
    return {name: metadata.version(name) for name in DECIDING}


def _differs(wanted: dict[str, str]) -> str | None:
    here = versions()
    other = [
        f"{f'{name} {here[name]}' if name in here else f'no {name}'} instead of {version}"
        for name, version in wanted.items()
        if here.get(name) != version
    ]
    return f"node {platform.node()} has {', '.join(other)}; results would not be the same" if other else None


def _followed(order: StudyJob, corpora: list[Any]) -> Iterator[dict[str, Any]]:
    """What is said while a study is carried out in a thread; an error of ours is its last line."""
    lines: queue.SimpleQueue[dict[str, Any] | BaseException | None] = queue.SimpleQueue()

    def work() -> None:
        try:
            carry_out(order, lines.put, corpus=_fetched(order, corpora))
            lines.put(None)
        except HeedfulError as error:
            lines.put({"error": str(error)})
            lines.put(None)
        except BaseException as error:
            lines.put(error)

    threading.Thread(target=work, daemon=True).start()
    while (line := lines.get()) is not None:
        if isinstance(line, BaseException):
            raise line
        yield line


def _fetched(order: StudyJob, corpora: list[Any]) -> Any:
    """The data that were sent along, where this node does not have the file."""
    sent = [reference for reference in corpora if reference is not None]
    if not sent or usable(Path(order.config.data), DataError).exists():
        return None
    import ray

    return ray.get(sent[0])
