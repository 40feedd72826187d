"""The contents of meister2021: every table and figure, in the paper's order, and what goes beyond it."""

from collections.abc import Callable, Mapping, Sequence

from heedful.papers.experiment import Answer, Experiment, unit_experiment
from heedful.papers.findings import Finding
from heedful.papers.meister2021 import adversaries, figures, open_questions, tables
from heedful.papers.meister2021.adversaries import MeisterAttack
from heedful.papers.meister2021.config import BUDGETS, MeisterBudget, MeisterCorpus
from heedful.papers.meister2021.models import MeisterModel
from heedful.storage.serialization import content

TITLE = "Is Sparse Attention more Interpretable? (Meister, Lazov, Augenstein, Cotterell 2021)"


def _experiment(
    name: str,
    title: str,
    find: Callable[[MeisterBudget, tables.Seen], Finding],
    models: Callable[[Sequence[MeisterCorpus]], list[MeisterModel]],
    corpora: Callable[[MeisterBudget], Sequence[MeisterCorpus]] = lambda budget: budget.corpora,
) -> Experiment:
    """An experiment that reads what was measured on these models of all corpora."""
    return unit_experiment(
        name,
        title,
        lambda budget: {name: value for name, value in content(BUDGETS[budget]).items() if name != "attacks"},
        lambda budget, seen: find(BUDGETS[budget], seen),
        lambda budget: {model: model.units(budget) for model in models(corpora(BUDGETS[budget]))},
    )


def _attacks(
    name: str,
    title: str,
    find: Callable[[MeisterBudget, Mapping[MeisterAttack, list[Answer]]], Finding],
    attacks: Callable[[MeisterBudget], list[MeisterAttack]],
) -> Experiment:
    """An experiment that reads what was measured on these adversaries."""
    return unit_experiment(
        name,
        title,
        BUDGETS.get,
        lambda budget, seen: find(BUDGETS[budget], seen),
        lambda budget: {attack: attack.units(budget) for attack in attacks(BUDGETS[budget])},
    )


def _reading_settings(budget: str) -> object:
    """What decides both experiments on open questions."""
    own = {name: value for name, value in content(BUDGETS[budget]).items() if name not in ("attacks", "corpora")}
    return {**own, "corpus": open_questions.corpus_of(budget), "sizes": open_questions.READING_BUDGETS[budget]}


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
    _experiment(
        "table3",
        "Table 3: data and baselines",
        tables.find_table3,
        tables.softmax_models,
        lambda budget: budget.in_full,
    ),
    _attacks("table5", "Table 5: adversaries", adversaries.find_table5, adversaries.table5_attacks),
    _experiment("table6", "Table 6: attention against importance", figures.find_table6, tables.main_models),
    _experiment(
        "figure4", "Figure 4: attention against leave-one-out importance", figures.find_figure4, tables.main_models
    ),
    _attacks(
        "tradeoff", "Beyond: divergence against accuracy", adversaries.find_tradeoff, adversaries.tradeoff_attacks
    ),
    _experiment("length", "Beyond: entropy against length", tables.find_length, tables.main_models),
    _experiment("entmax", "Beyond: entmax from softmax to sparsemax", figures.find_entmax, figures.entmax_models),
    _experiment("layers", "Beyond: the Transformer's self-attention", figures.find_layers, figures.layer_models),
    unit_experiment(
        "appendix-a",
        "App. A: the gradient of a norm against the whole Jacobian",
        _reading_settings,
        open_questions.find_jacobian,
        open_questions.jacobian_units,
    ),
    unit_experiment(
        "readings",
        "Which attention, which leave-one-out: the Transformer's D_ŷ(I)",
        _reading_settings,
        open_questions.find_readings,
        open_questions.reading_models,
    ),
    unit_experiment(
        "left-out",
        "At which depth a hidden state is left out: the Transformer's D_ŷ(I)",
        _reading_settings,
        open_questions.find_below,
        open_questions.below_units,
    ),
    unit_experiment(
        "longer",
        "The unfrozen adversary on long texts: trained longer, or for less divergence",
        lambda budget: {
            **{name: value for name, value in content(BUDGETS[budget]).items() if name != "corpora"},
            "sizes": adversaries.LONGER_BUDGETS[budget],
            "attacks": adversaries.longer_attacks(budget),
        },
        adversaries.find_longer,
        adversaries.longer_units,
    ),
)
