"""What a worker process says to who started it: JSON, one object a line, on a standard output kept for that."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

Report = Callable[[dict[str, Any]], None]


@contextmanager
def answering() -> Iterator[Report]:
    """Take standard output for answers alone: what a library prints meanwhile goes to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)

        def report(line: dict[str, Any]) -> None:
            print(json.dumps(line), file=answers, flush=True)

        try:
            yield report
        finally:
            os.dup2(answers.fileno(), 1)
