"""Verdict of an audit: may this model's attention be shown as an explanation? Six questions, and a grade.

Every question is about the map that a reader is shown. It is answered *yes* where the 95 % interval of its statistic
lies above the smallest effect worth having, *no* where it lies below, and *unclear* otherwise. Where the statistic is a
tested difference, *yes* also needs a corrected p-value below 0.05, as in the table of comparisons. A grade needs the
questions it rests on: where one of them was left out by choice, there is none, unless another answer decides alone.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from heedful.attribution.attention_maps import (
    DELETION,
    EVERYWHERE,
    GRADIENT,
    RANDOM,
    layer_name,
    layer_of,
    weights_of,
)
from heedful.audits.result import AuditQuestion, AuditVerdict, Contrast, Grade, LabelCount, Score, Sense, find
from heedful.audits.scores import CONCORDANCE, RANDOM_MODELS
from heedful.config import AuditSettings
from heedful.metrics.statistics import Estimate
from heedful.studies.result import Answer

SIGNIFICANT = 0.05  # corrected p-values below this count as a difference
FULL_SEARCH = 100  # steps after which a failed search for another attention is evidence
FEWEST = 5  # texts that a mean needs for a meaningful interval
NOT_REPLACED = "no other attention could be put into the model"
NO_LABELS = "without labels it is not known whether the model predicts better than the majority"
QUESTIONS = (
    "Does the attention shown move the prediction?",
    "Does it agree with the importance of words better than chance?",
    "Does it agree better than the attention of untrained models?",
    "Does the prediction need the words it points to more than random words?",
    "Could another attention give the same prediction?",
    "Does it agree with importance in every layer?",
)
MEASURES_OF = (("changes",), ("tau",), ("tau", "random"), ("erasure",), ("adversary",), ("tau",))  # of each question
OF_GIVEN = (1, 3)  # questions that are asked of explanations that were computed elsewhere
NOT_OF_MODEL = "the explanation was given, not made of this model's attention"
PREFIX: dict[Grade, str] = {
    "show": "Show it",
    "show with a caveat": "Show it with a caveat",
    "do not show": "Do not show it as an explanation",
}


def judge(
    scores: tuple[Score, ...],
    contrasts: tuple[Contrast, ...],
    *,
    headline: str,
    layers: int,
    random_agreement: float,
    settings: AuditSettings | None = None,
    accuracy: Estimate | None = None,
    labels: Sequence[LabelCount] = (),
    given: bool = False,
) -> AuditVerdict:
    """Answer the fixed questions and grade the map.

    given: it was computed elsewhere, so that only its agreement with importance and the need for its words are asked.
    random_agreement: the agreement of a word drawn at random, for texts without another of their length. accuracy,
    labels: whether the model beats the majority; not known if not given.

    >>> verdict = judge((), (), headline="layer 1", layers=1, random_agreement=0.2)
    >>> verdict.grade, verdict.questions[0].answer
    ('do not show', 'unclear')
    """
    evidence = _Evidence(scores, contrasts, headline, layers, random_agreement, settings or AuditSettings())
    agrees = _agrees(evidence)
    asked: tuple[AuditQuestion, ...] = (
        _moves(evidence), agrees, _trained(evidence), _needs(evidence), _another(evidence), _layers(evidence, agrees)
    )  # fmt: skip
    if given:
        asked = tuple(q if n in OF_GIVEN else _not_asked(n, NOT_OF_MODEL) for n, q in enumerate(asked))
    skipped = [
        None if given and number not in OF_GIVEN else _skipped(question, number, evidence.settings)
        for number, question in enumerate(asked)
    ]
    questions = tuple(
        question if reason is None else replace(question, because=reason)
        for question, reason in zip(asked, skipped, strict=True)
    )
    decided = _ruled_out(questions, _majority(accuracy, labels))
    missing = [QUESTIONS[number] for number, reason in enumerate(skipped[:-1]) if reason is not None]
    if decided is None and missing:
        return AuditVerdict(
            f"Not graded: questions that a grade rests on were not asked ({' '.join(missing)}).", questions
        )
    grade, reason = decided or (_given_graded(questions) if given else _graded(questions))
    known = accuracy is not None and accuracy.n >= FEWEST and _one_of_several(labels)
    note = "" if known else f"; {NO_LABELS}"
    return AuditVerdict(f"{PREFIX[grade]}: {reason}{note}.", questions, grade)


def beyond(estimate: Estimate, threshold: float, corrected: float | None = None) -> Answer:
    """Yes where the interval lies above a threshold (and the corrected p-value is below 0.05), no where it lies below.

    >>> beyond(Estimate(0.1, 0.06, 0.2, 9), 0.05), beyond(Estimate(0.1, 0.06, 0.2, 9), 0.05, corrected=0.09)
    ('yes', 'unclear')
    >>> beyond(Estimate(0.1, 0.04, 0.2, 9), 0.05), beyond(Estimate(0.0, -0.01, 0.02, 9), 0.05)
    ('unclear', 'no')
    """
    if estimate.low > threshold:
        return "yes" if corrected is None or corrected < SIGNIFICANT else "unclear"
    return "no" if estimate.high < threshold else "unclear"


def effect_size(estimate: Estimate, threshold: float) -> float | None:
    """The distance of a mean from its threshold in standard deviations between texts; None where they do not differ.

    >>> round(effect_size(Estimate(0.25, 0.21, 0.29, 100), 0.05), 2)
    0.98
    """
    deviation = (estimate.high - estimate.low) / 3.92 * math.sqrt(estimate.n)
    return (estimate.value - threshold) / deviation if deviation > 0 else None


@dataclass(frozen=True)
class _Statistic:
    """A number that can decide a question. corrected: its p-value, where it is a tested difference.

    room: whether it could lie above its threshold at all; if not, it decides nothing.
    """

    name: str
    estimate: Estimate
    threshold: float
    corrected: float | None = None
    room: bool = True

    @property
    def answer(self) -> Answer:
        if self.estimate.n < FEWEST or not self.room:
            return "unclear"
        return beyond(self.estimate, self.threshold, self.corrected)

    def __str__(self) -> str:
        tested = "" if self.corrected is None else f", corrected p {_p(self.corrected)}"
        few = "" if self.estimate.n >= FEWEST else f": only {self.estimate.n} texts have a value, {FEWEST} are needed"
        full = "" if self.room else ": other texts agree as well by position alone, which leaves no room for more"
        return f"{self.name} {_shown(self.estimate)}, threshold {self.threshold:.3g}{tested}{few}{full}"


@dataclass(frozen=True)
class _Evidence:
    """Everything that the questions are answered from."""

    scores: tuple[Score, ...]
    contrasts: tuple[Contrast, ...]
    headline: str
    layers: int
    random_agreement: float
    settings: AuditSettings

    def score(self, quantity: str, of: str, against: str = "") -> Estimate | None:
        return find(self.scores, quantity, of, against)

    def contrast(self, quantity: str, second: str) -> Contrast | None:
        return next((c for c in self.contrasts if (c.quantity, c.second) == (quantity, second)), None)

    @property
    def place(self) -> str:
        """Where attention is changed for the map shown: in its layer or head, or in all layers that it covers."""
        weights = weights_of(self.headline)
        own = layer_of(weights) is not None and self.score("tvd", "permuted", weights) is not None
        return weights if own else EVERYWHERE


def _moves(evidence: _Evidence) -> AuditQuestion:
    place = evidence.place
    tvd = evidence.score("tvd", "permuted", place)
    if tvd is None:
        return _not_asked(0, NOT_REPLACED)
    statistic = _Statistic(f"total variation with {place} permuted", tvd, evidence.settings.smallest_movement)
    flip, level = evidence.score("flip", "permuted", place), evidence.score("tvd", "uniform", place)
    beside = [] if flip is None else [f"{flip.value:.0%} of predictions flip"]
    beside += [] if level is None else [f"made uniform instead: {_shown(level)}"]
    everywhere = evidence.score("tvd", "permuted", EVERYWHERE)
    if place != EVERYWHERE and everywhere is not None and evidence.layers > 1:
        beside.append(f"with all layers permuted: {_shown(everywhere)}")
    return _decided(0, statistic, statistic.answer, beside)


def _agrees(evidence: _Evidence) -> AuditQuestion:
    statistics = _agreement(evidence, evidence.headline)
    if not statistics:
        return _not_asked(1, f"there is no importance by {DELETION}")
    answer = _combined(statistics)
    deciding = _deciding(statistics, answer)
    return _decided(1, deciding, answer, [str(other) for other in statistics if other is not deciding])


def _agreement(evidence: _Evidence, name: str) -> list[_Statistic]:
    """What decides whether a map agrees with importance: τ with deletion, its highest word, and τ with the gradient."""
    settings = evidence.settings
    tau, gradient = (evidence.score("tau", name, against) for against in (DELETION, GRADIENT))
    if tau is None:
        return []
    statistics = [_Statistic(f"τ of {name} with {DELETION}", tau, settings.smallest_tau)]
    agreement, excess = (evidence.score(f"{kind}agreement", name, DELETION) for kind in ("", "excess "))
    if excess is not None and excess.n >= FEWEST:
        title = f"share of texts whose highest word is among the most important by {DELETION}, beyond other texts"
        shuffled = evidence.score("shuffled agreement", name, DELETION)
        room = shuffled is None or shuffled.value < 1 - settings.smallest_excess
        statistics.append(_Statistic(title, excess, settings.smallest_excess, room=room))
    elif agreement is not None and agreement.n >= FEWEST:
        title = f"share of texts whose highest word is among the most important by {DELETION}"
        statistics.append(_Statistic(title, agreement, evidence.random_agreement + settings.smallest_excess))
    if gradient is not None:
        statistics.append(_Statistic(f"τ of {name} with {GRADIENT}", gradient, settings.smallest_tau))
    return statistics


def _combined(statistics: Sequence[_Statistic]) -> Answer:
    """Yes if all say so; no if deletion says no. A gradient's no against deletion's yes leaves the question open."""
    answers = [statistic.answer for statistic in statistics]
    by_deletion = [s.answer for s in statistics if not s.name.endswith(f"with {GRADIENT}")]
    return "no" if "no" in by_deletion else "yes" if set(answers) == {"yes"} else "unclear"


def _deciding(statistics: Sequence[_Statistic], answer: Answer) -> _Statistic:
    """The first statistic with this answer; of a yes, which needs all, the one closest to its threshold."""
    same = [s for s in statistics if s.answer == answer] or [s for s in statistics if s.answer != "yes"]
    if answer != "yes":
        return same[0]
    return min(same, key=lambda s: (s.estimate.low - s.threshold) / max(s.threshold, 1e-9))


def _trained(evidence: _Evidence) -> AuditQuestion:
    contrast = evidence.contrast(f"{CONCORDANCE} with {DELETION}", RANDOM_MODELS)
    if contrast is None:
        return _not_asked(2, "there are no random models of the same shape in which words matter")
    name = f"{CONCORDANCE} with {DELETION} above that of {RANDOM_MODELS}"
    statistic = _Statistic(name, contrast.difference, evidence.settings.smallest_tau, contrast.corrected)
    random = evidence.score(f"random {CONCORDANCE}", evidence.headline, DELETION)
    beside = [] if random is None else [f"{random.n} random models: {_shown(random)}, an interval over models"]
    return _decided(2, statistic, statistic.answer, beside)


def _needs(evidence: _Evidence) -> AuditQuestion:
    contrast = evidence.contrast("comprehensiveness", RANDOM)
    if contrast is None:
        return _not_asked(3, "the model could not be asked about shortened texts")
    name = "drop in probability without its words, beyond random words"
    statistic = _Statistic(name, contrast.difference, evidence.settings.smallest_drop, contrast.corrected)
    return _decided(3, statistic, statistic.answer, [])


def _another(evidence: _Evidence) -> AuditQuestion:
    """A short search can find another attention, but cannot show that there is none."""
    divergence, steps = evidence.score("adversary", evidence.headline), evidence.settings.adversary_steps
    if divergence is None:
        looked = (
            "another was not looked for, which is done in one step or more, for weights or norms of one layer or head"
        )
        replaced = evidence.score("tvd", "permuted", EVERYWHERE) is not None
        return _not_asked(4, looked if replaced else NOT_REPLACED)
    name = "divergence, in nats, of the furthest map found with the same prediction"
    statistic = _Statistic(name, divergence, evidence.settings.smallest_divergence)
    short = statistic.answer == "no" and steps < FULL_SEARCH
    beside = [f"at most {math.log(2):.3f}"]
    beside += [f"the search had {steps} steps, and a no needs {FULL_SEARCH}"] if short else []
    return _decided(4, statistic, "unclear" if short else statistic.answer, beside)


def _layers(evidence: _Evidence, shown: AuditQuestion) -> AuditQuestion:
    """Every layer by the rule of the second question, whose answer about the map shown counts too."""
    if evidence.headline != weights_of(evidence.headline):
        return _not_asked(5, "it is asked of the weights themselves")
    names = [layer_name(layer) for layer in range(evidence.layers)]
    every = {name: _agreement(evidence, name) for name in names}
    if not all(every.values()):
        return _not_asked(5, f"there is no importance by {DELETION} for every layer")
    if evidence.headline == names[0] and len(names) == 1:
        return replace(shown, question=QUESTIONS[5], because=f"there is one layer; {shown.because}")
    answers = {name: _combined(statistics) for name, statistics in every.items()}
    given = (*answers.values(), shown.answer)
    answer: Answer = "no" if "no" in given else "unclear" if "unclear" in given else "yes"
    if answer in answers.values():
        decisive = next(name for name, a in answers.items() if a == answer)
        deciding = _deciding(every[decisive], answer)
    else:
        deciding = every[names[-1]][0]
    taus = "; ".join(
        f"{name} {answers[name]}: τ {_shown(statistics[0].estimate)}" for name, statistics in every.items()
    )
    return _decided(5, deciding, answer, [taus])


def _skipped(question: AuditQuestion, number: int, settings: AuditSettings) -> str | None:
    """Why the user's choice of measures left a question out; None if it did not."""
    if question.estimate is not None:
        return None
    skipped = [name for name in MEASURES_OF[number] if name not in settings.measures]
    if skipped:
        return f"not asked: the measure {skipped[0]!r} was skipped (--only or --skip)"
    none = {2: settings.random_models, 4: settings.adversary_steps}
    return question.because if none.get(number) == 0 else None


