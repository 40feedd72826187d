"""Tasks, doses, recipes and sizes of heedful2026 within each budget.

The copying model and its training are snell2021's (`COPYING_BUDGETS`); only how often it is evaluated differs, since
times are what is measured here.
"""

from dataclasses import dataclass, replace

from heedful.papers.snell2021.config import COPYING_BUDGETS, CopyingBudget

DOSES: dict[str, tuple[str, ...]] = {
    "copy-dose": ("40", "41", "42", "43", "45", "50", "60", "80", "120"),
    "copy-sets": ("2", "3", "8", "64"),
    "copy-mixture": ("2", "3"),
    "copy-zipf": ("1", "2", "4", "8"),
    "copy-blocks": ("2", "4", "10", "20"),
    "copy-noise": ("10", "25", "50", "75"),
}
_FEW = {"copy-dose": ("40", "60"), "copy-blocks": ("4",), "copy-noise": ("25",)}
EASY = "copy-dose:60"  # copying 40 of 60 words: what times are compared with


@dataclass(frozen=True)
class DoseBudget:
    """Sizes of the dose-response experiment. pairs: training pairs that preflight counts."""

    seeds: int
    pairs: int
    doses: dict[str, tuple[str, ...]]
    copying: CopyingBudget

    @property
    def tasks(self) -> dict[str, str]:
        """The family of every task."""
        return {f"{family}:{dose}": family for family, doses in self.doses.items() for dose in doses}


DOSE_BUDGETS = {
    "smoke": DoseBudget(2, 120, _FEW, COPYING_BUDGETS["smoke"]),
    "quick": DoseBudget(20, 2000, DOSES, replace(COPYING_BUDGETS["quick"], evaluate_every=5)),
    "paper": DoseBudget(50, 10_000, DOSES, replace(COPYING_BUDGETS["paper"], evaluate_every=5)),
}
