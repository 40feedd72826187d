"""The first screen of a study's page: kicker, headline, trust line and three cards, all from this study's numbers."""

from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Literal

from heedful.audits.result import AuditResult
from heedful.config import StudyConfig
from heedful.errors import HeedfulError, RunError
from heedful.html import between, concept, reasons, symbol
from heedful.metrics.statistics import Estimate
from heedful.reports.html import percent, written
from heedful.storage.manifest import run_kind, verified_result
from heedful.storage.run_files import listed
from heedful.studies.result import MIN_SEEDS, AgreementResult, Answer, Question, Size, StudyResult

Tone = Literal["good", "middling", "bad", "open"]
MOST_WORDS = 15  # of a headline
_SMALL = 0.03  # a gain in accuracy below this is called small
_ENCODERS = {"bilstm": "BiLSTM", "lstm": "LSTM", "transformer": "Transformer", "affine": "affine", "embedding": "words"}
_UNITS = {
    "rotten-tomatoes": "film reviews",
    "sst": "film review sentences",
    "imdb": "film reviews",
    "movie-reviews": "film reviews",
    "yelp": "reviews",
    "amazon": "product reviews",
    "sms-spam": "text messages",
    "ag-news": "news items",
    "20news": "newsgroup posts",
}
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_POLAR = {"negative", "positive", "neg", "pos"}


def kicker(result: StudyResult, config: StudyConfig) -> str:
    """What was studied, in a few words: data, model, seeds."""
    if result.task == "translation":
        direction = " → ".join(result.data.get("languages", ()))
        data = f"{result.data['train']:,} sentence pairs {direction}".rstrip()
        cell = config.translator.cell
        model = "Transformer translator" if cell == "transformer" else f"{cell.upper()} translator + attention"
    else:
        data = f"{result.data['train']:,} {unit(result)}"
        model = f"{_ENCODERS[config.model.encoder]} + attention"
    return f"{data} · {model} · {len(result.seeds)} seeds"


def unit(result: StudyResult) -> str:
    """What the texts of a corpus are, in the plural."""
    name = str(result.data["name"])
    return next((word for corpus, word in _UNITS.items() if name.startswith(corpus)), "texts")


def rows_unit(result: StudyResult) -> str:
    """What agreements are shares of, in the plural: one word for texts."""
    return "output words" if result.task == "translation" else unit(result).split()[-1]


def headline(result: StudyResult, gain: Estimate | None) -> str:
    """The finding in at most `MOST_WORDS` words: what attention finds, and what that is worth.

    gain: accuracy of the standard models less that of their uniform twins. The second half says that seeds differ where
    they do, and otherwise what attention adds to accuracy; it is left out where it would make the headline too long.
    """
    closed = _closed(result)
    if closed is not None:
        return closed
    attends, stable = result.verdict.questions[0], result.verdict.questions[4]
    first = _finding(attends.answer, attends.size, _sought(result))
    found = attends.answer == "yes"
    for second in (_instability(stable.answer, found), _worth(gain, found, result.task)):
        if second and len(f"{first}{second}".split()) <= MOST_WORDS:
            return first + second
    return first


def _closed(result: StudyResult) -> str | None:
    """The headline where nothing can be answered; None where the verdict has answers."""
    gate, status = result.verdict.gate, result.verdict.status
    if status == "answered":
        return None
    examples = "sentence pairs" if result.task == "translation" else "texts"
    if status == "too few texts" or gate is None:
        count = f"only {gate.texts} validation {examples}" if gate is not None else f"too few validation {examples}"
        return f"Too little data to say anything: {count}"
    if gate.bleu is not None and gate.gain.low > 0:
        return f"The model did not learn to translate: BLEU {gate.bleu:.1f} after training"
    reached, guessed = percent(gate.accuracy.value), percent(gate.baseline)
    return f"The model learned nothing: {reached} right, and guessing gets {guessed}"


def _sought(result: StudyResult) -> str:
    """What attention may find, in the words of the task."""
    if result.task == "translation":
        return "the words being translated"
    labels = {str(label).lower() for label in result.data["labels"]}
    return "sentiment words" if labels and labels <= _POLAR else "words that predict the label"


