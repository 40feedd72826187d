"""Figures 2, 3, 6 and 7, §6.2, A.7 and A.9 of snell2021: what is learned, when, and how alike."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heedful.config import EncoderName, StudyConfig
from heedful.metrics.agreement import contextualised_agreement
from heedful.metrics.statistics import Estimate, mean_over_seeds
from heedful.papers.experiment import Answer, Needs, Unit, Workspace
from heedful.papers.findings import (
    Cell,
    Figure,
    Finding,
    Line,
    Mark,
    Panel,
    ResultTable,
    Row,
    Sizes,
    Value,
    curve,
    nested_value,
    seed_value,
    shifted,
)
from heedful.papers.snell2021.config import COPYING_BUDGETS, KEYWORD_BUDGETS, CopyingBudget, corpora, study_of
from heedful.papers.snell2021.models import (
    PLACES,
    candidate_unit,
    curve_unit,
    head_unit,
    keyword_unit,
    median_time,
    share_learned,
    slower,
)
from heedful.papers.snell2021.study_numbers import numbers_of, over_pairs

Curves = Mapping[str, Sequence[Answer]]  # the learning curves of each task or setting, a seed each
FindCurves = Callable[[str, Curves], Finding]
CurveUnits = Callable[[str], dict[str, list[Unit]]]
COLUMNS = ("runs", "learned within the budget", "median step to 99 %", "log-rank p against the last line")
SMS = {"smoke": "polarity"}  # takes the place of sms-spam where nothing may be downloaded
LONGEST = {"smoke": "polarity"}  # takes the place of sst, the study trained long enough for the fall of A.7


def figure2_study(budget: str) -> StudyConfig:
    """The study of Figure 2."""
    return study_of(LONGEST.get(budget, "sst"), budget)


def find_figure2(workspace: Workspace) -> Finding:
    """Figure 2: how ξ is read off: the step where another seed's attention agrees more, and its performance there."""
    study = figure2_study(workspace.budget)
    seen = numbers_of(workspace, study.data).climb
    (A, B), steps, climb, performance, target = seen.seeds, seen.steps, seen.agreement, seen.performance, seen.target
    xi = contextualised_agreement(target, list(steps), climb, performance)
    index, x = steps.index(xi.step), tuple(float(step) for step in steps)
    star = "" if xi.reached else " (never exceeded)"
    panels = (
        Panel(
            "A(α, α̂(τ)) of another seed",
            (Line("A(α, α̂(τ))", x, climb),),
            (Mark(float(xi.step), climb[index], f"τ₀ = {xi.step}{star}", guides=True),),
            x_label="training step τ",
            y_label="agreement",
            y_percent=True,
            reference=target,
        ),
        Panel(
            "its performance",
            (Line("p̂(τ)", x, performance),),
            (Mark(float(xi.step), xi.value, f"ξ = {xi.value:.1%}", guides=True),),
            x_label="training step τ",
            y_label="accuracy",
            y_percent=True,
        ),
    )
    caption = f"{study.data}, seeds {A} and {B}; the dotted line is A(α, β^uf) = {target:.1%}."
    return Finding(figures=(Figure("figure2", "Figure 2: how ξ is read off a curve", panels, caption),))


def find_figure3(budget: str, curves: Curves) -> Finding:
    """Figure 3: permutations of one set of 40 words, and of two, against 40 of 60."""
    names = {
        "copy-permutation": "permutations of 40 words",
        "copy-mixture": "permutations of either of two sets of 40",
        "copy-vocab": "40 of 60 words",
    }
    panels = {"left: one set": ("copy-permutation", "copy-vocab"), "right: two sets": ("copy-mixture", "copy-vocab")}
    title = "Figure 3: copying where co-occurrence is constant, and where it is not"
    return _against_copying(budget, curves, names, panels, "figure3", title)


def figure3_units(budget: str) -> dict[str, list[Unit]]:
    """The runs of Figure 3, by task."""
    sizes = COPYING_BUDGETS[budget]
    seeds = {"copy-permutation": sizes.seeds, "copy-mixture": sizes.mixture_seeds, "copy-vocab": sizes.seeds}
    return _curve_units(seeds, sizes)


