import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.ragged import Ids, pairs_of
from heedful.errors import DataError

rows_of_ids = st.lists(st.lists(st.integers(0, 9), max_size=7), min_size=1, max_size=11)


@settings(deadline=None)
@given(rows_of_ids, st.randoms(use_true_random=False))
def test_take_is_the_same_as_picking_rows(rows, random):
    ids = Ids.of(rows)
    which = [random.randrange(len(rows)) for _ in range(5)]
    taken = ids.take(np.array(which))
    assert [row.tolist() for row in taken] == [rows[m] for m in which]
    assert taken.values.dtype == np.int32


@pytest.mark.parametrize("rows", [[[1.5]], [[[1]]], [["a"]]])
def test_what_is_not_a_list_of_whole_numbers_is_refused(rows):
    with pytest.raises(DataError, match="sentence 0"):
        Ids.of(rows)


def test_negative_ids_and_bad_offsets_are_refused():
    with pytest.raises(DataError, match="-1"):
        Ids.of([[-1]])
    with pytest.raises(DataError, match="offsets"):
        Ids(np.zeros(3, dtype=np.int32), np.array([0, 2]))
    with pytest.raises(DataError, match="fall"):
        Ids(np.zeros(3, dtype=np.int32), np.array([0, 4, 3]))


def test_pairs_must_pair_up():
    with pytest.raises(DataError, match="2 source sentences but 1"):
        pairs_of([[1], [2]], [[1]])
    with pytest.raises(DataError, match="source sentence 1 is empty"):
        pairs_of([[1], []], [[1], [2]])
