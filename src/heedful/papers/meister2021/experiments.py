"""The contents of meister2021: every table and figure, in the paper's order, and what it leaves out."""

from heedful.papers.experiment import Experiment
from heedful.papers.meister2021.adversaries import find_table5, find_tradeoff
from heedful.papers.meister2021.beyond import find_entmax, find_layers
from heedful.papers.meister2021.budgets import BUDGETS
from heedful.papers.meister2021.correlations import find_figure1, find_figure3, find_figure4, find_table6
from heedful.papers.meister2021.entropies import find_figure2, find_length, find_table1, find_table2
from heedful.papers.meister2021.statistics import find_table3
from heedful.typed import content

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