def _not_asked(number: int, reason: str) -> AuditQuestion:
    return AuditQuestion(QUESTIONS[number], "unclear", f"not asked: {reason}")


def _decided(number: int, statistic: _Statistic, answer: Answer, beside: Sequence[str]) -> AuditQuestion:
    good: Answer = "no" if number == 4 else "yes"
    sense: Sense = "open" if answer == "unclear" else "reassuring" if answer == good else "worrying"
    return AuditQuestion(
        QUESTIONS[number],
        answer,
        "; ".join((str(statistic), *beside)),
        sense,
        statistic.name,
        statistic.estimate,
        statistic.threshold,
        effect_size(statistic.estimate, statistic.threshold),
    )


def _majority(accuracy: Estimate | None, labels: Sequence[LabelCount]) -> str | None:
    """Why the model's predictions are worth no explanation, if they are not: they do not beat the majority."""
    if accuracy is None or accuracy.n < FEWEST or not _one_of_several(labels):
        return None
    most = max(labels, key=lambda label: label.gold)
    share = most.gold / sum(label.gold for label in labels)
    if accuracy.low > share:
        return None
    reached = f"accuracy {accuracy.value:.1%} [{accuracy.low:.1%}, {accuracy.high:.1%}] against {share:.1%}"
    return f"the model does not clearly beat always saying “{most.name}” ({reached})"


