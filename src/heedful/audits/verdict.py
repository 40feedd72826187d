"""Verdict of an audit: may this model's attention be shown as an explanation? Six questions, answered by numbers."""

import math
from collections.abc import Callable

from heedful.attribution.attention_maps import DELETION, EVERYWHERE, RANDOM, layer_name
from heedful.audits.result import Contrast, Score, find
from heedful.metrics.statistics import Estimate
from heedful.studies.result import Answer, Question, Verdict


def verdict_sentence(
    moves: Answer, agrees: Answer, trained: Answer, needs: Answer, another: Answer, layers: Answer
) -> str:
    """The sentence for the answers to the six questions of an audit, in their order.

    >>> verdict_sentence("yes", "yes", "yes", "yes", "no", "yes")
    'A reader of the heat-map may be told that the prediction rests on the words it marks; no quite different marks
    were found that go with the same prediction.'
    """
    if (moves, agrees, needs, another) == ("yes", "yes", "yes", "no"):
        may = (
            "that the prediction rests on the words it marks; no quite different marks were found that go with the "
            "same prediction"
        )
    elif agrees == needs == "yes":
        may = "that the words it marks matter to the prediction more often than chance"
    elif "yes" in (agrees, needs):
        may = "that by one measure of two the words it marks matter to the prediction more often than chance"
    elif moves == "yes":
        may = "that the prediction depends on these weights, but not that it depends on the words they lie on"
    else:
        may = "where this model's attention lies, and nothing about why it predicts what it does"
    wrong = {
        "that these weights are the reason, as quite other ones give the same prediction": another == "yes",
        "that attention decides, as the prediction hardly moves when it is shuffled": moves == "no",
        "that marked words are the important ones": agrees == "no",
        "that the model needs the words marked": needs == "no",
        "that training put the marks there, as a random model's agree as well": trained == "no",
        "that any layer shows the same": layers == "no",
    }
    no = ", nor ".join(text for text, holds in wrong.items() if holds)
    unanswered = (moves, agrees, trained, needs, another, layers).count("unclear")
    may_not = f"; they may not be told {no}" if no else ""
    rest = f"; {unanswered} of 6 questions stay open" if unanswered else ""
    return f"A reader of the heat-map may be told {may}{may_not}{rest}."


MOVES = 0.05  # total variation under permuted attention above which attention moves predictions
FAR = math.log(2) / 2  # Jensen–Shannon divergence above which another map is another explanation
NEGLIGIBLE_TAU = 0.05  # agreement below this counts as none
NEGLIGIBLE_DROP = 0.01  # so does a fall in probability
FULL_SEARCH = 100  # steps after which a failed search for another attention is evidence
FEWEST = 5  # texts that a mean needs for a meaningful interval
NOT_REPLACED = "no other attention could be put into the model"


def judge(
    scores: tuple[Score, ...],
    contrasts: tuple[Contrast, ...],
    *,
    headline: str,
    layers: int,
    random_agreement: float,
    searched: int = FULL_SEARCH,
) -> Verdict:
    """Answer the fixed questions and summarise them in one sentence; each answer depends on its own numbers alone.

    searched: how many steps the search for another attention took.

    >>> judge((), (), headline="layer 1", layers=1, random_agreement=0.2).questions[0].answer
    'unclear'
    """
    evidence = _Evidence(scores, contrasts, headline)
    questions = (
        _moves(evidence),
        _agrees(evidence, random_agreement),
        _trained(evidence),
        _needs(evidence),
        _another(evidence, searched),
        _layers(evidence, layers),
    )
    return Verdict(verdict_sentence(*(question.answer for question in questions)), questions)


def above(estimate: Estimate, negligible: float) -> Answer:
    """Yes where the interval lies above 0; no where it reaches 0 and lies below a negligible value.

    >>> above(Estimate(0.1, 0.05, 0.2, 9), 0.05), above(Estimate(0.01, -0.01, 0.03, 9), 0.05)
    ('yes', 'no')
    """
    return "yes" if estimate.low > 0 else "no" if estimate.high < negligible else "unclear"


def beyond(estimate: Estimate, threshold: float) -> Answer:
    """Yes where the interval lies above a threshold, no where it lies below.

    >>> beyond(Estimate(0.1, 0.04, 0.2, 9), 0.05)
    'unclear'
    """
    return "yes" if estimate.low > threshold else "no" if estimate.high < threshold else "unclear"


class _Evidence:
    """Scores and contrasts of the headline map, by name."""

    def __init__(self, scores: tuple[Score, ...], contrasts: tuple[Contrast, ...], headline: str) -> None:
        self.scores, self.contrasts, self.headline = scores, contrasts, headline

    def score(self, quantity: str, of: str, against: str = "") -> Estimate | None:
        return find(self.scores, quantity, of, against)

    def contrast(self, quantity: str, second: str) -> Estimate | None:
        return next((c.difference for c in self.contrasts if (c.quantity, c.second) == (quantity, second)), None)


def _answered(
    question: str, estimate: Estimate | None, missing: str, answer: Callable[[Estimate], tuple[Answer, str]]
) -> Question:
    if estimate is None:
        return Question(question, "unclear", f"not asked: {missing}")
    decided, because = answer(estimate)
    return _unless_few(question, estimate, decided, because)


