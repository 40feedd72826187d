"""Settings of every wrong kind, as TOML and as plain values."""

import random
import tempfile
from pathlib import Path
from typing import Any

from heedful.config import ModelConfig, StudyConfig, TrainConfig, digest, from_mapping, from_toml, to_toml
from heedful.studies.result import StudyResult
from tests.faults import horrors
from tests.faults.fuzzing import Tally

GOOD = to_toml(StudyConfig("sst")).encode()
VALUES: tuple[Any, ...] = (
    0, -1, 1, 2**63, -(2**63), 10**400, 0.0, -0.5, 1e-320, 1e308, float("inf"), float("-inf"), float("nan"), "", "x",
    "../../etc/passwd", "\0", "\ud800", "9" * 5000, True, False, None, [], [[]], [1, "a"], [0, 0], [-1, -2], {},
    {"a": 1},
    {"steps": -5}, [float("nan")] * 3, (3, 2, 1), list(range(3)),
)  # fmt: skip
KINDS = (StudyConfig, ModelConfig, TrainConfig, StudyResult)


def fuzz(rounds: int, seed: int = 0) -> Tally:
    """Every setting of every configuration with every value; then TOML files, mutated."""
    tally, draw = Tally("fuzz-config"), random.Random(seed)
    for kind in KINDS:
        for name in [*getattr(kind, "__dataclass_fields__"), "nonsense", "", "__class__"]:  # noqa: B009
            for value in VALUES:
                what = f"{kind.__name__}.{name[:20]} = {value!r:.40}"
                _mapping(tally, what, kind, {"data": "sst", name: value} if kind is StudyConfig else {name: value})
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "config.toml"
        for name, content in horrors.contents("txt"):
            path.write_bytes(content)
            tally.attempt(f"TOML, {name}", lambda: from_toml(StudyConfig, path), place=path.name)
        for name, place in horrors.places(Path(made), ".toml"):
            tally.attempt(f"TOML, {name}", lambda place=place: from_toml(StudyConfig, place))
        for i in range(rounds):
            path.write_bytes(horrors.mutated(GOOD, draw))
            tally.attempt(f"TOML drawn {i}", lambda: from_toml(StudyConfig, path), place=path.name)
    return tally


def _mapping(tally: Tally, what: str, kind: type[Any], mapping: dict[str, Any]) -> None:
    config = tally.attempt(what, lambda: from_mapping(kind, mapping, where="grid.toml"), place="grid.toml")
    if config is not None and kind is not StudyResult:
        tally.attempt(f"{what}, digest", lambda: digest(config))
