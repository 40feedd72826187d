"""Preflight: what a corpus can teach attention, before any training. Counts, telling words, a verdict; no torch."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from heedful.data.corpus import Corpus, TokenRules
from heedful.data.parallel import ParallelCorpus
from heedful.data.ragged import Ragged, Sentences, as_ids, paired_ids
from heedful.data.vocabulary import SPECIALS, EncodedSplit, Vocabulary, encode, tokenise
from heedful.errors import DataError
from heedful.metrics.statistics import Estimate
from heedful.metrics.translation_quality import alignment_scores, diagonal_links, links_from_attention
from heedful.models.lexicon import count_table, ibm_model_1
from heedful.preflights.candidates import Candidates, candidates_and_chance, occurrences
from heedful.preflights.forecast import Forecast, forecast
from heedful.preflights.information import PERMUTATIONS, Informativeness, informativeness, label_targets
from heedful.storage.atomic_files import write_json

MAX_LENGTH = 400


@dataclass(frozen=True)
class TellingWord:
    """A word, the number of texts with it and the output and with it at all, and its association with the output.

    `trans` is Trans(o|i) of snell2021, Eq. 17; `z` how many standard deviations `together` lies above what independence
    predicts, so that a rare word does not stand out by chance.
    """

    word: str
    together: int
    count: int
    trans: float
    z: float


@dataclass(frozen=True)
class OutputWords:
    """The words most associated with an output (a label, or a word of the other language), and with its absence."""

    output: str
    count: int
    most: tuple[TellingWord, ...]
    least: tuple[TellingWord, ...]


def determinants(
    sources: Sentences,
    targets: Sentences,
    names: Sequence[str],
    outputs: Sequence[str],
    *,
    chosen: Sequence[int] | None = None,
    top: int = 10,
    skip: int = 0,
) -> tuple[OutputWords, ...]:
    """For each output that occurs (unless chosen: the 20 most frequent), the words that most and least determine it.

        z = (n_io − n_i n_o / N) / √(n_i n_o (N − n_i)(N − n_o) / (N² (N − 1)))

    the standardised count of texts with both, given the counts of each (the hypergeometric moments). `names` and
    `outputs` are what ids stand for on either side; input ids below `skip` are not words.

    >>> found = determinants([[0, 1], [0, 2], [0, 1], [0, 2]], [[1], [0], [1], [0]], "abc", ("no", "yes"), top=1)
    >>> found[1].output, found[1].most[0].word, round(found[1].most[0].z, 3), found[1].least[0].word
    ('yes', 'b', 1.732, 'c')
    """
    if top < 1:
        raise DataError(f"top is {top}; it must be 1 or more")
    first, second = paired_ids(sources, targets)
    inputs, given = occurrences(first).sign(), occurrences(second).sign()
    n_i, n_o = (np.asarray(matrix.sum(axis=0)).ravel() for matrix in (inputs, given))
    columns = most_frequent(n_o) if chosen is None else np.asarray(chosen, dtype=np.int64)
    columns = columns[columns < len(n_o)]
    mass = (_shares(first).T @ occurrences(second)[:, columns]).toarray()
    totals = _shares(first).T @ second.lengths.astype(np.float64)
    together = (inputs.T @ given[:, columns]).toarray()
    counts = len(first), n_i, n_o, columns, together, mass, totals
    return telling_words(*counts, names, outputs, top=top, skip=skip)


def most_frequent(n_o: NDArray[np.float64], count: int = 20) -> NDArray[np.int64]:
    """The outputs that occur in most texts; of equal ones, the lower id first.

    >>> most_frequent(np.array([1.0, 3.0, 3.0]), 2)
    array([1, 2])
    """
    return np.argsort(-n_o, kind="stable")[:count].astype(np.int64)


def telling_words(
    N: int,
    n_i: NDArray[np.float64],
    n_o: NDArray[np.float64],
    chosen: NDArray[np.int64],
    together: NDArray[np.float64],
    mass: NDArray[np.float64],
    totals: NDArray[np.float64],
    names: Sequence[str],
    outputs: Sequence[str],
    *,
    top: int,
    skip: int,
) -> tuple[OutputWords, ...]:
    """`determinants` from counts: of texts (N), with each word (n_i, n_o), with both (words × chosen), and from C.

    mass: the columns of C that were chosen; totals: the sums of its rows.
    """
    trans = mass / np.maximum(totals, np.finfo(np.float64).tiny)[:, None]
    expected = np.outer(n_i, n_o[chosen]) / max(1, N)
    spread = np.sqrt(expected * np.outer(N - n_i, N - n_o[chosen]) / max(1, N * (N - 1)))
    z = np.divide(together - expected, spread, out=np.zeros_like(expected), where=spread > 0)
    result = []
    for k, o in enumerate(chosen.tolist()):
        if n_o[o] == 0:
            continue
        order = np.lexsort((-n_i, -z[:, k]))
        order = order[n_i[order] > 0]
        most, least = order[: top + skip], order[::-1][: top + skip]
        most, least = most[z[most, k] > 0], least[z[least, k] < 0]
        named = [
            tuple(
                TellingWord(names[i], int(together[i, k]), int(n_i[i]), float(trans[i, k]), float(z[i, k]))
                for i in part[part >= skip][:top].tolist()
            )
            for part in (most, least)
        ]
        result.append(OutputWords(outputs[o], int(n_o[o]) if len(most) else 0, *named))
    return tuple(result)


def _shares(ids: Ragged) -> sparse.csr_array:
    counts = occurrences(ids)
    lengths: NDArray[np.float64] = np.repeat(ids.lengths, np.diff(counts.indptr)).astype(np.float64)
    return sparse.csr_array((counts.data / lengths, counts.indices, counts.indptr), shape=counts.shape)


@dataclass(frozen=True)
class CountSummary:
    """The count table C (snell2021, Eq. 16): its size, its sum, its smallest and its largest entry."""

    inputs: int
    outputs: int
    entries: int
    total: float
    smallest: float
    largest: float


@dataclass(frozen=True)
class CountedAlignment:
    """How well counts alone align words, where gold exists: alignment error rates, lower is better."""

    counting: Estimate  # α^IBM of the count table
    model_1: Estimate  # after five iterations of IBM Model 1
    diagonal: Estimate  # the same relative position: what position alone can do


@dataclass(frozen=True)
class Preflight:
    """The verdict (`learnable`, `uninformative` or `unclear`), what it rests on, and the telling words.

    `candidates`: how many source words counts leave open as the origin of an output word; None for labels. `outputs` is
    empty where the verdict is `uninformative`: the words that stand out most would do so by chance.
    """

    data: str
    task: str
    verdict: str
    sentence: str
    statistics: Informativeness
    table: CountSummary
    outputs: tuple[OutputWords, ...]
    decisions: tuple[str, ...]
    alignment: CountedAlignment | None = None
    candidates: Candidates | None = None
    forecast: Forecast | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `statistic` and `null` are those of the verdict."""
        plain = asdict(self)
        contrast = plain["statistics"]["contrast"]
        plain["statistic"] = contrast["value"]
        plain["null"] = {key: contrast[key] for key in ("null_mean", "null_sd", "p", "permutations")}
        return plain

    def save(self, path: Any) -> None:
        """Write as JSON, atomically."""
        write_json(path, self.to_dict())


