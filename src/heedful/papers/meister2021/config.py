"""Which models meister2021 needs, on which texts, and how large and long within each budget.

`paper` has the published settings as far as they are published. `quick` keeps the models and the real corpora, IMDb as
a sample and 20 Newsgroups without long texts (both in full for Table 3); training is shorter at larger learning rates.
`smoke` runs on data that need no download, and each new kind of model costs it more time to start a process than to
train.
"""

from dataclasses import dataclass, replace
from typing import Literal

from heedful.config import ModelConfig, ProjectionName
from heedful.papers.meister2021.data import RULES, VECTOR_WIDTH

Architecture = Literal["bilstm", "transformer"]
ARCHITECTURES: tuple[Architecture, ...] = ("bilstm", "transformer")
NAMES = {"bilstm": "BiLSTM", "transformer": "Transformer"}
GRID = (-100.0, -10.0, -3.0, -1.0, 0.0, 0.5, 0.9, 0.99)
ALPHAS = (1.0, 1.25, 1.5, 1.75, 2.0)


@dataclass(frozen=True)
class Projection:
    """A projection with its parameter: λ of sparsegen, α of entmax."""

    name: ProjectionName
    parameter: float | None = None

    def __str__(self) -> str:
        return self.name if self.parameter is None else f"{self.name}({self.parameter:g})"


SOFTMAX, SPARSEMAX = Projection("softmax"), Projection("sparsemax")


def sparsegen(lam: float) -> Projection:
    """Sparsegen at λ; at 0 it is sparsemax, so that no model is trained twice.

    >>> str(sparsegen(0.0)), str(sparsegen(-100.0))
    ('sparsemax', 'sparsegen(-100)')
    """
    return SPARSEMAX if lam == 0 else Projection("sparsegen", lam)


def entmax(alpha: float) -> Projection:
    """Entmax at α; softmax at 1, sparsemax at 2.

    >>> str(entmax(1.0)), str(entmax(1.5)), str(entmax(1.75)), str(entmax(2.0))
    ('softmax', 'entmax15', 'entmax(1.75)', 'sparsemax')
    """
    known = {1.0: SOFTMAX, 1.5: Projection("entmax15"), 2.0: SPARSEMAX}
    return known.get(alpha) or Projection("entmax", alpha)


@dataclass(frozen=True)
class MeisterCorpus:
    """One corpus within a budget.

    row: its name in the paper's tables. max_train, max_test, longest: what a sample is limited to. epochs: of the two
    architectures; so are `examples`, the test texts that importance is measured on (deleting every word of a long text
    costs a Transformer much), and `matrices`, those of them that have g_h(x) too.
    grid, alphas: λ of sparsegen and α of entmax that models are trained with, beside softmax and sparsemax.
    """

    row: str
    data: str
    seeds: int
    epochs: tuple[int, int]
    examples: tuple[int, int]
    matrices: tuple[int, int]
    grid: tuple[float, ...] = GRID
    alphas: tuple[float, ...] = ()
    max_train: int | None = None
    max_test: int | None = None
    longest: int | None = None

    @property
    def is_complete(self) -> bool:
        """Whether all training texts are used."""
        return self.max_train is None and self.longest is None

    @property
    def name(self) -> str:
        """The paper's name for these data; that of the data where they only stand in."""
        return self.row if self.data in RULES else self.data


@dataclass(frozen=True)
class Attacks:
    """How adversaries are made.

    seeds: of each base, how many are attacked. penalty: λ of the table; penalties: those of the trade-off, on the
    corpora of `tradeoff`, which also have the KL variant (at `kl_penalty`) and sparsemax bases.
    frozen_rate: the learning rate of a frozen adversary's scorer, which has no other parameters to wait for.
    instance_steps, instance_rate: Adam's, on the scores of each text.
    """

    seeds: int
    penalty: float
    penalties: tuple[float, ...]
    kl_penalty: float
    tradeoff: tuple[str, ...]
    frozen_rate: float = 1e-2
    instance_steps: int = 200
    instance_rate: float = 0.1


