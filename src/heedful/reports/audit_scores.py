"""An audit's scores by name, and the order in which people are shown maps and importances."""

from collections.abc import Callable

from heedful.audits.names import DELETION, MEAN, ROLLOUT, is_head
from heedful.audits.result import AuditResult
from heedful.measure.uncertainty import Estimate

Column = Callable[[str], Estimate | None]


class Scores:
    """What was measured, without estimates of nothing.

    every_map: all maps; maps: without single heads, unless one is the headline; importances: what maps are held
    against, first the one that the verdict rests on.
    """

    def __init__(self, result: AuditResult) -> None:
        self._found = {(s.quantity, s.of, s.against): s.estimate for s in result.scores if s.estimate.n}
        self.headline = result.headline
        self.every_map = list(dict.fromkeys(of for _, of, _ in self._found if is_map(of)))
        self.maps = [name for name in self.every_map if not is_head(name) or name == result.headline]
        against = dict.fromkeys(other for quantity, of, other in self._found if quantity == "tau" and is_map(of))
        self.importances = sorted(against, key=lambda name: name != DELETION)

    def score(self, quantity: str, of: str, against: str = "") -> Estimate | None:
        """The estimate of that name, if there is one."""
        return self._found.get((quantity, of, against))

    def between(self, one: str, other: str) -> Estimate | None:
        """τ of two importances, whichever of them was named first."""
        return self.score("tau", one, other) or self.score("tau", other, one)

    def column(self, quantity: str, against: str = "") -> Column:
        """One quantity of anything."""
        return lambda of: self.score(quantity, of, against)

    def under(self, quantity: str, change: str) -> Column:
        """One quantity under a change of attention, wherever that is made."""
        return lambda where: self.score(quantity, change, where)


def is_map(name: str) -> bool:
    """Whether a name is of attention, not of an importance or an order.

    >>> is_map("layer 2 head 1"), is_map("rollout"), is_map("gradient")
    (True, True, False)
    """
    return name.startswith("layer ") or name in (MEAN, ROLLOUT)