def run_preflight(
    corpus: Corpus | ParallelCorpus,
    *,
    permutations: int = PERMUTATIONS,
    words: int = 10,
    min_count: int = 3,
    seed: int = 0,
) -> Preflight:
    """The preflight of a corpus: count, compare with chance, and judge, on the training split alone.

    >>> from heedful.data.synthetic.tasks import generated_pairs
    >>> run_preflight(generated_pairs("copy-permutation", size=300)).verdict
    'uninformative'
    >>> run_preflight(generated_pairs("copy-vocab", size=300)).verdict
    'learnable'
    """
    if isinstance(corpus, ParallelCorpus):
        sources, targets, names, outputs, decisions = _pairs(corpus, min_count)
    else:
        encoded = encode(corpus, min_count=min_count, max_length=MAX_LENGTH)
        sources, targets = _without_ends(encoded.train), label_targets(encoded.train.labels)
        names, outputs, decisions = encoded.vocabulary.words, corpus.labels, encoded.decisions
    statistics = informativeness(sources, targets, permutations=permutations, seed=seed)
    C = count_table(sources, targets, source_size=len(names), target_size=len(outputs)).matrix()
    translating = isinstance(corpus, ParallelCorpus)
    labels = None if translating else range(len(outputs))
    telling = determinants(sources, targets, names, outputs, chosen=labels, top=words, skip=len(SPECIALS))
    left = candidates_and_chance(sources, targets, seed=seed) if translating else None
    result = assemble(corpus.name, left, statistics, C, telling, decisions)
    if isinstance(corpus, ParallelCorpus):
        return replace(result, alignment=_alignment(corpus, sources, targets))
    return result


