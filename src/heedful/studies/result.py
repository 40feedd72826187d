"""The result of a study: frozen dataclasses that save, load, and turn into tables."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from heedful import html as markup
from heedful.metrics.statistics import Estimate, NestedEstimate
from heedful.storage.serialization import Stored, frame

if TYPE_CHECKING:
    import pandas

Convention = Literal["own", "cross"]
Answer = Literal["yes", "no", "unclear", "not asked"]
Size = Literal["strongly", "partly", "hardly"]
Control = Literal["random", "shuffle", "wrong label"]
Twin = Literal["uniform", "proxy"]  # models whose knowledge attention is compared with
Status = Literal["answered", "learned nothing", "too few texts"]
FORMAT = 1
MIN_SEEDS = 5  # from here on intervals include seeds, and a verdict speaks of training in general


def decisive(estimate: NestedEstimate, seeds: int) -> Estimate:
    """The value with the interval that counts: over seeds and texts from five seeds on, below that of these models.

    >>> texts, seeds = Estimate(0.3, 0.25, 0.35, 500), Estimate(0.3, 0.1, 0.5, 500)
    >>> print(decisive(NestedEstimate(texts, seeds, (0.2, 0.4)), 2))
    0.300 [0.200, 0.400] (n = 500)
    """
    return estimate.seeds if seeds >= MIN_SEEDS else estimate.models


@dataclass(frozen=True)
class Curve:
    """A quantity over recorded steps, averaged over seeds."""

    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Evidence:
    """What the verdict reads of an agreement: A on held-out texts, its three controls, its excess over the largest.

    Where a step is chosen by its maximum, it is chosen on one half of the texts and read on the other. Under *cross*
    every seed is compared with up to four others. `value` and `excess` have intervals over texts that contain every
    training, `value_seeds` and `excess_seeds` over seeds and texts. The controls: Â, the matched shuffle, and the wrong
    label (of translations: another output word of the same sentence). `control` names the largest. words_only:
    attention whose highest weight is not on a word (but on `<bos>`, `<eos>` or punctuation) counts as no agreement.
    """

    value: Estimate
    value_seeds: Estimate
    excess: Estimate
    excess_seeds: Estimate
    random: float
    shuffle: Estimate
    wrong: Estimate | None
    control: Control
    seeds: int
    words_only: bool = False

    @property
    def expected(self) -> float:
        """What the largest control gives."""
        return self.value.value - self.excess.value

    @property
    def decisive_value(self) -> Estimate:
        """The value with the interval that counts: over seeds and texts from five seeds on, else of these models."""
        return self.value_seeds if self.seeds >= MIN_SEEDS else self.value

    @property
    def decisive_excess(self) -> Estimate:
        """The excess with the interval that counts."""
        return self.excess_seeds if self.seeds >= MIN_SEEDS else self.excess


@dataclass(frozen=True)
class AgreementResult:
    """A(u, v) under one convention, and its chance levels.

    `estimate` is read as the paper reads it: where v (or u) comes from another model, at the step of highest agreement,
    which `chosen_steps` gives for each seed, with `accuracy_there` the accuracy of the model it was read from, and
    `split_half` the value chosen on one half of the texts and read on the other. `shuffle` is the matched shuffle.
    Intervals are those that decide (`decisive`): over seeds and texts from five seeds on; below, over texts, and wide
    enough for the value of each seed. `over_seeds`: the mean over seeds with Student's interval.

    `xi` is read once from the curves averaged over seeds; `xi_per_seed` from the curve of each.

    The verdict reads `evidence` instead, and `excess` is its excess over the largest control, with the interval that
    decides. Without evidence (Kendall's τ, training texts) `excess` is what exceeds the shuffle.
    """

    name: str
    convention: Convention
    estimate: Estimate
    shuffle: Estimate
    excess: Estimate
    random: float
    ties: int
    per_seed: tuple[float, ...]
    over_seeds: Estimate
    curve: Curve
    chosen_steps: tuple[int, ...] | None
    accuracy_there: tuple[float, ...] | None
    split_half: float | None
    xi: Estimate
    xi_reached: bool
    xi_bleu: float | None = None
    xi_per_seed: tuple[float, ...] = ()
    evidence: Evidence | None = None


@dataclass(frozen=True)
class AlignmentResult:
    """How well attention aligns words, where gold alignments exist: the error rate (AER), lower is better."""

    attention: Curve  # AER of α over training, averaged over seeds
    untrained: Estimate
    trained: Estimate
    counting: Estimate  # α^IBM of the paper's count table
    model_1: Estimate  # after the last iteration of IBM Model 1
    diagonal: Estimate  # the same relative place: what position alone can do
    chance: float


@dataclass(frozen=True)
class ModelSummary:
    """One model: its performance at each evaluation."""

    name: str
    kind: str
    seed: int
    steps: tuple[int, ...]
    accuracy: tuple[float | None, ...]
    loss: tuple[float | None, ...]
    best_step: int
    bleu: tuple[float, ...] = ()

    @property
    def best_accuracy(self) -> float | None:
        """Validation accuracy at the step of lowest validation loss, whose quantities count as the model's."""
        return self.accuracy[self.steps.index(self.best_step)]


@dataclass(frozen=True)
class TopPosition:
    """Where the highest attention weight of one seed's model lies: the share of texts (or output words) for each."""

    seed: int
    word: float
    bos: float
    eos: float
    punctuation: float


@dataclass(frozen=True)
class Gate:
    """Whether the standard models learned anything: their accuracy beside a trivial baseline.

    baseline: the accuracy of always answering `answer`, the most frequent label or word in training. gain: the
    difference, whose interval decides. texts: validation texts or sentence pairs. Translations also have BLEU, and the
    gain over BLEU against the references of other sentences. preflight: what word counts say, where nothing was
    learned.
    """

    passed: bool
    texts: int
    accuracy: Estimate
    answer: str
    baseline: float
    gain: Estimate
    logistic: float | None = None
    bleu: float | None = None
    bleu_gain: Estimate | None = None
    preflight: str | None = None


@dataclass(frozen=True)
class Question:
    """One fixed question, answered from its statistic alone; size: how much, in words."""

    question: str
    answer: Answer
    because: str
    size: Size | None = None


@dataclass(frozen=True)
class Verdict:
    """The questions, and one sentence drawn from their answers; scope: what they are claimed of."""

    sentence: str
    questions: tuple[Question, ...]
    status: Status = "answered"
    scope: str = ""
    gate: Gate | None = None


@dataclass(frozen=True)
class StudyResult(Stored):
    """Everything a study measured; `result.json` is this and nothing else."""

    task: str
    data: dict[str, Any]
    budget: str
    seeds: tuple[int, ...]
    config_digest: str
    models: tuple[ModelSummary, ...]
    agreements: tuple[AgreementResult, ...]
    random_agreement: float
    xi_final: Estimate
    entropy: Curve
    entropy_final: Estimate
    verdict: Verdict
    alignment: AlignmentResult | None = None
    top_positions: tuple[TopPosition, ...] = ()
    format: int = FORMAT

    def agreement(self, name: str, convention: Convention = "own") -> AgreementResult:
        """The row of that name, such as `A(alpha,beta)`."""
        for row in self.agreements:
            if row.name == name and row.convention == convention:
                return row
        known = sorted({row.name for row in self.agreements})
        raise KeyError(f"{name!r} ({convention}) is not among {known}")

    def mean_best_accuracy(self, kind: str) -> float | None:
        """The best accuracy of a kind of model, averaged over its seeds; None where there is none."""
        best = [model.best_accuracy for model in self.models if model.kind == kind and model.best_accuracy is not None]
        return float(np.mean(best)) if best else None

    def to_pandas(self) -> "pandas.DataFrame":
        """One row per agreement and convention."""
        return frame([agreement_row(row) for row in self.agreements])

    def _repr_html_(self) -> str:
        rows = [agreement_row(row) for row in self.agreements]
        dots = [
            {
                # own and cross compare the same pair in either order
                "key": tuple(sorted(row["quantity"][2:-1].split(","))),
                "symbol": markup.symbol(row["quantity"]),
                **row,
                "value": row["agreement"] if row["held_out"] is None else row["held_out"],
                "low": row["low"] if row["held_out"] is None else row["held_out_low"],
                "high": row["high"] if row["held_out"] is None else row["held_out_high"],
                "control": row["shuffle"] if row["expected"] is None else row["expected"],
            }
            for row in rows
        ]
        picture = markup.dots_and_whiskers(dots, self.random_agreement)
        return markup.notebook(
            self.verdict.sentence, markup.answers(self.verdict.questions), picture, markup.table(rows)
        )


def agreement_row(row: AgreementResult) -> dict[str, Any]:
    """One agreement as a flat row of a table."""
    seen = row.evidence
    return {
        "quantity": row.name,
        "convention": row.convention,
        "agreement": row.estimate.value,
        "low": row.estimate.low,
        "high": row.estimate.high,
        "n": row.estimate.n,
        "random": row.random,
        "shuffle": row.shuffle.value,
        "held_out": seen.decisive_value.value if seen else None,
        "held_out_low": seen.decisive_value.low if seen else None,
        "held_out_high": seen.decisive_value.high if seen else None,
        "wrong_label": seen.wrong.value if seen and seen.wrong else None,
        "expected": seen.expected if seen else None,
        "excess": row.excess.value,
        "excess_low": row.excess.low,
        "excess_high": row.excess.high,
        "split_half": row.split_half,
        "xi": row.xi.value,
        "xi_low": row.xi.low,
        "xi_high": row.xi.high,
        "xi_reached": row.xi_reached,
        "ties": row.ties,
    }


def against_chance(estimate: Estimate, random: float, excess: Estimate) -> Answer:
    """Yes if the whole interval is above Â and above the matched shuffle; no if it is below either.

    >>> against_chance(Estimate(0.5, 0.4, 0.6, 90), 0.1, Estimate(0.2, 0.1, 0.3, 90))
    'yes'
    """
    if estimate.low > random and excess.low > 0:
        return "yes"
    if estimate.high < random or excess.high < 0:
        return "no"
    return "unclear"


def with_interval(estimate: Estimate, decimals: int = 0) -> str:
    """An estimate with its interval, in percents.

    >>> with_interval(Estimate(0.54, 0.51, 0.57, 90)), with_interval(Estimate(0.196, 0.1, 0.3, 90), 1)
    ('54% [51%, 57%]', '19.6% [10.0%, 30.0%]')
    """
    value, low, high = (f"{share:.{decimals}%}" for share in (estimate.value, estimate.low, estimate.high))
    return f"{value} [{low}, {high}]"