def _one_of_several(labels: Sequence[LabelCount]) -> bool:
    return sum(label.gold > 0 for label in labels) > 1


def search_decides(verdict: AuditVerdict) -> bool:
    """Whether nothing speaks against a map but that no other attention was looked for.

    >>> search_decides(judge((), (), headline="layer 1", layers=1, random_agreement=0.2))
    False
    """
    moves, agrees, trained, needs, another, _ = verdict.questions
    good = {moves.answer, agrees.answer, needs.answer} == {"yes"} and trained.answer != "no"
    return verdict.grade == "show with a caveat" and good and another.estimate is None


def _given_graded(questions: Sequence[AuditQuestion]) -> tuple[Grade, str]:
    """The grade of an explanation that was computed elsewhere."""
    _, agrees, _, needs, *_ = questions
    if "yes" not in (agrees.answer, needs.answer):
        return "do not show", f"it is not shown that the marked words matter ({_number(agrees)})"
    if agrees.answer != "yes":
        return "show with a caveat", f"whether it agrees with the importance of words is open ({_number(agrees)})"
    if needs.answer != "yes":
        return "show with a caveat", f"whether the prediction needs the marked words is open ({_number(needs)})"
    return "show", f"the prediction rests on the words it marks ({_number(needs)})"


def _ruled_out(questions: Sequence[AuditQuestion], at_majority: str | None) -> tuple[Grade, str] | None:
    """The grade that one fact decides, whatever else is asked, and its reason; None if there is no such fact."""
    _, agrees, _, needs, *_ = questions
    if at_majority is not None:
        return "do not show", at_majority
    if agrees.answer == "no":
        return "do not show", f"the words it marks are not the ones that matter ({_number(agrees)})"
    if needs.answer == "no":
        return "do not show", f"the prediction needs the marked words no more than random ones ({_number(needs)})"
    return None


