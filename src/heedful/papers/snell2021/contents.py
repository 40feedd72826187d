"""The contents of snell2021: every table and figure, in the paper's order."""

from functools import partial

from heedful.papers.experiment import Experiment, Needs, unit_experiment
from heedful.papers.snell2021 import config, figures, tables, theory
from heedful.papers.snell2021.study_numbers import study_unit

TITLE = "Approximating How Single Head Attention Learns (Snell, Zhong, Klein, Steinhardt 2021)"


def _table(number: str, title: str) -> Experiment:
    form = tables.FORMS[number]
    return Experiment(
        f"table{number}",
        f"Table {number}: {title}",
        lambda budget: config.studies(budget, form.task),
        partial(tables.find_table, number=number),
        lambda budget: tables.agreement_needs(budget, form.task),
    )


def _worked_example(name: str, title: str, find: theory.Find) -> Experiment:
    return Experiment(name, title, lambda budget: {}, find)


def _classification(name: str, title: str, find: theory.Find) -> Experiment:
    """An experiment that reads the studies of classification."""
    return Experiment(name, title, _classification_studies, find, lambda b: tables.agreement_needs(b, "classification"))


def _classification_studies(budget: str) -> object:
    return config.studies(budget, "classification")


def _copying(name: str, title: str, find: figures.FindCurves, units: figures.CurveUnits) -> Experiment:
    return unit_experiment(name, title, config.COPYING_BUDGETS.get, find, units)


EXPERIMENTS = (
    _worked_example("figure1", "Figure 1: β and Model 1 on the worked example", theory.find_figure1),
    Experiment(
        "figure2",
        "Figure 2: how ξ is read off",
        figures.figure2_study,
        figures.find_figure2,
        lambda budget: Needs((study_unit(figures.figure2_study(budget)),)),
    ),
    _table("2", "agreement and contextualised agreement"),
    _table("3", "Kendall's τ"),
    _table("4", "Kendall's τ, BLEU"),
    _table("5", "Table 2 in full"),
    _table("6", "agreement, BLEU"),
    _table("7", "agreement on training texts"),
    _table("8", "agreement on training texts, BLEU"),
    unit_experiment(
        "table9",
        "Table 9: the data",
        lambda budget: sorted(config.studies(budget)),
        tables.find_statistics,
        tables.statistics_units,
    ),
    _classification("table10", "Table 10: attention with frozen β", partial(tables.find_pair, number="10")),
    _classification("table11", "Table 11: logistic regression", partial(tables.find_pair, number="11")),
    _copying("figure3", "Figure 3: copying permutations", figures.find_figure3, figures.figure3_units),
    _worked_example("figure4", "Figure 4: the count table of permutations", theory.find_figure4),
    _worked_example("figure5", "Figure 5: the count table of a classification", theory.find_figure5),
    Experiment(
        "figure6",
        "Figure 6: good and bad heads",
        config.COPYING_BUDGETS.get,
        figures.find_figure6,
        figures.figure6_needs,
    ),
    unit_experiment(
        "figure7",
        "Figure 7: where the keyword is known",
        config.KEYWORD_BUDGETS.get,
        figures.find_figure7,
        figures.figure7_units,
    ),
    _worked_example("figure8", "Figure 8: the count table of a mixture", theory.find_figure8),
    _copying("section6.2", "§6.2: a permutation of positions", figures.find_permute, figures.permute_units),
    unit_experiment(
        "eq53",
        "Eq. 53: the proxy's first step",
        lambda budget: {"seeds": config.EQ53_SEEDS[budget], "proxy steps": theory.PROXY_STEPS[budget]},
        theory.find_eq53,
        theory.eq53_units,
    ),
    unit_experiment(
        "a1",
        "A.1: optimal attention",
        lambda budget: [config.LINEAR_BUDGETS[budget], config.studies(budget, "translation")],
        theory.find_optimal,
        theory.linear_units,
    ),
    _classification("a7", "A.7: rise and fall", figures.find_rise_and_fall),
    _classification("a9", "A.9: agreement between seeds", figures.find_between_seeds),
)
