"""A worker process: it runs jobs that come over a pipe, and ends with the process that started it.

`execution.pool` starts `python -m heedful.execution.worker DESCRIPTOR DRIVER`. The pipe is not standard output, so
nothing that a library prints can break the protocol. Messages are pickled, and go between our own processes only.
"""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any, Literal, TypedDict

from heedful.errors import HeedfulError

JobState = Literal["kept", "waiting", "started", "finished", "retry", "failed"]
_POLL_SECONDS = 0.2


class Event(TypedDict, total=False):
    """Progress of a model, a study, a unit of a paper or a pass over a corpus: whichever of these keys apply.

    model: what the event is about. stage: what is done now. step, steps, resumed, done: how far it is. notice: what
    people should know. The others up to `batch_loss` are measurements at that step. pid: of the process at work.
    study, place, state, attempt, figures, error: of a study of a sweep and its place on the axes.
    """

    model: str
    stage: str
    notice: str
    step: int
    steps: int
    resumed: bool
    done: bool
    accuracy: float | None
    loss: float | None
    train_loss: float | None
    bleu: float
    train_bleu: float
    batch_loss: float
    pid: int
    study: str
    place: tuple[str, ...]
    state: JobState
    attempt: int
    figures: str
    error: str


OnEvent = Callable[[Event], None]


def main(pipe: Connection, driver: int) -> None:
    """Run jobs until the pipe is closed.

    A `HeedfulError` is answered, and the next job may come. Any other exception ends the process, with its traceback
    on standard error.
    """
    threading.Thread(target=_end_with, args=(driver,), daemon=True).start()
    shared: dict[str, Any] = {}
    while True:
        try:
            message = pipe.recv()
        except EOFError:
            return
        if message[0] == "share":
            shared[message[1]] = message[2]
            continue
        _, function, arguments, key = message
        try:
            result = call(
                function,
                arguments,
                report=lambda event: pipe.send(("event", event)),
                shared=None if key is None else partial(shared.__getitem__, key),
            )
        except HeedfulError as error:
            pipe.send(("error", error))
        else:
            pipe.send(("done", result))


def call(
    function: str, arguments: Mapping[str, Any], *, report: OnEvent, shared: Callable[[], Any] | None = None
) -> Any:
    """Call `module:function` with a job's arguments; `shared` is passed on where the job has a shared object.

    >>> call("builtins:dict", {"a": 1}, report=len)
    {'a': 1, 'report': <built-in function len>}
    """
    module, _, name = function.partition(":")
    more = {} if shared is None else {"shared": shared}
    return getattr(import_module(module), name)(**arguments, **more, report=report)


def _end_with(driver: int) -> None:
    """End this process as soon as the driver is gone, however that ended; every file is written atomically."""
    while os.getppid() == driver:
        time.sleep(_POLL_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    os.set_inheritable(int(sys.argv[1]), False)
    main(Connection(int(sys.argv[1])), int(sys.argv[2]))
