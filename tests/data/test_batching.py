from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.batching import (
    batch_indices,
    collate,
    copying_batches,
    evaluation_batches,
    parts_by_length,
    sort_key,
    training_batches,
)
from heedful.data.ragged import Ragged, as_ids
from heedful.data.subwords import EncodedPairs
from heedful.data.synthetic.tasks import CHUNK, stream_numbers
from heedful.data.vocabulary import EOS, PAD, EncodedSplit
from heedful.errors import DataError

LENGTHS = st.lists(st.integers(1, 30), min_size=1, max_size=60)


def texts(lengths: list[int]) -> EncodedSplit:
    return EncodedSplit.of([[4 + i % 7] * n for i, n in enumerate(lengths)], [i % 2 for i in range(len(lengths))])


def pairs(lengths: list[int]) -> EncodedPairs:
    source = as_ids([[2, *[5] * n, 3] for n in lengths])
    target = as_ids([[2, *[6] * (n // 2 + 1), 3] for n in lengths])
    words = (Ragged(np.zeros(len(ids.values), np.int32), ids.offsets) for ids in (source, target))
    return EncodedPairs(source, target, *words)


@given(LENGTHS, st.integers(1, 9), st.integers(0, 5))
def test_every_text_once_an_epoch_and_the_same_for_the_same_seed(lengths, size, epoch):
    sizes = np.array(lengths)
    batches = batch_indices(sizes, size, 3, epoch)
    assert sorted(np.concatenate(batches).tolist()) == list(range(len(lengths)))
    assert all(len(batch) <= size for batch in batches)
    again = batch_indices(sizes, size, 3, epoch)
    assert all(np.array_equal(a, b) for a, b in zip(batches, again, strict=True))


def test_batches_in_random_order_are_not_sorted_by_length():
    sizes = np.arange(1, 400)
    batches = batch_indices(sizes, 32, 0, 0, bucketed=False)
    assert sorted(np.concatenate(batches).tolist()) == list(range(399))
    spread = [float(np.ptp(sizes[batch])) for batch in batches]
    assert min(spread) > 200 > max(float(np.ptp(sizes[batch])) for batch in batch_indices(sizes, 32, 0, 0))


@given(LENGTHS)
def test_parts_by_length_are_the_batch_with_less_padding(lengths):
    split = texts(lengths)
    batch = collate(split, np.random.default_rng(0).permutation(len(split)))
    parts = parts_by_length(batch)
    rows = {int(i): part.tokens[k, : int(part.lengths[k])] for part in parts for k, i in enumerate(part.index)}
    assert sorted(rows) == list(range(len(split)))
    for i, row in rows.items():
        assert row.tolist() == split.text(i).tolist()
    for part in parts:
        assert part.labels.tolist() == split.labels[part.index].tolist()
        assert int(part.lengths.max()) == part.tokens.shape[1]
    assert sum(part.tokens.numel() for part in parts) <= batch.tokens.numel()


def test_epochs_and_seeds_differ():
    sizes = np.arange(1, 50)
    first, second, other = (np.concatenate(batch_indices(sizes, 4, s, e)) for s, e in ((0, 0), (0, 1), (1, 0)))
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("make", [texts, pairs])
def test_training_taken_up_at_any_step_goes_on_as_it_would_have(make):
    split = make([3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5])
    whole = training_batches(split, 4, seed=1)
    steps = [next(whole).index.tolist() for _ in range(9)]
    for start in range(9):
        resumed = training_batches(split, 4, seed=1, start=start)
        assert [next(resumed).index.tolist() for _ in range(9 - start)] == steps[start:]


@given(LENGTHS, st.integers(1, 100))
def test_evaluation_sees_every_text_once_within_the_bound(lengths, bound):
    split = texts(lengths)
    seen = []
    for batch in evaluation_batches(split, max_tokens=bound):
        assert batch.tokens.numel() <= bound or len(batch.index) == 1
        seen += batch.index.tolist()
    assert sorted(seen) == list(range(len(lengths)))


def test_padding_is_on_the_right_and_masked():
    batch = collate(texts([2, 3]), np.array([0, 1]))
    assert batch.tokens.tolist() == [[4, 4, PAD], [5, 5, 5]]
    assert batch.mask.tolist() == [[True, True, False], [True, True, True]]
    assert batch.lengths.tolist() == [2, 3]
    assert batch.labels.tolist() == [0, 1]


def test_the_decoder_reads_one_word_behind():
    batch = collate(pairs([2, 4]), np.array([0, 1]))
    assert batch.target_in.tolist() == [[2, 6, 6, 3], [2, 6, 6, 6]]
    assert batch.target_out.tolist() == [[6, 6, 3, PAD], [6, 6, 6, 3]]
    assert batch.target_mask.tolist() == [[True, True, True, False], [True] * 4]
    assert sort_key(pairs([2, 4])).tolist() == sorted(sort_key(pairs([2, 4])).tolist())


def test_nothing_to_batch():
    with pytest.raises(DataError, match="no texts"):
        batch_indices(np.array([], dtype=np.int64), 4, 0, 0)
    with pytest.raises(DataError, match="no texts"):
        next(training_batches(texts([]), 4, seed=0))


@pytest.mark.parametrize("size", [CHUNK, CHUNK + 1, 2 * CHUNK])
def test_a_batch_larger_than_what_is_drawn_at_once(size):
    drawn = np.concatenate([sources for sources, _ in islice(stream_numbers("copy-vocab", seed=3), 4)])
    first, second = islice(copying_batches("copy-vocab", size, seed=3), 2)
    chunks = -(-size // CHUNK)
    assert np.array_equal(first.source[:, :-1].numpy(), drawn[:size] + EOS)
    assert np.array_equal(second.source[:, :-1].numpy(), drawn[chunks * CHUNK :][:size] + EOS)
