"""The contents of sunlu2020: every table and figure, in the paper's order, then its supplement and the theory."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from heedful.papers.experiment import Answer, Experiment, Unit, unit_experiment
from heedful.papers.findings import Finding
from heedful.papers.sunlu2020 import figures, gradient_terms, open_questions, supplement, tables
from heedful.papers.sunlu2020.config import BUDGETS, SunLuBudget
from heedful.papers.sunlu2020.models import TrainingJob

TITLE = "Understanding Attention for Text Classification (Sun, Lu 2020)"

Find = Callable[[SunLuBudget, tables.Answers], Finding]


def _experiment(name: str, title: str, find: Find, jobs: Callable[[SunLuBudget], Iterable[TrainingJob]]) -> Experiment:
    """An experiment that reads what was measured on these models."""

    def units(budget: str) -> dict[TrainingJob, list[Unit]]:
        return {job: [job.unit] for job in jobs(BUDGETS[budget])}

    def find_in(budget: str, answers: Mapping[TrainingJob, list[Answer]]) -> Finding:
        return find(BUDGETS[budget], {job: answer for job, (answer,) in answers.items()})

    return unit_experiment(name, title, BUDGETS.get, find_in, units)


def _scatter(
    name: str, title: str, cases: figures.ModelGroups, find: Find | None = None, heading: str = ""
) -> Experiment:
    """An experiment that shows the scores of tokens in some cases; heading: its figure's, where it is not the title."""
    find = find or partial(figures.find_cases, name=name, title=heading or title, cases_of=cases)
    return _experiment(name, title, find, lambda budget: (job for case in cases(budget) for job in case.jobs))


EXPERIMENTS = (
    unit_experiment(
        "table1",
        "Table 1: the data",
        lambda budget: sorted(tables.statistics_units(budget)),
        tables.find_statistics,
        tables.statistics_units,
    ),
    _experiment("table2", "Table 2: accuracy at each λ", tables.find_accuracies, SunLuBudget.table2),
    _scatter("figure2", "Figure 2: polarity and attention scores at λ = 10", figures.figure2_cases),
    _scatter("figure3", "Figure 3: a large λ, and three labels", figures.figure3_cases, figures.find_figure3),
    _scatter("figure4", "Figure 4: additive attention", figures.figure4_cases),
    _experiment("figure5", "Figure 5: average weights", figures.find_figure5, figures.figure5_jobs),
    _experiment("weights", "Average weights on every corpus, as n·α", figures.find_weights, figures.weight_jobs),
    _scatter("regulariser", "The V·W regulariser at λ = 100", figures.regulariser_cases, figures.find_regulariser),
    _scatter(
        "encoders",
        "DP-L and DP-A: scores at λ = 10",
        figures.encoder_cases,
        heading="DP-L and DP-A: polarity and attention scores at λ = 10",
    ),
    _scatter("synthetic", "Generated data", figures.synthetic_cases, figures.find_synthetic),
    _scatter("imbalance", "Unbalanced labels", figures.imbalance_cases, figures.find_imbalance),
    unit_experiment(
        "terms",
        "Eqs 19 and 27: the terms A to F along a training run",
        gradient_terms.BUDGETS.get,
        gradient_terms.find_terms,
        gradient_terms.flow_units,
    ),
    unit_experiment(
        "supplement",
        "The terms A to H of DP-A, AD and three labels along a training run",
        supplement.BUDGETS.get,
        supplement.find_supplement,
        supplement.supplement_units,
    ),
    unit_experiment(
        "differences",
        "Accuracies that differ from Table 2: candidates for why",
        open_questions.candidates,
        open_questions.find_differences,
        open_questions.difference_units,
    ),
)
