"""Tasks, doses, recipes and sizes of heedful2026 within each budget.

The copying model and its training are snell2021's (`COPYING_BUDGETS`); only how often it is evaluated differs, since
times are what is measured here.
"""

from dataclasses import dataclass, replace
from typing import Literal

from heedful.config import StudyConfig, TranslatorConfig, with_architecture
from heedful.papers.snell2021.config import COPYING_BUDGETS, CopyingBudget, study_of

DOSES: dict[str, tuple[str, ...]] = {
    "copy-dose": ("40", "41", "42", "43", "45", "50", "60", "80", "120"),
    "copy-sets": ("2", "3", "8", "64"),
    "copy-mixture": ("2", "3"),
    "copy-zipf": ("1", "2", "4", "8"),
    "copy-blocks": ("2", "4", "10", "20"),
    "copy-noise": ("10", "25", "50", "75"),
}
_FEW = {"copy-dose": ("40", "60"), "copy-blocks": ("4",), "copy-noise": ("25",)}
EASY = "copy-dose:60"  # copying 40 of 60 words: what times are compared with


@dataclass(frozen=True)
class Intervention:
    """What is changed in a copying run; by default nothing.

    uniform_steps: attention is held uniform for so many steps, then released. scrambled: in those steps every
    source is paired with the target of another, so that counts are flat. donor: parts of another model, trained for
    `donor_steps`, replace the fresh ones: "knowledge", the embeddings and the output network of a uniform twin;
    "twin", these and its encoder and decoder; "attention", the scorer of a model with attention. restart_after: a
    run with less than half of the words right after so many steps begins anew. curriculum_steps: sequences grow
    from 5 words to all in so many steps. informative: the share of every batch that is copied from 40 of 60 words.
    guide_steps: attention is drawn towards α^IBM in so many steps, less and less. embedding_scale, heads: those of
    the model.
    """

    uniform_steps: int = 0
    scrambled: bool = False
    donor: Literal["", "knowledge", "twin", "attention"] = ""
    donor_steps: int = 0
    restart_after: int = 0
    curriculum_steps: int = 0
    informative: float = 0.0
    guide_steps: int = 0
    embedding_scale: float = 1.0
    heads: int = 1


@dataclass(frozen=True)
class DoseBudget:
    """Sizes of the dose-response experiment. pairs: training pairs that preflight counts."""

    seeds: int
    pairs: int
    doses: dict[str, tuple[str, ...]]
    copying: CopyingBudget

    @property
    def tasks(self) -> dict[str, str]:
        """The family of every task."""
        return {f"{family}:{dose}": family for family, doses in self.doses.items() for dose in doses}


DOSE_BUDGETS = {
    "smoke": DoseBudget(2, 120, _FEW, COPYING_BUDGETS["smoke"]),
    "quick": DoseBudget(20, 2000, DOSES, replace(COPYING_BUDGETS["quick"], evaluate_every=5)),
    "paper": DoseBudget(50, 10_000, DOSES, replace(COPYING_BUDGETS["paper"], evaluate_every=5)),
}


_NEW: dict[str, tuple[str, ...]] = {
    "copy-dose": ("44", "100"),
    "copy-sets": ("4", "6", "16"),
    "copy-mixture": ("4",),
    "copy-zipf": ("3", "6"),
    "copy-blocks": ("5",),
    "copy-noise": ("15", "35"),
}
_FEW_NEW: dict[str, tuple[str, ...]] = {"copy-dose": ("50",), "copy-blocks": ("10",)}
CONFIRMATION_BUDGETS = {
    name: replace(budget, doses=_FEW_NEW if name == "smoke" else _NEW) for name, budget in DOSE_BUDGETS.items()
}


@dataclass(frozen=True)
class RecipeBudget:
    """Sizes of an experiment that compares recipes: for each task, recipes by name, the first of them plain."""

    seeds: int
    recipes: dict[str, dict[str, Intervention]]
    copying: CopyingBudget


PLAIN = "plain"


def _causes(head_start: int, donor_steps: int) -> dict[str, dict[str, Intervention]]:
    """What is known before attention is released, or put into the model."""
    return {
        EASY: {
            PLAIN: Intervention(),
            "head start": Intervention(uniform_steps=head_start),
            "scrambled head start": Intervention(uniform_steps=head_start, scrambled=True),
            "knowledge transplanted": Intervention(donor="knowledge", donor_steps=donor_steps),
            "knowledge and encoders transplanted": Intervention(donor="twin", donor_steps=donor_steps),
            "attention transplanted": Intervention(donor="attention", donor_steps=donor_steps),
        }
    }


CAUSE_BUDGETS = {
    "smoke": RecipeBudget(2, _causes(2, 2), COPYING_BUDGETS["smoke"]),
    "quick": RecipeBudget(20, _causes(20, 50), replace(COPYING_BUDGETS["quick"], evaluate_every=2)),
    "paper": RecipeBudget(50, _causes(20, 50), replace(COPYING_BUDGETS["paper"], evaluate_every=2)),
}
HARD = ("copy-dose:40", "copy-mixture:2")  # where counts tell nothing
WEAK = "copy-dose:41"  # where they tell a little