def find_permute(budget: str, curves: Curves) -> Finding:
    """§6.2: the same words through one fixed permutation of positions: β is as easy to learn, attention is not."""
    names = {"permute": "permuted by a fixed π", "copy-vocab": "copied"}
    title = "§6.2: permuting positions against copying"
    return _against_copying(budget, curves, names, {"40 of 60 words": tuple(names)}, "section6_2", title)


def permute_units(budget: str) -> dict[str, list[Unit]]:
    """The runs of §6.2, by task."""
    sizes = COPYING_BUDGETS[budget]
    return _curve_units({"permute": sizes.permute_seeds, "copy-vocab": sizes.seeds}, sizes)


def _curve_units(seeds: Mapping[str, int], sizes: CopyingBudget) -> dict[str, list[Unit]]:
    return {task: [curve_unit(task, seed, sizes) for seed in range(n)] for task, n in seeds.items()}


def _against_copying(
    budget: str, curves: Curves, names: Mapping[str, str], panels: Mapping[str, Sequence[str]], figure: str, title: str
) -> Finding:
    """Tasks against copying 40 of 60 words, under these names; panels: the tasks of each."""
    sizes = COPYING_BUDGETS[budget]
    drawn = [
        _panel(panel, {names[task]: curves[task] for task in tasks}, sizes.steps) for panel, tasks in panels.items()
    ]
    shown = {name: curves[task] for task, name in names.items()}
    table = _table(f"{title.split(':')[0]} in numbers", shown, sizes.steps)
    note = _budget_note(sizes.steps, sizes.batch_size)
    return Finding(
        (table,), (Figure(figure, title, tuple(drawn)),), _values(curves, "copy-vocab", sizes.steps), (note,)
    )


def figure6_needs(budget: str) -> Needs:
    """Candidates of single heads, round by round until there are enough of each kind, and then combinations."""
    return _next_round(COPYING_BUDGETS[budget], 0)


def _next_round(sizes: CopyingBudget, tried: int) -> Needs:
    candidates = _candidates(tried, min(tried + sizes.head_round, sizes.head_candidates))
    units = tuple(candidate_unit(variant, head, sizes) for variant in sizes.variants for head in candidates)

    def afterwards(workspace: Workspace) -> Needs:
        count = tried + len(candidates)
        if count < sizes.head_candidates and not all(
            _is_enough(_heads(workspace, variant, count), sizes) for variant in sizes.variants
        ):
            return _next_round(sizes, count)
        combined = (_combined_heads(workspace, variant) for variant in sizes.variants)
        return Needs(units=tuple(unit for settings in combined for runs in settings.values() for unit in runs))

    return Needs(units=units, then=afterwards)


def _candidates(first: int, last: int) -> range:
    return range(100 + first, 100 + last)


def _is_enough(found: "SingleHeads", sizes: CopyingBudget) -> bool:
    return min(len(found.good), len(found.bad)) >= sizes.head_kinds


@dataclass(frozen=True)
class SingleHeads:
    """Heads by kind, at most as many as are collected; tried: the candidates that it took."""

    good: tuple[int, ...]
    bad: tuple[int, ...]
    tried: int


def _heads(workspace: Workspace, variant: str, count: int) -> SingleHeads:
    """The kinds of the first `count` candidates."""
    sizes = COPYING_BUDGETS[workspace.budget]
    candidates = _candidates(0, count)
    answers = workspace.answers([candidate_unit(variant, head, sizes) for head in candidates])
    of_kind = {
        kind: tuple(head for head, answer in zip(candidates, answers, strict=True) if answer["kind"] == kind)
        for kind in ("good", "bad")
    }
    return SingleHeads(of_kind["good"][: sizes.head_kinds], of_kind["bad"][: sizes.head_kinds], count)