def _unless_few(question: str, estimate: Estimate, answer: Answer, because: str) -> Question:
    if estimate.n >= FEWEST:
        return Question(question, answer, because)
    return Question(question, "unclear", f"only {estimate.n} texts have a value, {FEWEST} are needed; {because}")


def _moves(evidence: _Evidence) -> Question:
    def answer(tvd: Estimate) -> tuple[Answer, str]:
        flip = evidence.score("flip", "permuted", EVERYWHERE)
        labels = "" if flip is None else f", and {flip.value:.0%} of them become another"
        return beyond(tvd, MOVES), (
            f"with attention permuted in all layers, predictions move by {_shown(tvd)} in total variation{labels}; "
            f"asked is more than {MOVES}"
        )

    question = "Does attention move the prediction?"
    return _answered(question, evidence.score("tvd", "permuted", EVERYWHERE), NOT_REPLACED, answer)


def _agrees(evidence: _Evidence, random_agreement: float) -> Question:
    def answer(tau: Estimate) -> tuple[Answer, str]:
        asked = f"asked is more than 0 (below {NEGLIGIBLE_TAU} is none)"
        words = f"{evidence.headline} and {DELETION}: τ {_shown(tau)}, {asked}"
        agreement = evidence.score("agreement", evidence.headline, DELETION)
        excess = evidence.score("excess agreement", evidence.headline, DELETION)
        shuffled = evidence.score("shuffled agreement", evidence.headline, DELETION)
        if agreement is None or agreement.n == 0:
            return above(tau, NEGLIGIBLE_TAU), words
        if excess is None or shuffled is None or excess.n == 0:
            chance, top = f"{random_agreement:.0%} at random", beyond(agreement, random_agreement)
        else:
            chance = f"{shuffled.value:.0%} with other texts of the same length"
            top = beyond(excess, 0.0)
        order = above(tau, NEGLIGIBLE_TAU)
        both: Answer = "no" if "no" in (order, top) else "yes" if order == top == "yes" else "unclear"
        return both, f"{words}; the highest word is among the most important in {_percent(agreement)}, {chance}"

    missing = f"there is no importance by {DELETION}"
    question = "Does it agree with the importance of words better than chance?"
    return _answered(question, evidence.score("tau", evidence.headline, DELETION), missing, answer)


def _trained(evidence: _Evidence) -> Question:
    return _more_than_none(
        "Does it agree better than that of a frozen random model of the same shape?",
        evidence.contrast(f"tau with {DELETION}", "random model"),
        "there is no random model of the same shape",
        NEGLIGIBLE_TAU,
        f"τ with {DELETION} is higher by {{}} than in a random model",
    )


def _needs(evidence: _Evidence) -> Question:
    return _more_than_none(
        "Does the prediction need the words it points to more than random words?",
        evidence.contrast("comprehensiveness", RANDOM),
        "the model could not be asked about shortened texts",
        NEGLIGIBLE_DROP,
        "without its words the probability falls by {} more than without random words",
    )


def _more_than_none(
    question: str, difference: Estimate | None, missing: str, negligible: float, because: str
) -> Question:
    asked = f"asked is more than 0 (below {negligible} is none)"
    return _answered(
        question, difference, missing, lambda d: (above(d, negligible), f"{because.format(_shown(d))}; {asked}")
    )


def _another(evidence: _Evidence, searched: int) -> Question:
    """A short search can find another attention, but cannot show that there is none."""

    def answer(jsd: Estimate) -> tuple[Answer, str]:
        decided = beyond(jsd, FAR)
        short = decided == "no" and searched < FULL_SEARCH
        return "unclear" if short else decided, (
            f"maps were found that give the same prediction and diverge by {_shown(jsd)} nats (at most "
            f"{math.log(2):.3f}); asked is more than {FAR:.3f}"
            + (f"; the search had {searched} steps, and a no needs {FULL_SEARCH}" if short else "")
        )

    missing = (
        "another was not looked for, which is done in one step or more, and for the map of one layer or head"
        if evidence.score("tvd", "permuted", EVERYWHERE)
        else NOT_REPLACED
    )
    question = "Could another attention give the same prediction?"
    return _answered(question, evidence.score("adversary", evidence.headline), missing, answer)


def _layers(evidence: _Evidence, layers: int) -> Question:
    question = "Does it agree with importance in every layer?"
    taus = {name: evidence.score("tau", name, DELETION) for name in map(layer_name, range(layers))}
    known = {name: tau for name, tau in taus.items() if tau is not None}
    if len(known) < layers:
        return Question(question, "unclear", f"not asked: there is no importance by {DELETION} for every layer")
    answers = [above(tau, NEGLIGIBLE_TAU) for tau in known.values()]
    answer: Answer = "no" if "no" in answers else "unclear" if "unclear" in answers else "yes"
    numbers = "; ".join(f"{name} {_shown(tau)}" for name, tau in known.items())
    because = f"τ with {DELETION}: {numbers}; asked is more than 0 in each (below {NEGLIGIBLE_TAU} is none)"
    return _unless_few(question, min(known.values(), key=lambda tau: tau.n), answer, because)


def _shown(estimate: Estimate) -> str:
    undefined = f" ({estimate.undefined} undefined)" if estimate.undefined else ""
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]{undefined}"


def _percent(estimate: Estimate) -> str:
    return f"{estimate.value:.0%} [{estimate.low:.0%}, {estimate.high:.0%}] of passages"
