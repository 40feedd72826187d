"""Does attention align words? Each output word is linked to the source word that it looks at most."""

from collections.abc import Mapping, Sequence

import numpy as np

from heedful.attribution.attention_maps import RANDOM, asked
from heedful.attribution.interface import Passage
from heedful.attribution.model_queries import Numbers
from heedful.audits.result import Score
from heedful.config import AuditSettings
from heedful.data.alignments import Alignment, Link
from heedful.errors import DataError
from heedful.metrics.alignment import alignment_scores, chance_aer
from heedful.metrics.statistics import Estimate

Place = tuple[int, int]  # a passage, by its text and how much output came before it


def output_words(passages: Sequence[Passage]) -> dict[Place, int]:
    """Which output word of its text each passage is about: the passages of a text, in order, are its output words.

    >>> two = [Passage(7, ("a",), (False,), (1,), (0,), before=before) for before in ((0,), (0, 5, 6))]
    >>> output_words(two)
    {(7, 1): 0, (7, 3): 1}
    """
    places = sorted({(passage.text, len(passage.before)) for passage in passages})
    first = {text: i for i, (text, _) in reversed(list(enumerate(places)))}
    return {place: i - first[place[0]] for i, place in enumerate(places)}


def alignment_errors(
    passages: Sequence[Passage],
    numbers: Mapping[str, Numbers],
    links: Mapping[int, Alignment],
    words: Mapping[Place, int],
    settings: AuditSettings,
) -> tuple[Score, ...]:
    """`aer` of every map and importance, against gold links of those output words that were asked about; and of chance.

    links: of each text, (source word, output word). Texts without gold are left out.
    """
    texts = sorted({passage.text for passage in passages} & links.keys())
    if not texts:
        raise DataError("there are gold links, but none of a text in this audit")
    target = [words[passage.text, len(passage.before)] for passage in passages]
    spoken = {text: {t for p, t in zip(passages, target, strict=True) if p.text == text} for text in texts}
    sure = [_about(links[text].sure, spoken[text]) for text in texts]
    possible = [_about(links[text].possible, spoken[text]) for text in texts]
    found = []
    for name, tops in numbers.items():
        if not name.startswith("top/"):
            continue
        made: dict[int, set[Link]] = {text: set() for text in texts}
        for passage, t, top in zip(passages, target, tops, strict=True):
            source = None if np.isnan(top) else _source(passage, int(top), settings.include_special)
            if source is not None and passage.text in made:
                made[passage.text].add((source, t))
        score = alignment_scores([made[text] for text in texts], sure, possible, seed=settings.seed)
        found.append(Score("aer", name.removeprefix("top/"), "", score.aer))
    lengths = {passage.text: int(asked(passage).sum()) for passage in passages}
    value = chance_aer(sure, [lengths[text] for text in texts], [len(spoken[text]) for text in texts], possible)
    return (*found, Score("aer", RANDOM, "", Estimate(value, value, value, len(texts))))


def _about(links: frozenset[Link], spoken: set[int]) -> set[Link]:
    return {(s, t) for s, t in links if t in spoken}


def _source(passage: Passage, top: int, include_special: bool) -> int | None:
    """The number of a word among those that are not special, from its place among those asked about."""
    plain = asked(passage)
    word = int(np.flatnonzero(asked(passage, include_special=include_special))[top])
    return int(plain[:word].sum()) if plain[word] else None
