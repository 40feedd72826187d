import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.ragged import Ragged, as_ids, as_ragged, paired, paired_ids
from heedful.errors import DataError

ROWS = st.lists(st.lists(st.floats(-10, 10), min_size=1, max_size=7), min_size=0, max_size=5)
SENTENCES = st.lists(st.lists(st.integers(0, 9), max_size=7), min_size=1, max_size=11)


@given(ROWS)
def test_rows_come_back_as_they_went_in(rows):
    ragged = Ragged.of(rows)
    assert len(ragged) == len(rows)
    assert [ragged[r].tolist() for r in range(len(rows))] == rows
    assert ragged.lengths.tolist() == [len(row) for row in rows]
    assert ragged.row_of.tolist() == [r for r, row in enumerate(rows) for _ in row]


@given(ROWS.filter(bool), st.integers(0, 3))
def test_padding_and_mask_are_removed(rows, extra):
    width = max(map(len, rows)) + extra
    matrix, mask = np.full((len(rows), width), np.nan), np.zeros((len(rows), width), dtype=bool)
    for r, row in enumerate(rows):
        matrix[r, : len(row)], mask[r, : len(row)] = row, True
    ragged = as_ragged(matrix, mask)
    assert [ragged[r].tolist() for r in range(len(rows))] == rows


def test_every_shape_of_input_is_the_same_rows():
    rows = [[1.0, 2.0], [3.0, 4.0]]
    for given_as in (
        rows,
        tuple(rows),
        np.array(rows),
        torch.tensor(rows, requires_grad=True),
        np.array(rows)[:, None],
    ):
        ragged = as_ragged(given_as)
        assert ragged.values.tolist() == [1.0, 2.0, 3.0, 4.0]
        assert ragged.offsets.tolist() == [0, 2, 4]
    assert as_ragged(ragged) is ragged
    assert as_ragged([1, 2, 3]).lengths.tolist() == [3]
    assert as_ragged(np.array([[1, 2]])).values.dtype == np.float64
    assert as_ragged(torch.tensor(rows, dtype=torch.bfloat16)).values.dtype == np.float32
    assert as_ragged([torch.tensor(row, requires_grad=True) for row in rows]).values.tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_mask_may_be_broadcast_over_output_positions():
    values = np.arange(12.0).reshape(2, 3, 2)
    mask = np.array([[[True, True]], [[True, False]]])
    assert as_ragged(values, mask).lengths.tolist() == [2, 2, 2, 1, 1, 1]


def test_rows_are_chosen_in_the_order_named():
    ragged = Ragged.of([[1.0], [2.0, 3.0], [4.0]])
    assert ragged.take(np.array([2, 1])).values.tolist() == [4.0, 2.0, 3.0]


def test_refusals():
    with pytest.raises(DataError, match="row 1 is empty"):
        Ragged.of([[1.0], []])
    with pytest.raises(DataError, match="row 0 has shape"):
        Ragged.of([[[1.0, 2.0]]])
    with pytest.raises(DataError, match="offsets must start at 0"):
        Ragged(np.zeros(3), np.array([0, 2]))
    with pytest.raises(DataError, match="take no mask"):
        as_ragged(Ragged.of([[1.0]]), mask=[[True]])
    with pytest.raises(DataError, match="same rows of the same lengths"):
        paired([[1.0, 2.0]], [[1.0], [2.0]])
    with pytest.raises(DataError, match="v is NaN in row 1"):
        paired([[1.0], [2.0]], [[1.0], [np.nan]])


@settings(deadline=None)
@given(SENTENCES, st.randoms(use_true_random=False))
def test_take_is_the_same_as_picking_rows(rows, random):
    ids = as_ids(rows)
    which = [random.randrange(len(rows)) for _ in range(5)]
    taken = ids.take(np.array(which))
    assert [row.tolist() for row in taken] == [rows[m] for m in which]
    assert taken.values.dtype == np.int32


@pytest.mark.parametrize("rows", [[[1.5]], [[[1]]], [["a"]]])
def test_what_is_not_a_list_of_whole_numbers_is_refused(rows):
    with pytest.raises(DataError, match="sentence 0"):
        as_ids(rows)


def test_negative_ids_and_bad_offsets_are_refused():
    with pytest.raises(DataError, match="-1"):
        as_ids([[-1]])
    with pytest.raises(DataError, match="offsets"):
        Ragged(np.zeros(3, dtype=np.int32), np.array([0, 2]))
    with pytest.raises(DataError, match="decrease"):
        Ragged(np.zeros(3, dtype=np.int32), np.array([0, 4, 3]))


def test_pairs_must_pair_up():
    with pytest.raises(DataError, match="2 source sentences but 1"):
        paired_ids([[1], [2]], [[1]])
    with pytest.raises(DataError, match="source sentence 1 is empty"):
        paired_ids([[1], []], [[1], [2]])
