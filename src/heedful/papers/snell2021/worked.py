"""Figures 1, 4, 5 and 8 of snell2021: what the count table says, worked out on examples small enough to check by eye.

Everything but the paper's own made-up tables of Figure 1 is computed from sentence pairs by `model.lexicon`.
"""

import itertools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from heedful.data.ids import Ids
from heedful.model.lexicon import CountTable, Lexicon, count_table, translation_table
from heedful.papers.experiment import Lab
from heedful.papers.finding import Figure, Finding, Panel, Value
from heedful.papers.tables import exactly

Matrix = NDArray[np.floating]
GERMAN = ("Dieser", "Film", "großartig", "ist", "schlecht")
ENGLISH = ("bad", "great", "is", "movie", "This")
# The summed table and the probe that the paper's Figure 1 shows.
COUNTS = ((22, 26, 97, 13, 200), (4, 2, 15, 20, 12), (1, 43, 2, 3, 35), (18, 22, 100, 8, 54), (44, 1, 19, 3, 35))
PROBE_WORDS = ("a", "bad", "great", "is", "movie", "This")
PROBE = (
    (0.11, 0.04, 0.02, 0.03),
    (0.04, 0.04, 0.02, 0.04),
    (0.02, 0.02, 0.01, 0.71),
    (0.04, 0.03, 0.90, 0.01),
    (0.01, 0.60, 0.02, 0.03),
    (0.80, 0.05, 0.01, 0.03),
)


def find_figure1(lab: Lab) -> Finding:
    """Figure 1: β of the worked German–English example, and Model 1 from one sentence's counts to an alignment."""
    great = ("Dieser", "Film", "ist", "großartig"), ("This", "movie", "is", "great")
    bad = ("Dieser", "Film", "ist", "schlecht"), ("This", "movie", "is", "bad")
    summed = np.array(COUNTS, dtype=np.float64)
    lexicon = Lexicon(translation_table(sparse.csr_array(summed)))
    source = [GERMAN.index(word) for word in great[0]]
    target = [ENGLISH.index("movie")]
    beta, alpha = (f([source], [target]).values for f in (lexicon.beta, lexicon.alpha))
    panels = (
        _panel("β of the attention model", np.array(PROBE), PROBE_WORDS, great[0]),
        _panel("1 count one pair", _count([great], GERMAN, ENGLISH), GERMAN, ENGLISH),
        _panel("2 add the next pair", _count([great, bad], GERMAN, ENGLISH), GERMAN, ENGLISH),
        _panel("   … and many others", summed, GERMAN, ENGLISH, digits=0),
        _panel("3 Trans(o | i)", lexicon.table.toarray(), GERMAN, ENGLISH),
        _panel("4 β of “movie”", beta[None], ("movie",), great[0]),
        _panel("5 α of “movie”", alpha[None], ("movie",), great[0]),
    )
    note = (
        "The paper's step 3 divides by 4 + 2 + 15 + 20 + 21 and prints .32 and α = .74; its table has 12 where the sum "
        f"has 21. From the table as it stands Trans(movie | Film) = {beta[1]:.2f} and α = {alpha[1]:.2f}."
    )
    values = (
        Value("Trans(movie|Film)", exactly(float(beta[1]))),
        Value("alpha(movie, Film)", exactly(float(alpha[1]))),
    )
    return Finding(
        figures=(Figure("figure1", "Figure 1: from counts to alignment", panels),), values=values, notes=(note,)
    )


def find_figure4(lab: Lab) -> Finding:
    """Figure 4: over permutations of one set of words the count table is constant."""
    words = "ABCD"
    pairs = [(p, tuple(f"{w}’" for w in p)) for p in itertools.permutations(words)]
    return _uninformative("figure4", "Figure 4: permutations of one set of words", pairs, tuple(words))


def find_figure8(lab: Lab) -> Finding:
    """Figure 8: over permutations of two disjoint sets it is constant within each."""
    pairs = [(p, tuple(f"{w}’" for w in p)) for words in ("ABCD", "EFGH") for p in itertools.permutations(words)]
    return _uninformative("figure8", "Figure 8: permutations of two disjoint sets of words", pairs, tuple("ABCDEFGH"))


def _uninformative(
    name: str, title: str, pairs: Sequence[tuple[Sequence[str], Sequence[str]]], words: tuple[str, ...]
) -> Finding:
    outputs = tuple(f"{w}’" for w in words)
    counts = _count(pairs, words, outputs)
    sources, targets = _ids(pairs[:1], words, outputs)
    lexicon = count_table(*_ids(pairs, words, outputs)).lexicon()
    alpha = lexicon.alpha(sources, targets).values.reshape(len(pairs[0][1]), -1)
    panels = (
        _panel("C of one pair", _count(pairs[:1], words, outputs), words, outputs),
        _panel(f"C of all {len(pairs)}", counts, words, outputs, digits=0),
        _panel("Trans(o | i)", lexicon.table.toarray(), words, outputs),
        _panel("α of one pair", alpha, tuple(pairs[0][1]), tuple(pairs[0][0])),
    )
    values = (Value("spread of alpha", exactly(float(np.ptp(alpha)))),)
    return Finding(figures=(Figure(name, title, panels),), values=values)


def find_figure5(lab: Lab) -> Finding:
    """Figure 5: in classification the count table gives words their polarity, which then attracts attention."""
    words, labels = ("bad", "great", "movie"), ("positive", "negative")
    great, bad = (("great", "movie"), ("positive",)), (("bad", "movie"), ("negative",))
    lexicon = count_table(*_ids([great, bad], words, labels)).lexicon()
    alpha = lexicon.alpha(*_ids([great], words, labels)).values
    panels = (
        _panel("C of “great movie”", _count([great], words, labels), words, labels, digits=1),
        _panel("C of both", _count([great, bad], words, labels), words, labels, digits=1),
        _panel("Trans(label | word)", lexicon.table.toarray(), words, labels, digits=1),
        _panel("α of “great movie”", alpha[None], ("positive",), great[0]),
    )
    values = (Value("alpha(great)", exactly(float(alpha[0]))), Value("alpha(movie)", exactly(float(alpha[1]))))
    return Finding(
        figures=(Figure("figure5", "Figure 5: polarity is learned, then attended to", panels),), values=values
    )


def _ids(
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]], words: Sequence[str], outputs: Sequence[str]
) -> tuple[Ids, Ids]:
    return (
        Ids.of([[words.index(w) for w in source] for source, _ in pairs]),
        Ids.of([[outputs.index(o) for o in target] for _, target in pairs]),
    )


def _count(
    pairs: Sequence[tuple[Sequence[str], Sequence[str]]], words: Sequence[str], outputs: Sequence[str]
) -> Matrix:
    table: CountTable = count_table(*_ids(pairs, words, outputs), source_size=len(words), target_size=len(outputs))
    counts: Matrix = table.matrix().toarray()
    return counts


def _panel(title: str, matrix: Matrix, rows: Sequence[str], columns: Sequence[str], digits: int = 2) -> Panel:
    entries = tuple(tuple(float(x) for x in row) for row in matrix)
    return Panel(title, matrix=entries, row_labels=tuple(rows), column_labels=tuple(columns), digits=digits)
