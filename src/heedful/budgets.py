"""The presets of a study: `smoke` takes seconds, `quick` minutes on two cores, `paper` has the published sizes.

They differ only in sizes. What a study is of decides its model: texts and sentence pairs have snell2021's classifier
and translator, the copying tasks its copying model.
"""

from typing import Any

from heedful.config import ModelConfig, ProxyConfig, StudyConfig, TaskName, TrainConfig, TranslatorConfig
from heedful.errors import ConfigError

COPYING = ("copy-vocab", "copy-permutation", "copy-mixture", "permute")


def study_preset(data: str, budget: str = "quick", task: TaskName = "classification") -> StudyConfig:
    """The settings of a study of that data within that budget.

    >>> study_preset("sst", "quick").train.steps, study_preset("multi30k", "paper", "translation").subwords
    (500, 8000)
    """
    kind = "copying" if data in COPYING else task
    if budget not in _PRESETS[kind]:
        raise ConfigError(f"budget {budget!r} is not one of {', '.join(_PRESETS[kind])}")
    return StudyConfig(data, task=task, budget=budget, **_PRESETS[kind][budget])  # type: ignore[arg-type]


def _proxy(
    steps: int, every: int, width: int = 256, learning_rate: float = 1.5e-4, batch_size: int = 32
) -> ProxyConfig:
    at = tuple(range(0, steps + 1, every))
    train = TrainConfig(steps=steps, learning_rate=learning_rate, batch_size=batch_size, evaluate_at=at)
    return ProxyConfig(width=width, train=train)


_COPYING = TranslatorConfig(layers=1, bidirectional=False, attention="bilinear", output="tanh", dropout=0.0)
_SMALL_COPYING = TranslatorConfig(
    embedding=24, hidden=24, layers=1, bidirectional=False, attention="bilinear", output="tanh", dropout=0.0
)

_PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "classification": {
        "smoke": {
            "max_train": 256,
            "max_validation": 48,
            "max_length": 40,
            "model": ModelConfig(embedding=24, hidden=16, scorer_hidden=16),
            "train": TrainConfig(steps=12, learning_rate=1e-2, evaluate_at=(0, 4, 8, 12)),
            "proxy": _proxy(60, 20, width=32, learning_rate=1e-2),
        },
        "quick": {
            "max_train": 25_000,
            "max_validation": 1_000,
            "max_length": 200,
            "train": TrainConfig(steps=500, evaluate_at=(0, 10, 50, 100, 150, 200, 250, 300, 400, 500)),
            "proxy": _proxy(4000, 250),
        },
        "paper": {"max_validation": 4_000, "seeds": (0, 1, 2, 3, 4)},
    },
    "translation": {
        "smoke": {
            "max_train": 300,
            "max_validation": 12,
            "max_length": 40,
            "subwords": 300,
            "translator": TranslatorConfig(embedding=24, hidden=24, layers=1, dropout=0.0),
            "train": TrainConfig(steps=12, learning_rate=1e-2, evaluate_at=(0, 6, 12)),
            "proxy": _proxy(60, 20, width=32, learning_rate=1e-2),
        },
        "quick": {
            "max_validation": 160,
            "max_length": 60,
            "subwords": 4000,
            "translator": TranslatorConfig(embedding=128, hidden=128, dropout=0.2),
            "train": TrainConfig(steps=1500, batch_size=32, evaluate_at=(0, 50, 100, 250, 500, 750, 1000, 1250, 1500)),
            "proxy": _proxy(3000, 300, width=128, learning_rate=1e-3),
        },
        "paper": {
            "max_length": 100,
            "train": TrainConfig(
                steps=19_500, batch_size=16, evaluate_at=(0, 50, 100, 500, 1000, 1500, *range(3500, 19_501, 2000))
            ),
            "proxy": _proxy(20_000, 1000),
        },
    },
    "copying": {
        "smoke": {
            "source_bos": False,
            "max_train": 256,
            "max_validation": 8,
            "translator": _SMALL_COPYING,
            "train": TrainConfig(steps=6, batch_size=16, evaluate_at=(0, 3, 6)),
            "proxy": _proxy(20, 10, width=16),
        },
        "quick": {
            "source_bos": False,
            "max_validation": 32,
            "translator": _COPYING,
            "train": TrainConfig(steps=350, batch_size=64, evaluate_at=(*range(0, 101, 10), *range(150, 351, 50))),
            "proxy": _proxy(1000, 100, learning_rate=1e-3, batch_size=64),
        },
        "paper": {
            "source_bos": False,
            "max_validation": 200,
            "translator": _COPYING,
            "train": TrainConfig(steps=1500, batch_size=64, evaluate_at=(*range(0, 101, 10), *range(150, 1501, 50))),
            "proxy": _proxy(1000, 100, learning_rate=1e-3, batch_size=64),
            "seeds": tuple(range(20)),
        },
    },
}
