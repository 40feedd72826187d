"""LSTM and GRU over whole sequences, with the gradients by hand: faster than torch's own for small vocabularies.

Half of the arithmetic of a recurrent layer is W_ih e. Where there are few words it is computed once per word instead of
once per token, forwards and backwards. The same recurrence takes gates that were computed elsewhere, so that gradients
can be taken with respect to them.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from heedful.models.matmul import addmm, matmul

LSTMState = tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]  # h, c
State = tuple[Float[Tensor, "B H"], ...]  # h and c of an LSTM, h of a GRU
MAX_VOCABULARY, MIN_TEXTS = 512, 64  # where `read_words` is faster than an LSTM over embeddings


def is_plain(lstm: nn.LSTM | nn.GRU) -> bool:
    """Whether this is one layer in one direction, without projection.

    >>> is_plain(nn.LSTM(3, 5)), is_plain(nn.LSTM(3, 5, bidirectional=True))
    (True, False)
    """
    return lstm.num_layers == 1 and not lstm.bidirectional and lstm.proj_size == 0


def is_faster_by_word(lstm: nn.Module, embedding: nn.Embedding, words: Int[Tensor, "B L"]) -> bool:
    """Whether `read_words` is faster than an LSTM or a GRU over embeddings.

    >>> lstm, words = nn.LSTM(256, 256), torch.zeros(128, 40, dtype=torch.long)
    >>> is_faster_by_word(lstm, nn.Embedding(64, 256), words), is_faster_by_word(lstm, nn.Embedding(8000, 256), words)
    (True, False)
    """
    small = embedding.num_embeddings <= MAX_VOCABULARY and len(words) >= MIN_TEXTS
    return isinstance(lstm, nn.LSTM | nn.GRU) and is_plain(lstm) and lstm.bias and small and words.is_cpu


def read_words(
    layer: nn.Module,
    embedding: nn.Embedding,
    words: Int[Tensor, "B L"],
    mask: Bool[Tensor, "B L"] | None = None,
    start: State | None = None,
) -> tuple[Float[Tensor, "B L H"], State]:
    """layer(embedding(words)) for small vocabularies, and the state after each text's last real token.

        LSTM   i, f, o = σ(·), g = tanh(·) of T[x_t] + W_hh h_{t−1};   c ← f c + i g,   h ← o tanh c
        GRU    r, z = σ(·) of T[x_t] + W_hh h_{t−1} + b_hh;   n = tanh(T[x_t] + r(W_hh h_{t−1} + b_hh))
               h ← (1 − z) n + z h

    T = E W_ihᵀ + b_ih. Equal to torch's own up to rounding. Without a mask the last column counts as the last token.
    """
    outputs, last = (_read_lstm if isinstance(layer, nn.LSTM) else _read_gru)(layer, embedding, words, mask, start)
    outputs = outputs.transpose(0, 1)
    if mask is None:
        return outputs, (outputs[:, -1], *last)
    place = mask.sum(1) - 1
    return outputs, (outputs[torch.arange(len(words), device=words.device), place], *last)


def _read_lstm(
    lstm: nn.Module, embedding: nn.Embedding, words: Tensor, mask: Tensor | None, start: State | None
) -> tuple[Float[Tensor, "L B H"], State]:
    """The outputs, and the last c. tanh x is computed as 2σ(2x) − 1, which is faster."""
    assert isinstance(lstm, nn.LSTM)
    H = lstm.hidden_size
    W_ih, W_hh, b_ih, b_hh = lstm.all_weights[0]
    double_g = _double_g(lstm)
    table = (_learning_rows(embedding) @ W_ih.t() + (b_ih + b_hh)) * double_g
    ids = words.t()
    if mask is not None:
        padding = table.new_zeros(1, 4 * H)  # input gate closed, forget gate open: the cell does not change
        padding[:, :H], padding[:, H : 2 * H] = -1e4, 1e4
        table, ids = torch.cat([table, padding]), torch.where(mask.t(), ids, len(table))
    h, c = start if start is not None else (table.new_zeros(len(words), H), table.new_zeros(len(words), H))
    outputs, c = _Recurrence.apply(table, W_hh.t() * double_g, ids.contiguous(), h, c)  # type: ignore[no-untyped-call]
    return outputs, (c,)


def _read_gru(
    gru: nn.Module, embedding: nn.Embedding, words: Tensor, mask: Tensor | None, start: State | None
) -> tuple[Float[Tensor, "L B H"], State]:
    """The outputs; padding comes last and affects no state before it."""
    assert isinstance(gru, nn.GRU)
    W_ih, W_hh, b_ih, b_hh = gru.all_weights[0]
    table = _learning_rows(embedding) @ W_ih.t() + b_ih
    h = start[0] if start is not None else table.new_zeros(len(words), gru.hidden_size)
    ids = words.t().contiguous()
    outputs: Tensor = _GRURecurrence.apply(table, W_hh.t(), b_hh, ids, h)  # type: ignore[no-untyped-call]
    return outputs, ()


def _learning_rows(embedding: nn.Embedding) -> Float[Tensor, "V E"]:
    """The embeddings; that of padding gets no gradient, as in torch.nn.Embedding."""
    weight: Tensor = embedding.weight
    if embedding.padding_idx is None:
        return weight
    learns = torch.arange(len(weight), device=weight.device)[:, None] != embedding.padding_idx
    return torch.where(learns, weight, weight.detach())


def gate_inputs(lstm: nn.Module, embedded: Float[Tensor, "*rows E"]) -> tuple[Float[Tensor, "*rows G"], Tensor]:
    """The inputs' share W_ih e + b of the gates, and b = b_ih + b_hh alone; the part of g is doubled in both."""
    assert isinstance(lstm, nn.LSTM)
    W_ih, _, b_ih, b_hh = lstm.all_weights[0]
    double_g = _double_g(lstm)
    bias = (b_ih + b_hh) * double_g
    return embedded @ (W_ih.t() * double_g) + bias, bias


