"""Carry out studies of a sweep: `python -m heedful.sweeps.worker`.

Orders come in on standard input, one JSON object a line; progress goes out on standard output, then `done` or `error`.
Where standard input ends while a study is under way, whoever started this process is gone, and it ends too.
"""

import json
import os
import queue
import sys
import threading

from heedful.errors import HeedfulError
from heedful.sweeps.process import Report, answering
from heedful.sweeps.study_job import StudyJob, carry_out


def main(report: Report) -> int:
    """Carry out orders until there are no more; an error of ours is one line, and the next order may come."""
    orders: queue.SimpleQueue[str | None] = queue.SimpleQueue()
    busy = threading.Event()

    def listen() -> None:
        for line in sys.stdin:
            busy.set()
            orders.put(line)
        if busy.is_set():
            os._exit(3)
        orders.put(None)

    threading.Thread(target=listen, daemon=True).start()
    while (line := orders.get()) is not None:
        try:
            carry_out(StudyJob.from_dict(json.loads(line)), report)
        except HeedfulError as error:
            busy.clear()
            report({"error": str(error)})
        else:
            busy.clear()
            report({"finished": True})
    return 0


if __name__ == "__main__":
    with answering() as report:
        sys.exit(main(report))