def _finding(answer: Answer, size: Size | None, words: str) -> str:
    if answer == "yes":
        return f"Attention {'finds' if size == 'strongly' else 'partly finds'} {words}"
    if answer == "no":
        return f"Attention does not find {words}"
    return f"We can’t tell yet whether attention finds {words}"


def _instability(answer: Answer, found: bool) -> str:
    if answer != "no":
        return ""
    return ", but another seed finds others" if found else ", and another seed looks elsewhere"


def _worth(gain: Estimate | None, found: bool, task: str) -> str:
    """What learned attention adds to accuracy, as the end of a sentence."""
    if gain is None or gain.low != gain.low:
        return ""
    what = "token accuracy" if task == "translation" else "accuracy"
    if gain.low <= 0 <= gain.high:
        return f", without a clear gain in {what}"
    points = _points(abs(gain.value))
    if gain.value < 0:
        return f"{', but' if found else ' and'} costs {points} of {what}"
    if gain.value < _SMALL:
        return f", but adds only {points} of {what}" if found else f", yet adds {points} of {what}"
    return f"{' and' if found else ', yet'} adds {points} of {what}"


def _points(share: float) -> str:
    """A difference of two shares in words.

    >>> _points(0.021), _points(0.004), _points(0.234), _points(0.0061)
    ('two points', 'under one point', '23 points', 'one point')
    """
    points = round(100 * share)
    if points == 0:
        return "under one point"
    return f"{_NUMBERS[points] if points < len(_NUMBERS) else points} point{'' if points == 1 else 's'}"


@dataclass(frozen=True)
class Trust:
    """Whether attention was tested as an explanation: words, and the page of the audit or the command that makes it."""

    words: str
    tone: Tone
    command: str = ""
    link: str = ""


_TRUST: dict[str | None, tuple[str, Tone]] = {
    "show": ("show it", "good"),
    "show with a caveat": ("show it with a caveat", "middling"),
    "do not show": ("do not show it", "bad"),
    None: ("tested in part, so there is no grade", "open"),
}


def trust(root: Path) -> Trust:
    """What an audit beside a study's folder says of its attention as an explanation; the command where there is none.

    An audit of `runs/demo` is looked for in folders beside it whose names begin with `audit-demo`, the last first.
    """
    place = root.resolve()
    try:
        beside = listed(place.parent, f"audit-{escape(place.name.split('.')[0])}*")
    except RunError:  # too many to look through
        beside = []
    for folder in reversed(beside):
        try:
            if run_kind(folder) != "audit":
                continue
            audit = AuditResult.load(verified_result(folder))
        except HeedfulError:  # unfinished or damaged: as good as none
            continue
        if Path(audit.model).name == place.name:
            words, tone = _TRUST[audit.verdict.grade]
            return Trust(words, tone, link=f"../{folder.name}/report.html")
    return Trust("not tested", "open", command=f"heedful audit {place.parent.name}/{place.name}")


@dataclass(frozen=True)
class Fact:
    """One answered question, for a card's details: symbols, numbers with intervals, and why."""

    question: str
    answer: Answer
    concept: str
    symbol: str
    pill: str
    tone: Tone
    because: tuple[str, ...]


@dataclass(frozen=True)
class Card:
    """A question in plain words: how often, how often by chance, one sentence; the facts it rests on.

    value, expected: shares, None where nothing was answered.
    """

    title: str
    sentence: str
    pill: str
    tone: Tone
    value: float | None
    expected: float | None
    facts: tuple[Fact, ...]


def cards(result: StudyResult) -> tuple[Card, ...]:
    """What does it look at? Where did that come from? Is it stable?"""
    facts = [
        _fact(question, row, result)
        for question, row in zip(result.verdict.questions, _rows_asked(result), strict=True)
    ]
    looks, before, counting, salient, stable, last = facts
    rows = _rows_asked(result)
    answers = [question.answer for question in result.verdict.questions]
    sizes = [question.size for question in result.verdict.questions]
    plan = (
        ("What does it look at?", _looks_at(answers[0], sizes[0], result), rows[0], (looks, salient)),
        ("Where did that come from?", _came_from(answers[1], answers[2], result), rows[1], (before, counting, last)),
        ("Is it stable?", _stable(answers[4], sizes[4], len(result.seeds)), rows[4], (stable,)),
    )
    made = []
    for title, sentence, row, row_facts in plan:
        value, expected = _shares(row) if result.verdict.status == "answered" else (None, None)
        made.append(Card(title, sentence, row_facts[0].pill, row_facts[0].tone, value, expected, row_facts))
    return tuple(made)


