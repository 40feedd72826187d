"""Several studies or followed trainings on one page: what they share, and where they differ."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from heedful.audits.result import AuditQuestion, AuditVerdict
from heedful.errors import RunError
from heedful.html import concept, symbol
from heedful.metrics.statistics import Estimate
from heedful.reports import followed_page, study_page
from heedful.reports.followed_page import FollowedRun, embedded_texts
from heedful.reports.html import NONE, Arrays, Payload, fill_training_page, with_interval
from heedful.studies.page_data import StudyPageData, comparison_page_data
from heedful.studies.result import Question, StudyResult, Verdict
from heedful.studies.run_directory import RunDirectory

MOST = 6  # more marks than these cannot be told apart


@dataclass(frozen=True)
class RunSummary:
    """A run in a comparison, under a short name that no other run has.

    figures: estimates that can be compared with those of the same name of another run; facts: how it was made.
    """

    name: str
    verdict: Verdict | AuditVerdict
    figures: Mapping[str, Estimate]
    facts: Mapping[str, str]

    @property
    def failed(self) -> str:
        """Why its verdict answers nothing ("learned nothing", "too few texts"); empty where it answers."""
        status = self.verdict.status if isinstance(self.verdict, Verdict) else "answered"
        return "" if status == "answered" else status

    @property
    def title(self) -> str:
        """Its name in legends, with the reason why it does not count."""
        return f"{self.name} ({self.failed})" if self.failed else self.name


def comparison_words(runs: Sequence[RunSummary], figures: str = "agreements", **spelt: Any) -> dict[str, Any]:
    """The words that a page of several runs of any kind has; figures: what is compared, in the plural."""
    different, shared = facts(runs)
    return {
        "runs": runs,
        "names": [run.name for run in runs],
        "headline": headline(runs, figures),
        "differing": differing(runs, **spelt),
        "questions": questions(runs),
        "different": different,
        "shared": shared,
    }


def comparison_names(runs: Sequence[Path]) -> list[str]:
    """Short names of the runs; an error where there are too many, or one is named twice."""
    if len(runs) > MOST:
        raise RunError(f"{len(runs)} runs; a page compares {MOST} at most, whose marks can be told apart")
    if len({run.resolve() for run in runs}) < len(runs):
        raise RunError("the same run is named twice; a run is compared with others")
    return short_names(runs)


def short_names(runs: Sequence[Path]) -> list[str]:
    """The last part of each path, with as many parts before it as it takes to tell them apart.

    >>> short_names([Path("runs/a"), Path("runs/b")]), short_names([Path("x/demo"), Path("y/demo")])
    (['a', 'b'], ['x/demo', 'y/demo'])
    """
    parts = [run.resolve().parts for run in runs]
    for many in range(1, max(map(len, parts)) + 1):
        names = ["/".join(path[-many:]) for path in parts]
        if len(set(names)) == len(names):
            break
    return names


def headline(runs: Sequence[RunSummary], figures: str = "agreements") -> str:
    """How many figures differ, in one sentence; figures: what they are, in the plural.

    A run whose verdict answers nothing is named and not counted: its attention is that of a model without knowledge.
    """
    counted = [run for run in runs if not run.failed]
    left_out = _left_out(runs)
    if len(counted) < 2:
        return f"Nothing can be compared: {left_out}."
    apart, all_of = differing(counted), len(common(counted))
    names = _listed([run.name for run in counted])
    if not all_of:
        found = f"{names} have none of their {figures} in common"
    elif not apart:
        found = f"{names} are not shown to differ in any of {all_of} {figures}"
    else:
        found = f"{names} differ in {len(apart)} of {all_of} {figures}: their intervals do not overlap"
    return f"{found}. Not counted: {left_out}." if left_out else f"{found}."


def _left_out(runs: Sequence[RunSummary]) -> str:
    """The runs that are not counted, each with its reason."""
    reasons = {"learned nothing": "learned nothing", "too few texts": "had too few texts"}
    return _listed([f"{run.name} {reasons[run.failed]}" for run in runs if run.failed])


def _listed(parts: Sequence[str]) -> str:
    """Parts of a sentence with commas, and "and" before the last.

    >>> _listed(["a", "b", "c"]), _listed(["a"])
    ('a, b and c', 'a')
    """
    return " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)


@dataclass(frozen=True)
class Difference:
    """A figure whose intervals in two runs do not overlap: in words, its symbol, and its value in each run."""

    concept: str
    symbol: str
    values: str


def differing(runs: Sequence[RunSummary], spell: Callable[[Estimate], str] = with_interval) -> list[Difference]:
    """The figures of which two runs have intervals that do not overlap; only runs whose verdict has answers count."""
    counted, lines = [run for run in runs if not run.failed], []
    for name, estimates in common(counted).items():
        if max(e.low for e in estimates) > min(e.high for e in estimates):
            values = (f"{run.name} {spell(estimate)}" for run, estimate in zip(counted, estimates, strict=True))
            words, letters = concept(name), symbol(name)
            lines.append(Difference(words, letters if letters != words else "", ", ".join(values)))
    return lines


def common(runs: Sequence[RunSummary]) -> dict[str, list[Estimate]]:
    """The figures that all runs have."""
    if not runs:
        return {}
    first, *others = [run.figures for run in runs]
    return {name: [first[name], *(one[name] for one in others)] for name in first if all(name in o for o in others)}


def questions(runs: Sequence[RunSummary]) -> list[tuple[str, list[Question | AuditQuestion | None]]]:
    """Every question of the verdicts with its answer in each run; None where a run does not have it."""
    answers = [{q.question: q for q in run.verdict.questions} for run in runs]
    every = dict.fromkeys(question for one in answers for question in one)
    return [(question, [one.get(question) for one in answers]) for question in every]


def facts(runs: Sequence[RunSummary]) -> tuple[list[tuple[str, list[str]]], list[tuple[str, str]]]:
    """The facts that differ, with a value for each run; and those that all have in common."""
    names = list(dict.fromkeys(name for run in runs for name in run.facts))
    columns = [(name, [run.facts.get(name, NONE) for run in runs]) for name in names]
    different = [(name, values) for name, values in columns if len(set(values)) > 1]
    return different, [(name, values[0]) for name, values in columns if len(set(values)) == 1]


def by_agreement(lines: Sequence[tuple[str, Sequence[Mapping[str, str]]]]) -> list[tuple[str, Mapping[str, str]]]:
    """The rows of all runs' tables of agreements, those of one agreement together."""
    every = [(name, row) for name, rows in lines for row in rows]
    names = [row["name"] for _, row in every]
    return sorted(every, key=lambda line: names.index(line[1]["name"]))


