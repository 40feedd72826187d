"""The contents of sunlu2020: every table and figure, in the paper's order, then its supplement and the theory."""

from heedful.papers.claims import Claim, Condition
from heedful.papers.experiment import Experiment
from heedful.papers.sunlu2020 import figures as pictures
from heedful.papers.sunlu2020 import figures as weights
from heedful.papers.sunlu2020 import gradient_terms as flow
from heedful.papers.sunlu2020.config import BUDGETS
from heedful.papers.sunlu2020.tables import find_accuracies, find_statistics

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
