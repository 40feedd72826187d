"""The result of a study: frozen dataclasses that save, load, and turn into tables; and its verdict.

The verdict answers fixed questions, each from its statistic and interval alone.
"""

from collections.abc import Sequence
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


def judge(agreements: Sequence[AgreementResult]) -> Verdict:
    """Answer the fixed questions of a study, and sum them up in one sentence."""
    rows = {(row.name, row.convention): row for row in agreements}
    translating = ("A(alpha,alpha_ibm)", "own") in rows
    answer, label = ("the next word", "word pairs") if translating else ("the answer", "words together with labels")

    def both(own: str, cross: str | None = None) -> tuple[AgreementResult, AgreementResult]:
        return rows[own, "own"], rows[cross or own, "cross"]

    attends = _above_chance(
        f"Does attention look where a single word already gives {answer} away?", both("A(alpha,beta)")
    )
    beforehand = _above_chance(
        "Is that knowledge learned without attention, so that it can guide attention?", both("A(alpha,beta_uf)")
    )
    counting = _above_chance(
        f"Is it the knowledge that counting {label} gives?", both("A(beta_uf,beta_px)", "A(beta_px,beta_uf)")
    )
    salient = _above_chance("Do words that move the prediction carry that knowledge?", both("A(delta,beta_uf)"))
    stable = _above_chance(
        "Would another random seed attend to the same words?", (rows["A(alpha,alpha_hat)", "cross"],)
    )
    if translating:
        last = _above_chance("Does attention align as co-occurrence counts do?", both("A(alpha,alpha_ibm)"))
    else:
        last = _lower(
            "Does attention fail to form when word knowledge is frozen?",
            rows["A(alpha,alpha_fr)", "cross"],
            rows["A(alpha,beta_uf)", "cross"],
        )
    questions = (attends, beforehand, counting, salient, stable, last)
    return Verdict(_sentence(attends.answer, beforehand.answer, stable.answer), questions)


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


def _above_chance(question: str, rows: Sequence[AgreementResult]) -> Question:
    answers = {against_chance(row.estimate, row.random, row.excess) for row in rows}
    answer = answers.pop() if len(answers) == 1 else "unclear"
    numbers = "; ".join(
        f"{row.name} {with_interval(row.estimate)} ({row.convention}) against {row.random:.0%} at random "
        f"and {row.shuffle.value:.0%} for other texts of the same length"
        for row in rows
    )
    return Question(question, answer, numbers)


def _lower(question: str, lesser: AgreementResult, greater: AgreementResult) -> Question:
    answer: Answer = "unclear"
    if lesser.estimate.high < greater.estimate.low:
        answer = "yes"
    elif lesser.estimate.low > greater.estimate.high:
        answer = "no"
    numbers = f"{lesser.name} {with_interval(lesser.estimate)} against {greater.name} {with_interval(greater.estimate)}"
    return Question(question, answer, numbers)


def with_interval(estimate: Estimate) -> str:
    """An estimate with its interval, in whole percents.

    >>> with_interval(Estimate(0.54, 0.51, 0.57, 90))
    '54% [51%, 57%]'
    """
    return f"{estimate.value:.0%} [{estimate.low:.0%}, {estimate.high:.0%}]"


def _sentence(attends: Answer, beforehand: Answer, stable: Answer) -> str:
    if attends == "yes" and beforehand == "yes":
        course = "Attention here follows what single words say of the answer, and that was learnable without attention"
    elif attends == "yes":
        course = "Attention here follows what single words say of the answer, but it is not shown that this came first"
    elif attends == "no":
        course = "Attention here does not look where single words give the answer"
    else:
        course = "Whether attention here follows what single words say of the answer stays open"
    trust = {
        "yes": "another seed attends to the same words more often than chance",
        "no": "another seed attends elsewhere, so no single model's heat-map speaks for the task",
        "unclear": "it is open whether another seed would attend to the same words",
    }[stable]
    return f"{course}; {trust}."
