"""The contents of sunlu2020: every table and figure, in the paper's order, then its supplement and the theory."""

from heedful.papers.experiment import Experiment
from heedful.papers.sunlu2020 import flow, pictures, weights
from heedful.papers.sunlu2020.accuracies import find_accuracies, find_statistics
from heedful.papers.sunlu2020.budgets import BUDGETS

TITLE = "Understanding Attention for Text Classification (Sun, Lu 2020)"


def _settings(budget: str) -> object:
    return BUDGETS[budget]


def _corpora(budget: str) -> object:
    of = BUDGETS[budget]
    return sorted({plan.data for plan in (*of.plans, *of.synthetic)})


EXPERIMENTS = (
    Experiment("table1", "Table 1: the data", _corpora, find_statistics),
    Experiment("table2", "Table 2: accuracy at each λ", _settings, find_accuracies),
    Experiment("figure2", "Figure 2: polarity and attention scores at λ = 10", _settings, pictures.find_figure2),
    Experiment("figure3", "Figure 3: a large λ, and three labels", _settings, pictures.find_figure3),
    Experiment("figure4", "Figure 4: additive attention", _settings, pictures.find_figure4),
    Experiment("figure5", "Figure 5: average weights", _settings, weights.find_figure5),
    Experiment("weights", "Average weights on every corpus, as n·α", _settings, weights.find_weights),
    Experiment("regulariser", "The V·W regulariser at λ = 100", _settings, pictures.find_regulariser),
    Experiment("encoders", "DP-L and DP-A: scores at λ = 10", _settings, pictures.find_encoders),
    Experiment("synthetic", "Generated data", _settings, pictures.find_synthetic),
    Experiment(
        "terms", "Eqs 19 and 27: the terms A to F along a training run", lambda b: flow.BUDGETS[b], flow.find_terms
    ),
)