def _graded(questions: Sequence[AuditQuestion]) -> tuple[Grade, str]:
    """The grade that all questions give, and the reason with the number that decided it."""
    moves, agrees, trained, needs, another, _ = questions
    matters = (agrees.answer, needs.answer)
    if "yes" not in matters:
        return "do not show", f"it is not shown that the marked words matter ({_number(agrees)})"
    if moves.answer == "no" and matters != ("yes", "yes"):
        return "do not show", f"the prediction hardly depends on these weights ({_number(moves)})"
    caveats = (
        (moves, "no", "it marks words that matter, but the prediction hardly depends on these weights"),
        (another, "yes", "quite different weights give the same prediction"),
        (trained, "no", "random models of the same shape agree with importance as well"),
        (agrees, "unclear", "whether it agrees with the importance of words is open"),
        (needs, "unclear", "whether the prediction needs the marked words is open"),
        (moves, "unclear", "whether these weights move the prediction is open"),
        (another, "unclear", "whether other weights give the same prediction is open"),
    )
    for question, answer, reason in caveats:
        if question.answer == answer:
            return "show with a caveat", f"{reason} ({_number(question)})"
    return "show", (
        "the prediction rests on the words it marks, and no quite different weights were found that give it "
        f"({_number(another)})"
    )


def _number(question: AuditQuestion) -> str:
    """The deciding number of an answer, or why there is none."""
    if question.estimate is None or question.threshold is None:
        return question.because
    return question.because.split(";")[0]


def _shown(estimate: Estimate) -> str:
    undefined = f" ({estimate.undefined} undefined)" if estimate.undefined else ""
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]{undefined}"


def _p(p: float) -> str:
    return "none" if math.isnan(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"
