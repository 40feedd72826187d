"""Error rates of studies as Markdown, from the values that `calibration.studies.measure` returns."""

from typing import Any

import numpy as np
from scipy import stats

from calibration.corpora import KNOWN, QUESTIONS
from calibration.studies import MEASURED, NOISES, RULE_SETS
from heedful.html import symbol


def rows(values: dict[str, Any]) -> str:
    """The results as Markdown: held-out sets first, then the sets that the rules were made with."""
    sizes = values["sizes"]
    held_out = [study for study in values["studies"] if study["set"] not in RULE_SETS]
    seen = [study for study in values["studies"] if study["set"] in RULE_SETS]
    lines = [
        "## Studies",
        "",
        f"Each corpus is studied several times, each time with other texts and {sizes['seeds']} other seeds (a *set*). "
        f"Texts: {sizes['train']:,} for training, {sizes['validation']:,} for validation; a BiLSTM of "
        f"{sizes['hidden']} per direction with embeddings of {sizes['embedding']}, {sizes['steps']} steps. Pairs: "
        f"{sizes['pairs']:,} and {sizes['pairs_validation']:,}; width {sizes['pairs_hidden']}, "
        f"{sizes['pairs_steps']} steps. What each corpus must be answered, and why, is in `calibration/corpora.py`. "
        "The translations are generated: their lexicon is known, and small models learn it in these few steps.",
        "",
        "*Right, open, wrong* count the gate and every question whose answer follows from how the corpus is made. "
        "*Open* is *unclear*, or *not asked* behind a closed gate. *False praise* counts studies that say *yes* where "
        "the truth is no, or pass the gate on noise.",
        "",
    ]
    if held_out:
        lines += [
            f"### Held-out sets: {_sets(held_out)} of each corpus",
            "",
            "No study of these texts and seeds was looked at before the rules of the verdict were fixed. These are the "
            "error rates.",
            "",
            *_verdict_rows(held_out),
        ]
    if seen:
        lines += [
            f"### Sets that the rules were made with: {_sets(seen)} of each corpus",
            "",
            "Rules were changed after looking at studies of these texts and seeds, so their rates flatter. One such "
            "rule: a *yes* about the knowledge of another model needs that model to beat the baseline. It was made "
            "after a false *yes* in the third set.",
            "",
            *_verdict_rows(seen),
        ]
    if "frozen" in values:
        lines += _frozen_rows(values["frozen"])
    if "coverage" in values:
        lines += _coverage_rows(values["coverage"], sizes)
    if "noise" in values:
        lines += _noise_rows(values["noise"], sizes)
    return "\n".join(lines)


def _sets(studies: list[dict[str, Any]]) -> int:
    return len({study["set"] for study in studies})


def _verdict_rows(studies: list[dict[str, Any]]) -> list[str]:
    """How many verdicts are right, by corpus and in all, and every answer."""
    lines = [
        "| corpus | truth | model learned | accuracy, baseline | right | open | wrong | false praise |",
        "|---|---|---|--:|--:|--:|--:|--:|",
    ]
    total = dict.fromkeys(("right", "open", "wrong", "praise"), 0)
    possible = 0
    for name, known in KNOWN.items():
        own = [study for study in studies if study["corpus"] == name]
        if not own:
            continue
        counts = [judged(study) for study in own]
        sums = {key: sum(count[key] for count in counts) for key in total}
        total = {key: total[key] + sums[key] for key in total}
        possible += len(own) if _can_praise(name) else 0
        must = {True: "must", False: "must not", None: "may"}[known.learnable]
        accuracy, baseline = (100 * float(np.mean([study[key] for study in own])) for key in ("accuracy", "baseline"))
        lines.append(
            f"| {name} | {known.truth} | {must}; {sum(study['passed'] for study in own)} of {len(own)} "
            f"| {accuracy:.1f} %, {baseline:.1f} % | {sums['right']} | {sums['open']} | {sums['wrong']} "
            f"| {sums['praise'] if _can_praise(name) else '–'} |"
        )
    answers = total["right"] + total["open"] + total["wrong"]
    return [
        *lines,
        "",
        f"- right: {share(total['right'], answers)}",
        f"- wrong: {share(total['wrong'], answers)}",
        f"- false praise: {share(total['praise'], possible)} studies",
        "",
        *_answer_table(studies),
    ]


def judged(study: dict[str, Any]) -> dict[str, int]:
    """How many answers of a study are right, open and wrong, and whether it praises what is not there.

    >>> judged({"corpus": "shuffled-six", "passed": True, "answers": {}})
    {'right': 0, 'open': 0, 'wrong': 1, 'praise': 1}
    """
    known, passed, answers = KNOWN[study["corpus"]], study["passed"], study["answers"]
    counts = {"right": 0, "open": 0, "wrong": 0, "praise": 0}
    if known.learnable is not None:
        counts["right" if passed == known.learnable else "wrong"] += 1
        counts["praise"] |= int(passed and not known.learnable)
    for question, must in known.must.items():
        answer = answers.get(question, "not asked")
        if must == "no praise":
            counts["right" if answer != "yes" else "wrong"] += 1
        else:
            counts["right" if answer == must else "wrong" if answer in ("yes", "no") else "open"] += 1
        counts["praise"] |= int(answer == "yes" and must in ("no", "no praise"))
    return counts


def _can_praise(name: str) -> bool:
    known = KNOWN[name]
    return known.learnable is False or any(must != "yes" for must in known.must.values())


