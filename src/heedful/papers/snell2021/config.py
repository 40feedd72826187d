"""The studies behind the tables of snell2021: which corpora, and with which settings within each budget.

`quick` keeps the paper's classifier and real corpora; training is shorter, long texts are cut to 50 words, and five
seeds give every number an interval. The translator is half as wide. `paper` has the published sizes and five seeds
more for ξ. `smoke` runs on data that need no download.
"""

from dataclasses import dataclass, replace
from typing import Any

from heedful.config import ProxyConfig, StudyConfig, TrainConfig, study_preset


@dataclass(frozen=True)
class SnellCorpus:
    """A line of the tables: its name in the paper (None: ours only), and the corpus we have for it (None: none)."""

    row: str | None
    data: str | None


CLASSIFICATION = (
    SnellCorpus("IMDB", "imdb"),
    SnellCorpus("Yelp", None),
    SnellCorpus("AG News", "ag-news"),
    SnellCorpus("20 NG", "20news-sport"),
    SnellCorpus("SST", "sst"),
    SnellCorpus("Amzn", "amazon"),
    SnellCorpus(None, "rotten-tomatoes"),
    SnellCorpus(None, "sms-spam"),
)
TRANSLATION = (
    SnellCorpus("Multi30k", "multi30k:de-en"),
    SnellCorpus("IWSLT14", None),
    SnellCorpus("News It-Pt", None),
    SnellCorpus("News En-Nl", None),
    SnellCorpus("News En-Pt", None),
)
_SMOKE = {"imdb": "rotten-tomatoes", "sst": "polarity", "multi30k:de-en": "toy-de-en"}  # what stands in for it


def corpora(budget: str, task: str | None = None) -> tuple[SnellCorpus, ...]:
    """The lines of a table within a budget; `smoke` has few, on data that need no download.

    >>> [corpus.data for corpus in corpora("smoke")]
    ['rotten-tomatoes', 'polarity', 'toy-de-en']
    """
    lines = {"classification": CLASSIFICATION, "translation": TRANSLATION}
    chosen = lines[task] if task else CLASSIFICATION + TRANSLATION
    if budget != "smoke":
        return chosen
    return tuple(SnellCorpus(None, _SMOKE[line.data]) for line in chosen if line.data in _SMOKE)


def study_of(data: str, budget: str) -> StudyConfig:
    """The settings of the study of a corpus.

    >>> study_of("sst", "quick").seeds, study_of("sst", "paper").train.steps
    ((0, 1, 2, 3, 4), 4000)
    """
    task = "translation" if data in ("multi30k:de-en", "toy-de-en") else "classification"
    preset = study_preset(data, budget, task)
    if budget == "smoke":
        return replace(preset, train_sample=8)
    if budget == "quick":
        return replace(preset, seeds=(0, 1, 2, 3, 4), **(_QUICK.get(data) or _LONG))
    return replace(preset, seeds=(0, 1, 2, 3, 4, 5), train_sample=1000)


def _train(steps: int, *at: int, batch_size: int = 32) -> TrainConfig:
    return TrainConfig(steps=steps, batch_size=batch_size, evaluate_at=(0, *at, steps))


def _proxy(steps: int, every: int, rate: float, width: int = 256) -> ProxyConfig:
    at = tuple(range(0, steps + 1, every))
    return ProxyConfig(width, TrainConfig(steps=steps, learning_rate=rate, evaluate_at=at))


_SHORT = {
    "max_validation": 400,
    "train_sample": 150,
    "train": _train(400, 10, 50, 100, 150, 200, 300),
    "proxy": _proxy(2000, 200, 3e-4),
}
_LONG: dict[str, Any] = {
    "max_length": 50,
    "max_validation": 200,
    "train_sample": 60,
    "train": _train(150, 50, 100),
    "proxy": _proxy(1500, 250, 4e-4),
}
_QUICK: dict[str, dict[str, Any]] = {
    "rotten-tomatoes": _SHORT | {"train": _train(200, 50, 100, 150)},
    "sms-spam": _SHORT,
    "sst": _SHORT
    | {
        "max_validation": 600,
        "train_sample": 200,
        "train": _train(1000, 10, 50, 100, 150, 200, 250, 300, 400, 500, 750),  # long enough for A.7
    },
    "multi30k:de-en": {
        "max_validation": 60,
        "train_sample": 30,
        "train": _train(600, 50, 100, 250, 400),
        "proxy": _proxy(1500, 250, 1e-3, width=128),
    },
}
