"""The contents of meister2021: every table and figure, in the paper's order, and what it leaves out."""

from heedful.papers.claims import Claim, Condition
from heedful.papers.experiment import Experiment
from heedful.papers.meister2021.adversaries import find_table5, find_tradeoff
from heedful.papers.meister2021.config import BUDGETS
from heedful.papers.meister2021.figures import (
    find_entmax,
    find_figure1,
    find_figure3,
    find_figure4,
    find_layers,
    find_table6,
)
from heedful.papers.meister2021.tables import find_figure2, find_length, find_table1, find_table2, find_table3
from heedful.storage.serialization import content

TITLE = "Is Sparse Attention more Interpretable? (Meister, Lazov, Augenstein, Cotterell 2021)"


def _models(budget: str) -> object:
    """What decides all but the adversaries."""
    return {name: value for name, value in content(BUDGETS[budget]).items() if name != "attacks"}


def _everything(budget: str) -> object:
    return BUDGETS[budget]


EXPERIMENTS = (
    Experiment("figure1", "Figure 1: attention against gradient importance", _models, find_figure1),
    Experiment("table1", "Table 1: what hidden states are made of", _models, find_table1),
    Experiment("figure2", "Figure 2: entropy of the importance of inputs", _models, find_figure2),
    Experiment("table2", "Table 2: does that entropy rise or fall with λ?", _models, find_table2),
    Experiment("figure3", "Figure 3: attention against the importance of inputs, along λ", _models, find_figure3),
    Experiment("table3", "Table 3: data and baselines", _models, find_table3),
    Experiment("table5", "Table 5: adversaries", _everything, find_table5),
    Experiment("table6", "Table 6: attention against importance", _models, find_table6),
    Experiment("figure4", "Figure 4: attention against leave-one-out importance", _models, find_figure4),
    Experiment("tradeoff", "Beyond: divergence against accuracy", _everything, find_tradeoff),
    Experiment("length", "Beyond: entropy against length", _models, find_length),
    Experiment("entmax", "Beyond: entmax from softmax to sparsemax", _models, find_entmax),
    Experiment("layers", "Beyond: the Transformer's self-attention", _models, find_layers),
)


PAPER = "meister2021"

CLAIMS = (
    Claim(
        "M1",
        PAPER,
        "In every model attention is ordered more like the importance of hidden states than like that of the inputs.",
        (
            Condition("table6", "tau of I less tau of x, gradient, lowest", lower=0.0),
            Condition("table6", "tau of I less tau of x, leave-one-out, lowest", lower=0.0),
        ),
    ),
    Claim(
        "M2",
        PAPER,
        "No hidden state belongs to one input: H̃(g_h(x)) is above 0.4 in every model (the paper's lowest is 0.46).",
        (Condition("table1", "entropy of g_h(x), lowest", lower=0.4),),
    ),
    Claim(
        "M3",
        PAPER,
        "However sparse attention is, the importance of inputs is spread out: H̃ is above 0.5 at every λ.",
        (Condition("figure2", "entropy of input importance, lowest", lower=0.5),),
    ),
    Claim(
        "M4",
        PAPER,
        "H̃(g_y(x)) falls as λ rises: the sign that Table 2 prints, the opposite of what the paper's text says.",
        (Condition("table2", "tau(lambda, entropy of g_y(x)), highest", upper=0.0),),
    ),
    Claim(
        "M5",
        PAPER,
        "Sparser attention is ordered less like the importance of the inputs: τ falls as λ rises.",
        (
            Condition("figure3", "trend of tau with g_y(x), all positions, highest", upper=0.0),
            Condition("figure3", "trend of tau with D_y(x), all positions, highest", upper=0.0),
        ),
    ),
    Claim(
        "M6",
        PAPER,
        "Attention can be moved far away; a frozen model pays for it in accuracy, a new one hardly (three points).",
        (
            Condition("table5", "accuracy change, adv. frozen, divergence alone, highest", upper=0.0),
            Condition("table5", "JSD, adv. frozen, divergence alone, lowest", lower=0.5),
            Condition("table5", "accuracy change, adv. unfrozen, lowest", lower=-0.03),
            Condition("table5", "JSD, adv. unfrozen, lowest", lower=0.5),
        ),
    ),
    Claim(
        "M7",
        PAPER,
        "Softmax models reach the accuracies of Table 3 to within three points, on the corpora used in full.",
        (Condition("table3", "accuracy less the paper's, corpora in full, lowest", lower=-0.03),),
    ),
)
