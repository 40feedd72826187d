"""The result of a study: frozen dataclasses that save, load, and turn into tables."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from heedful import html as markup
from heedful.metrics.statistics import Estimate
from heedful.storage.serialization import Stored, frame

if TYPE_CHECKING:
    import pandas

Convention = Literal["own", "cross"]
Answer = Literal["yes", "no", "unclear"]
FORMAT = 1


@dataclass(frozen=True)
class Curve:
    """A quantity over recorded steps, averaged over seeds."""

    steps: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class AgreementResult:
    """A(u, v) under one convention, and its chance levels.

    `shuffle` is the matched shuffle, `excess` the agreement beyond it on texts that have a partner. Where v (or u)
    is read at the step of highest agreement, `chosen_steps` gives it for each seed, `accuracy_there` the accuracy of
    the model it was read from, and `split_half` the value chosen on one half of the texts and read on the other.
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
        """Validation accuracy at the step whose quantities count as the model's."""
        return self.accuracy[self.steps.index(self.best_step)]


@dataclass(frozen=True)
class Question:
    """One fixed question, answered from its statistic alone."""

    question: str
    answer: Answer
    because: str


@dataclass(frozen=True)
class Verdict:
    """The questions, and one sentence drawn from their answers."""

    sentence: str
    questions: tuple[Question, ...]


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
                "key": sorted(row["quantity"][2:-1].split(",")),  # own and cross compare the same pair in either order
                "symbol": markup.symbol(row["quantity"]),
                "value": row["agreement"],
                **row,
            }
            for row in rows
        ]
        picture = markup.dots_and_whiskers(dots, self.random_agreement)
        return markup.notebook(
            self.verdict.sentence, markup.answers(self.verdict.questions), picture, markup.table(rows)
        )


def agreement_row(row: AgreementResult) -> dict[str, Any]:
    """One agreement as a flat row of a table."""
    return {
        "quantity": row.name,
        "convention": row.convention,
        "agreement": row.estimate.value,
        "low": row.estimate.low,
        "high": row.estimate.high,
        "n": row.estimate.n,
        "random": row.random,
        "shuffle": row.shuffle.value,
        "excess_low": row.excess.low,
        "excess_high": row.excess.high,
        "split_half": row.split_half,
        "xi": row.xi.value,
        "xi_low": row.xi.low,
        "xi_high": row.xi.high,
        "xi_reached": row.xi_reached,
        "ties": row.ties,
    }
