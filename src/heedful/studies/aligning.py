"""How well attention aligns words, where a study's data have gold alignments."""

from collections.abc import Sequence

import numpy as np

from heedful.data.alignments import Alignment
from heedful.data.subwords import EncodedPairs
from heedful.measure.alignment import (
    Links,
    alignment_scores,
    attention_between_words,
    chance_aer,
    diagonal_links,
    links_from_attention,
)
from heedful.measure.ragged import Ragged
from heedful.measure.uncertainty import Estimate
from heedful.studies.analysis import Recordings
from heedful.studies.result import AlignmentResult, Curve

_APART = 1_000_000  # between the target positions of two seeds


def measure_alignment(recordings: Recordings) -> AlignmentResult | None:
    """Alignment error rates of α over training and of α^IBM; nothing where there is no gold."""
    pairs = recordings.run.pairs("validation")
    if pairs.alignments is None:
        return None
    seeds, steps = recordings.seeds, recordings.steps("standard", recordings.seeds[0])

    def error(step: int) -> Estimate:
        per_seed = [_word_links(recordings.quantity("standard", seed, "alpha", step), pairs) for seed in seeds]
        return _error(per_seed, pairs.alignments or ())

    errors = [error(step) for step in steps]
    iterations = recordings.steps("lexicon", 0)
    first, last = (_word_links(recordings.quantity("lexicon", 0, "alpha", k), pairs) for k in (1, iterations[-1]))
    L, T = _word_lengths(pairs)
    sure, possible = zip(*((gold.sure, gold.possible) for gold in pairs.alignments), strict=True)
    return AlignmentResult(
        attention=Curve(steps, tuple(estimate.value for estimate in errors)),
        untrained=errors[0],
        trained=errors[-1],
        counting=_error([first], pairs.alignments),
        model_1=_error([last], pairs.alignments),
        diagonal=_error([[diagonal_links(int(s), int(t)) for s, t in zip(L, T, strict=True)]], pairs.alignments),
        chance=chance_aer(sure, L, T, possible),
    )


def _word_links(alpha: Ragged, pairs: EncodedPairs) -> list[Links]:
    """Each target word linked to the source word it attends to most; `<bos>` and `<eos>` take no part."""
    matrices = []
    row = 0
    for m in range(len(pairs)):
        outputs = int(pairs.target.lengths[m]) - 1
        matrix = np.stack([alpha.row(r) for r in range(row, row + outputs)])
        row += outputs
        source = pairs.source_words[pairs.source.offsets[m] : pairs.source.offsets[m + 1]]
        target = pairs.target_words[pairs.target.offsets[m] + 1 : pairs.target.offsets[m + 1]]
        matrices.append(attention_between_words(matrix, source, target))
    return list(links_from_attention(matrices))


def _word_lengths(pairs: EncodedPairs) -> tuple[np.ndarray, np.ndarray]:
    """How many words each source and each target has."""
    return tuple(
        np.array([words[a:b].max() + 1 for a, b in zip(ids.offsets[:-1], ids.offsets[1:], strict=True)])
        for words, ids in ((pairs.source_words, pairs.source), (pairs.target_words, pairs.target))
    )  # type: ignore[return-value]


def _error(per_seed: Sequence[Sequence[Links]], gold: Sequence[Alignment]) -> Estimate:
    """AER pooled over seeds, its interval over sentences: a sentence's links of all seeds are drawn together."""

    def together(links: Sequence[Links]) -> set[tuple[int, int]]:
        return {(s, t + k * _APART) for k, one in enumerate(links) for s, t in one}

    n = len(per_seed)
    links = [together([seed[m] for seed in per_seed]) for m in range(len(gold))]
    sure, possible = ([together([getattr(g, kind)] * n) for g in gold] for kind in ("sure", "possible"))
    return alignment_scores(links, sure, possible).aer