@dataclass(frozen=True)
class ComparedStudy:
    """One of the studies that are compared."""

    name: str
    run: RunDirectory
    result: StudyResult

    def summary(self) -> RunSummary:
        """How far its agreements between seeds exceed chance, which its verdict reads; the verdict; how it was made."""
        cross = [row for row in self.result.agreements if row.convention == "cross"]
        made = [
            *study_page.data_facts(self.result),
            *study_page.training_facts(self.run, self.result),
            *((name, _short(name, value)) for name, value in study_page.provenance(self.run, self.result)),
        ]
        figures = {study_page.agreement_key(row.name): row.excess for row in cross}
        return RunSummary(self.name, self.result.verdict, figures, dict(made))


def _short(name: str, value: str) -> str:
    """A fact of a run, fingerprints shortened: enough to see whether two are the same."""
    return value[:12] if name in ("settings", "data", "commit") else value


def open_studies(runs: Sequence[Path]) -> list[ComparedStudy]:
    """The studies in those folders, which must be finished; of any corpora and tasks."""
    studies = []
    for name, root in zip(comparison_names(runs), runs, strict=True):
        run = RunDirectory(root)
        run.config()
        if not run.result_path.exists():
            raise RunError(f"{root}: the study is not finished (it has no result.json)")
        studies.append(ComparedStudy(name, run, run.result()))
    return studies


def render_comparison(studies: Sequence[ComparedStudy]) -> str:
    """The page of several studies as text."""
    data = comparison_page_data([(study.name, study.run, study.result) for study in studies])
    return fill_training_page(
        "comparison.html.j2",
        comparison_payload(studies, data),
        **comparison_words([study.summary() for study in studies]),
        what="studies",
        lead="How far each exceeds chance, read between seeds as the verdict reads it",
        agreements=by_agreement([(study.name, study_page.agreement_lines(study.result)) for study in studies]),
        same=data.examples is not None,
        wide_curve=one_task(studies) != "translation",
        commands=[(study.name, *study_page.rerun(study.run)) for study in studies],
    )


def one_task(studies: Sequence[ComparedStudy]) -> str:
    """The task that all studies have; that of texts where they differ."""
    tasks = {study.result.task for study in studies}
    return tasks.pop() if len(tasks) == 1 else "classification"