def _collected(workspace: Workspace) -> dict[str, SingleHeads]:
    """The heads of every variant after the rounds that were needed."""
    sizes = COPYING_BUDGETS[workspace.budget]
    count = 0
    while True:
        count = min(count + sizes.head_round, sizes.head_candidates)
        found = {variant: _heads(workspace, variant, count) for variant in sizes.variants}
        if count == sizes.head_candidates or all(_is_enough(each, sizes) for each in found.values()):
            return found


def find_figure6(workspace: Workspace) -> Finding:
    """Figure 6: eight heads that are all bad, of which one is good, or drawn at random.

    Everything but the heads starts the same throughout; runs differ in which heads they combine, none twice, and in the
    order of their data. Both variants: the paper's text, whose values have no prefix, and its released code.
    """
    sizes = COPYING_BUDGETS[workspace.budget]
    tables, panels, values = [], [], []
    notes = [_budget_note(sizes.head_steps, sizes.batch_size)]
    for variant, found in _collected(workspace).items():
        title, prefix = _HEAD_VARIANTS[variant]
        combined = _combined_heads(workspace, variant)
        curves = {setting.replace("-", " "): workspace.answers(runs) for setting, runs in combined.items()}
        notes.append(
            f"{title}: of {found.tried} single heads the first {len(found.good)} good and {len(found.bad)} bad ones "
            f"were kept. Good: 95 % within {sizes.head_steps} steps in each of {sizes.head_orders} orders of the data; "
            "bad: below 60 % at the end in each."
        )
        absent = [setting for setting in _SETTINGS if setting not in combined]
        if absent:
            notes.append(f"{title}: too few heads for {', '.join(absent)}, which was not run; no head is used twice.")
        if "one good" in curves and "all bad" in curves:
            values += [replace(v, name=f"{prefix}{v.name}") for v in _values(curves, "one good", sizes.head_steps)]
        tables.append(_table(f"Figure 6 in numbers, {title}", curves, sizes.head_steps))
        panels.append(_panel(f"{sizes.heads} heads, {title}", curves, sizes.head_steps))
    figure = Figure("figure6", "Figure 6: more heads, more chances of a good start", tuple(panels))
    return Finding(tuple(tables), (figure,), tuple(values), tuple(notes))


_HEAD_VARIANTS = {"text": ("as the paper's text", ""), "released": ("as the released code", "released, ")}
_SETTINGS = ("all-bad", "one-good", "random")


def _combined_heads(workspace: Workspace, variant: str) -> dict[str, list[Unit]]:
    sizes = COPYING_BUDGETS[workspace.budget]
    found = _collected(workspace)[variant]
    return {
        setting: [
            head_unit(f"heads-{variant}-{setting}-{k}", variant, heads, k + 1, sizes) for k, heads in enumerate(runs)
        ]
        for setting, runs in _combinations(found.good, found.bad, sizes).items()
    }


def _combinations(good: Sequence[int], bad: Sequence[int], sizes: CopyingBudget) -> dict[str, list[list[int]]]:
    """Which heads each run has, all of them different; a setting for which there are too few is left out."""
    rng, K = np.random.default_rng(6), sizes.heads

    def draw(pool: Sequence[int], count: int) -> list[int]:
        return [int(head) for head in rng.choice(np.array(pool), count, replace=False)]

    drawn: dict[str, list[list[int]]] = {}
    if len(bad) >= K:
        drawn["all-bad"] = [draw(bad, K) for _ in range(sizes.head_runs)]
    if good and len(bad) >= K - 1:
        drawn["one-good"] = [[*draw(good, 1), *draw(bad, K - 1)] for _ in range(sizes.head_runs)]
    drawn["random"] = [draw(range(10_000, 1_000_000), K) for _ in range(sizes.head_runs)]
    return drawn


