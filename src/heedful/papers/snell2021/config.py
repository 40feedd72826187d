"""The corpora, studies and sizes of snell2021 within each budget.

`quick` keeps the paper's classifier and real corpora; training takes 1,000 steps, long texts are cut to 50 words, and
ten seeds (twenty on SMS spam, five of translators) decide claims. The translator is half as wide. `paper` has the
published sizes: full texts, the vocabulary rule and the batches of the released code, its evaluation steps, two
standard seeds (six on SST and SMS, for ξ) and one uniform twin, one frozen model and one proxy. `smoke` runs on data
that need no download.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from heedful.config import ModelConfig, ProxyConfig, StudyConfig, TrainConfig, TranslatorConfig, study_preset
from heedful.data.catalog import task_of_name


@dataclass(frozen=True)
class SnellCorpus:
    """A line of the tables: its name in the paper (None: ours only), and the corpus we have for it (None: none).

    sample: what our copy is a sample of, where it is one.
    """

    row: str | None
    data: str | None
    sample: str | None = None

    @property
    def name(self) -> str:
        """What its line is called."""
        return self.row or self.data or ""


CLASSIFICATION = (
    SnellCorpus("IMDB", "imdb"),
    SnellCorpus("Yelp", "yelp", "6,829 training reviews of a sample of 10,000, where the paper has 88,821"),
    SnellCorpus("AG News", "ag-news", "5,033 training texts of a sample of 10,000, where the paper has 60,000"),
    SnellCorpus("20 NG", "20news-sport-quoted"),
    SnellCorpus("SST", "sst"),
    SnellCorpus("Amzn", "amazon", "5,815 training reviews of 8,000 in four domains, where the paper has 32,514"),
    SnellCorpus(None, "rotten-tomatoes"),
    SnellCorpus(None, "sms-spam"),
)
TRANSLATION = (
    SnellCorpus("Multi30k", "multi30k:de-en"),
    SnellCorpus(
        "IWSLT14",
        "iwslt14:de-en",
        "4,600 training pairs and the 6,750 of the test set for training, where the paper has 160,240",
    ),
    SnellCorpus("News It-Pt", None),
    SnellCorpus("News En-Nl", None),
    SnellCorpus("News En-Pt", None),
)
_SMOKE = {"imdb": "rotten-tomatoes", "sst": "polarity", "multi30k:de-en": "toy-de-en"}  # what takes their places


def corpora(budget: str, task: str | None = None) -> tuple[SnellCorpus, ...]:
    """The corpora of a table within a budget, in its order; `smoke` has few, on data that need no download.

    >>> [corpus.data for corpus in corpora("smoke")]
    ['rotten-tomatoes', 'polarity', 'toy-de-en']
    """
    lines = {"classification": CLASSIFICATION, "translation": TRANSLATION}
    chosen = lines[task] if task else CLASSIFICATION + TRANSLATION
    if budget != "smoke":
        return chosen
    return tuple(SnellCorpus(None, _SMOKE[line.data]) for line in chosen if line.data in _SMOKE)


def studies(budget: str, task: str | None = None) -> dict[str, StudyConfig]:
    """The studies behind a table, by corpus: those of the task, or of both.

    >>> list(studies("quick", "translation"))
    ['multi30k:de-en', 'iwslt14:de-en']
    """
    return {c.data: study_of(c.data, budget) for c in corpora(budget, task) if c.data}


def translation_study(budget: str) -> StudyConfig:
    """The study of the first translation corpus that we have."""
    return next(iter(studies(budget, "translation").values()))


def study_of(data: str, budget: str) -> StudyConfig:
    """The settings of the study of a corpus.

    >>> study_of("sst", "quick").seeds, study_of("sst", "paper").train.steps
    ((0, 1, 2, 3, 4, 5, 6, 7, 8, 9), 4000)
    """
    task = task_of_name(data)
    preset = study_preset(data, budget, task)
    if budget == "smoke":
        return replace(preset, train_sample=8)
    if budget == "quick":
        return replace(preset, **(_QUICK.get(data) or _LONG))
    return replace(preset, **(_paper_translation(data) if task == "translation" else _paper_classification(data)))


def _paper_classification(data: str) -> dict[str, Any]:
    """The released code: texts uncut, vocabulary with GloVe's words, batches in random order, proxies of 60 epochs."""
    rate = 5e-5 if data in ("imdb", "yelp", "amazon") else 1.5e-4
    return {
        "seeds": (0, 1, 2, 3, 4, 5) if data in ("sst", "sms-spam") else (0, 1),
        "shared_twins": True,
        "known_words": "glove",
        "max_length": 100_000,
        "max_validation": 1_000,
        "train_sample": 300,
        "train": TrainConfig(bucketed=False),
        "proxy": ProxyConfig(256, TrainConfig(batch_size=64, learning_rate=rate, bucketed=False), epochs=60),
    }


def _paper_translation(data: str) -> dict[str, Any]:
    """Two standard models and one uniform twin; the released code trains the proxy for 30 epochs at 1e-3."""
    settings: dict[str, Any] = {
        "seeds": (0, 1),
        "shared_twins": True,
        "max_validation": 500,
        "train_sample": 100,
        "proxy": ProxyConfig(256, TrainConfig(batch_size=64), epochs=30),
    }
    if data == "iwslt14:de-en":  # 30 epochs of the 11,350 pairs that we have
        steps = 21_300
        at = (0, 50, 100, 500, 1000, 1500, *range(2000, 20_001, 2000), steps)
        settings |= {"train": TrainConfig(steps=steps, batch_size=16, evaluate_at=at)}
    return settings


