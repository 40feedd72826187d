"""Calibration of audits: how often `heedful audit` is right where the answer is known.

    zoo        models built or trained so that the answers are known: the share of right answers to each question
    untrained  networks that never learned anything: how often a question is answered in their favour
    power      models in which attention matters more and more: how often that is noticed, by number of texts

Every audit is stored in the work folder and not run again.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats
from tests.audits import zoo, zoo_trained
from torch import Tensor

from heedful.api import load
from heedful.attribution.attention_maps import DELETION
from heedful.attribution.interface import Passage, Subject
from heedful.audits.audit import run_audit
from heedful.audits.result import AuditResult
from heedful.audits.verdict import QUESTIONS, judge
from heedful.config import MAPS, AuditSettings
from heedful.execution.pool import parallel_map
from heedful.storage.atomic_files import without_nan
from heedful.storage.serialization import digest, from_mapping
from heedful.storage.step_cache import StepCache

FORMAT = 4  # of the stored audits
TEXTS = 60
FIRST_SEED = 3000  # the rules were made while audits with other seeds were looked at
SEEDS = 3  # sets of texts, and of random models, for each built model
UNTRAINED = 12  # networks of each architecture
REASSURING = ("yes", "yes", "yes", "yes", "no", "yes")
TRAINED = ("sparsemax on a keyword", "BiLSTM with a shortcut", "MiniLM with a shortcut")
POWER = {  # by question: how much of the prediction goes through attention; how strongly attention looks at the key
    "moves": (0.0, 0.2, 0.4, 0.5, 0.6, 1.0),
    "agrees": (0.0, 0.8, 0.84, 0.87, 0.9, 1.0),
}
NUMBERS = {"moves": (10, 30, 100), "agrees": (10, 30, 100, 300)}  # of texts, by question
POWER_SEEDS = 10
POPULATION = 1000  # texts that stand for all
OTHER_SEEDS = 10**6  # added to the seeds of random models
HELD_OUT = "The rules were fixed before these texts and random models were drawn."
Unit = tuple[str, str, int, int]  # kind, name, texts, seed


def measure(work: Path, jobs: int = 1, *, short: bool = False) -> dict[str, Any]:
    """Run every audit that is not yet in the work folder, and count. short: a few of each kind."""
    todo = [unit for unit in units() if not short or _quick(unit)]
    found = {unit: known(unit, answer) for unit, answer in parallel_map(stored_unit, str(work), todo, jobs=jobs)}
    return {
        "texts": TEXTS,
        "drawn": HELD_OUT,
        "zoo": _right({unit: found[unit] for unit in todo if unit[0] in ("zoo", "trained")}),
        "untrained": _false({unit: found[unit] for unit in todo if unit[0] == "untrained"}),
        "position": _position({unit: found[unit] for unit in todo if unit[0] in ("zoo", "untrained")}),
        "power": _power({unit: found[unit] for unit in todo if unit[0] == "power"}),
    }


def _quick(unit: Unit) -> bool:
    kind, name, _, seed = unit
    return seed in (0, FIRST_SEED) and (kind in ("zoo", "untrained") or name == TRAINED[0])


def units() -> list[Unit]:
    """Every audit of the calibration; the slowest first."""
    trained = [
        ("trained", name, TEXTS, FIRST_SEED + k)
        for name in reversed(TRAINED)
        for k in range(1 if "MiniLM" in name else 3)
    ]
    untrained = [("untrained", name, TEXTS, FIRST_SEED + k) for k in range(UNTRAINED) for name in zoo_trained.UNTRAINED]
    built = [("zoo", exhibit.name, TEXTS, FIRST_SEED + k) for k in range(SEEDS) for exhibit in zoo.EXHIBITS]
    power = [
        ("power", f"{question} {strength}", n, seed)
        for question, strengths in POWER.items()
        for strength in strengths
        for n, seeds in (*((n, POWER_SEEDS) for n in NUMBERS[question]), (POPULATION, 1))
        for seed in range(seeds)
    ]
    return [*trained, *untrained, *built, *power]


def stored_unit(work: str, unit: Unit) -> dict[str, Any]:
    """The answers of one audit, from the work folder if it was run before."""
    cache, name = StepCache(Path(work)), digest([FORMAT, unit])[:32]
    answer = cache.get(name)
    if answer is None:
        answer = without_nan(run_unit(unit))
        cache.put(name, answer)
    return answer


def run_unit(unit: Unit) -> dict[str, Any]:
    """Audit one model; its random models are others in every unit, and never the model itself."""
    kind, name, n, seed = unit
    settings = replace(zoo.SETTINGS, seed=OTHER_SEEDS + 100 * seed)
    if kind == "zoo":
        exhibit = next(e for e in zoo.EXHIBITS if e.name == name)
        passages = zoo.passages(n, seed=seed, key_first=exhibit.key_first)
        return _answers(_audit(exhibit.make(), passages, replace(settings, headline=exhibit.headline)))
    if kind == "untrained":
        settings = replace(settings, maps=tuple(MAPS))
        with zoo_trained.UNTRAINED[name](seed) as subject:
            return _answers(_audit(subject, zoo_trained.plain_texts(subject, n, seed), settings))
    if kind == "power":
        settings = replace(settings, adversary_steps=0, random_models=0, random_orders=1, examples=0)
        question, strength = name.split()
        subject = (mixed if question == "moves" else looking)(float(strength))
        return _answers(_audit(subject, zoo.passages(n, seed=1000 + seed), settings))
    with _trained(name, n, seed) as (subject, passages):
        words = ("dull", "fine") if name == TRAINED[0] else zoo_trained.PLANTED
        share = zoo_trained.marked_share(subject, passages, words)
        result = _audit(subject, passages, settings)
    return _answers(result) | {"marked": share}


def known(unit: Unit, answer: dict[str, Any]) -> dict[str, Any]:
    """An answer with those that are right, where they are known."""
    kind, name, *_ = unit
    if kind == "trained":
        return answer | {"right": expected(name, answer["marked"]), "right grade": None}
    if kind == "zoo":
        exhibit = next(e for e in zoo.EXHIBITS if e.name == name)
        return answer | {"right": list(exhibit.answers), "right grade": exhibit.grade.split("|")}
    return answer


def expected(name: str, share: float) -> list[str]:
    """The right answers for a model that relies on a planted word which attention marks in this share of texts.

    The prediction then needs the marked words. A gradient need not mark the planted word, so agreement may stay open.
    """
    any_answer = "yes|no|unclear"
    needs = "yes" if share > 0.5 else "no|unclear" if share < 0.1 else any_answer
    agrees = "yes|unclear" if share > 0.5 else needs
    moves = "yes" if name == TRAINED[0] else any_answer
    return [moves, agrees, any_answer, needs, any_answer, any_answer]


def mixed(strength: float) -> Subject:
    """The prediction rests on the key: in part through attention, for the rest without."""

    def read(e: Tensor, a: zoo.Layers) -> Tensor:
        return 2 * (strength * zoo.pooled(e[..., zoo.VALUE], a[0]) + (1 - strength) * zoo.bag(e))

    return zoo.built(lambda e: zoo.softmax(4 * e[..., zoo.KEY] + 3 * e[..., zoo.OWN]), read)


def looking(strength: float) -> Subject:
    """The prediction rests on the key, and attention looks at it more often the stronger it draws it."""

    def score(e: Tensor) -> zoo.Layers:
        return zoo.softmax(20 * (strength * e[..., zoo.KEY] + e[..., zoo.OWN]))

    return zoo.built(score, lambda e, a: 2 * zoo.bag(e))


@contextmanager
def _trained(name: str, n: int, seed: int) -> Iterator[tuple[Subject, list[Passage]]]:
    if name == TRAINED[0]:
        yield zoo_trained.sparsemax_keyword(seed)
        return
    corpus = load("rotten-tomatoes")
    train, audited = (
        zoo_trained.planted(split.texts[:size], split.labels[:size], seed=seed)
        for split, size in ((_Shuffled(corpus.train, seed), 1500), (_Shuffled(corpus.validation, seed), n))
    )
    labels = tuple(corpus.labels)
    if name == TRAINED[1]:
        yield zoo_trained.shortcut_bilstm(train, audited, labels, seed)
        return
    with zoo_trained.shortcut_minilm(train, audited[: n // 2], labels, seed) as opened:
        yield opened


class _Shuffled:
    """A split in random order."""

    def __init__(self, split: Any, seed: int) -> None:
        order = np.random.default_rng(seed).permutation(len(split))
        self.texts, self.labels = [split.texts[i] for i in order], [int(split.labels[i]) for i in order]


def _audit(subject: Subject, passages: Sequence[Passage], settings: AuditSettings) -> AuditResult:
    with tempfile.TemporaryDirectory() as folder:
        return run_audit(subject, passages, out=folder, settings=settings)


def _answers(result: AuditResult) -> dict[str, Any]:
    questions = result.verdict.questions
    return {
        "answers": [question.answer for question in questions],
        "values": [None if q.estimate is None else q.estimate.value for q in questions],
        "excess": result.score("excess agreement", result.headline, DELETION).value,
        "grade": result.verdict.grade,
        "sentence": result.verdict.sentence,
        "maps": {
            explanation.method: {
                "answers": [question.answer for question in explanation.verdict.questions],
                "grade": explanation.verdict.grade,
            }
            for explanation in result.explanations
        },
        "without position rule": _without_position_rule(result),
    }


def _without_position_rule(result: AuditResult) -> list[str]:
    """The answers if it were not asked whether other texts leave room for an excess."""
    verdict = judge(
        tuple(score for score in result.scores if score.quantity != "shuffled agreement"),
        result.contrasts,
        headline=result.headline,
        layers=result.layers,
        random_agreement=result.random_agreement,
        settings=from_mapping(AuditSettings, result.settings, where="settings"),
        accuracy=result.accuracy,
        labels=result.labels,
    )
    return [question.answer for question in verdict.questions]


def _right(found: dict[Unit, dict[str, Any]]) -> dict[str, Any]:
    """How many answers to each question, and how many grades, were right; and which were not."""
    models: dict[str, list[dict[str, Any]]] = {}
    for (_, name, *_), answer in found.items():
        models.setdefault(name, []).append(answer)
    rows = list(found.values())
    return {
        "models": len(models),
        "audits": len(rows),
        "questions": [_share(sum(_is_right(row, q) for row in rows), len(rows)) for q in range(len(QUESTIONS))],
        "unclear": [
            sum(not _is_right(row, q) and row["answers"][q] == "unclear" for row in rows) for q in range(len(QUESTIONS))
        ],
        "decided": [sum("|" not in row["right"][q] for row in rows) for q in range(len(QUESTIONS))],
        "grades": _share(*_counted([row["grade"] in row["right grade"] for row in rows if row["right grade"]])),
        "by model": {
            name: {
                "audits": len(of),
                "right": sum(all(_is_right(row, q) for q in range(len(QUESTIONS))) for row in of),
                "grades": sorted({row["grade"] for row in of}),
                "answers": of[0]["answers"],
                "marked": of[0].get("marked"),
            }
            for name, of in models.items()
        },
    }


def _is_right(row: dict[str, Any], question: int) -> bool:
    return row["answers"][question] in row["right"][question].split("|")


def _false(found: dict[Unit, dict[str, Any]]) -> dict[str, Any]:
    """How often attention that never learned anything was judged in its favour; also by the way a map is made."""
    rows = list(found.values())
    maps = {name: [row["maps"][name] for row in rows if name in row["maps"]] for name in MAPS}
    return {
        "networks": len(rows),
        "architectures": sorted({name for _, name, *_ in found}),
        **_in_favour(rows),
        "maps": {name: _in_favour(known) for name, known in maps.items() if known},
    }


def _in_favour(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The share of reassuring answers to each question, and of grades that allow to show the map."""
    return {
        "questions": [
            _share(sum(row["answers"][q] == good for row in rows), len(rows)) for q, good in enumerate(REASSURING)
        ],
        "grades": _share(sum(row["grade"] != "do not show" for row in rows), len(rows)),
    }


