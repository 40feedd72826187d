import itertools

import numpy as np
import pytest

from heedful.config import COPYING_TASKS, study_preset
from heedful.data.catalog import describe, is_named, open_corpus, task_of_name
from heedful.data.synthetic.doses import FAMILIES, LENGTH, TYPES, family_of, overlapping_sets
from heedful.data.synthetic.tasks import TASKS, find_task, generated_pairs, stream_numbers, stream_pairs, types_of
from heedful.errors import DataError
from heedful.models.lexicon import count_table

# Each end of every family, and a dose between.
DOSES = (
    *("copy-dose:40", "copy-dose:43", "copy-dose:120", "copy-blocks:1", "copy-blocks:5", "copy-blocks:20"),
    *("copy-sets:1", "copy-sets:3", "copy-sets:101", "copy-mixture:1", "copy-mixture:3", "copy-mixture:7"),
    *("copy-zipf:0", "copy-zipf:1.5", "copy-zipf:10", "copy-noise:0", "copy-noise:23", "copy-noise:100"),
)


def drawn(name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    return next(stream_numbers(name, seed=seed))


def share_of_shared_words(name: str) -> float:
    """The share of words that one sequence has in common with the next."""
    sources, _ = drawn(name)
    return float(np.mean([len(set(a) & set(b)) / LENGTH for a, b in itertools.pairwise(sources[:200].tolist())]))


@pytest.mark.parametrize("name", DOSES)
def test_forty_different_words_under_a_seed(name):
    sources, targets = drawn(name)
    assert sources.shape == targets.shape
    assert sources.shape[1] == LENGTH
    assert all(len(set(row)) == LENGTH for row in sources[:100].tolist())
    assert (sources.min(), sources.max()) == (1, types_of(name))
    assert np.array_equal(sources, drawn(name)[0])
    assert not np.array_equal(sources, drawn(name, seed=1)[0])


@pytest.mark.parametrize("name", [name for name in DOSES if not name.startswith("copy-noise")])
def test_targets_are_copies_and_words_stand_anywhere(name):
    sources, targets = drawn(name)
    assert np.array_equal(sources, targets)
    places = np.argmax(sources == 1, axis=1)[(sources == 1).any(axis=1)]
    assert len(np.unique(places)) == LENGTH


def test_the_ends_of_the_families_are_the_tasks_between_which_they_lie():
    for permutations in ("copy-dose:40", "copy-sets:1", "copy-mixture:1"):
        assert set(drawn(permutations)[0][:50].ravel().tolist()) == set(range(1, LENGTH + 1))
    apart = share_of_shared_words("copy-vocab")  # 40 of 60: two thirds
    assert apart == pytest.approx(LENGTH / TYPES, abs=0.02)
    for free in ("copy-dose:60", "copy-blocks:1", "copy-zipf:0", "copy-sets:1000", "copy-noise:0"):
        assert share_of_shared_words(free) == pytest.approx(apart, abs=0.02)
    assert share_of_shared_words("copy-zipf:10") > 0.9
    assert share_of_shared_words("copy-dose:120") == pytest.approx(1 / 3, abs=0.02)


def test_blocks_occur_whole_or_not_at_all():
    for row in drawn("copy-blocks:5")[0][:100].tolist():
        blocks = [(word - 1) // 5 for word in row]
        assert sorted(set(np.bincount(blocks).tolist())) == [0, 5]


def test_sets_are_fixed_and_the_first_of_more():
    sets = {frozenset(row) for row in drawn("copy-sets:3")[0].tolist()}
    assert sets == {frozenset(row) for row in overlapping_sets(3).tolist()}
    assert len(sets) == 3
    shared = [len(set(a) & set(b)) for a, b in itertools.combinations(overlapping_sets(3).tolist(), 2)]
    again = [len(set(a) & set(b)) for a, b in itertools.combinations(overlapping_sets(7)[:3].tolist(), 2)]
    assert shared == again


def test_disjoint_sets():
    rows = drawn("copy-mixture:3")[0]
    assert sorted({tuple(sorted((row - 1) // LENGTH)) for row in rows}) == [(k,) * LENGTH for k in range(3)]


def test_noise_replaces_words_and_their_links():
    sources, targets = drawn("copy-noise:23")
    by_chance = 0.23 / TYPES  # a word is replaced by itself
    assert np.mean(sources != targets) == pytest.approx(0.23 - by_chance, abs=0.005)
    for source, target, gold in itertools.islice(stream_pairs("copy-noise:23"), 20):
        kept = {(t, t) for t, (x, y) in enumerate(zip(source.split(), target.split(), strict=True)) if x == y}
        assert set(gold.sure) == kept


def test_counts_are_flat_at_one_end_only():
    def spread(name: str) -> float:
        sources, targets = (side[:300] for side in drawn(name))
        return float(np.ptp(count_table(list(sources), list(targets)).matrix().toarray()[1:, 1:]))

    assert spread("copy-dose:40") == spread("copy-sets:1") == 0
    assert 0 < spread("copy-dose:43") < spread("copy-dose:50")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("copy-dose:30", "copy-dose:30 needs at least 40 types of words; copy-dose:K takes a whole number from 40 to"),
        ("copy-dose:1001", "copy-dose:1001 has more than 1000 types of words"),
        ("copy-dose:4x", "copy-dose:4x has no number that fits; copy-dose:K takes a whole number"),
        ("copy-dose:045", "copy-dose:045 has no number that fits"),
        ("copy-dose:45.5", "such as copy-dose:45"),
        ("copy-dose", "copy-dose: has no number that fits"),
        ("copy-dose:-1", "has no number that fits"),
        ("copy-blocks:3", "copy-blocks:3 is not among them: copy-blocks:n takes 1, 2, 4, 5, 10, 20"),
        ("copy-sets:0", "copy-sets:0 needs at least 1 sets"),
        ("copy-mixture:11", "copy-mixture:11 has more than 10 sets"),
        ("copy-zipf:nan", "copy-zipf:s takes a number from 0 to 10"),
        ("copy-noise:101", "copy-noise:101 has more than 100 percent"),
    ],
)
def test_bad_numbers_are_clear_errors(name, message):
    with pytest.raises(DataError, match=message):
        open_corpus(name)


@pytest.mark.parametrize("name", ["copy-dose:45", "copy-zipf:0.5", "copy-noise:10", "copy-mixture:3"])
def test_the_catalog_knows_them(name):
    assert is_named(name)
    assert task_of_name(name) == "translation"
    assert describe(name)["here"]
    corpus = generated_pairs(name, size=120)
    assert (corpus.name, len(corpus.train), corpus.in_words) == (name, 120, True)
    assert corpus.digest() != generated_pairs("copy-dose:46", size=120).digest()


def test_every_family_is_studied_with_the_copying_model():
    assert set(FAMILIES) <= set(COPYING_TASKS)
    for family in FAMILIES.values():
        name = f"{family.name}:{family.example}"
        assert family_of(name) == (family, float(family.example))
        assert study_preset(name, "quick", "translation").translator.attention == "bilinear"
        assert not study_preset(name, "quick", "translation").source_bos


def test_a_family_of_two_sets_is_a_task_of_its_own():
    assert find_task("copy-mixture") is TASKS["copy-mixture"]
    assert family_of("copy-mixture") is None
    assert types_of("copy-mixture") == types_of("copy-mixture:2") == 80
