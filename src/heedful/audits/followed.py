"""What following a training has shown: agreements, entropy and accuracy at every recorded step, and a plain verdict."""

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from heedful import markup
from heedful.errors import ConfigError
from heedful.measure.uncertainty import Estimate
from heedful.stored import Stored, frame
from heedful.studies.result import Answer, Curve, Question, Verdict
from heedful.studies.verdict import against_chance, with_interval

if TYPE_CHECKING:
    import pandas

FORMAT = 1
AGREEMENTS = ("A(alpha,beta)", "A(alpha,delta)", "A(delta,beta)")  # what every step has


@dataclass(frozen=True)
class ProbeTexts(Stored):
    """The texts a training is followed on, as its model reads them.

    model: its class. labels: their names, in the model's order. words: of each text, without those that the tokeniser
    added. right: the right label of each text, by number; none at all where they are not known.
    """

    name: str
    model: str
    labels: tuple[str, ...]
    words: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()
    decisions: tuple[str, ...] = ()

    @property
    def majority(self) -> float:
        """The share of the most frequent label; NaN where labels are not known."""
        return max(Counter(self.right).values()) / len(self.right) if self.right else float("nan")


@dataclass(frozen=True)
class StepAgreement:
    """A(u, v) at one step, with chance beside it.

    shuffle: u of one text with v of another of equal length; excess: the agreement beyond that; gain: the agreement
    beyond that of the first recorded step, text by text.
    """

    name: str
    estimate: Estimate
    shuffle: Estimate
    excess: Estimate
    gain: Estimate
    ties: int


@dataclass(frozen=True)
class FollowedStep:
    """What the probe texts show at one step.

    accuracy, loss: NaN where labels are not known. entropy: H̃ of attention over the words. special: the share of
    attention that goes to no word, but to what the tokeniser added.
    """

    step: int
    accuracy: float
    loss: float
    entropy: Estimate
    special: float
    agreements: tuple[StepAgreement, ...]

    def __post_init__(self) -> None:
        lacking = [name for name in AGREEMENTS if name not in {row.name for row in self.agreements}]
        if lacking:
            raise ConfigError(f"step {self.step} lacks {', '.join(lacking)}")

    def agreement(self, name: str) -> StepAgreement:
        """The row of that name, such as `A(alpha,beta)`."""
        for row in self.agreements:
            if row.name == name:
                return row
        raise KeyError(f"{name!r} is not among {[row.name for row in self.agreements]}")


@dataclass(frozen=True)
class FollowedTraining(Stored):
    """What following a training has shown so far; `result.json` is this and nothing else."""

    name: str
    model: str
    texts: int
    random_agreement: float
    steps: tuple[FollowedStep, ...]
    task: str = "following"
    format: int = FORMAT

    def __post_init__(self) -> None:
        if not self.steps:
            raise ConfigError("steps is empty; of a followed training at least one was recorded")

    @property
    def verdict(self) -> Verdict:
        """The fixed questions, answered from the last recorded step."""
        return judge_training(self)

    def curve(self, name: str) -> Curve:
        """An agreement over the recorded steps."""
        return Curve(
            tuple(step.step for step in self.steps), tuple(step.agreement(name).estimate.value for step in self.steps)
        )

    def to_rows(self) -> list[dict[str, Any]]:
        """One flat row per step and agreement."""
        return [
            {
                "step": step.step,
                "accuracy": step.accuracy,
                "loss": step.loss,
                "entropy": step.entropy.value,
                "special": step.special,
                "quantity": row.name,
                "agreement": row.estimate.value,
                "low": row.estimate.low,
                "high": row.estimate.high,
                "n": row.estimate.n,
                "random": self.random_agreement,
                "shuffle": row.shuffle.value,
                "excess_low": row.excess.low,
                "excess_high": row.excess.high,
                "gain": row.gain.value,
                "gain_low": row.gain.low,
                "gain_high": row.gain.high,
                "ties": row.ties,
            }
            for step in self.steps
            for row in step.agreements
        ]

    def to_pandas(self) -> "pandas.DataFrame":
        """One row per step and agreement."""
        return frame(self.to_rows())

    def _repr_html_(self) -> str:
        dots = [
            {
                "key": row.name,
                "symbol": markup.symbol(row.name),
                "convention": "own",
                "value": row.estimate.value,
                "low": row.estimate.low,
                "high": row.estimate.high,
                "shuffle": row.shuffle.value,
            }
            for row in self.steps[-1].agreements
        ]
        picture = markup.dots_and_whiskers(dots, self.random_agreement)
        return markup.notebook(self.verdict.sentence, markup.answers(self.verdict.questions), picture)


def judge_training(result: FollowedTraining) -> Verdict:
    """Answer the fixed questions of a followed training and say in one sentence what follows."""
    last = result.steps[-1]
    known = _beyond_chance(
        "Does attention look where a single word already gives the answer away?",
        result,
        last.agreement("A(alpha,beta)"),
    )
    salient = _beyond_chance(
        "Does attention look at the word that the prediction depends on most?", result, last.agreement("A(alpha,delta)")
    )
    carried = _beyond_chance(
        "Is that word one which gives the answer away by itself?", result, last.agreement("A(delta,beta)")
    )
    learned = _gained("Did training bring attention to such words?", result, last.agreement("A(alpha,beta)"))
    sentence = f"At step {last.step:,}, {_sentence(known.answer, salient.answer, learned.answer)}."
    return Verdict(sentence, (known, learned, salient, carried))


def _beyond_chance(question: str, result: FollowedTraining, row: StepAgreement) -> Question:
    return Question(
        question,
        against_chance(row.estimate, result.random_agreement, row.excess),
        f"{row.name} {with_interval(row.estimate)} against {result.random_agreement:.0%} at random "
        f"and {row.shuffle.value:.0%} for other texts of the same length",
    )


def _gained(question: str, result: FollowedTraining, row: StepAgreement) -> Question:
    first = result.steps[0].agreement(row.name).estimate
    answer: Answer = "yes" if row.gain.low > 0 else "no" if row.gain.high < 0 else "unclear"
    return Question(
        question,
        answer,
        f"{row.name} {with_interval(row.estimate)} against {with_interval(first)} at step {result.steps[0].step:,}; "
        f"text by text the gain is {with_interval(row.gain)}",
    )


def _sentence(known: Answer, salient: Answer, learned: Answer) -> str:
    if known == "unclear":
        course = "it stays open whether attention looks where single words give the answer away"
    elif known == "no":
        course = "attention does not look where single words give the answer away"
    else:
        course = "attention looks more often than chance where single words give the answer away"
        course += {
            "yes": ", and training brought it there",
            "no": ", though less than before training",
            "unclear": ", though it is not shown that training brought it there",
        }[learned]
    trust = {
        "yes": "more often than chance, it looks at the words that the prediction depends on",
        "no": "it does not look at the words that the prediction depends on",
        "unclear": "whether it looks at the words that the prediction depends on stays open",
    }[salient]
    return f"{course}; {trust}"