def read_gates(lstm: nn.Module, gates: Float[Tensor, "L B G"]) -> Float[Tensor, "L B H"]:
    """States of an LSTM from its inputs' share of the gates (`gate_inputs`), which gradients can be taken of."""
    assert isinstance(lstm, nn.LSTM)
    over, start = lstm.all_weights[0][1].t() * _double_g(lstm), gates.new_zeros(gates.shape[1], lstm.hidden_size)
    states: Tensor = _Recurrence.apply(gates.flatten(0, 1), over, None, start, start)[0]  # type: ignore[no-untyped-call]
    return states


def _double_g(lstm: nn.LSTM) -> Float[Tensor, " G"]:
    """2 for g and 1 for the other gates: tanh x is computed as 2σ(2x) − 1, which is faster."""
    H = lstm.hidden_size
    double_g: Tensor = lstm.all_weights[0][0].new_ones(4 * H)
    double_g[2 * H : 3 * H] = 2
    return double_g


class _Recurrence(torch.autograd.Function):
    """(T, W_hhᵀ, words (L, B), h, c) → states (L, B, H) and the last c; g's columns of T and W_hhᵀ are doubled.

    Without words, T has a row for each position of each text, (L·B, 4H). Saved for backward: σ of all gates, g, c and
    tanh c. The gradient of W_hh is one product over all steps, at the end, and not computed where it is not needed.
    """

    @staticmethod
    def forward(
        ctx: Any, table: Tensor, over: Tensor, ids: Tensor | None, h: Tensor, c: Tensor
    ) -> tuple[Tensor, Tensor]:
        B, H = h.shape
        L = len(table) // B if ids is None else len(ids)
        over = over.contiguous()
        gates = h.new_empty(L, B, 4 * H) if ids is not None else table.detach().clone().view(L, B, 4 * H)
        states, cells = h.new_empty(L + 1, B, H), h.new_empty(L + 1, B, H)
        g, tanh = h.new_empty(L, B, H), h.new_empty(L, B, H)
        states[0], cells[0] = h, c
        for t in range(L):
            if ids is not None:
                torch.index_select(table, 0, ids[t], out=gates[t])
            torch.sigmoid(addmm(gates[t], states[t], over), out=gates[t])
            i, f, s, o = gates[t].chunk(4, dim=1)
            torch.mul(s, 2, out=g[t]).sub_(1)
            torch.mul(f, cells[t], out=cells[t + 1]).addcmul_(i, g[t])
            torch.mul(cells[t + 1], 2, out=tanh[t]).sigmoid_().mul_(2).sub_(1)
            torch.mul(o, tanh[t], out=states[t + 1])
        ctx.types = len(table)
        ctx.save_for_backward(over, ids, gates, states, cells, g, tanh)
        return states[1:], cells[L].clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor | None, None, Tensor, Tensor]:
        over, ids, gates, states, cells, g, tanh = ctx.saved_tensors
        d_states, d_last = grads
        L, B, H = g.shape
        back = over.t()
        d_gates = torch.empty_like(gates)
        dc, dh = d_last.clone(), d_states[L - 1]
        for t in range(L - 1, -1, -1):
            i, f, _, o = gates[t].chunk(4, dim=1)
            d_i, d_f, d_s, d_o = d_gates[t].chunk(4, dim=1)
            dc.add_(torch.ops.aten.tanh_backward(dh * o, tanh[t]))
            torch.mul(dc, g[t], out=d_i)
            torch.mul(dc, cells[t], out=d_f)
            torch.mul(dc, i, out=d_s).mul_(2)
            torch.mul(dh, tanh[t], out=d_o)
            torch.ops.aten.sigmoid_backward(d_gates[t], gates[t], grad_input=d_gates[t])
            dc.mul_(f)
            dh = addmm(d_states[t - 1], d_gates[t], back) if t else matmul(d_gates[0], back)
        flat = d_gates.view(L * B, 4 * H)
        d_over = matmul(states[:-1].reshape(L * B, H).t(), flat) if ctx.needs_input_grad[1] else None
        d_table = flat if ids is None else flat.new_zeros(ctx.types, 4 * H).index_add_(0, ids.flatten(), flat)
        return d_table, d_over, None, dh, dc