def _position(found: dict[Unit, dict[str, Any]]) -> list[dict[str, Any]]:
    """Answers to the second question with the rule about positions and without it, where the two differ, and in all."""
    fixed = {exhibit.name for exhibit in zoo.EXHIBITS if exhibit.key_first}
    groups: dict[str, list[dict[str, Any]]] = {}
    for (kind, name, *_), answer in found.items():
        group = name if name in fixed else "all other built models" if kind == "zoo" else "untrained networks"
        groups.setdefault(group, []).append(answer)
    return [
        {
            "models": group,
            "audits": len(rows),
            "with": _tally([row["answers"][1] for row in rows]),
            "without": _tally([row["without position rule"][1] for row in rows]),
        }
        for group, rows in groups.items()
    ]


def _tally(answers: Sequence[str]) -> dict[str, int]:
    return {answer: answers.count(answer) for answer in ("yes", "no", "unclear")}


def _power(found: dict[Unit, dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """For each strength of a question's model, the effect on all texts, and the answers by number of texts."""
    table: dict[str, list[dict[str, Any]]] = {}
    for name in dict.fromkeys(name for _, name, *_ in found):
        question, strength = name.split()
        place, whole = list(POWER).index(question), found["power", name, POPULATION, 0]
        counts = {}
        for n in NUMBERS[question]:
            answers = [found["power", name, n, seed]["answers"][place] for seed in range(POWER_SEEDS)]
            counts[str(n)] = [answers.count("yes"), answers.count("no")]
        effect = whole["values"][0] if question == "moves" else whole["excess"]
        table.setdefault(question, []).append({"strength": float(strength), "effect": effect, "answers": counts})
    return table


def _counted(right: Sequence[bool]) -> tuple[int, int]:
    return sum(right), len(right)


def _share(count: int, total: int) -> dict[str, Any]:
    """A share with its exact interval (Clopper–Pearson)."""
    if not total:
        return {"count": 0, "total": 0, "low": None, "high": None}
    ends = stats.binomtest(count, total).proportion_ci(0.95, method="exact")
    return {"count": count, "total": total, "low": float(ends.low), "high": float(ends.high)}


def rows(measured: dict[str, Any]) -> str:
    """The audit half of the page, in Markdown."""
    lines = (_zoo_rows(measured), _untrained_rows(measured["untrained"]), _position_rows(measured.get("position", [])))
    return "\n".join([*chain(*lines), *_power_rows(measured["power"])])


def _zoo_rows(measured: dict[str, Any]) -> Iterator[str]:
    counts = measured["zoo"]
    grades = counts["grades"]
    yield "### Models with known answers\n"
    yield (
        f"{counts['models']} models, {counts['audits']} audits of up to {measured['texts']} texts. *Unclear instead*: "
        "a yes or no was right, and the answer was left open; any other answer that is not right is the opposite one. "
        f"*Decided*: audits in which one answer alone is right. {measured['drawn']}\n"
    )
    yield "| question | right answers | 95 % interval | unclear instead | decided |\n|---|--:|--:|--:|--:|"
    columns = (counts[name] for name in ("questions", "unclear", "decided"))
    for question, share, unclear, decided in zip(QUESTIONS, *columns, strict=True):
        yield f"| {question} | {_count(share)} | {_ends(share)} | {unclear} | {decided} |"
    yield f"| grade | {_count(grades)} | {_ends(grades)} | – | {grades['total']} |\n"
    yield "| model | audits all right | grade | answers in the first audit |\n|---|--:|---|---|"
    for name, of in counts["by model"].items():
        marked = "" if of["marked"] is None else f" (attention marks the planted word in {of['marked']:.0%})"
        right = f"{of['right']} of {of['audits']}"
        yield f"| {name}{marked} | {right} | {', '.join(of['grades'])} | {', '.join(of['answers'])} |"


def _untrained_rows(untrained: dict[str, Any]) -> Iterator[str]:
    yield (
        f"\n### Networks that never learned anything\n\n{untrained['networks']} networks "
        f"({', '.join(untrained['architectures'])}) on random words with random labels. An answer in favour of "
        "their attention is false; of the fifth question that is a *no*.\n"
    )
    yield "| question | false answers in favour | 95 % interval |\n|---|--:|--:|"
    for question, share in zip(QUESTIONS, untrained["questions"], strict=True):
        yield f"| {question} | {_count(share)} | {_ends(share)} |"
    yield f"| any grade but *do not show* | {_count(untrained['grades'])} | {_ends(untrained['grades'])} |"
    yield (
        "\nThe same networks, by the way the map is made (`--maps`): false answers in favour of it. Some architectures "
        "do not allow every map.\n"
    )
    yield "| map | agrees | better than random models | needs its words | any grade but *do not show* | at most |"
    yield "|---|--:|--:|--:|--:|--:|"
    for name, counted in untrained["maps"].items():
        shares = [*(counted["questions"][q] for q in (1, 2, 3)), counted["grades"]]
        yield f"| {name} | {' | '.join(map(_count, shares))} | {max(share['high'] for share in shares):.1%} |"


def _position_rows(groups: list[dict[str, Any]]) -> Iterator[str]:
    if not groups:
        return
    yield (
        "\n### Words that matter at one place\n\nWhere the word that matters has the same place in every text, other "
        "texts agree as well by position alone, and no excess over them is possible. The second question is then left "
        "open. Answers (yes / no / unclear) with that rule and without it:\n"
    )
    yield "| models | audits | with the rule | without |\n|---|--:|--:|--:|"
    for group in groups:
        counts = (
            " / ".join(str(group[column][answer]) for answer in ("yes", "no", "unclear"))
            for column in ("with", "without")
        )
        yield f"| {group['models']} | {group['audits']} | {' | '.join(counts)} |"


def _power_rows(power: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    if not power:
        return
    yield (
        f"\n### Power\n\nOf {POWER_SEEDS} audits each: how many answer *yes* / *no*; the others are unclear. The "
        f"effect is that on {POPULATION:,} texts, the threshold 0.05 for both questions.\n"
    )
    for name, question, what in (
        ("moves", QUESTIONS[0], "the prediction rests on attention to a growing part; the effect is the total "
        "variation."),
        ("agrees", QUESTIONS[1], "attention looks at the word that decides in more and more texts; the effect is the "
        "share of texts, beyond other texts, whose highest word is among the most important. A *yes* needs three "
        "intervals above their thresholds at once (this share, and τ with leave one out and with the gradient), so "
        "this question needs more texts than the first."),
    ):  # fmt: skip
        numbers = NUMBERS[name]
        yield f"**{question}** A model in which {what}\n"
        yield f"| effect | {' | '.join(f'{n} texts' for n in numbers)} |\n|--:|{'--:|' * len(numbers)}"
        for row in power[name]:
            counts = " | ".join("{} / {}".format(*row["answers"][str(n)]) for n in numbers)
            yield f"| {row['effect']:.3f} | {counts} |"
        yield ""


def _count(share: dict[str, Any]) -> str:
    return f"{share['count']} of {share['total']}"


def _ends(share: dict[str, Any]) -> str:
    return "–" if share["low"] is None else f"{share['low']:.1%}–{share['high']:.1%}"