def _rows_asked(result: StudyResult) -> list[AgreementResult]:
    """The agreement that each question of the verdict rests on."""
    last = "A(alpha,alpha_ibm)" if result.task == "translation" else "A(alpha,alpha_fr)"
    names = ("A(alpha,beta)", "A(alpha,beta_uf)", "A(beta_px,beta_uf)", "A(delta,beta_uf)", "A(alpha,alpha_hat)", last)
    return [result.agreement(name, "cross") for name in names]


def _shares(row: AgreementResult) -> tuple[float, float]:
    """How often, and how often the largest control."""
    if row.evidence is None:
        return row.estimate.value, row.shuffle.value
    return row.evidence.value.value, row.evidence.expected


def _fact(question: Question, row: AgreementResult, result: StudyResult) -> Fact:
    value, expected = (written(100 * share, 0) for share in _shares(row))
    pill = f"{value}\N{NO-BREAK SPACE}% of {rows_unit(result)}; chance {expected}\N{NO-BREAK SPACE}%"
    if question.answer == "not asked":
        pill = "not asked"
    return Fact(
        question.question,
        question.answer,
        concept(row.name),
        symbol(row.name),
        pill,
        _tone(question),
        tuple(reasons(question.because)),
    )


def _tone(question: Question) -> Tone:
    """How an answer looks; a question without a size asks about what is missing."""
    if question.answer == "yes":
        return "middling" if question.size in ("partly", "hardly") else "good"
    return "bad" if question.answer == "no" else "open"


def _looks_at(answer: Answer, size: Size | None, result: StudyResult) -> str:
    output = "the next word" if result.task == "translation" else "the label"
    if answer == "yes":
        mostly = _shares(_rows_asked(result)[0])[0] > 0.5
        how = "sometimes" if size != "strongly" else "mostly" if mostly else "often"
        return f"The model {how} attends to words that predict {output} by themselves."
    return {
        "no": f"The model does not attend to words that predict {output} by themselves.",
        "unclear": f"We can’t tell yet whether the model attends to words that predict {output} by themselves.",
        "not asked": "The model learned nothing, so there is nothing to look at.",
    }[answer]


def _came_from(before: Answer, counting: Answer, result: StudyResult) -> str:
    if before == "yes":
        end = " Counting words with labels teaches the same." if counting == "yes" else ""
        if result.task == "translation":
            end = " Counting which words go together teaches the same." if counting == "yes" else ""
        return f"From word knowledge: a model without attention learns these words too.{end}"
    return {
        "no": "Not from word knowledge alone: a model without attention does not learn these words.",
        "unclear": "We can’t tell yet whether a model without attention learns these words too.",
        "not asked": "Nothing was learned, so it came from nowhere.",
    }[before]


def _stable(answer: Answer, size: Size | None, seeds: int) -> str:
    few = "" if seeds >= MIN_SEEDS else f" ({_NUMBERS[seeds]} seeds only)"
    if answer == "yes":
        how = "far" if size == "strongly" else "somewhat"
        return f"A second seed looks at the same words {how} more often than chance{few}."
    return {
        "no": f"No. A second seed looks at other words{few}, so no single picture speaks for the task.",
        "unclear": f"We can’t tell yet whether a second seed looks at the same words{few}.",
        "not asked": "Not asked, since nothing was learned.",
    }[answer]


def gain_sentence(gain: Estimate | None, task: str) -> str:
    """What attention adds to accuracy, with its interval; empty where it was not measured."""
    if gain is None or gain.low != gain.low:
        return ""
    what = "token accuracy" if task == "translation" else "accuracy"
    value, low, high = (written(100 * share, 1) for share in (gain.value, gain.low, gain.high))
    ends = between(low, high)
    if gain.low <= 0 <= gain.high:
        return f"At the ringed steps, attention changes {what} by {value} points ({ends}), which may be chance."
    size = value.removeprefix("−")
    if gain.value > 0:
        return f"At the ringed steps, attention adds {size} points of {what} ({ends})."
    return f"At the ringed steps, attention costs {size} points of {what} (change {ends})."