@dataclass(frozen=True)
class MeisterBudget:
    """Everything that decides the results; `rates` are the learning rates of the two architectures.

    baselines: corpora in full for the accuracies of Table 3, where `corpora` has samples of them.
    """

    corpora: tuple[MeisterCorpus, ...]
    bilstm: ModelConfig
    transformer: ModelConfig
    attacks: Attacks
    rates: tuple[float, float]
    attention_rate: float
    batch_size: int = 32
    weight_decay: float = 1e-5
    vectors: bool = True
    baselines: tuple[MeisterCorpus, ...] = ()

    @property
    def in_full(self) -> tuple[MeisterCorpus, ...]:
        """The corpora of Table 3.

        >>> [corpus.is_complete for corpus in BUDGETS["quick"].in_full]
        [True, True, True]
        """
        full = {corpus.data: corpus for corpus in self.baselines}
        return tuple(full.get(corpus.data, corpus) for corpus in self.corpora)

    def model(self, architecture: Architecture, projection: Projection) -> ModelConfig:
        """The model's settings with this projection.

        >>> round(BUDGETS["paper"].model("transformer", sparsegen(-1.0)).scale ** 2, 6)
        128.0
        """
        config = self.bilstm if architecture == "bilstm" else self.transformer
        return replace(config, projection=projection.name, projection_parameter=projection.parameter)


def _bilstm(embedding: int, hidden: int) -> ModelConfig:
    return ModelConfig(
        embedding, "bilstm", hidden, scorer="additive", scorer_hidden=hidden, embedding_range=_UNKNOWN_WORDS
    )


def _transformer(embedding: int, hidden: int) -> ModelConfig:
    return ModelConfig(
        embedding, "transformer", hidden, layers=2, scorer="dot", scale=hidden**0.5, embedding_range=_UNKNOWN_WORDS
    )


_UNKNOWN_WORDS = 0.5  # words without a vector start uniform in ± this, about as wide as the vectors
_BILSTM, _TRANSFORMER = _bilstm(VECTOR_WIDTH, 128), _transformer(VECTOR_WIDTH, 128)

BUDGETS = {
    "smoke": MeisterBudget(
        (
            MeisterCorpus("20News", "rotten-tomatoes", 2, (1, 1), (6, 6), (3, 3), (-1.0, 0.0, 0.5), (), 64, 24),
            MeisterCorpus("SST", "polarity", 2, (1, 1), (6, 6), (3, 3), (-1.0, 0.0, 0.5), (1.0, 1.5, 2.0), 64, 24),
        ),
        _bilstm(8, 8),
        _transformer(8, 8),
        Attacks(2, 1.0, (1.0,), 0.1, ("polarity",), instance_steps=4),
        rates=(1e-2, 1e-2),
        attention_rate=1.0,
        vectors=False,
        baselines=(MeisterCorpus("SST", "polarity", 2, (1, 1), (2, 2), (2, 2)),),
    ),
    "quick": MeisterBudget(
        (
            MeisterCorpus("IMDb", "imdb", 10, (3, 3), (120, 120), (120, 120), (0.0,), (), 1500, 750, 100),
            MeisterCorpus("20News", "20news-sport", 10, (4, 3), (120, 120), (120, 120), longest=160),
            MeisterCorpus("SST", "sst", 10, (3, 3), (200, 120), (120, 120), GRID, (1.0, 1.5, 2.0)),
        ),
        _BILSTM,
        _TRANSFORMER,
        Attacks(10, 1.0, (0.1, 1.0, 3.0), 0.1, ("sst",)),
        rates=(1e-3, 5e-4),
        attention_rate=1.0,
        baselines=(
            MeisterCorpus("IMDb", "imdb", 5, (3, 3), (4, 4), (2, 2)),
            MeisterCorpus("20News", "20news-sport", 5, (4, 3), (4, 4), (2, 2)),
        ),
    ),
    "paper": MeisterBudget(
        tuple(
            MeisterCorpus(row, data, 5, (20, 60), (500, 500), (100, 100), GRID, ALPHAS)
            for row, data in (("IMDb", "imdb"), ("20News", "20news-sport"), ("SST", "sst"))
        ),
        _BILSTM,
        _TRANSFORMER,
        Attacks(5, 1.0, (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), 0.1, ("sst", "20news-sport", "imdb")),
        rates=(1e-4, 1e-5),
        attention_rate=10.0,
    ),
}
