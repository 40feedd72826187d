"""The contents of heedful2026: our own experiments on when attention is learned, and what helps."""

from heedful.papers.experiment import unit_experiment
from heedful.papers.heedful2026 import config, dose, recipes

TITLE = "When is attention learned, and what helps? (our own experiments, 2026)"

EXPERIMENTS = (
    unit_experiment(
        "dose",
        "Dose and response: learning time against preflight's statistic",
        config.DOSE_BUDGETS.get,
        dose.find_dose,
        dose.dose_units,
    ),
    unit_experiment(
        "causes",
        "Causes: what makes attention faster",
        config.CAUSE_BUDGETS.get,
        recipes.find_causes,
        recipes.cause_units,
    ),
    unit_experiment(
        "cures",
        "Cures: what helps where counts tell little",
        config.CURE_BUDGETS.get,
        recipes.find_cures,
        recipes.cure_units,
    ),
)
