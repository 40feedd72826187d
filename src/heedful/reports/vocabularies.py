"""The table of words on a page: which draw attention, or what they are translated as, in one run or in several."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from heedful.reports.packing import Arrays
from heedful.reports.pieces import special, spelling
from heedful.reports.tokens import TokenTable, token_table
from heedful.reports.translations import TranslationTable, translation_table
from heedful.studies.result import StudyResult
from heedful.studies.run import ModelSpec, Run

Spelt = tuple[str, str]


@dataclass(frozen=True)
class Told:
    """The words of one run.

    name: the run's, where there are several. places: which of its own steps is shown at each of the slider's; empty
    where they are the same. spelt: each row of the table as it is written, and what it is if no word.
    """

    table: TokenTable
    spelt: tuple[Spelt, ...]
    seeds: int
    name: str = ""
    places: tuple[int, ...] = ()


def told(run: Run, result: StudyResult, steps: Sequence[int], name: str = "", places: Sequence[int] = ()) -> Told:
    """The words of a study, over its seeds."""
    traces = [run.model(ModelSpec("standard", seed)).trace() for seed in result.seeds]
    table, vocabulary = token_table(run.split("validation"), traces, steps), run.vocabulary().words
    spelt = tuple((vocabulary[i], special(int(i))) for i in table.ids)
    return Told(table, spelt, len(traces), name, tuple(places))


def attended_words(runs: Sequence[Told], arrays: Arrays) -> dict[str, Any]:
    """The words that all runs have, with n·α and β of each run."""
    rows = [{spelt: row for row, spelt in enumerate(one.spelt)} for one in runs]
    shared = [spelt for spelt in runs[0].spelt if all(spelt in one for one in rows)]
    for one, row_of in zip(runs, rows, strict=True):
        kept = [row_of[spelt] for spelt in shared]
        arrays.add(f"{_before(one.name)}tokens/attention", one.table.attention[:, kept])
        arrays.add(f"{_before(one.name)}tokens/beta", one.table.beta[:, kept])
    first = runs[0]
    return {
        "tokens": {
            "words": [word for word, _ in shared],
            "special": [kind for _, kind in shared],
            "counts": [int(first.table.counts[rows[0][spelt]]) for spelt in shared],
            "least": max(one.table.least for one in runs),
            "seeds": max(one.seeds for one in runs),
            "runs": [_shown(one.name, one.places) for one in runs],
        }
    }


@dataclass(frozen=True)
class Translated:
    """The source words of one run; see `Told`."""

    table: TranslationTable
    name: str = ""
    places: tuple[int, ...] = ()


def translated(
    run: Run, result: StudyResult, steps: Sequence[int], name: str = "", places: Sequence[int] = ()
) -> Translated:
    """What the source words of a study are translated as, over its seeds."""
    traces = [run.model(ModelSpec("standard", seed)).trace() for seed in result.seeds]
    lexicon = run.model(ModelSpec("lexicon", 0)).trace()
    return Translated(translation_table(run.pairs("validation"), traces, lexicon, steps), name, tuple(places))


def translated_words(runs: Sequence[Translated], first: Run, seeds: int, arrays: Arrays) -> dict[str, Any]:
    """The same source words in every run; what counting says of them is the first run's."""
    rankings = {name: getattr(runs[0].table, name) for name in ("counting", "model_1")}
    for one in runs:
        rankings |= {f"{_before(one.name)}{way}": getattr(one.table, way) for way in ("knowledge", "attention")}
    table = runs[0].table
    used = np.unique(np.concatenate([table.ids, *(ranking.tokens.ravel() for ranking in rankings.values())]))
    used = used[used >= 0]
    for name, ranking in rankings.items():
        places = np.where(ranking.tokens < 0, len(used), np.searchsorted(used, ranking.tokens))
        arrays.add(f"translations/{name}", places.astype(np.uint16))
        arrays.add(f"translations/{name}_score", ranking.scores)
    return {
        "translations": {
            "source": np.searchsorted(used, table.ids).tolist(),
            "counts": table.counts.tolist(),
            "least": table.least,
            "meetings": table.meetings,
            "seeds": seeds,
            "best": table.counting.tokens.shape[-1],
            "runs": [_shown(one.name, one.places) for one in runs],
            **spelling(first.tokeniser(), used),
        }
    }


def _before(name: str) -> str:
    return f"{name}/" if name else ""


def _shown(name: str, places: Sequence[int]) -> dict[str, Any]:
    return {"name": name, "places": list(places) or None}
