"""Table 9 of snell2021: the data as we load them beside the paper's.

Lengths are in words without the two ends (subwords for translation); the vocabulary has `<pad>`, `<unk>` and the ends.
"""

from typing import Any

import numpy as np

from heedful.data.open import open_data
from heedful.data.parallel import ParallelCorpus
from heedful.data.subwords import encode_pairs, fit_tokeniser
from heedful.data.tokens import encode
from heedful.papers.experiment import Lab
from heedful.papers.finding import Cell, Finding, Row, Table
from heedful.papers.published import published_table
from heedful.papers.snell2021.studies import corpora
from heedful.papers.tables import exactly

COLUMNS = ("train median length", "train size", "validation median length", "validation size", "vocabulary")
SUBWORDS = {"smoke": 500, "quick": 8000, "paper": 8000}
NOTE = (
    "The paper prints 31,065 words for 20 NG as for AG News; its own parameter count (5,021,282 with embeddings of "
    "width 300 beside 1,274,882 others) implies 12,488."
)


def find_statistics(lab: Lab) -> Finding:
    """Sizes, median lengths and vocabulary of every corpus."""
    printed = published_table("snell2021", "9")
    rows = []
    for corpus in corpora(lab.budget):
        ours = statistics(corpus.data, SUBWORDS[lab.budget]) if corpus.data else {}
        cells = []
        for column in COLUMNS:
            value = ours.get(column)
            measured = None if value is None else exactly(value)
            cells.append(Cell(measured, printed.get((corpus.row or "", column), (None,))[0], digits=0))
        rows.append(Row(corpus.row or str(corpus.data), tuple(cells)))
    return Finding((Table("Table 9: the data", COLUMNS, tuple(rows)),), notes=(NOTE,))


def statistics(data: str, subwords: int = 8000) -> dict[str, float]:
    """The five numbers of Table 9 for one corpus, whole and uncut.

    >>> statistics("polarity")["train median length"]
    12.0
    """
    corpus = open_data(data)
    if isinstance(corpus, ParallelCorpus):
        tokeniser, _ = fit_tokeniser(corpus, subwords)
        splits: dict[str, Any] = {
            name: encode_pairs(getattr(corpus, name), tokeniser).source for name in ("train", "validation")
        }
        vocabulary = len(tokeniser)
    else:
        encoded = encode(corpus, max_length=1_000_000)
        splits, vocabulary = {"train": encoded.train, "validation": encoded.validation}, len(encoded.vocabulary)
    found = {"vocabulary": float(vocabulary)}
    for name, split in splits.items():
        found[f"{name} size"] = float(len(split))
        found[f"{name} median length"] = float(np.median(split.lengths) - 2)
    return found
