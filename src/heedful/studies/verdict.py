"""The verdict of a study: fixed questions, each answered from its statistic and interval alone."""

from collections.abc import Sequence

from heedful.metrics.statistics import Estimate
from heedful.studies.result import AgreementResult, Answer, Question, Verdict


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


def above_chance(row: AgreementResult) -> Answer:
    """Whether an agreement of a study is above chance."""
    return against_chance(row.estimate, row.random, row.excess)


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
    answers = {above_chance(row) for row in rows}
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
