"""Figure 5 of sunlu2020: the average weight that tokens of each class get, and why n·α is the one to look at.

A weight in a text of n words is 1/n on average, so that a token's mean α says as much about the lengths of the texts it
stands in as about the token. n·α is 1 under uniform attention whatever n is.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from heedful.measure.uncertainty import mean_over_seeds
from heedful.papers.experiment import Lab
from heedful.papers.finding import Cell, Figure, Finding, Line, Panel, Row, Table, Value
from heedful.papers.sunlu2020.answers import Answers, lowest_class, over_seeds, train_all
from heedful.papers.sunlu2020.budgets import MODERATE, Budget, budget_of
from heedful.papers.sunlu2020.training import Order
from heedful.papers.tables import extremes

NUMBERS = ("minimum", "first quartile", "median", "third quartile", "maximum", "mean")
KINDS = {"alpha": "α", "relative": "n·α"}


def find_figure5(lab: Lab) -> Finding:
    """Figure 5: average weights on the test texts, DP at λ = 10 on SST: plain, as the paper has them, and n·α."""
    budget = budget_of(lab)
    orders = tuple(budget.first.orders(budget.recipe, "DP", MODERATE))
    answers = train_all(lab, orders)
    rows = [
        Row(name, _five(answers, orders, name, kind), heading)
        for kind, heading in KINDS.items()
        for name in answers[orders[0]]["weights"]
    ]
    table = Table(
        "Figure 5 in numbers", NUMBERS, tuple(rows), "Each number is the mean over seeds of that of one seed."
    )
    tokens = answers[orders[0]]["tokens"]
    panels = tuple(
        Panel(
            f"average {heading}",
            tuple(_distribution(name, tokens[name][kind]) for name in tokens),
            x_label=f"average {heading} of a token",
            y_label="share of tokens below",
            y_percent=True,
            x_log=True,
        )
        for kind, heading in KINDS.items()
    )
    values = tuple(
        Value(f"{heading} over neutral, δ", mean_over_seeds(lowest_class(answers, orders, f"{kind}_delta")))
        for kind, heading in KINDS.items()
    )
    caption = "Distributions over tokens that occur in test texts, seed 0."
    return Finding((table,), (Figure("figure5", "Figure 5: average weights", panels, caption),), values)


def find_weights(lab: Lab) -> Finding:
    """Average weights of each class over the neutral tokens, on every corpus and at every λ that DP is trained with."""
    budget = budget_of(lab)
    cases = _cases(budget)
    answers = train_all(lab, [order for _, _, orders in cases for order in orders])
    rows, values = [], []
    for corpus, scale, orders in cases:
        for name in answers[orders[0]]["classes"]:
            deltas = [over_seeds(answers, orders, "classes", name, f"{kind}_delta") for kind in KINDS]
            rows.append(Row(f"λ = {scale:g}, {name}", tuple(Cell(e, digits=2) for e in deltas), corpus))
        if scale == MODERATE:
            lowest = mean_over_seeds(lowest_class(answers, orders, "relative_delta"))
            values.append(Value(f"n·α over neutral, δ, {corpus}", lowest))
    columns = tuple(f"{heading} over neutral, δ" for heading in KINDS.values())
    worst = extremes("n·α over neutral, δ", values)[0]
    table = Table("Average weights of each class over the neutral tokens", columns, tuple(rows))
    note = "Tokens that occur in test texts; Cliff's δ, means over seeds. Values are of the lower class, at λ = 10."
    return Finding((table,), values=(*values, worst), notes=(note,))


def _cases(budget: Budget) -> list[tuple[str, float, tuple[Order, ...]]]:
    return [
        (plan.row or plan.data, scale, tuple(plan.orders(budget.recipe, "DP", scale)))
        for plan in budget.plans
        if "DP" in plan.kinds
        for scale in plan.scales
    ]


def _five(answers: Answers, orders: Sequence[Order], name: str, kind: str) -> tuple[Cell, ...]:
    """Minimum, quartiles, maximum and mean over tokens, each averaged over seeds."""
    table = [answers[order]["weights"][name][kind] for order in orders]
    if not all(table):
        return (Cell(),) * len(NUMBERS)
    return tuple(Cell(mean_over_seeds(column), digits=3) for column in np.transpose(table))


def _distribution(name: str, values: Sequence[Any]) -> Line:
    known = sorted(float(value) for value in values if value is not None)
    return Line(name, tuple(known), tuple((k + 1) / len(known) for k in range(len(known))))