class _GRURecurrence(torch.autograd.Function):
    """(T, W_hhᵀ, b_hh, words (L, B), h) → states (L, B, H).

    Saved for backward: r and z, n, and W_hh h + b_hh of n. The gradients of W_hh and b_hh are computed over all steps,
    at the end.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, over: Tensor, bias: Tensor, ids: Tensor, h: Tensor) -> Tensor:
        (L, B), H = ids.shape, h.shape[1]
        over, bias = over.contiguous(), bias.expand(B, 3 * H).contiguous()
        states = h.new_empty(L + 1, B, H)
        gates, new, inner = h.new_empty(L, B, 2 * H), h.new_empty(L, B, H), h.new_empty(L, B, H)
        states[0] = h
        for t in range(L):
            word, own = table.index_select(0, ids[t]), addmm(bias, states[t], over)
            torch.add(word[:, : 2 * H], own[:, : 2 * H], out=gates[t]).sigmoid_()
            inner[t] = own[:, 2 * H :]
            r, z = gates[t].chunk(2, dim=1)
            torch.addcmul(word[:, 2 * H :], r, inner[t], out=new[t]).tanh_()
            torch.lerp(new[t], states[t], z, out=states[t + 1])
        ctx.types = len(table)
        ctx.save_for_backward(over, ids, gates, new, inner, states)
        return states[1:]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, Tensor]:
        over, ids, gates, new, inner, states = ctx.saved_tensors
        d_states = grads[0]
        L, B, H = new.shape
        back = over.t()
        d_word, d_own = new.new_empty(L, B, 3 * H), new.new_empty(L, B, 3 * H)
        dh = d_states[L - 1]
        for t in range(L - 1, -1, -1):
            r, z = gates[t].chunk(2, dim=1)
            d_r, d_z, d_n = d_word[t].chunk(3, dim=1)
            torch.mul(dh, 1 - z, out=d_n)
            torch.ops.aten.tanh_backward(d_n, new[t], grad_input=d_n)
            torch.mul(d_n, inner[t], out=d_r)
            torch.mul(dh, states[t] - new[t], out=d_z)
            d_gates = d_word[t, :, : 2 * H]
            torch.ops.aten.sigmoid_backward(d_gates, gates[t], grad_input=d_gates)
            d_own[t, :, : 2 * H] = d_gates
            torch.mul(d_n, r, out=d_own[t, :, 2 * H :])
            before = dh * z if not t else torch.addcmul(d_states[t - 1], dh, z)
            dh = addmm(before, d_own[t], back)
        flat = d_own.view(L * B, 3 * H)
        d_over = matmul(states[:-1].reshape(L * B, H).t(), flat)
        d_table = flat.new_zeros(ctx.types, 3 * H).index_add_(0, ids.flatten(), d_word.view(L * B, 3 * H))
        return d_table, d_over, flat.sum(0), None, dh