def _cures(phase: int) -> dict[str, dict[str, Intervention]]:
    """What might help where attention is slow to be learned; phase: steps of what happens at first only."""
    everywhere = {
        PLAIN: Intervention(),
        "embeddings of scale 0.5": Intervention(embedding_scale=0.5),
        "embeddings of scale 2": Intervention(embedding_scale=2.0),
        "2 heads": Intervention(heads=2),
        "4 heads": Intervention(heads=4),
        "8 heads": Intervention(heads=8),
        "restarts": Intervention(restart_after=2 * phase),
        "shorter sequences first": Intervention(curriculum_steps=phase),
        "5 % informative pairs": Intervention(informative=0.05),
        "attention guided by counts": Intervention(guide_steps=phase),
        "uniform attention first": Intervention(uniform_steps=phase),
    }
    guided = {name: everywhere[name] for name in (PLAIN, "attention guided by counts")}
    return {**dict.fromkeys(HARD, everywhere), WEAK: guided}


CURE_BUDGETS = {
    "smoke": RecipeBudget(2, _cures(2), replace(COPYING_BUDGETS["smoke"], batch_size=20)),
    "quick": RecipeBudget(20, _cures(40), replace(COPYING_BUDGETS["quick"], evaluate_every=5)),
    "paper": RecipeBudget(50, _cures(40), replace(COPYING_BUDGETS["paper"], evaluate_every=5)),
}


def _copier(width: int, **changes: object) -> TranslatorConfig:
    """One layer of Transformer on each side."""
    base = TranslatorConfig(width, width, layers=1, bidirectional=False, dropout=0.0, cell="transformer")
    return replace(base, **changes)  # type: ignore[arg-type]


@dataclass(frozen=True)
class TransformerBudget:
    """Sizes of the experiments with Transformers.

    copiers: models by name, the first of them plain, each with the tasks that it copies. studies: corpora of the
    studies, whose settings are those of snell2021 but for the model and the number of seeds.
    """

    seeds: int
    copying: CopyingBudget
    copiers: dict[str, TranslatorConfig]
    tasks: dict[str, tuple[str, ...]]
    corpora: tuple[str, ...]
    study_seeds: int

    def studies(self, budget: str) -> dict[str, StudyConfig]:
        """The study of every corpus."""
        of_corpus = {data: with_architecture(study_of(data, budget), "transformer") for data in self.corpora}
        return {data: replace(study, seeds=tuple(range(self.study_seeds))) for data, study in of_corpus.items()}


ONE_HEAD, EIGHT_HEADS, NO_POSITIONS = "one head", "eight heads", "without positions"
_TASKS = {ONE_HEAD: (*HARD, EASY), EIGHT_HEADS: (*HARD, EASY), NO_POSITIONS: (EASY,)}


def _copiers(width: int) -> dict[str, TranslatorConfig]:
    return {
        ONE_HEAD: _copier(width),
        EIGHT_HEADS: _copier(width, heads=8),
        NO_POSITIONS: _copier(width, positions=False),
    }


TRANSFORMER_BUDGETS = {
    "smoke": TransformerBudget(2, COPYING_BUDGETS["smoke"], _copiers(16), _TASKS, ("polarity", "toy-de-en"), 2),
    "quick": TransformerBudget(
        20,
        replace(COPYING_BUDGETS["quick"], evaluate_every=10, steps=400),
        _copiers(128),
        _TASKS,
        ("sst", "rotten-tomatoes", "multi30k:de-en"),
        5,
    ),
    "paper": TransformerBudget(
        20,
        replace(COPYING_BUDGETS["paper"], evaluate_every=10, steps=1000),
        _copiers(256),
        _TASKS,
        ("sst", "rotten-tomatoes", "multi30k:de-en", "iwslt14:de-en"),
        5,
    ),
}


STARTS = ("pretrained", "random weights")


@dataclass(frozen=True)
class FinetuningBudget:
    """Sizes of fine-tuning. encoder: "minilm", or a "tiny" BERT of random weights. record_at: the last step is the end.

    longest: pieces of a text. texts: validation texts that are followed.
    """

    seeds: int
    encoder: Literal["minilm", "tiny"]
    corpora: tuple[str, ...]
    record_at: tuple[int, ...]
    texts: int
    batch_size: int = 16
    longest: int = 64
    rate: float = 1e-4


FINETUNING_BUDGETS = {
    "smoke": FinetuningBudget(2, "tiny", ("polarity",), (0, 2, 4), 20),
    "quick": FinetuningBudget(5, "minilm", ("rotten-tomatoes", "sst"), (0, 10, 25, 50, 100, 200), 200),
    "paper": FinetuningBudget(
        10, "minilm", ("rotten-tomatoes", "sst"), (0, 10, 25, 50, 100, 200, 400, 800, 1500), 400, batch_size=32
    ),
}


@dataclass(frozen=True)
class ForecastBudget:
    """Sizes of the check of forecasts on real pairs; calibration and copying model are those of the doses.

    pairs: training pairs at most. held_out: validation pairs that are followed. max_length: pieces of a side.
    """

    seeds: int
    corpora: tuple[str, ...]
    steps: int
    dose: DoseBudget
    pairs: int = 20_000
    held_out: int = 100
    subwords: int = 2_000
    max_length: int = 40
    every: int = 10


_REAL = ("multi30k:de-en", "iwslt14:de-en", "toy-de-en")
FORECAST_BUDGETS = {
    "smoke": ForecastBudget(2, ("toy-de-en",), 4, DOSE_BUDGETS["smoke"], pairs=60, held_out=6, subwords=60, every=2),
    "quick": ForecastBudget(3, _REAL, 1_000, DOSE_BUDGETS["quick"], every=20),
    "paper": ForecastBudget(10, _REAL, 4_000, DOSE_BUDGETS["paper"], pairs=200_000, held_out=500),
}
