import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from heedful.data.ragged import as_ids
from heedful.data.subwords import encode_pairs, fit_tokeniser
from heedful.data.synthetic.tasks import generated_pairs
from heedful.errors import DataError
from heedful.metrics.translation_quality import alignment_scores, chance_aer, links_from_attention
from heedful.models.lexicon import MOST, Tally, count_table, ibm_model_1, table_cells, table_of, translation_table

sentences = st.lists(st.integers(0, 6), min_size=1, max_size=5)
corpora = st.lists(st.tuples(sentences, sentences), min_size=1, max_size=11)


def plain_count(sources, targets):
    """Eq. 16 as it is written."""
    C = np.zeros((max(map(max, sources)) + 1, max(map(max, targets)) + 1))
    for x, y in zip(sources, targets, strict=True):
        for i, o in itertools.product(x, y):
            C[i, o] += 1 / len(x)
    return C


def plain_em(sources, targets, iterations, null=False):
    """IBM Model 1 as the textbook has it."""
    inputs, outputs = max(map(max, sources)) + 1, max(map(max, targets)) + 1
    if null:
        sources = [[*x, inputs] for x in sources]
    trans = np.full((inputs + null, outputs), 1 / outputs)

    def log_likelihood():
        return sum(
            math.log(sum(trans[i, o] for i in x) / len(x)) for x, y in zip(sources, targets, strict=True) for o in y
        )

    history = [log_likelihood()]
    for _ in range(iterations):
        counts = defaultdict(float)
        for x, y in zip(sources, targets, strict=True):
            for o in y:
                total = sum(trans[i, o] for i in x)
                for i in x:
                    counts[i, o] += trans[i, o] / total
        trans = np.zeros_like(trans)
        for (i, o), value in counts.items():
            trans[i, o] = value
        trans /= np.maximum(trans.sum(axis=1, keepdims=True), 1e-300)
        history.append(log_likelihood())
    return trans, history


@settings(deadline=None)
@given(corpora)
def test_counting_agrees_with_the_plain_way(corpus):
    sources, targets = zip(*corpus, strict=True)
    C = count_table(sources, targets).matrix()
    assert C.has_sorted_indices
    np.testing.assert_allclose(C.toarray(), plain_count(sources, targets), rtol=1e-13)


@settings(deadline=None)
@given(corpora, st.randoms(use_true_random=False))
def test_order_and_parts_make_no_difference_to_the_last_bit(corpus, random):
    sources, targets = zip(*corpus, strict=True)
    whole = count_table(sources, targets, source_size=7, target_size=7)
    shuffled = list(corpus)
    random.shuffle(shuffled)
    cut = random.randrange(len(shuffled) + 1)
    total = Tally()
    for part in (shuffled[:cut], shuffled[cut:]):
        total.add(table_cells(as_ids([x for x, _ in part]), as_ids([y for _, y in part]), 7, 7))
    merged = table_of(total.cells(), 7, 7)
    assert np.array_equal(merged.matrix().toarray(), whole.matrix().toarray())
    assert merged.counts.sum() == whole.counts.sum() == sum(len(x) * len(y) for x, y in corpus)


def test_thirds_and_sevenths_do_not_depend_on_order():
    lengths = [3, 7, 11, 13, 3, 7, 17, 19, 3]
    sources = [[0] + [1] * (L - 1) for L in lengths]
    orders = [np.random.default_rng(k).permutation(len(lengths)) for k in range(20)]
    tables = {count_table([sources[i] for i in order], [[0]] * 9).matrix().toarray().tobytes() for order in orders}
    assert len(tables) == 1


