"""The contents of heedful2026: our own experiments on when attention is learned, and what helps."""

from heedful.papers.experiment import unit_experiment
from heedful.papers.heedful2026 import config, dose, finetuning, forecasts, recipes, transformers
from heedful.storage.serialization import content

TITLE = "When is attention learned, and what helps? (our own experiments, 2026)"

_COPYING = ("seeds", "copying", "copiers", "tasks")  # what decides the copying runs of Transformers

EXPERIMENTS = (
    unit_experiment(
        "dose",
        "Dose and response: learning time against preflight's statistic",
        config.DOSE_BUDGETS.get,
        dose.find_dose,
        dose.dose_units,
    ),
    unit_experiment(
        "confirmation",
        "Confirmation: candidates on tasks that were trained later",
        lambda budget: [config.DOSE_BUDGETS[budget], config.CONFIRMATION_BUDGETS[budget]],
        dose.find_confirmation,
        dose.confirmation_units,
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
    unit_experiment(
        "transformer-copying",
        "Transformers: copying permutations, one head and eight",
        lambda budget: {n: v for n, v in content(config.TRANSFORMER_BUDGETS[budget]).items() if n in _COPYING},
        transformers.find_copying,
        transformers.copying_units,
    ),
    unit_experiment(
        "transformer-studies",
        "Transformers: agreement of attention and what single words know",
        lambda budget: config.TRANSFORMER_BUDGETS[budget].studies(budget),
        transformers.find_studies,
        transformers.study_units,
    ),
    unit_experiment(
        "finetuning",
        "Fine-tuned encoders: does attention move towards what single words know?",
        config.FINETUNING_BUDGETS.get,
        finetuning.find_finetuning,
        finetuning.finetuning_units,
    ),
    unit_experiment(
        "forecast",
        "The forecast beside real trainings",
        config.FORECAST_BUDGETS.get,
        forecasts.find_forecast,
        forecasts.forecast_units,
    ),
)
