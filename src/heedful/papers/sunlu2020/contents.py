"""The contents of sunlu2020: every table and figure, in the paper's order, then its supplement and the theory."""

from collections.abc import Callable, Iterable
from functools import partial

from heedful.papers.claims import Claim, Condition
from heedful.papers.experiment import Experiment, Workspace
from heedful.papers.findings import Finding
from heedful.papers.sunlu2020 import figures, gradient_terms, tables
from heedful.papers.sunlu2020.config import BUDGETS, SunLuBudget
from heedful.papers.sunlu2020.models import TrainingJob

TITLE = "Understanding Attention for Text Classification (Sun, Lu 2020)"


Find = Callable[[Workspace], Finding]


def _experiment(name: str, title: str, find: Find, jobs: Callable[[SunLuBudget], Iterable[TrainingJob]]) -> Experiment:
    """An experiment that reads what was measured on these models."""
    return Experiment(
        name, title, lambda budget: BUDGETS[budget], find, lambda budget: tables.job_needs(jobs(BUDGETS[budget]))
    )


def _scatter(name: str, title: str, cases: figures.Cases, find: Find | None = None, heading: str = "") -> Experiment:
    """An experiment that shows the scores of tokens in some cases; heading: its figure's, where it is not the title."""
    find = find or partial(figures.find_cases, name=name, title=heading or title, cases_of=cases)
    return _experiment(name, title, find, lambda budget: (job for case in cases(budget) for job in case.jobs))


EXPERIMENTS = (
    Experiment(
        "table1",
        "Table 1: the data",
        lambda budget: sorted(tables.corpus_names(BUDGETS[budget])),
        tables.find_statistics,
        tables.statistics_needs,
    ),
    _experiment("table2", "Table 2: accuracy at each λ", tables.find_accuracies, SunLuBudget.table2),
    _scatter("figure2", "Figure 2: polarity and attention scores at λ = 10", figures.figure2_cases),
    _scatter("figure3", "Figure 3: a large λ, and three labels", figures.figure3_cases),
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
    Experiment(
        "terms",
        "Eqs 19 and 27: the terms A to F along a training run",
        lambda budget: gradient_terms.BUDGETS[budget],
        gradient_terms.find_terms,
        gradient_terms.terms_needs,
    ),
)


APART = 0.5  # a token of the class lies above a neutral one in three pairs of four


def _claim(id: str, sentence: str, *conditions: Condition) -> Claim:
    return Claim(id, "sunlu2020", sentence, conditions)


CLAIMS = (
    _claim(
        "L1",
        "At λ = 10 polarity scores tell positive, negative and neutral tokens apart.",
        Condition("figure2", "polarity δ, lowest", lower=APART),
    ),
    _claim(
        "L2",
        "At λ = 10 both kinds of polarity tokens have larger attention scores than neutral ones.",
        Condition("figure2", "attention δ, lowest", lower=0.0),
    ),
    _claim(
        "L3",
        "At λ = 100 one kind of polarity token scores below the neutral ones in attention, and polarity stays healthy.",
        Condition("figure3", "attention δ, λ = 100", upper=0.0),
        Condition("figure3", "polarity δ, λ = 100", lower=APART),
    ),
    _claim(
        "L4",
        "A small λ costs accuracy; a large one comes to mean pooling, within two points.",
        Condition("table2", "lost at small λ, DP, lowest", lower=0.0),
        Condition("table2", "large λ less mean pooling, DP", -0.02, 0.02),
    ),
    _claim(
        "L5",
        "Keeping VᵀW small makes attention scores interpretable again at λ = 100.",
        Condition("regulariser", "attention δ, strongest", lower=0.0),
        Condition("regulariser", "attention δ, strongest less none", lower=0.0),
    ),
    _claim(
        "L6",
        "Additive attention at λ = 10 shows the same: polarity apart, attention above neutral.",
        Condition("figure4", "polarity δ, AD", lower=APART),
        Condition("figure4", "attention δ, AD", lower=0.0),
    ),
    _claim(
        "L7",
        "Polarity tokens get larger average weights than neutral ones, in units of the uniform weight.",
        Condition("figure5", "n·α over neutral, δ", lower=0.0),
    ),
    _claim(
        "L8",
        "With three labels, tokens that go with one of them still have larger attention scores than neutral ones.",
        Condition("figure3", "attention δ, three labels", lower=0.0),
    ),
    _claim(
        "L9",
        "The terms A to F are exact: they are what autograd says of a trained model.",
        Condition("terms", "largest difference from autograd", upper=1e-10),
    ),
    _claim(
        "L10",
        "On generated data, where tokens are purely positive, negative or neutral, both patterns show.",
        Condition("synthetic", "polarity δ, λ = 10, lowest", lower=APART),
        Condition("synthetic", "attention δ, λ = 10, lowest", lower=0.0),
    ),
    _claim(
        "L11",
        "An LSTM or an affine map before attention changes neither the patterns nor that a small λ costs accuracy.",
        Condition("encoders", "polarity δ, lowest", lower=APART),
        Condition("encoders", "attention δ, lowest", lower=0.0),
        Condition("table2", "lost at small λ, DP-L", lower=0.0),
        Condition("table2", "lost at small λ, DP-A", lower=0.0),
    ),
)