def find_figure7(budget: str, curves: Curves) -> Finding:
    """Figure 7: γ at the keyword, after it, on average and at the end, through training under uniform attention.

    The LSTM in one direction decides; with both directions every state has read the keyword.
    """
    sizes = KEYWORD_BUDGETS[budget]
    panels, values = [], []
    for encoder, (title, prefix) in _KEYWORD_ENCODERS.items():
        answers = curves[encoder]
        steps = answers[0]["steps"]
        table = {place: np.array([answer[place] for answer in answers]) for place in PLACES}  # (seeds, steps)
        lines = [
            curve(label, [float(s) for s in steps], [mean_over_seeds(column) for column in table[place].T])
            for place, label in PLACES.items()
        ]
        moments = {"early": steps.index(sizes.early), "late": len(steps) - 1}
        values += [
            seed_value(f"{prefix}{when}: {above} - {below}", (table[above] - table[below])[:, moments[when]].tolist())
            for when, pairs in _COMPARED.items()
            for above, below in pairs
        ]
        panels.append(Panel(f"{title}, uniform attention", tuple(lines), x_label="training step", y_label="γ"))
    note = (
        f"Hypothesis 2 (γ at l* above γ at l* + 1 above the average) is read at step {sizes.early}, Observation 3 (γ "
        f"at the end above γ at l* + 1 above the average, about that at l*) at step {sizes.steps}, and with it whether "
        "γ at the end is above γ at l*. The LSTM in one direction decides; the BiLSTM stands beside it. The caption of "
        "the paper's Figure 7 cites Eq. 22 for Hypothesis 2; it is Eq. 23."
    )
    return Finding((), (Figure("figure7", "Figure 7: β does not stay local", tuple(panels)),), tuple(values), (note,))


_KEYWORD_ENCODERS: dict[EncoderName, tuple[str, str]] = {
    "lstm": ("keyword task, LSTM", ""),
    "bilstm": ("keyword task, BiLSTM", "bilstm, "),
}
_COMPARED = {
    "early": [("keyword", "next"), ("next", "mean")],
    "late": [("last", "next"), ("next", "mean"), ("mean", "keyword"), ("last", "keyword")],
}


def figure7_units(budget: str) -> dict[str, list[Unit]]:
    """The runs of Figure 7, by encoder."""
    sizes = KEYWORD_BUDGETS[budget]
    return {name: [keyword_unit(name, seed, sizes) for seed in range(sizes.seeds)] for name in _KEYWORD_ENCODERS}


def _panel(title: str, curves: Curves, steps: int) -> Panel:
    """Every run a line; one that learned goes on at its last accuracy."""
    lines = []
    for group, runs in curves.items():
        for k, run in enumerate(runs):
            x, y = [float(s) for s in run["steps"]], list(run["accuracy"])
            if x[-1] < steps:
                x, y = [*x, float(steps)], [*y, y[-1]]
            lines.append(Line(f"{group} {k}", tuple(x), tuple(y), group=group, faint=True))
    return Panel(title, tuple(lines), x_label="training step", y_label="token accuracy", y_percent=True)


def _table(title: str, curves: Curves, steps: int) -> ResultTable:
    last = list(curves)[-1]
    rows = []
    for name, runs in curves.items():
        median = median_time(runs)
        p = slower(runs, curves[last], steps)[1] if name != last else float("nan")
        cells = (
            Cell(text=str(len(runs))),
            Cell(share_learned(runs), unit="%", digits=0),
            Cell(text=f"more than {steps}" if np.isnan(median) else f"{median:.0f}"),
            Cell(text="" if np.isnan(p) else f"{p:.2g}"),
        )
        rows.append(Row(name, cells))
    return ResultTable(title, COLUMNS, tuple(rows))


def _values(curves: Curves, easy: str, steps: int) -> tuple[Value, ...]:
    """Shares learned; and for each hard task how sure the log-rank test is that it is learned more slowly.

    The statistic of the test is standard normal where there is no difference; 1.96 on either side is its interval.
    """
    values = [Value(f"share learned, {name}", share_learned(runs)) for name, runs in curves.items()]
    for name, runs in curves.items():
        if name != easy:
            z = slower(runs, curves[easy], steps)[0]
            values.append(Value(f"slower (z), {name}", Estimate(z, z - 1.96, z + 1.96, len(runs) + len(curves[easy]))))
    return tuple(values)


