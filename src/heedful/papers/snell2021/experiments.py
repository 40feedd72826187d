"""The contents of snell2021: every table and figure, in the paper's order."""

from functools import partial

from heedful.papers.experiment import Experiment
from heedful.papers.snell2021 import copying, keyword, linear, worked
from heedful.papers.snell2021.agreements import FORMS, find_frozen, find_logistic, find_table, settings
from heedful.papers.snell2021.learning import find_figure3, find_figure6, find_figure7, find_permute
from heedful.papers.snell2021.statistics import find_statistics
from heedful.papers.snell2021.studies import study_of
from heedful.papers.snell2021.theory import SEEDS, find_eq53, find_optimal
from heedful.papers.snell2021.trends import LONGEST, find_between_seeds, find_figure2, find_rise_and_fall

TITLE = "Approximating How Single Head Attention Learns (Snell, Zhong, Klein, Steinhardt 2021)"


def _classification(budget: str) -> object:
    return settings(budget, "classification")


def _nothing(budget: str) -> object:
    return {}


def _table(number: str, title: str) -> Experiment:
    task = FORMS[number].task
    return Experiment(
        f"table{number}", f"Table {number}: {title}", lambda b: settings(b, task), partial(find_table, number=number)
    )


EXPERIMENTS = (
    Experiment("figure1", "Figure 1: β and Model 1 on the worked example", _nothing, worked.find_figure1),
    Experiment("figure2", "Figure 2: how ξ is read off", lambda b: study_of(LONGEST.get(b, "sst"), b), find_figure2),
    _table("2", "agreement and contextualised agreement"),
    _table("3", "Kendall's τ"),
    _table("4", "Kendall's τ, BLEU"),
    _table("5", "Table 2 in full"),
    _table("6", "agreement, BLEU"),
    _table("7", "agreement on training texts"),
    _table("8", "agreement on training texts, BLEU"),
    Experiment("table9", "Table 9: the data", lambda b: sorted(settings(b)), find_statistics),
    Experiment("table10", "Table 10: attention with frozen β", _classification, find_frozen),
    Experiment("table11", "Table 11: logistic regression", _classification, find_logistic),
    Experiment("figure3", "Figure 3: copying permutations", lambda b: copying.BUDGETS[b], find_figure3),
    Experiment("figure4", "Figure 4: the count table of permutations", _nothing, worked.find_figure4),
    Experiment("figure5", "Figure 5: the count table of a classification", _nothing, worked.find_figure5),
    Experiment("figure6", "Figure 6: good and bad heads", lambda b: copying.BUDGETS[b], find_figure6),
    Experiment("figure7", "Figure 7: where the keyword is known", lambda b: keyword.BUDGETS[b], find_figure7),
    Experiment("figure8", "Figure 8: the count table of a mixture", _nothing, worked.find_figure8),
    Experiment("section6.2", "§6.2: a permutation of positions", lambda b: copying.BUDGETS[b], find_permute),
    Experiment("eq53", "Eq. 53: the proxy's first step", lambda b: SEEDS[b], find_eq53),
    Experiment("a1", "A.1: optimal attention", lambda b: [linear.BUDGETS[b], settings(b, "translation")], find_optimal),
    Experiment("a7", "A.7: rise and fall", _classification, find_rise_and_fall),
    Experiment("a9", "A.9: agreement between seeds", _classification, find_between_seeds),
)