@settings(deadline=None)
@given(corpora, st.integers(1, 5), st.booleans())
def test_em_agrees_with_the_textbook(corpus, iterations, null):
    sources, targets = zip(*corpus, strict=True)
    lexicon = ibm_model_1(sources, targets, iterations, null=null)
    table, history = plain_em(sources, targets, iterations, null)
    np.testing.assert_allclose(lexicon.table.toarray(), table, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(lexicon.log_likelihood, history, rtol=1e-9, atol=1e-9)


def test_every_iterate_is_a_fit_of_its_own():
    sources, targets, iterates = [[0, 1, 2], [0, 2], [1]], [[0, 1], [0], [1, 2, 1]], []
    ibm_model_1(sources, targets, 5, null=True, on_iteration=iterates.append)
    assert len(iterates) == 5
    for k, lexicon in enumerate(iterates, start=1):
        alone = ibm_model_1(sources, targets, k, null=True)
        assert lexicon.log_likelihood == alone.log_likelihood
        assert (lexicon.table != alone.table).nnz == 0


@settings(deadline=None)
@given(corpora)
def test_likelihood_never_falls_and_rows_are_distributions(corpus):
    sources, targets = zip(*corpus, strict=True)
    lexicon = ibm_model_1(sources, targets, 12)
    history = np.array(lexicon.log_likelihood)
    assert len(history) == 13
    assert np.all(np.diff(history) >= -1e-12 * np.abs(history[1:]))
    rows = lexicon.table.sum(axis=1)
    present = np.isin(np.arange(len(rows)), np.concatenate(sources))
    np.testing.assert_allclose(rows, present, atol=1e-12)


@settings(deadline=None)
@given(corpora)
def test_one_iteration_is_equation_17(corpus):
    sources, targets = zip(*corpus, strict=True)
    lexicon = ibm_model_1(sources, targets, 1)
    C = plain_count(sources, targets)
    expected = C / np.maximum(C.sum(axis=1, keepdims=True), 1e-300)
    np.testing.assert_allclose(lexicon.table.toarray(), expected, rtol=1e-12)
    np.testing.assert_allclose(count_table(sources, targets).lexicon().table.toarray(), expected, rtol=1e-12)


@settings(deadline=None)
@given(corpora)
def test_beta_and_alpha_row_by_row(corpus):
    sources, targets = zip(*corpus, strict=True)
    lexicon = ibm_model_1(sources, targets, 2)
    beta, alpha = lexicon.beta(sources, targets), lexicon.alpha(sources, targets)
    table, row = lexicon.table.toarray(), 0
    for x, y in corpus:
        for o in y:
            expected = table[list(x), o]  # Eq. 18
            np.testing.assert_array_equal(beta[row], expected)
            np.testing.assert_allclose(alpha[row], expected / expected.sum(), rtol=1e-12)  # Eq. 19
            row += 1
    assert row == len(beta) == len(alpha)


def test_figure_8_every_beta_is_a_quarter():
    """Permutations of {A, B, C, D} or of {E, F, G, H}, copied: β is 0.25 at every position (snell2021, A.3)."""
    orders = list(itertools.permutations(range(4)))
    sources = [list(p) for p in orders] + [[4 + i for i in p] for p in orders]
    lexicon = count_table(sources, sources).lexicon()
    assert set(lexicon.beta(sources, sources).values) == {0.25}
    assert set(lexicon.alpha(sources, sources).values) == {0.25}


def test_figure_1_film_becomes_movie():
    """Film and movie always meet, so that Film is what movie aligns with (snell2021, Figure 1)."""
    german = [["dieser", "Film", "ist", "gut"], ["der", "Film", "war", "lang"], ["dieser", "Hund", "ist", "alt"]]
    english = [["this", "movie", "is", "good"], ["the", "movie", "was", "long"], ["this", "dog", "is", "old"]]
    words = {word: i for i, word in enumerate(sorted({w for s in german + english for w in s}))}
    sources, targets = ([[words[w] for w in s] for s in side] for side in (german, english))
    C = count_table(sources, targets).matrix()
    assert C[words["Film"], words["movie"]] == 2 / 4
    assert C[words["dieser"], words["movie"]] == 1 / 4
    alpha = ibm_model_1(sources, targets, 5).alpha([sources[0]], [[words["movie"]]])
    assert alpha.values.argmax() == 1


def test_unseen_words():
    lexicon = count_table([[0, 1]], [[0]]).lexicon()
    assert lexicon.beta([[5, 0]], [[9, 0]]).values.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert lexicon.alpha([[5, 0]], [[9, 0]]).values.tolist() == [0.5, 0.5, 0.0, 1.0]
    assert len(lexicon.alpha([[0]], [[]])) == 0


def test_null_word_takes_what_nothing_explains():
    sources, targets = [[0], [1], [2], [3]], [[0, 9], [1, 9], [2, 9], [3, 9]]
    lexicon = ibm_model_1(sources, targets, 30, null=True)
    assert lexicon.table[[4], :].toarray()[0, 9] > 0.9
    assert lexicon.table[[0], :].toarray()[0, 0] > 0.6
    assert lexicon.beta([[4]], [[9]]).values[0] == 0  # the null word is no word of the vocabulary


def test_classification_is_translation_into_one_word():
    C = count_table([[0, 1], [1, 2]], [[0], [1]]).matrix().toarray()
    np.testing.assert_array_equal(C, [[0.5, 0], [0.5, 0.5], [0, 0.5]])


def test_toy_language_is_aligned_far_better_than_chance():
    corpus = generated_pairs("toy-de-en", size=1500)
    encoded = encode_pairs(corpus.train, fit_tokeniser(corpus)[0])
    sources, targets = (as_ids([row[1:-1] for row in side]) for side in (encoded.source, encoded.target))
    gold = [[a.sure for a in corpus.train.alignments], [a.possible for a in corpus.train.alignments]]
    chance = chance_aer(gold[0], sources.lengths, targets.lengths, gold[1])

    def aer(iterations):
        alpha = ibm_model_1(sources, targets, iterations).alpha(sources, targets)
        return alignment_scores(links_from_attention(alpha, targets.lengths), *gold).aer

    assert aer(1).high < 0.3 < chance
    assert aer(5).high < aer(1).low


def test_bad_input():
    with pytest.raises(DataError, match="0 iterations"):
        ibm_model_1([[0]], [[0]], 0)
    with pytest.raises(DataError, match="source id 5 does not fit a vocabulary of 3"):
        count_table([[5]], [[0]], source_size=3)
    with pytest.raises(DataError, match="source sentence 0 is empty"):
        count_table([[]], [[0]])
    with pytest.raises(DataError, match="2,097,152 target types; a count table must have fewer than 2,097,152"):
        table_cells(as_ids([[0]]), as_ids([[0]]), 1, MOST)


def test_empty_tables():
    empty = count_table([], [], source_size=2, target_size=2)
    assert empty.matrix().nnz == 0
    assert translation_table(sparse.csr_array((2, 2))).nnz == 0
