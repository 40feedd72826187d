"""Compute units of a paper's experiments: `python -m heedful.papers.worker DEVICE`.

Orders come in on standard input, one JSON object a line (`name`, `function`, `arguments`, `out`); progress goes out on
standard output. Started by `execution.pool`, it ends with that process.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import torch

from heedful.errors import HeedfulError
from heedful.execution.worker import Report, answering
from heedful.models.training import choose_device
from heedful.papers.units import save


def main(arguments: list[str], answer: Report) -> int:
    """Work through the orders; an error of ours is one JSON line, exit code 2."""
    torch.set_num_threads(1)
    device = choose_device(arguments[0])
    for line in sys.stdin:
        order = json.loads(line)
        module, function = order["function"].split(":")

        def report(progress: dict[str, Any], name: str = order["name"]) -> None:
            answer({"model": name, **progress})

        try:
            compute = getattr(importlib.import_module(module), function)
            save(Path(order["out"]), compute(**order["arguments"], device=device, report=report))
        except HeedfulError as error:
            report({"error": str(error)})
            return 2
        report({"done": True})
    return 0


if __name__ == "__main__":
    with answering() as answer:
        sys.exit(main(sys.argv[1:], answer))
