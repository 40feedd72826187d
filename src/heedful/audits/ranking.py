"""Ranking of explanations: raw attention, other maps of the model, and what was given, each with its own verdict.

All are scored on the same texts by one path: agreement with importance, erasure against random order, agreement with
people where they marked words, and for maps of the model those of random models of its shape. The verdict is that of
`judge`. The tests of all explanations but the one shown are corrected together.
"""

from collections.abc import Callable, Mapping
from typing import Any

from heedful.attribution.interface import Numbers
from heedful.audits.result import AuditVerdict, Explanation, Grade, Score
from heedful.audits.scores import ScoreTable, explanation_contrasts
from heedful.audits.verdict import judge, search_decides

Search = Callable[[str], Numbers | None]  # the name of a map → the divergence of another one with the same predictions
GIVEN = "given"
ORDER: tuple[Grade | None, ...] = ("show", "show with a caveat", None, "do not show")


def rank(
    table: ScoreTable,
    scores: tuple[Score, ...],
    methods: Mapping[str, str],
    headline: str,
    verdict: AuditVerdict,
    facts: Mapping[str, Any],
    search: Search,
) -> tuple[tuple[Explanation, ...], tuple[Score, ...]]:
    """Every explanation with its verdict, the best first; and the scores of searches that were made for them.

    methods: of each explanation by name, the one shown among them, `given` for those computed elsewhere. verdict: of
    the map shown. facts: what `judge` needs besides. search: looks for another attention, which is done for a map only
    where nothing else speaks against it. Explanations of one grade are ordered by how much the prediction falls without
    their words.
    """
    others = [name for name in methods if name != headline]
    contrasts = explanation_contrasts(table, others, headline)
    explanations = [Explanation(headline, methods[headline], verdict)]
    found: list[Score] = []
    for name in others:
        given = methods[name] == GIVEN
        own = judge(scores, contrasts[name], headline=name, given=given, **facts)
        if not given and search_decides(own) and (divergence := search(name)) is not None:
            found.append(Score("adversary", name, "", table.mean(divergence)))
            own = judge((*scores, found[-1]), contrasts[name], headline=name, **facts)
        explanations.append(Explanation(name, methods[name], own, contrasts[name]))
    falls = {s.of: s.estimate.value for s in scores if s.quantity == "comprehensiveness"}
    explanations.sort(key=lambda e: (ORDER.index(e.verdict.grade), -falls.get(e.name, 0.0)))
    return tuple(explanations), tuple(found)