def _answer_table(studies: list[dict[str, Any]]) -> list[str]:
    """How often each question was answered how, by corpus: yes, unclear, no; bold where one must come."""
    lines = [
        "Answers, as *yes / unclear / no* over the studies of a corpus (a dash: not asked); bold where one must come:",
        "",
        f"| corpus | {' | '.join(QUESTIONS)} |",
        f"|---|{'--:|' * len(QUESTIONS)}",
    ]
    for name, known in KNOWN.items():
        own = [study["answers"] for study in studies if study["corpus"] == name]
        cells = []
        for question in QUESTIONS:
            counts = [sum(answers[question] == answer for answers in own) for answer in ("yes", "unclear", "no")]
            cell = " / ".join(map(str, counts)) if any(counts) else "–"
            cells.append(f"**{cell}**" if question in known.must and any(counts) else cell)
        if own:
            lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _frozen_rows(frozen: list[dict[str, Any]]) -> list[str]:
    lines = [
        "### Attention on frozen words",
        "",
        "The last question of texts: does attention fail to form when word knowledge is frozen? These are more models "
        "of the two corpora with keywords, in which attention alone is trained. Counted: models whose highest weight "
        "lies on a keyword in more than 90 % of the texts that have one, in fewer than 10 %, and in between.",
        "",
        "| corpus | models | more than 90 % | between | fewer than 10 % |",
        "|---|--:|--:|--:|--:|",
    ]
    for part in frozen:
        shares = np.asarray(part["shares"])
        high, low = int(np.sum(shares > 0.9)), int(np.sum(shares < 0.1))
        lines.append(f"| {part['corpus']} | {len(shares)} | {high} | {len(shares) - high - low} | {low} |")
    return [
        *lines,
        "",
        "What is frozen includes the output layer, which is drawn at random. Attention to a single keyword helps only "
        "a model whose output layer happens to favour its label; of two keywords, one or the other helps nearly every "
        "model. So models differ, and five of them often cannot settle their mean: *unclear* is then what can be said, "
        "and it is counted as open above. If by chance none of the five favours the keyword, they agree with each "
        "other, their interval does not know of the others, and the answer is a false *yes*.",
        "",
    ]


def _coverage_rows(coverage: dict[str, Any], sizes: dict[str, Any]) -> list[str]:
    lines = [
        "### Coverage of the 95 % interval",
        "",
        f"{coverage['seeds']} seeds of one corpus, whose words go with labels in three of four cases, on "
        f"{coverage['texts']:,} validation texts: their mean is the population value. A group has {sizes['seeds']} "
        f"seeds and {sizes['group_texts']} texts. Disjoint groups share neither; resampled groups are drawn at random "
        "and overlap, so their shares are less certain than their number suggests.",
        "",
        "| agreement | population | disjoint groups | resampled groups |",
        "|---|--:|--:|--:|",
    ]
    for name, convention in MEASURED:
        for quantity in ("value", "excess"):
            key = f"{name} {convention}"
            of = coverage["population"][key][quantity][0]
            cells = [covered(coverage, which, key, quantity) for which in ("disjoint", "resampled")]
            shown = [f"{k} of {n} ({100 * k / n:.0f} %)" for k, n in cells]
            label = "A" if quantity == "value" else "excess"
            lines.append(f"| {symbol(name)}, {convention}, {label} | {100 * of:.1f} % | {' | '.join(shown)} |")
    return [*lines, ""]


def covered(coverage: dict[str, Any], which: str, key: str, quantity: str) -> tuple[int, int]:
    """How many intervals of the groups contain the population value, of how many.

    >>> group = {"A(alpha,beta) own": {"value": [0.5, 0.4, 0.6]}}
    >>> covered({"population": group, "disjoint": [group, group]}, "disjoint", "A(alpha,beta) own", "value")
    (2, 2)
    """
    population = coverage["population"][key][quantity][0]
    intervals = [group[key][quantity][1:] for group in coverage[which]]
    return sum(low <= population <= high for low, high in intervals), len(intervals)


def _noise_rows(noise: list[dict[str, Any]], sizes: dict[str, Any]) -> list[str]:
    lines = [
        "### Noise through the analysis",
        "",
        f"Random attention and random probes of {sizes['seeds']} seeds at {sizes['noise_steps']} steps on "
        f"{sizes['noise_texts']} texts: how often the answer is *yes*. *Unrelated*: they have nothing to do with each "
        "other. *Strength*: attention follows the size of the probe's logit, and the label it speaks for is random.",
        "",
        "| noise | own | cross | both |",
        "|---|--:|--:|--:|",
    ]
    for kind in NOISES:
        parts = [part for part in noise if part["kind"] == kind]
        repetitions = sum(part["repetitions"] for part in parts)
        cells = [share(sum(part["yes"][name] for part in parts), repetitions) for name in ("own", "cross", "both")]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return [*lines, ""]


def share(count: int, total: int) -> str:
    """A share with its exact 95 % interval (Clopper and Pearson 1934).

    >>> share(0, 30)
    '0 of 30 (0.0 %, at most 11.6 %)'
    """
    if total == 0:
        return "0 of 0"
    ends = stats.binomtest(count, total).proportion_ci(0.95, method="exact")
    interval = f"at most {100 * ends.high:.1f} %" if count == 0 else f"{100 * ends.low:.1f} to {100 * ends.high:.1f} %"
    return f"{count:,} of {total:,} ({100 * count / total:.1f} %, {interval})"
