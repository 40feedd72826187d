"""What a worker process says to who started it: JSON, one object a line, on a standard output kept for that."""

import json
import os
from collections.abc import Callable
from typing import Any


def answering() -> Callable[[dict[str, Any]], None]:
    """Take standard output for answers alone: what a library prints from now on goes to standard error."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def report(line: dict[str, Any]) -> None:
        print(json.dumps(line), file=answers, flush=True)

    return report
