"""The contents of meister2021: every table and figure, in the paper's order, what goes beyond it, and its claims."""

from collections.abc import Callable, Sequence

from heedful.papers.claims import Claim, Condition
from heedful.papers.experiment import Experiment, Workspace
from heedful.papers.findings import Finding
from heedful.papers.meister2021 import adversaries, figures, tables
from heedful.papers.meister2021.config import BUDGETS, MeisterCorpus
from heedful.papers.meister2021.models import MeisterModel, model_needs
from heedful.storage.serialization import content

TITLE = "Is Sparse Attention more Interpretable? (Meister, Lazov, Augenstein, Cotterell 2021)"
PAPER = "meister2021"


def _experiment(
    name: str,
    title: str,
    find: Callable[[Workspace], Finding],
    models: Callable[[Sequence[MeisterCorpus]], list[MeisterModel]],
) -> Experiment:
    """An experiment that reads what was measured on these models of all corpora."""
    return Experiment(
        name, title, _all_but_attacks, find, lambda budget: model_needs(models(BUDGETS[budget].corpora), budget)
    )


def _all_but_attacks(budget: str) -> object:
    return {name: value for name, value in content(BUDGETS[budget]).items() if name != "attacks"}


def _everything(budget: str) -> object:
    return BUDGETS[budget]


EXPERIMENTS = (
    _experiment("figure1", "Figure 1: attention against gradient importance", figures.find_figure1, tables.main_models),
    _experiment("table1", "Table 1: what hidden states are made of", tables.find_table1, tables.main_models),
    _experiment(
        "figure2", "Figure 2: entropy of the importance of inputs", tables.find_figure2, tables.softmax_and_grid
    ),
    _experiment("table2", "Table 2: does that entropy rise or fall with λ?", tables.find_table2, tables.all_along),
    _experiment(
        "figure3",
        "Figure 3: attention against the importance of inputs, along λ",
        figures.find_figure3,
        tables.all_along,
    ),
    _experiment("table3", "Table 3: data and baselines", tables.find_table3, tables.softmax_models),
    Experiment("table5", "Table 5: adversaries", _everything, adversaries.find_table5, adversaries.table5_needs),
    _experiment("table6", "Table 6: attention against importance", figures.find_table6, tables.main_models),
    _experiment(
        "figure4", "Figure 4: attention against leave-one-out importance", figures.find_figure4, tables.main_models
    ),
    Experiment(
        "tradeoff",
        "Beyond: divergence against accuracy",
        _everything,
        adversaries.find_tradeoff,
        adversaries.tradeoff_needs,
    ),
    _experiment("length", "Beyond: entropy against length", tables.find_length, tables.main_models),
    _experiment("entmax", "Beyond: entmax from softmax to sparsemax", figures.find_entmax, figures.entmax_models),
    _experiment("layers", "Beyond: the Transformer's self-attention", figures.find_layers, figures.layer_models),
)

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
