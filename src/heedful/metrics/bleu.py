"""BLEU of translations, by sacrebleu, with the signature that says how it was computed."""

from collections.abc import Sequence
from dataclasses import dataclass

from heedful.errors import DataError


@dataclass(frozen=True)
class Bleu:
    """A corpus BLEU in [0, 100] and sacrebleu's signature."""

    score: float
    signature: str


def corpus_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> Bleu:
    """BLEU of hypotheses against one reference each.

    >>> round(corpus_bleu(["the cat sat on the mat"], ["the cat sat on the mat"]).score, 6)
    100.0
    """
    from sacrebleu.metrics.bleu import BLEU

    if len(hypotheses) != len(references) or not hypotheses:
        raise DataError(f"{len(hypotheses)} translations for {len(references)} references")
    metric = BLEU()
    score = metric.corpus_score(list(hypotheses), [list(references)]).score
    return Bleu(float(score), str(metric.get_signature()))
