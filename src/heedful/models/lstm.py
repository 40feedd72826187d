"""An LSTM layer for small vocabularies: what each word adds to the gates is computed once per word, not per token.

    i, f, o = σ(·), g = tanh(·) of T[x_t] + W_hh h_{t−1},   T = E W_ihᵀ + b_ih + b_hh;   c ← f c + i g;   h ← o tanh c

Half of an LSTM's arithmetic is W_ih e; with V words and B·L ≫ V tokens it all but vanishes, forwards and backwards.
The numbers are those of torch.nn.LSTM but for rounding: tanh x is computed as 2σ(2x) − 1, which is faster.
"""

from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

MAX_VOCABULARY = 512
MIN_TEXTS = 64  # below it the time between operations outweighs what they save


def pays(lstm: nn.LSTM, embedding: nn.Embedding, words: Int[Tensor, "B L"]) -> bool:
    """Whether reading these words this way is faster than reading their embeddings.

    >>> words = torch.zeros(128, 40, dtype=torch.long)
    >>> pays(nn.LSTM(256, 256), nn.Embedding(64, 256), words), pays(nn.LSTM(256, 256), nn.Embedding(8000, 256), words)
    (True, False)
    """
    return (
        lstm.num_layers == 1
        and not lstm.bidirectional
        and lstm.bias
        and lstm.proj_size == 0
        and embedding.num_embeddings <= MAX_VOCABULARY
        and len(words) >= MIN_TEXTS
        and words.is_cpu
    )


def read_words(
    lstm: nn.Module,
    embedding: nn.Embedding,
    words: Int[Tensor, "B L"],
    mask: Bool[Tensor, "B L"] | None = None,
    start: tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]] | None = None,
) -> tuple[Float[Tensor, "B L H"], tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]]:
    """lstm(embedding(words)), and the state after each text's last real token (without a mask, the last column)."""
    assert isinstance(lstm, nn.LSTM)
    H = lstm.hidden_size
    W_ih, W_hh, b_ih, b_hh = (getattr(lstm, f"{name}_l0") for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"))
    double_g = W_ih.new_ones(4 * H)
    double_g[2 * H : 3 * H] = 2
    table = (_learning_rows(embedding) @ W_ih.t() + (b_ih + b_hh)) * double_g
    ids = words.t()
    if mask is not None:
        padding = table.new_zeros(1, 4 * H)  # closes the input gate and opens the forget gate: the cell stays as it is
        padding[:, :H], padding[:, H : 2 * H] = -1e4, 1e4
        table, ids = torch.cat([table, padding]), torch.where(mask.t(), ids, len(table))
    h, c = start if start is not None else (table.new_zeros(len(words), H), table.new_zeros(len(words), H))
    outputs, c = _Recurrence.apply(table, W_hh.t() * double_g, ids.contiguous(), h, c)  # type: ignore[no-untyped-call]
    outputs = outputs.transpose(0, 1)
    if mask is None:
        return outputs, (outputs[:, -1], c)
    last = mask.sum(1) - 1
    return outputs, (outputs[torch.arange(len(words), device=words.device), last], c)


def _learning_rows(embedding: nn.Embedding) -> Float[Tensor, "V E"]:
    """The embeddings; as in torch.nn.Embedding, that of padding does not learn."""
    weight: Tensor = embedding.weight
    if embedding.padding_idx is None:
        return weight
    learns = torch.arange(len(weight), device=weight.device)[:, None] != embedding.padding_idx
    return torch.where(learns, weight, weight.detach())


class _Recurrence(torch.autograd.Function):
    """(T, W_hhᵀ, words (L, B), h, c) → states (L, B, H) and the last c; g's columns of T and W_hhᵀ are doubled.

    Stored for the way back: σ of all gates, g, c and tanh c. The gates' gradients of all steps meet W_hh's in one
    product at the end.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, over: Tensor, ids: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        L, (B, H) = len(ids), h.shape
        over = over.contiguous()
        gates = h.new_empty(L, B, 4 * H)
        states, cells = h.new_empty(L + 1, B, H), h.new_empty(L + 1, B, H)
        g, tanh = h.new_empty(L, B, H), h.new_empty(L, B, H)
        states[0], cells[0] = h, c
        for t in range(L):
            torch.index_select(table, 0, ids[t], out=gates[t]).addmm_(states[t], over).sigmoid_()
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
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, Tensor, Tensor]:
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
            dh = torch.addmm(d_states[t - 1], d_gates[t], back) if t else d_gates[0] @ back
        flat = d_gates.view(L * B, 4 * H)
        d_over = states[:-1].reshape(L * B, H).t() @ flat
        d_table = flat.new_zeros(ctx.types, 4 * H).index_add_(0, ids.flatten(), flat)
        return d_table, d_over, None, dh, dc