def comparison_payload(studies: Sequence[ComparedStudy], data: StudyPageData) -> Payload:
    """Every study's agreements and curves, and the same examples as each study's models saw them."""
    arrays, first = Arrays(), studies[0].result
    steps = sorted({step for models in data.models for step in models[0].steps})
    names, results = [study.name for study in studies], [study.result for study in studies]
    content: dict[str, Any] = {
        **shared_content([study.summary() for study in studies], [result.random_agreement for result in results]),
        "control": study_page.control_name(first),
        "task": one_task(studies),
        "rows_are": "texts" if len({result.task for result in results}) == 1 else "texts or output words",
        "labels": first.data["labels"],
        "steps": steps,
        **{part: [] for part in ("agreements", "rows", "accuracy", "entropies")},
        "models": [
            study_page.shown_model(model) | {"places": last_before(model.steps, steps)}
            for models in data.models
            for model in models
        ],
    }
    for i, (name, result) in enumerate(zip(names, results, strict=True)):
        content["agreements"] += [row | {"run": i} for row in study_page.drawn_agreements(result)]
        content["rows"] += [{"run": name} | study_page.saved_row(row) for row in result.agreements]
        content["accuracy"] += _of_standard(study_page.accuracy_curves(result), name)
        content["entropies"].append(asdict(result.entropy))
    if one_task(studies) == "translation":
        content["bleu"] = [curve for s in studies for curve in _of_standard(study_page.bleu_curves(s.result), s.name)]
    if data.examples is not None:
        content["beside"] = data.models[1][0].name
        places = [last_before(models[0].steps, steps) for models in data.models]
        content |= study_page.embedded(data, [study.run for study in studies], arrays, names, places)
    return Payload.of(content, arrays)


def _of_standard(curves: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """The curves of a run's standard models, under the run's name."""
    return [curve | {"kind": name, "title": name} for curve in curves if curve["kind"] == "standard"]


def render_trainings(roots: Sequence[Path]) -> str:
    """The page of several followed trainings as text."""
    trainings = [FollowedRun.open(name, root) for name, root in zip(comparison_names(roots), roots, strict=True)]
    labelled = all(training.probe.right for training in trainings)
    lines = [(training.name, followed_page.agreement_lines(training.result)) for training in trainings]
    return fill_training_page(
        "comparison-following.html.j2",
        followed_payload(trainings),
        **comparison_words([_followed_summary(training) for training in trainings]),
        what="followed trainings",
        lead="How often each agrees at its last recorded step",
        agreements=by_agreement(lines),
        same=same_texts(trainings),
        labelled=labelled,
        wide_curve=not labelled,
    )


def _followed_summary(training: FollowedRun) -> RunSummary:
    """Its agreements at its last recorded step, its verdict and how it was made."""
    result = training.result
    last = {row.name: row.estimate for row in result.steps[-1].agreements}
    facts = [
        ("training", result.name),
        *followed_page.data_facts(training.probe),
        *followed_page.training_facts(result),
        *((name, value) for name, value in followed_page.provenance(training.run) if name != "texts"),
    ]
    return RunSummary(training.name, result.verdict, last, dict(facts))


def followed_payload(trainings: Sequence[FollowedRun]) -> Payload:
    """Every training's agreements and curves, and the same texts as each model saw them."""
    arrays, steps = Arrays(), sorted({step for training in trainings for step in training.steps})
    names, places = [t.name for t in trainings], [last_before(t.steps, steps) for t in trainings]
    content: dict[str, Any] = {
        **shared_content(
            [_followed_summary(training) for training in trainings],
            [training.result.random_agreement for training in trainings],
        ),
        "control": "shuffle",
        "task": "following",
        "labels": trainings[0].probe.labels,
        "steps": steps,
        "agreements": [row | {"run": i} for i, training in enumerate(trainings) for row in training.agreements()],
        "rows": [{"run": training.name, **row} for training in trainings for row in training.result.to_rows()],
        "accuracy": [curve for training in trainings for curve in training.accuracy(training.name, training.name)],
        "entropies": [training.entropy() for training in trainings],
        "special_shares": [training.special_share() for training in trainings],
        "models": [
            {"name": name, "kind": "standard", "title": name, "places": own}
            for name, own in zip(names, places, strict=True)
        ],
    }
    if same_texts(trainings):
        content |= {"beside": names[1]} | embedded_texts(trainings, arrays, names, places)
    return Payload.of(content, arrays)


def same_texts(trainings: Sequence[FollowedRun]) -> bool:
    """Whether all were followed on the same texts, word by word, under the same labels."""
    return len({(one.probe.labels, one.probe.words, one.probe.right) for one in trainings}) == 1


def shared_content(runs: Sequence[RunSummary], random: Sequence[float]) -> dict[str, Any]:
    """What the payload of any page of several runs begins with; random: the random agreement of each run."""
    same = len({round(value, 12) for value in random}) == 1
    names = [run.name for run in runs]
    return {
        "name": " beside ".join(names),
        "runs": names,
        "titles": [run.title for run in runs],
        "random": random[0] if same else None,
    }


def last_before(own: Sequence[int], steps: Sequence[int]) -> list[int]:
    """For each step of the slider, the position among a model's own steps of the last that is not after it.

    >>> last_before([0, 4, 8], [0, 2, 4, 9])
    [0, 0, 1, 2]
    """
    return [int(place) for place in np.maximum(np.searchsorted(own, steps, side="right") - 1, 0)]