def _train(steps: int, *at: int, batch_size: int = 32) -> TrainConfig:
    return TrainConfig(steps=steps, batch_size=batch_size, evaluate_at=(0, *at, steps))


def _proxy(steps: int, every: int, rate: float, width: int = 256) -> ProxyConfig:
    at = tuple(range(0, steps + 1, every))
    return ProxyConfig(width, TrainConfig(steps=steps, learning_rate=rate, evaluate_at=at))


_RECORDED = (10, 50, 100, 150, 200, 250, 300, 400, 500, 750)  # early steps, where agreement rises, and later ones
_SHORT = {
    "seeds": tuple(range(10)),
    "max_validation": 400,
    "train_sample": 150,
    "train": _train(1000, *_RECORDED),
    "proxy": _proxy(4000, 200, 3e-4),
}
_LONG: dict[str, Any] = {
    "seeds": tuple(range(10)),
    "max_length": 50,
    "max_validation": 200,
    "train_sample": 60,
    "train": _train(1000, 50, 100, 200, 300, 500, 750),
    "proxy": _proxy(4000, 250, 4e-4),
}
_PAIRS: dict[str, Any] = {
    "seeds": (0, 1, 2, 3, 4),
    "max_validation": 500,
    "train_sample": 100,
    "train": _train(3000, 50, 100, 250, 500, 1000, 2000),
    "proxy": _proxy(4000, 250, 1e-3, width=128),
}
_QUICK: dict[str, dict[str, Any]] = {
    "rotten-tomatoes": _SHORT,
    "sms-spam": _SHORT | {"seeds": tuple(range(20))},
    "sst": _SHORT | {"max_validation": 600, "train_sample": 200},
    "multi30k:de-en": _PAIRS,
    "iwslt14:de-en": _PAIRS,
}

COPYING = TranslatorConfig(layers=1, bidirectional=False, attention="bilinear", output="tanh", dropout=0.0)


# The heads of Figure 6: as the paper's text has them (contexts summed, own W^(k)), and as its released code has them
# (GRUs, an embedding for each side, a value projection for each head, the mean over heads).
HEADS = {
    "text": COPYING,
    "released": replace(COPYING, attention="affine", cell="gru", shared_embedding=False),
}


@dataclass(frozen=True)
class CopyingBudget:
    """Sizes of the copying experiments.

    A head of Figure 6 is good if a model with it alone passes 95 % within `head_steps` in each of three orders of the
    data, bad if it ends below 60 % in each. Candidates are tried, `head_round` at a time, until there are `head_kinds`
    of each kind or `head_candidates` were tried. Every run then draws `heads` different ones.
    """

    seeds: int
    steps: int
    mixture_seeds: int
    permute_seeds: int
    head_candidates: int
    head_runs: int
    head_steps: int
    head_kinds: int
    head_round: int = 10
    head_orders: int = 3
    heads: int = 8
    batch_size: int = 64
    evaluate_every: int = 10
    held_out: int = 64
    translator: TranslatorConfig = COPYING
    variants: Mapping[str, TranslatorConfig] = field(default_factory=lambda: HEADS)


_TINY = {name: replace(config, embedding=16, hidden=16) for name, config in HEADS.items()}
COPYING_BUDGETS = {
    "smoke": CopyingBudget(
        2,
        4,
        2,
        2,
        head_candidates=4,
        head_runs=2,
        head_steps=4,
        head_kinds=2,
        head_round=2,
        heads=2,
        batch_size=4,
        evaluate_every=2,
        held_out=4,
        translator=_TINY["text"],
        variants=_TINY,
    ),
    "quick": CopyingBudget(20, 200, 20, 20, head_candidates=40, head_runs=20, head_steps=200, head_kinds=10),
    # The released code: batches of 128, 200 steps, 20 heads of each kind.
    "paper": CopyingBudget(
        20, 200, 20, 20, head_candidates=200, head_runs=20, head_steps=200, head_kinds=20, batch_size=128
    ),
}


@dataclass(frozen=True)
class KeywordBudget:
    """Sizes of the keyword experiment; `early` is the step at which Hypothesis 2 is tested.

    model: with an LSTM in one direction, which decides; a BiLSTM of the same sizes is trained beside it.
    """

    seeds: int
    steps: int
    early: int
    every: int = 2
    batch_size: int = 32
    held_out: int = 200
    model: ModelConfig = field(default_factory=lambda: ModelConfig(encoder="lstm"))

    @property
    def evaluate_at(self) -> tuple[int, ...]:
        """Every 2 steps to 60, then every 10."""
        dense = range(0, min(60, self.steps), self.every)
        return tuple(sorted({*dense, *range(60, self.steps, 10), self.early, self.steps}))


KEYWORD_BUDGETS = {
    "smoke": KeywordBudget(2, 4, 2, batch_size=4, held_out=8, model=ModelConfig(8, "lstm", 8, scorer_hidden=8)),
    "quick": KeywordBudget(10, 120, 10),
    "paper": KeywordBudget(20, 500, 10, held_out=1000),
}


@dataclass(frozen=True)
class LinearBudget:
    """Sizes of the linear translator's experiment; its data are those of the study of the same corpus."""

    seeds: int
    sentences: int  # validation sentences whose words' optimal attention is found
    steps: int | None = None  # None: as the study's translator


LINEAR_BUDGETS = {
    "smoke": LinearBudget(2, 3),
    "quick": LinearBudget(5, 100, steps=6000),
    "paper": LinearBudget(5, 200),
}

SUBWORDS = {"smoke": 500, "quick": 8000, "paper": 8000}  # of the translation corpora in Table 9
EQ53_SEEDS = {"smoke": 2, "quick": 10, "paper": 20}