def _budget_note(steps: int, batch: int) -> str:
    return (
        f"At most {steps} steps of {batch} fresh sequences, fixed beforehand; a run ends when 99 % of held-out words "
        "are right. Runs that do not get there are censored at the budget, not failures for ever."
    )


def find_rise_and_fall(workspace: Workspace) -> Finding:
    """A.7: A(α, β^uf(τ)) rises and then falls as the uniform twin trains on.

    The peak's step is chosen on one half of the texts and everything is read on the other: a maximum can only lie above
    the end it is compared with.
    """
    lines, values, rows = [], [], []
    for corpus in corpora(workspace.budget, "classification"):
        if corpus.data is None:
            continue
        seen = numbers_of(workspace, corpus.data).twin
        assert seen is not None
        steps, curve = seen.steps, seen.curve
        lines.append(Line(corpus.name, tuple(float(s) for s in steps), curve))
        rise, fall = (
            nested_value(f"{name}, {corpus.data}", margins)
            for name, margins in (("rise", seen.rise), ("fall", seen.fall))
        )
        values += [rise, fall]
        peak = steps[int(np.argmax(curve))]
        sizes: Sizes = {"seeds": rise.seeds, "texts": rise.texts}
        ends = (Cell(value.estimate, unit="%", **sizes) for value in (rise, fall))
        rows.append(Row(corpus.name, (Cell(text=f"{peak} of {steps[-1]}"), *ends)))
    panel = Panel(
        "A(α, β^uf(τ)), cross", tuple(lines), x_label="step τ of the uniform twin", y_label="agreement", y_percent=True
    )
    columns = ("step of the peak", "peak above the start", "peak above the end")
    caption = "Peaks are chosen on half of the texts and read on the others."
    figure = Figure("a7", "A.7: rise, and fall where training goes on long enough", (panel,))
    return Finding((ResultTable("A.7 in numbers", columns, tuple(rows), caption),), (figure,), tuple(values))


def find_between_seeds(workspace: Workspace) -> Finding:
    """A.9: how much the attention of two seeds agrees, over all pairs of seeds, on SMS spam and elsewhere."""
    sms = SMS.get(workspace.budget, "sms-spam")
    rows, above = [], {}
    for corpus in corpora(workspace.budget, "classification"):
        if corpus.data is None:
            continue
        numbers = numbers_of(workspace, corpus.data)
        study, pairs = numbers.validation, numbers.pairs
        assert pairs is not None
        seen = study.agreement("A(alpha,alpha_hat)", "cross")
        chance = max(seen.random, seen.shuffle.value) if seen.shuffle.n else seen.random
        above[corpus.data] = over_pairs(pairs, chance)
        sizes: Sizes = {"seeds": study.seeds, "texts": study.texts}
        shown = (shifted(above[corpus.data].estimate, chance), seen.shuffle, above[corpus.data].estimate)
        rows.append(Row(corpus.name, tuple(Cell(each, unit="%", **sizes) for each in shown)))
    values = [
        _apart(f"between seeds: sms less, {data}", above[sms], each) for data, each in above.items() if data != sms
    ]
    values += [replace(each, name=f"between seeds, {data}") for data, each in above.items()]
    columns = ("A(α, α̂) between seeds", "matched shuffle", "above chance")
    caption = "Over all ordered pairs of seeds; intervals are over seeds (jackknife) and texts."
    table = ResultTable("A.9: attention of one seed against another's", columns, tuple(rows), caption)
    return Finding((table,), values=tuple(values))


def _apart(name: str, one: Value, other: Value) -> Value:
    """The difference of two corpora, whose seeds and texts have nothing to do with each other."""
    n, texts = (min(getattr(one, part), getattr(other, part)) for part in ("seeds", "texts"))
    halves = [max(e.value - e.low, e.high - e.value) for e in (one.estimate, other.estimate)]
    half, value = math.hypot(*halves), one.estimate.value - other.estimate.value
    return Value(
        name, Estimate(value, value - half, value + half, n), (), texts, n, math.hypot(one.text_error, other.text_error)
    )