def assemble(
    name: str,
    candidates: Candidates | None,
    statistics: Informativeness,
    C: sparse.csr_array,
    telling: tuple[OutputWords, ...],
    decisions: tuple[str, ...],
) -> Preflight:
    """What was counted, put into words; candidates: None for texts with labels."""
    translating = candidates is not None
    summary = CountSummary(
        inputs=int(np.sum(np.diff(C.indptr) > 0)),
        outputs=len(np.unique(C.indices)),
        entries=C.nnz,
        total=float(C.sum()),
        smallest=float(C.data.min()),
        largest=float(C.data.max()),
    )
    task, sentence = "translation" if translating else "classification", _sentence(statistics, translating)
    listed = () if statistics.verdict == "uninformative" else telling
    return Preflight(
        name,
        task,
        statistics.verdict,
        sentence,
        statistics,
        summary,
        listed,
        decisions,
        candidates=candidates,
        forecast=forecast(candidates.value if candidates else None),
    )


def _without_ends(split: EncodedSplit) -> Ragged:
    """The words of each text, without `<bos>` and `<eos>`, which every text has."""
    rows = [split.text(i)[1:-1] for i in range(len(split))]
    kept = [row if len(row) else split.text(i)[:1] for i, row in enumerate(rows)]
    return as_ids(kept)


def _pairs(
    corpus: ParallelCorpus, min_count: int
) -> tuple[Ragged, Ragged, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Sentences as ids of lower-cased words (of a generated task: as they are); pairs of wordless sources left out."""
    rules = TokenRules()
    sides = []
    for sentences in (corpus.train.sources, corpus.train.targets):
        if corpus.in_words:
            words = [sentence.split() for sentence in sentences]
            vocabulary = Vocabulary.build(words, min_count=1)
        else:
            words = [tokenise(sentence, rules) for sentence in sentences]
            vocabulary = Vocabulary.build(words, min_count=min_count)
        sides.append((as_ids([vocabulary.ids(row) for row in words]), vocabulary.words))
    (sources, inputs), (targets, outputs) = sides
    worded = np.flatnonzero(sources.lengths > 0)
    enough(corpus.name, len(worded))
    left_out = wordless(corpus.name, len(sources) - len(worded))
    return sources.take(worded), targets.take(worded), inputs, outputs, (*corpus.decisions, *left_out)


def enough(name: str, pairs: int) -> None:
    """Refuse data that are too few to compare with chance."""
    if pairs < 2:
        raise DataError(f"{name}: {pairs} training pairs with words; two or more are needed")


def wordless(name: str, count: int) -> tuple[str, ...]:
    """The decision to leave out pairs whose source has no word.

    >>> wordless("a.de", 0)
    ()
    """
    return (f"{name}: {count:,} pair{'s' * (count > 1)} whose source has no word left out",) if count else ()


def _alignment(corpus: ParallelCorpus, sources: Ragged, targets: Ragged) -> CountedAlignment | None:
    gold = corpus.train.alignments
    if gold is None or not corpus.in_words:
        return None
    n = min(len(gold), 2000)
    sample = np.arange(n)
    some, others = sources.take(sample), targets.take(sample)
    sure, possible = ([getattr(each, kind) for each in gold[:n]] for kind in ("sure", "possible"))

    def error(iterations: int) -> Estimate:
        alpha = ibm_model_1(sources, targets, iterations).alpha(some, others)
        return alignment_scores(links_from_attention(alpha, others.lengths), sure, possible).aer

    straight = [diagonal_links(int(s), int(t)) for s, t in zip(some.lengths, others.lengths, strict=True)]
    return CountedAlignment(error(1), error(5), alignment_scores(straight, sure, possible).aer)


def _sentence(statistics: Informativeness, translating: bool) -> str:
    output = "the words of a translation" if translating else "the label"
    contrast = statistics.contrast
    numbers = f"(contrast {contrast})"
    if statistics.verdict == "learnable":
        return f"some words predict {output} better than others, so attention has something to learn {numbers}"
    if contrast.value == 0:
        return f"every word co-occurs equally often with {output}, so attention has nothing to learn from {numbers}"
    if statistics.verdict == "uninformative":
        return f"no word predicts {output} better than by chance {numbers}"
    return f"words may predict {output} a little better than by chance, but we can't tell yet {numbers}"
