"""The verdict of a study: fixed questions, each answered from its statistic and interval alone.

1. Fewer than 30 validation texts: "too few texts", and nothing is answered.
2. The gate: the models must beat the most frequent label or word by an interval, or they "learned nothing".
3. Each question is answered from the excess of an agreement over the largest of its three controls:
   *yes* if the interval lies above 0 and the excess is 0.05 or more, *no* if the interval lies below 0.05.
4. The size in words: *strongly* from 0.20 on, *partly* from 0.05 on, *hardly* below. An excess counts as it is printed,
   to a tenth of a percent, so that no number stands beside a word that belongs to another.

A *yes* about what another model knows (the uniform twin, the bag-of-words proxy) needs that model to beat the baseline
too. The second question is about the words that attention looks at, so it is not asked where the first answer is *no*.
All answers are read from *cross*, between models of different seeds. Under *own* attention and probe share one encoder,
and a model and its twin share initialisation and batch order.

With fewer than five seeds intervals are over texts, and the verdict speaks of these models alone.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from heedful.metrics.statistics import Estimate
from heedful.studies.evidence import MIN_BLEU, MIN_TEXTS
from heedful.studies.result import (
    MIN_SEEDS,
    AgreementResult,
    Answer,
    Convention,
    Evidence,
    Gate,
    Question,
    Size,
    Status,
    TopPosition,
    Twin,
    Verdict,
    with_interval,
)

NOTABLE, STRONG = 0.05, 0.20
_NUMBERS = {2: "two", 3: "three", 4: "four"}
_TWINS: dict[Twin, str] = {"uniform": "the uniform twin", "proxy": "the bag-of-words proxy"}
_PROBES: dict[Twin, str] = {"uniform": "beta_uf", "proxy": "beta_px"}


def judge(
    agreements: Sequence[AgreementResult],
    gate: Gate,
    seeds: int,
    twins: Mapping[Twin, Estimate] | None = None,
    top_positions: Sequence[TopPosition] = (),
) -> Verdict:
    """Answer the questions of a study, and summarise the answers in one sentence.

    twins: the accuracy of the models whose knowledge is asked about, which must beat the baseline of the gate too.
    top_positions: where the highest weights lie; said in the sentence where most of them are not on words.
    """
    twins = twins or {}
    rows = {(row.name, row.convention): row.evidence for row in agreements if row.evidence is not None}
    translating = ("A(alpha,alpha_ibm)", "own") in rows
    output, counted = ("next word", "their translations") if translating else ("label", "labels")

    def ask(question: str, name: str, convention: Convention) -> Question:
        asked = exceeds(question, name, convention, rows[name, convention], "word" if translating else "label")
        for twin, symbol in _PROBES.items():
            if symbol in name and twin in twins:
                asked = knowing(asked, twin, twins[twin], gate.baseline)
        return asked

    attends = ask(f"Does attention look at words that predict the {output} by themselves?", "A(alpha,beta)", "cross")
    within = rows["A(alpha,beta)", "own"]
    attends = replace(attends, because=f"{attends.because}; {_within_one_model(within)}")
    beforehand = ask("Can that knowledge be learned without attention?", "A(alpha,beta_uf)", "cross")
    beforehand = presupposing(beforehand, attends.answer)
    counting = ask(
        f"Is it the knowledge that counting words together with {counted} gives?", "A(beta_px,beta_uf)", "cross"
    )
    salient = ask("Do the words that change the prediction most carry that knowledge?", "A(delta,beta_uf)", "cross")
    stable = ask("Does a model of another seed attend to the same words?", "A(alpha,alpha_hat)", "cross")
    if translating:
        last = ask("Does attention align words as co-occurrence counts do?", "A(alpha,alpha_ibm)", "cross")
    else:
        frozen, normal = rows["A(alpha,alpha_fr)", "cross"], rows["A(alpha,alpha_hat)", "cross"]
        last = fails_to_form("Does attention fail to form when word knowledge is frozen?", frozen, normal)
    questions = (attends, beforehand, counting, salient, stable, last)
    closed = _closed(gate, translating)
    if closed is None:
        sentence = _sentence(rows["A(alpha,beta)", "cross"], questions, output, translating, top_positions)
        scope = _scope(seeds, "sentences" if translating else "texts")
        return Verdict(sentence, questions, "answered", scope, gate)
    status, sentence, reason = closed
    unasked = tuple(Question(each.question, "not asked", reason) for each in questions)
    return Verdict(sentence, unasked, status, gate=gate)


def answer_from(excess: Estimate) -> Answer:
    """Yes, no or unclear from an excess over controls and its interval.

    >>> answer_from(Estimate(0.3, 0.2, 0.4, 90)), answer_from(Estimate(0.0, -0.1, 0.04, 90))
    ('yes', 'no')
    >>> answer_from(Estimate(0.04, 0.01, 0.07, 900)), answer_from(Estimate(0.0, -0.1, 0.1, 30))
    ('unclear', 'unclear')
    """
    if excess.low > 0 and _as_printed(excess.value) >= NOTABLE:
        return "yes"
    return "no" if excess.high < NOTABLE else "unclear"


def size_of(excess: float) -> Size | None:
    """How much an excess is, in words.

    >>> size_of(0.3), size_of(0.1), size_of(0.02)
    ('strongly', 'partly', 'hardly')
    >>> size_of(0.1996), size_of(0.1994)  # printed as 20.0 % and 19.9 %
    ('strongly', 'partly')
    """
    if math.isnan(excess):
        return None
    printed = _as_printed(excess)
    return "strongly" if printed >= STRONG else "partly" if printed >= NOTABLE else "hardly"


def _as_printed(excess: float) -> float:
    return round(excess, 3)


def exceeds(
    question: str, name: str, convention: Convention, seen: Evidence, wrong: Literal["label", "word"] = "label"
) -> Question:
    """A question about an agreement: does it exceed its largest control?

    wrong: what the third control gets wrong, the label of a text or the output word of a pair.
    """
    size = size_of(seen.excess.value)
    numbers = (
        f"{name} {with_interval(seen.decisive_value)} ({convention}) against {seen.expected:.0%} expected from "
        f"controls ({controls(seen, wrong)}); excess {with_interval(seen.decisive_excess, 1)}: {size or 'no value'}"
    )
    if seen.words_only:
        numbers += "; attention on <bos>, <eos> or punctuation does not count"
    return Question(question, answer_from(seen.decisive_excess), numbers, size)


def knowing(asked: Question, twin: Twin, accuracy: Estimate, baseline: float) -> Question:
    """The same answer, but no *yes* where the model whose knowledge is asked about does not beat the baseline.

    >>> asked = Question("?", "yes", "A(beta_px,beta_uf) 15%", "partly")
    >>> knowing(asked, "proxy", Estimate(0.53, 0.46, 0.6, 240), 0.5).answer
    'unclear'
    >>> knowing(asked, "proxy", Estimate(0.5, 0.47, 0.53, 900), 0.5).answer
    'no'
    """
    if accuracy.low > baseline:
        return asked
    answer: Answer = "no" if accuracy.high < baseline + NOTABLE else "unclear"
    reason = f"but {_TWINS[twin]} is right in {with_interval(accuracy)}, not clearly more than {baseline:.0%}"
    kept = answer if asked.answer == "yes" else asked.answer
    return replace(asked, answer=kept, because=f"{asked.because}; {reason}")


def presupposing(asked: Question, attends: Answer) -> Question:
    """A question about the words that attention looks at: no *yes* unless it surely looks at such words.

    >>> asked = Question("?", "yes", "A(alpha,beta_uf) 30%", "partly")
    >>> [presupposing(asked, answer).answer for answer in ("yes", "unclear", "no")]
    ['yes', 'unclear', 'not asked']
    """
    if attends == "no":
        reason = "attention does not look at such words, by the first question"
        return Question(asked.question, "not asked", f"{reason}; {asked.because}")
    if attends == "unclear" and asked.answer == "yes":
        reason = "but whether attention looks at such words is unclear, by the first question"
        return replace(asked, answer="unclear", because=f"{asked.because}; {reason}")
    return asked


def _within_one_model(seen: Evidence) -> str:
    """What the same agreement is within one model, which has no say in the answer."""
    value, excess = with_interval(seen.decisive_value), with_interval(seen.decisive_excess, 1)
    return f"within one model {value} (own) with an excess of {excess}"


def controls(seen: Evidence, wrong: str = "label") -> str:
    """The controls of an agreement in words."""
    parts = [f"random {seen.random:.0%}", f"shuffle {seen.shuffle.value:.0%}"]
    return ", ".join([*parts, *([f"wrong {wrong} {seen.wrong.value:.0%}"] if seen.wrong else [])])


def fails_to_form(question: str, frozen: Evidence, normal: Evidence) -> Question:
    """Whether attention trained on frozen word knowledge agrees with normal attention no more than chance.

    Yes only if its excess is surely below 0.05, and it agrees surely less than another normal model does.
    """
    excess, value, usual = frozen.decisive_excess, frozen.decisive_value, normal.decisive_value
    answer: Answer = "unclear"
    if answer_from(excess) == "yes":
        answer = "no"
    elif excess.high < NOTABLE and value.high < usual.low:
        answer = "yes"
    numbers = (
        f"A(alpha,alpha_fr) {with_interval(value)} (cross) against {frozen.expected:.0%} expected from controls; "
        f"excess {with_interval(excess, 1)}; A(alpha,alpha_hat) of two normal models {with_interval(usual)}"
    )
    return Question(question, answer, numbers)  # no size: the answer is about what is missing


def _closed(gate: Gate, translating: bool) -> tuple[Status, str, str] | None:
    """Why no question is asked: status, sentence, and the short reason; None where the gate is open."""
    if gate.texts < MIN_TEXTS:
        units = "sentence pairs" if translating else "texts"
        sentence = (
            f"Too few texts: {gate.texts} validation {units}, and {MIN_TEXTS} are the fewest that can answer anything. "
            f"Use more data."
        )
        return "too few texts", sentence, f"{gate.texts} validation {units}; {MIN_TEXTS} or more are needed"
    if gate.passed:
        return None
    what = "token accuracy" if translating else "accuracy"
    reached = f"{what} {_percent(gate.accuracy)}, always answering '{gate.answer}' gives {gate.baseline:.1%}"
    if gate.bleu is not None and gate.bleu_gain is not None:
        reached += (
            f"; BLEU {gate.bleu:.1f}, where {MIN_BLEU:g} is the least, "
            f"and {gate.bleu_gain.value:+.1f} [{gate.bleu_gain.low:.1f}, {gate.bleu_gain.high:.1f}] "
            "above BLEU against other sentences' references"
        )
    writes = translating and gate.gain.low > 0  # it guesses words of the language, but does not translate
    reason = "the model has not learned to translate" if writes else "the model has learned nothing here"
    return "learned nothing", f"{reason.capitalize()}: {reached}. {_advice(gate, translating)}", reason


def _advice(gate: Gate, translating: bool) -> str:
    if translating:
        return "Train longer (--steps), use more pairs, or see what word counts can teach with `heedful preflight`."
    counted = {
        "learnable": "Words do go with labels (preflight: learnable), so train longer (--steps) or use more data.",
        "uninformative": (
            "No word goes with a label more than by chance (preflight: uninformative): "
            "check the labels, or use more data."
        ),
        "unclear": "Words hardly go with labels (preflight: unclear): check the labels, or use more data.",
    }
    return counted[gate.preflight or "unclear"]


def _percent(estimate: Estimate) -> str:
    return f"{estimate.value:.1%} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def _scope(seeds: int, examples: str) -> str:
    if seeds >= MIN_SEEDS:
        return f"Intervals include differences between {seeds} seeds, so this holds for training on such {examples}."
    count = _NUMBERS.get(seeds, str(seeds)).capitalize()
    return (
        f"{count} seeds: this describes these models on these {examples}; nothing is claimed about training in general."
    )


def _sentence(
    seen: Evidence,
    questions: Sequence[Question],
    output: str,
    translating: bool,
    top_positions: Sequence[TopPosition],
) -> str:
    attends, beforehand, _, _, stable, _ = questions
    unit = "output words" if translating else "texts"
    numbers = f"{seen.value.value:.0%} of {unit}, {seen.expected:.0%} expected from controls"
    words = f"words that predict the {output} by themselves ({numbers})"
    beyond = " more than position explains" if seen.control == "shuffle" else ""
    course = {
        "yes": f"The model's attention {attends.size} follows {words}",
        "no": f"The model's attention does not follow {words}{beyond}",
        "unclear": f"It is unclear whether the model's attention follows {words}",
    }[attends.answer]
    if attends.answer == "yes":
        course += {
            "yes": f"; models without attention learn these words too ({beforehand.size})",
            "no": "; models without attention do not learn these words",
            "unclear": "; it is unclear whether models without attention learn these words too",
        }[beforehand.answer]
    same = {
        "yes": f"Another seed attends to the same words ({stable.size}).",
        "no": "Another seed attends to other words, so no single heat map speaks for the task.",
        "unclear": "It is unclear whether another seed attends to the same words.",
    }[stable.answer]
    return f"{course}. {_apart(top_positions, unit)}{same}"


def _apart(top_positions: Sequence[TopPosition], unit: str) -> str:
    """A sentence where most of the highest weights lie on no word."""
    shares = [top.bos + top.eos + top.punctuation for top in top_positions]
    mean = sum(shares) / len(shares) if shares else 0.0
    return f"In {mean:.0%} of {unit} its highest weight lies on <bos>, <eos> or punctuation. " if mean > 0.5 else ""
