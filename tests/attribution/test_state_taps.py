import pytest
import torch
from torch import nn

from heedful.attribution.taps import THE_INPUT, find_states
from heedful.errors import DataError

B, L, E, D = 2, 3, 5, 7
EMBEDDED = torch.randn(B, L, E, generator=torch.Generator().manual_seed(0))


def test_states_that_come_with_others_are_found():
    """An LSTM gives its states together with its last ones."""
    torch.manual_seed(0)
    lstm, output = nn.LSTM(E, D, batch_first=True), nn.Linear(D, 2)

    def run(e):
        states, _ = lstm(e)
        return states, output(states)

    place = find_states(lambda e: run(e)[0], EMBEDDED)
    put = torch.ones(B, L, D)
    torch.testing.assert_close(place.states, lstm(EMBEDDED)[0].detach())
    assert torch.equal(place.put(run, EMBEDDED, put)[1], output(put))


def test_states_may_be_the_embeddings_themselves():
    place = find_states(lambda e: e, EMBEDDED)
    assert place.number == THE_INPUT
    put = torch.ones(B, L, E)
    assert place.put(lambda e: (e + 1).sum(), EMBEDDED, put) == 2 * put.numel()


def test_whatever_comes_after_is_made_of_the_states_put_there():
    def run(e):
        state = (e + 1).tanh()
        return state, state + state.sin()

    place = find_states(lambda e: run(e)[0], EMBEDDED)
    put = torch.full((B, L, E), 0.5)
    state, after = place.put(run, EMBEDDED, put)
    assert torch.equal(state, put)
    assert torch.equal(after, put + put.sin())


def test_states_that_are_a_copy_which_nothing_reads_have_no_place():
    frozen = (EMBEDDED + 1).tanh()
    assert find_states(lambda e: frozen, EMBEDDED) is None
    assert find_states(lambda e: (e + 1).tanh_().mul_(1.0), EMBEDDED) is not None


def test_states_of_another_shape_and_other_steps_are_refused():
    place = find_states(lambda e: (e + 1).tanh(), EMBEDDED)
    with pytest.raises(DataError, match=r"of shape \(2, 3, 4\) cannot replace states of shape \(2, 3, 5\)"):
        place.put(lambda e: (e + 1).tanh(), EMBEDDED, torch.ones(B, L, 4))
    with pytest.raises(DataError, match="took 3 steps for this input, but 2 before"):
        place.put(lambda e: (e + 1).tanh() + 1, EMBEDDED, torch.ones(B, L, E))
