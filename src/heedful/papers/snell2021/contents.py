"""The contents of snell2021: every table and figure, in the paper's order, and its claims."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from heedful.papers.claims import Claim, Condition
from heedful.papers.experiment import Experiment, Needs, Unit
from heedful.papers.snell2021 import config, figures, tables, theory

TITLE = "Approximating How Single Head Attention Learns (Snell, Zhong, Klein, Steinhardt 2021)"


def _table(number: str, title: str) -> Experiment:
    task = tables.FORMS[number].task
    return Experiment(
        f"table{number}",
        f"Table {number}: {title}",
        lambda budget: config.studies(budget, task),
        partial(tables.find_table, number=number),
        partial(tables.table_needs, number=number),
    )


def _nothing(budget: str) -> object:
    return {}


def _classification(budget: str) -> object:
    return config.studies(budget, "classification")


def _classification_needs(budget: str) -> Needs:
    return tables.agreement_needs(budget, "classification")


def _copying(budget: str) -> object:
    return config.COPYING_BUDGETS[budget]


def _needs(units: Callable[[str], Mapping[Any, Sequence[Unit]]]) -> Callable[[str], Needs]:
    return lambda budget: Needs(units=figures.flat(units(budget)))


EXPERIMENTS = (
    Experiment("figure1", "Figure 1: β and Model 1 on the worked example", _nothing, theory.find_figure1),
    Experiment(
        "figure2", "Figure 2: how ξ is read off", figures.figure2_study, figures.find_figure2, figures.figure2_needs
    ),
    _table("2", "agreement and contextualised agreement"),
    _table("3", "Kendall's τ"),
    _table("4", "Kendall's τ, BLEU"),
    _table("5", "Table 2 in full"),
    _table("6", "agreement, BLEU"),
    _table("7", "agreement on training texts"),
    _table("8", "agreement on training texts, BLEU"),
    Experiment(
        "table9",
        "Table 9: the data",
        lambda budget: sorted(config.studies(budget)),
        tables.find_statistics,
        tables.statistics_needs,
    ),
    Experiment(
        "table10", "Table 10: attention with frozen β", _classification, tables.find_frozen, _classification_needs
    ),
    Experiment(
        "table11", "Table 11: logistic regression", _classification, tables.find_logistic, _classification_needs
    ),
    Experiment(
        "figure3", "Figure 3: copying permutations", _copying, figures.find_figure3, _needs(figures.figure3_units)
    ),
    Experiment("figure4", "Figure 4: the count table of permutations", _nothing, theory.find_figure4),
    Experiment("figure5", "Figure 5: the count table of a classification", _nothing, theory.find_figure5),
    Experiment("figure6", "Figure 6: good and bad heads", _copying, figures.find_figure6, figures.figure6_needs),
    Experiment(
        "figure7",
        "Figure 7: where the keyword is known",
        lambda budget: config.KEYWORD_BUDGETS[budget],
        figures.find_figure7,
        _needs(figures.figure7_units),
    ),
    Experiment("figure8", "Figure 8: the count table of a mixture", _nothing, theory.find_figure8),
    Experiment(
        "section6.2", "§6.2: a permutation of positions", _copying, figures.find_permute, _needs(figures.permute_units)
    ),
    Experiment(
        "eq53", "Eq. 53: the proxy's first step", lambda b: config.EQ53_SEEDS[b], theory.find_eq53, theory.eq53_needs
    ),
    Experiment(
        "a1",
        "A.1: optimal attention",
        lambda budget: [config.LINEAR_BUDGETS[budget], config.studies(budget, "translation")],
        theory.find_optimal,
        theory.optimal_needs,
    ),
    Experiment("a7", "A.7: rise and fall", _classification, figures.find_rise_and_fall, _classification_needs),
    Experiment(
        "a9", "A.9: agreement between seeds", _classification, figures.find_between_seeds, _classification_needs
    ),
)


def _above_chance(id: str, pair: str, sentence: str) -> Claim:
    return Claim(id, "snell2021", sentence, (Condition("table5", f"{pair} above chance, cross, lowest", lower=0.0),))


CLAIMS = (
    _above_chance("S1", "A(alpha,beta)", "Attention agrees with the lexical probe β far more often than chance."),
    _above_chance("S2", "A(alpha,beta_uf)", "It does so with the probe of a twin that never learned to attend."),
    _above_chance("S3", "A(beta_uf,beta_px)", "That probe agrees with the bag-of-words proxy's."),
    _above_chance("S4", "A(delta,beta_uf)", "Saliency agrees with it too."),
    Claim(
        "S5",
        "snell2021",
        "These agreements are worth a model that has learned something: ξ lies above the untrained model's accuracy.",
        (Condition("table5", "xi above untrained, cross, lowest", lower=0.0),),
    ),
    Claim(
        "S6",
        "snell2021",
        "Copying permutations of one set of 40 words is slower or fails; copying 40 of 60 words always succeeds.",
        (
            Condition("figure3", "slower (z), copy-permutation", lower=0.0),
            Condition("figure3", "share learned, copy-vocab", lower=0.8),
        ),
    ),
    Claim(
        "S7",
        "snell2021",
        "The same holds for permutations of either of two disjoint sets.",
        (
            Condition("figure3", "slower (z), copy-mixture", lower=0.0),
            Condition("figure3", "share learned, copy-vocab", lower=0.8),
        ),
    ),
    Claim(
        "S8",
        "snell2021",
        "There the proxy has nothing to learn from: its first step is zero for every word, as C is constant.",
        (Condition("eq53", "largest limit over permutations", upper=1e-9),),
    ),
    Claim(
        "S9",
        "snell2021",
        "The proxy's logits begin to move as twice the centred count table says, exactly so as its width grows.",
        (Condition("eq53", "correlation, d = 4096", lower=0.99), Condition("eq53", "slope, d = 4096", 0.95, 1.05)),
    ),
    Claim(
        "S10",
        "snell2021",
        "The count table in the proxy's first step is the one of IBM Model 1.",
        (Condition("eq53", "C of Eq. 16 less the count table", upper=1e-9),),
    ),
    Claim(
        "S11",
        "snell2021",
        "The proxy's probe and the weights of logistic regression agree with β^uf alike, within ten points.",
        (Condition("table11", "A(beta_uf,beta_log) - A(beta_uf,beta_px), cross, mean", -0.1, 0.1),),
    ),
    Claim(
        "S12",
        "snell2021",
        "Eight heads that each fail alone fail together; with one good head, or eight random ones, the model learns.",
        (
            Condition("figure6", "slower (z), all bad", lower=0.0),
            Condition("figure6", "share learned, all bad", upper=0.5),
            Condition("figure6", "share learned, random", lower=0.5),
        ),
    ),
    Claim(
        "S13",
        "snell2021",
        "Under uniform attention β first peaks at the keyword (Hypothesis 2), at last at the end (Observation 3).",
        (
            Condition("figure7", "early: keyword - next", lower=0.0),
            Condition("figure7", "early: next - mean", lower=0.0),
            Condition("figure7", "late: last - next", lower=0.0),
            Condition("figure7", "late: next - mean", lower=0.0),
        ),
    ),
    Claim(
        "S14",
        "snell2021",
        "A fixed permutation of positions is not learned where copying the same words is.",
        (
            Condition("section6.2", "share learned, permute", upper=0.5),
            Condition("section6.2", "share learned, copy-vocab", lower=0.8),
        ),
    ),
    Claim(
        "S15",
        "snell2021",
        "The loss-minimising attention mostly goes where β is largest, though it need not: the counterexample.",
        (
            Condition("a1", "A(alpha_opt,beta) above chance", lower=0.0),
            Condition("a1", "counterexample: alpha at the largest beta", upper=5e-4),
        ),
    ),
    Claim(
        "S16",
        "snell2021",
        "Attention trained while everything else stays random agrees less with normal attention than β^uf does.",
        (Condition("table10", "A(alpha,beta_uf) - A(alpha,alpha_fr), cross, lowest", lower=0.0),),
    ),
    Claim(
        "S17",
        "snell2021",
        "Agreement with β^uf rises and then falls as the uniform twin trains on.",
        (Condition("a7", "rise", lower=0.0), Condition("a7", "fall", lower=0.0)),
    ),
    Claim(
        "S18",
        "snell2021",
        "On SMS spam the attention of two seeds agrees less than on other corpora.",
        (Condition("a9", "between seeds: sms above the others", upper=0.0),),
    ),
)
