"""Which models of sunlu2020 are trained, on what, and how often, within each budget.

`quick` has all seven λ and all four models on SST and 20News I, long texts cut to 160 words; of IMDb a sample and of
20News II all texts, with DP alone and five λ. Ten seeds decide claims, twenty those about the other models on SST; λ
that no claim speaks of have fewer there. Training ends six epochs after the best. `paper` has everything, forty
epochs, and five seeds where the paper has one. In both, 20 Newsgroups are stripped as sklearn does it, and the L2
penalty is on one layer, as in the supplement (`differences` has the reasons). `smoke` runs on data that need no
download.
"""

from dataclasses import dataclass, field

from heedful.papers.sunlu2020.data import TOPICS, Sample
from heedful.papers.sunlu2020.models import Kind, Recipe, TrainingJob

KINDS: tuple[Kind, ...] = ("DP", "DP-L", "DP-A", "AD")
SCALES = (0.001, 1.0, 10.0, 20.0, 50.0, 100.0, 10_000.0)
SMALL, ONE, MODERATE, LARGE, HUGE = 0.001, 1.0, 10.0, 100.0, 10_000.0


@dataclass(frozen=True)
class TrainingPlan:
    """Models of some kinds, at some λ, from some seeds, on one corpus; `row` is its name in the paper (None: ours)."""

    row: str | None
    data: str
    kinds: tuple[Kind, ...]
    scales: tuple[float, ...]
    seeds: int
    sample: Sample = field(default_factory=Sample)

    @property
    def name(self) -> str:
        """What its corpus is called."""
        return self.row or self.data

    def scales_of(self, kind: Kind) -> tuple[float, ...]:
        """Its λ; mean pooling has none, so it is trained once.

        >>> TrainingPlan(None, "sst", ("DP", "mean"), (10.0, 100.0), 5).scales_of("mean")
        (1.0,)
        """
        return (1.0,) if kind == "mean" else self.scales

    def jobs(
        self, recipe: Recipe, kind: Kind, scale: float, *, coefficient: float = 0.0, spread: float = 1.0
    ) -> list[TrainingJob]:
        """The same model from each seed."""
        return [
            TrainingJob(self.data, kind, scale, seed, coefficient, spread, self.sample, recipe)
            for seed in range(self.seeds)
        ]


@dataclass(frozen=True)
class SunLuBudget:
    """What one budget trains.

    plans: Table 2's, the corpus of most figures (the paper's SST) first; a corpus may have several. binary: the corpora
    of Figure 2. three: the one with three labels. synthetic: generated data with two and with three labels.
    coefficients: of ∣VᵀW∣. narrow: a smaller spread of V for additive attention.
    """

    plans: tuple[TrainingPlan, ...]
    synthetic: tuple[TrainingPlan, ...]
    binary: tuple[str, ...]
    three: str
    recipe: Recipe
    coefficients: tuple[float, ...]
    narrow: float = 0.1

    @property
    def first(self) -> TrainingPlan:
        """The corpus of most figures."""
        return self.plans[0]

    def jobs(self, data: str, kind: Kind, scale: float) -> list[TrainingJob]:
        """The models of that kind at that λ in Table 2; none where the budget trains none. Mean pooling has λ = 1."""
        for plan in self.plans:
            if plan.data == data and kind in plan.kinds and scale in plan.scales_of(kind):
                return plan.jobs(self.recipe, kind, scale)
        return []

    def table2(self) -> list[TrainingJob]:
        """The models of Table 2."""
        return [
            job
            for plan in self.plans
            for kind in plan.kinds
            for scale in plan.scales_of(kind)
            for job in plan.jobs(self.recipe, kind, scale)
        ]


_ALL: tuple[Kind, ...] = (*KINDS, "mean")
_OTHERS: tuple[Kind, ...] = ("DP-L", "DP-A", "AD")
_FEW = (0.001, 1.0, 10.0, 100.0, 10_000.0)
_TINY = Sample(train=500, validation=60, test=60, max_length=20)
_CUT = Sample(max_length=160)


def _generated(scales: tuple[float, ...], seeds: int, sample: Sample) -> tuple[TrainingPlan, ...]:
    """Plans for generated data with two and with three labels."""
    return tuple(TrainingPlan(None, data, ("DP",), scales, seeds, sample) for data in ("polarity", TOPICS))


BUDGETS = {
    "smoke": SunLuBudget(
        plans=(
            TrainingPlan(None, "polarity", _ALL, (SMALL, ONE, MODERATE, LARGE, HUGE), 2, _TINY),
            TrainingPlan(None, "rotten-tomatoes", ("DP", "mean"), (MODERATE,), 2, _TINY),
            TrainingPlan(None, TOPICS, ("DP",), (MODERATE,), 2, _TINY),
        ),
        synthetic=_generated((MODERATE,), 2, _TINY),
        binary=("polarity", "rotten-tomatoes"),
        three=TOPICS,
        recipe=Recipe(epochs=2, batch_size=20, width=8),
        coefficients=(0.0, 0.1),
    ),
    "quick": SunLuBudget(
        plans=(
            TrainingPlan("SST", "sst", ("DP", "mean"), SCALES, 10),
            TrainingPlan("SST", "sst", _OTHERS, (SMALL, MODERATE, LARGE), 20),
            TrainingPlan("SST", "sst", _OTHERS, (1.0, 20.0, 50.0, HUGE), 5),
            TrainingPlan("20News I", "20news-sport-sklearn", ("DP", "mean"), SCALES, 10, _CUT),
            TrainingPlan("20News I", "20news-sport-sklearn", _OTHERS, (SMALL, MODERATE), 10, _CUT),
            TrainingPlan("20News I", "20news-sport-sklearn", _OTHERS, (1.0, 20.0, 50.0, LARGE, HUGE), 3, _CUT),
            TrainingPlan("IMDB", "imdb", ("DP", "mean"), _FEW, 10, Sample(2500, 1000, 2000, 160)),
            TrainingPlan("20News II", "20news-three-sklearn", ("DP", "mean"), _FEW, 10, _CUT),
        ),
        synthetic=_generated((MODERATE, LARGE), 10, Sample()),
        binary=("sst", "imdb", "20news-sport-sklearn"),
        three="20news-three-sklearn",
        recipe=Recipe(patience=6, penalised="layer"),
        coefficients=(0.0, 0.001, 0.01, 0.1),
    ),
    "paper": SunLuBudget(
        plans=(
            TrainingPlan("SST", "sst", _ALL, SCALES, 5),
            TrainingPlan("20News I", "20news-sport-sklearn", _ALL, SCALES, 5),
            TrainingPlan("IMDB", "imdb", _ALL, SCALES, 5, Sample(17_212, 4304, 4363, 400)),
            TrainingPlan("20News II", "20news-three-sklearn", _ALL, SCALES, 5),
        ),
        synthetic=_generated(SCALES, 5, Sample()),
        binary=("sst", "imdb", "20news-sport-sklearn"),
        three="20news-three-sklearn",
        recipe=Recipe(penalised="layer"),
        coefficients=(0.0, 0.0001, 0.001, 0.01, 0.1),
    ),
}
