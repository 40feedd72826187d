"""The number of candidates on data whose answer is known."""

import math

import numpy as np
import pytest

from heedful.preflights.candidates import mean_candidates

WORDS = 12


def drawn(types: int, pairs: int = 600, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.permutation(types)[:WORDS] for _ in range(pairs)]


def test_permutations_leave_every_word_open_and_samples_one():
    same, some = drawn(WORDS), drawn(60)
    assert mean_candidates(same, same) == WORDS
    assert mean_candidates(some, some) == pytest.approx(1.0, abs=0.05)


def test_words_of_one_block_cannot_be_told_apart():
    blocks = [np.concatenate([4 * block + np.arange(4) for block in row[:3]]) for row in drawn(15)]
    assert mean_candidates(blocks, blocks) == pytest.approx(4.0, abs=0.1)


def test_targets_of_other_pairs_leave_most_words_open():
    some = drawn(60)
    assert mean_candidates(some, [*some[1:], some[0]]) > 0.9 * WORDS


def test_words_seen_once_are_never_ruled_out():
    fresh = [np.arange(WORDS) + WORDS * k for k in range(50)]
    assert mean_candidates(fresh, fresh) == WORDS


def test_repeated_words_count_once_and_empty_sentences_not_at_all():
    some = drawn(60)
    twice = [np.concatenate([row, row]) for row in some]
    assert mean_candidates(twice, some) == mean_candidates(some, some)
    assert mean_candidates([*some, [1]], [*some, []]) == pytest.approx(mean_candidates(some, some), abs=0.1)
    assert math.isnan(mean_candidates([[1], [2]], [[], []]))


def test_fewer_pairs_tell_fewer_words_apart_and_the_seed_decides():
    some = drawn(20, pairs=1500)
    assert mean_candidates(some, some, counted=40) > mean_candidates(some, some)
    assert mean_candidates(some, some, counted=100, seed=1) == mean_candidates(some, some, counted=100, seed=1)
