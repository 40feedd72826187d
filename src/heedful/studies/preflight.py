"""What a corpus will teach attention, said before any training: counts, telling words, and a verdict. No torch."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse

from heedful.data.corpus import Corpus
from heedful.data.ids import Ids
from heedful.data.parallel import ParallelCorpus
from heedful.data.tokens import SPECIALS, EncodedSplit, Vocabulary, encode
from heedful.data.words import TokenRules, tokenise
from heedful.errors import DataError
from heedful.files import write_json
from heedful.measure.alignment import alignment_scores, diagonal_links, links_from_attention
from heedful.measure.uncertainty import Estimate
from heedful.model.lexicon import count_table, ibm_model_1
from heedful.studies.association import Association, Determinants, determinants
from heedful.studies.information import PERMUTATIONS, Informativeness, informativeness, label_targets

MAX_LENGTH = 400


@dataclass(frozen=True)
class TellingWord:
    """A word, in how many texts it stands with the output and in all, Trans(o|i) (snell2021, Eq. 17), and a z-score."""

    word: str
    together: int
    count: int
    trans: float
    z: float


@dataclass(frozen=True)
class OutputWords:
    """The words that speak most for an output (a label, or a word of the other language), and most against it."""

    output: str
    count: int
    most: tuple[TellingWord, ...]
    least: tuple[TellingWord, ...]


@dataclass(frozen=True)
class CountSummary:
    """The count table C (snell2021, Eq. 16): its size, its sum, and whether all its entries are the same."""

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
    diagonal: Estimate  # the same relative place: what position alone can do


@dataclass(frozen=True)
class Preflight:
    """The verdict (`learnable`, `uninformative` or `unclear`), what it rests on, and the telling words."""

    data: str
    task: str
    verdict: str
    sentence: str
    statistics: Informativeness
    table: CountSummary
    outputs: tuple[OutputWords, ...]
    decisions: tuple[str, ...]
    alignment: CountedAlignment | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; `statistic` and `null` are those of the verdict."""
        plain = asdict(self)
        contrast = plain["statistics"]["contrast"]
        plain["statistic"] = contrast["value"]
        plain["null"] = {key: contrast[key] for key in ("null_mean", "null_sd", "p", "permutations")}
        return plain

    def save(self, path: Any) -> None:
        """Write as JSON, whole or not at all."""
        write_json(path, self.to_dict())


def run_preflight(
    corpus: Corpus | ParallelCorpus,
    *,
    permutations: int = PERMUTATIONS,
    words: int = 10,
    min_count: int = 3,
    seed: int = 0,
) -> Preflight:
    """Count, compare with chance, and judge; on the training split alone.

    >>> from heedful.data.synthetic import generated_pairs
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
    found = determinants(sources, targets, outputs=labels, top=words + len(SPECIALS))
    said = assemble(corpus.name, translating, statistics, C, found, names, outputs, words, decisions)
    if isinstance(corpus, ParallelCorpus):
        return replace(said, alignment=_alignment(corpus, sources, targets))
    return said


def assemble(
    name: str,
    translating: bool,
    statistics: Informativeness,
    C: sparse.csr_array,
    found: Mapping[int, Determinants],
    names: Sequence[str],
    outputs: Sequence[str],
    words: int,
    decisions: tuple[str, ...],
) -> Preflight:
    """What was counted, put into words; `names` and `outputs` are what ids stand for on either side."""
    return Preflight(
        data=name,
        task="translation" if translating else "classification",
        verdict=statistics.verdict,
        sentence=_sentence(statistics, translating),
        statistics=statistics,
        table=CountSummary(
            inputs=int(np.sum(np.diff(C.indptr) > 0)),
            outputs=len(np.unique(C.indices)),
            entries=C.nnz,
            total=float(C.sum()),
            smallest=float(C.data.min()),
            largest=float(C.data.max()),
        ),
        outputs=tuple(
            OutputWords(
                outputs[o],
                each.most[0].target_count if each.most else 0,
                _named(each.most, names, words),
                _named(each.least, names, words),
            )
            for o, each in found.items()
        ),
        decisions=decisions,
    )


def _without_ends(split: EncodedSplit) -> Ids:
    """The words of each text; `<bos>` and `<eos>` stand in every text and say nothing."""
    rows = [split.text(i)[1:-1] for i in range(len(split))]
    kept = [row if len(row) else split.text(i)[:1] for i, row in enumerate(rows)]
    return Ids.of(kept)


def _pairs(
    corpus: ParallelCorpus, min_count: int
) -> tuple[Ids, Ids, tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Word by word, lower-cased (a generated task's words as they are); a source without any word is left out."""
    rules = TokenRules()
    sides = []
    for sentences in (corpus.train.sources, corpus.train.targets):
        if corpus.in_words:
            words = [sentence.split() for sentence in sentences]
            vocabulary = Vocabulary.build(words, min_count=1)
        else:
            words = [tokenise(sentence, rules) for sentence in sentences]
            vocabulary = Vocabulary.build(words, min_count=min_count)
        sides.append((Ids.of([vocabulary.ids(row) for row in words]), vocabulary.words))
    (sources, inputs), (targets, outputs) = sides
    worded = np.flatnonzero(sources.lengths > 0)
    enough(corpus.name, len(worded))
    said = wordless(corpus.name, len(sources) - len(worded))
    return sources.take(worded), targets.take(worded), inputs, outputs, (*corpus.decisions, *said)


def enough(name: str, pairs: int) -> None:
    """Refuse data that cannot be compared with chance."""
    if pairs < 2:
        raise DataError(f"{name}: {pairs} training pairs with words; two or more are needed")


def wordless(name: str, count: int) -> tuple[str, ...]:
    """How it is said that sources had no words.

    >>> wordless("a.de", 0)
    ()
    """
    return (f"{name}: {count:,} pair{'s' * (count > 1)} whose source has no word left out",) if count else ()


def _alignment(corpus: ParallelCorpus, sources: Ids, targets: Ids) -> CountedAlignment | None:
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


def _named(associations: tuple[Association, ...], names: Sequence[str], top: int) -> tuple[TellingWord, ...]:
    specials = set(range(len(SPECIALS)))
    return tuple(
        TellingWord(names[each.source], each.together, each.source_count, each.trans, each.z)
        for each in associations
        if each.source not in specials
    )[:top]


def _sentence(statistics: Informativeness, translating: bool) -> str:
    output = "the words of a translation" if translating else "the label"
    contrast = statistics.contrast
    numbers = f"(contrast {contrast})"
    if statistics.verdict == "learnable":
        return f"words of a text differ in what they say of {output}, so attention has something to follow {numbers}"
    if contrast.value == 0:
        return f"every word of a text co-occurs alike with {output}; attention has nothing to start from {numbers}"
    if statistics.verdict == "uninformative":
        return f"words of a text say no more of {output} than they would by chance {numbers}"
    return f"words of a text say somewhat more of {output} than by chance, but not surely {numbers}"
