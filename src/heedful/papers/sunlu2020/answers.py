"""What trained models answered, seed by seed, and what that comes to over seeds."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import stats

from heedful.measure.uncertainty import Estimate, mean_over_seeds
from heedful.papers.experiment import Lab
from heedful.papers.sunlu2020.training import Order

Answers = Mapping[Order, Mapping[str, Any]]


def train_all(lab: Lab, orders: Iterable[Order]) -> Answers:
    """The answers of these models, trained where they are not there yet."""
    wanted = list(dict.fromkeys(orders))
    found = lab.compute([order.unit for order in wanted])
    return {order: found[order.unit.name] for order in wanted}


def per_seed(answers: Answers, orders: Sequence[Order], *path: str) -> list[float]:
    """One number of each answer, such as `("classes", "positive", "score")`; NaN where it was not defined."""
    values = []
    for order in orders:
        value: Any = answers[order]
        for key in path:
            value = value[key]
        values.append(float("nan") if value is None else float(value))
    return values


def lowest_class(answers: Answers, orders: Sequence[Order], key: str) -> list[float]:
    """For each seed, the lowest value of `key` among the classes of tokens that go with a label."""
    names = answers[orders[0]]["classes"]
    table = [per_seed(answers, orders, "classes", name, key) for name in names]
    return [float(value) for value in np.min(table, axis=0)]


def over_seeds(answers: Answers, orders: Sequence[Order], *path: str) -> Estimate:
    """The mean of that number over seeds, with its interval."""
    return mean_over_seeds(per_seed(answers, orders, *path))


def paired(above: Sequence[float], below: Sequence[float]) -> Estimate:
    """The mean over seeds of a difference, seed by seed.

    >>> paired([0.9, 0.8], [0.5, 0.4]).n
    2
    """
    return mean_over_seeds(np.subtract(above, below))


def p_over_seeds(values: Sequence[float]) -> float:
    """Student's test over seeds that the mean is 0, two-sided; the one that the interval of `mean_over_seeds` is of.

    NaN below two seeds; where all seeds agree to the last digit, 0, or 1 if what they agree on is 0.

    >>> round(p_over_seeds([0.2, 0.3, 0.4]), 3), p_over_seeds([1.0, 1.0])
    (0.035, 0.0)
    """
    x = np.asarray([value for value in values if not np.isnan(value)])
    if len(x) < 2:
        return float("nan")
    if np.ptp(x) == 0:
        return float(x[0] == 0)
    return float(stats.ttest_1samp(x, 0.0).pvalue)
