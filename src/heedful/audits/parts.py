"""Long work, chunk by chunk: what was measured is written down at once, and never measured again."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heedful.audits.measuring import Part
from heedful.audits.network import Network
from heedful.audits.result import Example
from heedful.errors import HeedfulError
from heedful.files import read_json, without_nan, write_json
from heedful.seals import set_aside
from heedful.studies.pool import OnProgress
from heedful.typed import content, digest, from_mapping

FORMAT = 2


def measured(
    folder: Path,
    chunks: Sequence[Any],
    measure: Callable[[Any], Part],
    *,
    key: str,
    on_progress: OnProgress = lambda line: None,
) -> list[Part]:
    """`measure` of every chunk. Those that lie in `folder` are read; a damaged file is set aside and measured anew.

    key: everything that decides the answer beside the chunk itself; with the chunk it names the file. Progress counts
    passages: `{"model": "audit", "step": 32, "steps": 200}`.
    """
    total, done = sum(len(chunk) for chunk in chunks), 0
    parts = []
    on_progress({"model": "audit", "step": 0, "steps": total})
    for chunk in chunks:
        path = folder / f"{digest([FORMAT, key, chunk])[:32]}.json"
        part = _read(path) if path.exists() else None
        if part is None:
            if (aside := set_aside(path)) is not None:
                notice = f"{path} was damaged: set aside as {aside.name}, and measured again"
                on_progress({"model": "audit", "notice": notice})
            part = measure(chunk)
            _write(path, part)
        parts.append(part)
        done += len(chunk)
        on_progress({"model": "audit", "step": done, "steps": total})
    on_progress({"model": "audit", "done": True})
    return parts


def fingerprint(network: Network) -> str:
    """SHA-256 of a network's shape, parameters and buffers.

    >>> from heedful.audits.module import ModuleNetwork
    >>> def with_weight(value):
    ...     module = torch.nn.Linear(1, 1, bias=False)
    ...     torch.nn.init.constant_(module.weight, value)
    ...     return ModuleNetwork((module,), module, lambda embedded, change: None, layers=1, heads=1)
    >>> [fingerprint(with_weight(1.0)) == fingerprint(with_weight(value)) for value in (1.0, 2.0)]
    [True, False]
    """
    sha = hashlib.sha256(repr((network.query, network.layers, network.heads, network.can_change)).encode())
    for module in network.modules:
        sha.update(type(module).__qualname__.encode())
        for name, tensor in module.state_dict().items():
            if isinstance(tensor, torch.Tensor):
                sha.update(repr((name, tensor.dtype, tuple(tensor.shape))).encode())
                sha.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def _write(path: Path, part: Part) -> None:
    plain = without_nan(
        {
            "numbers": {name: values.tolist() for name, values in part.numbers.items()},
            "important": part.important,
            "outputs": part.outputs,
            "predicted": part.predicted,
            "examples": [asdict(example) for example in part.examples],
        }
    )
    write_json(path, {"sha256": _checksum(plain), "part": plain})


def _read(path: Path) -> Part | None:
    """What was written; nothing where the file is not the one that was written."""
    try:
        stored = read_json(path)
        plain: Mapping[str, Any] = stored["part"]
        if stored["sha256"] != _checksum(plain):
            return None
        return Part(
            {name: np.array(values, dtype=np.float64) for name, values in plain["numbers"].items()},
            plain["important"],
            plain["outputs"],
            plain["predicted"],
            [from_mapping(Example, example, where=str(path)) for example in plain["examples"]],
        )
    except (HeedfulError, KeyError, TypeError):
        return None


def _checksum(plain: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content(plain), sort_keys=True).encode()).hexdigest()
