"""Encoders: embedding, affine, LSTM and Transformer; one hidden state per position.

Texts of a batch are padded on the right. Padding never affects a real position, so a text has the same hidden states
alone and in a batch, without packed sequences (which are twice as slow).
"""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from heedful.config import ModelConfig
from heedful.errors import ConfigError
from heedful.models.matmul import Linear, addmm, matmul

Embedded = Float[Tensor, "B L E"]
Hidden = Float[Tensor, "B L D"]
Mask = Bool[Tensor, "B L"]
LSTMState = tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]  # h, c

MAX_VOCABULARY, MIN_TEXTS = 512, 64  # where `read_words` is faster than an LSTM over embeddings


class Encoder(nn.Module):
    """Maps embeddings to hidden states; `width` is the size of one hidden state."""

    width: int

    def forward(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, tuple[Float[Tensor, "B H L L"], ...]]:
        """Hidden states, and the self-attention weights of each layer (Transformer only)."""
        raise NotImplementedError


class PositionwiseEncoder(Encoder):
    """Each position by itself: h_l = e_l (sunlu2020, DP), or h_l = A e_l + b where `hidden` is given (DP-A)."""

    def __init__(self, embedding: int, hidden: int | None = None) -> None:
        super().__init__()
        self.width = embedding if hidden is None else hidden
        self.affine = nn.Identity() if hidden is None else Linear(embedding, hidden)

    def forward(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, tuple[()]]:
        """The same map at every position."""
        return self.affine(embedded), ()


class LSTMEncoder(Encoder):
    """One or two directions of LSTM layers.

    The backward direction is a separate LSTM over each text reversed within its own length, so padding comes last in
    both directions and affects no state.
    """

    def __init__(self, embedding: int, hidden: int, layers: int, bidirectional: bool, dropout: float) -> None:
        super().__init__()
        self.width = hidden * (2 if bidirectional else 1)
        sizes = [embedding] + [self.width] * (layers - 1)
        self.forwards = nn.ModuleList([nn.LSTM(size, hidden, batch_first=True) for size in sizes])
        self.backwards = nn.ModuleList(
            [nn.LSTM(size, hidden, batch_first=True) for size in sizes] if bidirectional else []
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, tuple[()]]:
        """The states of the last layer, both directions side by side."""
        hidden, _ = self.with_last_state(embedded, mask, need_state=False)
        return hidden, ()

    def with_last_state(
        self, embedded: Embedded, mask: Mask, *, need_state: bool = True
    ) -> tuple[Hidden, list[LSTMState]]:
        """The states of the last layer; and the state (h, c) after each text's own last token, of every layer and
        direction: layer 0 forwards, layer 0 backwards, layer 1 forwards, …
        """
        h, last = embedded, []
        padding = mask if need_state and not bool(mask.all()) else None
        backwards_index = reversal(mask) if len(self.backwards) else None
        for layer, ahead in enumerate(self.forwards):
            if layer:
                h = self.dropout(h)
            outputs, state = run_lstm(ahead, h, padding)
            states = [outputs]
            last.append(state)
            if backwards_index is not None:
                outputs, state = run_lstm(self.backwards[layer], reverse(h, backwards_index), padding)
                states.append(reverse(outputs, backwards_index))
                last.append(state)
            h = torch.cat(states, dim=-1)
        return h, last


class GRUEncoder(Encoder):
    """One layer of GRU in one direction (the heads of snell2021's Figure 6, as its released code has them)."""

    def __init__(self, embedding: int, hidden: int) -> None:
        super().__init__()
        self.width = hidden
        self.gru = nn.GRU(embedding, hidden, batch_first=True)

    def forward(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, tuple[()]]:
        """The states; padding comes last and affects no state before it."""
        return self.gru(embedded)[0], ()

    def with_last_state(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, list[tuple[Float[Tensor, "B H"]]]]:
        """The states, and the one after each text's own last token."""
        hidden, _ = self(embedded, mask)
        last = (mask.sum(1) - 1)[:, None, None].expand(-1, 1, self.width)
        return hidden, [(hidden.gather(1, last)[:, 0],)]


class TransformerEncoder(Encoder):
    """Post-norm Transformer layers whose self-attention weights are returned (meister2021, App. B).

    α = softmax(QKᵀ / √d);  sinusoidal positions, unless `positions` is false; a feed-forward layer of four times the
    width.
    """

    def __init__(
        self, embedding: int, hidden: int, layers: int, dropout: float, heads: int = 1, *, positions: bool = True
    ) -> None:
        super().__init__()
        self.width, self.positions = hidden, positions
        self.project = Linear(embedding, hidden) if embedding != hidden else nn.Identity()
        self.layers = nn.ModuleList([_TransformerLayer(hidden, heads, dropout) for _ in range(layers)])

    def forward(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, tuple[Float[Tensor, "B H L L"], ...]]:
        """The states of the last layer and every layer's weights."""
        h, weights = self._placed(embedded), []
        for layer in self.layers:
            h, alpha = layer(h, mask)
            weights.append(alpha)
        return h, tuple(weights)

    def states(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, ...]:
        """The states below the first layer and above each."""
        states = [self._placed(embedded)]
        for layer in self.layers:
            states.append(layer(states[-1], mask)[0])
        return tuple(states)

    def _placed(self, embedded: Embedded) -> Hidden:
        h: Tensor = self.project(embedded)
        if self.positions:
            h = h + sinusoidal_positions(h.shape[1], h.shape[2], h.device, h.dtype)
        return h


class _TransformerLayer(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(width, heads, dropout=dropout, batch_first=True)
        self.expand = Linear(width, 4 * width)
        self.contract = Linear(4 * width, width)
        self.norm_attention = nn.LayerNorm(width)
        self.norm_feedforward = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Hidden, mask: Mask) -> tuple[Hidden, Float[Tensor, "B H L L"]]:
        attended, alpha = self.attend(h, h, h, key_padding_mask=~mask, need_weights=True, average_attn_weights=False)
        h = self.norm_attention(h + self.dropout(attended))
        h = self.norm_feedforward(h + self.dropout(self.contract(self.expand(h).relu())))
        return h, alpha


def build_encoder(config: ModelConfig) -> Encoder:
    """Build the encoder that a configuration names.

    >>> build_encoder(ModelConfig()).width
    512
    """
    if config.encoder == "embedding":
        return PositionwiseEncoder(config.embedding)
    if config.encoder == "affine":
        return PositionwiseEncoder(config.embedding, config.hidden)
    if config.encoder in ("lstm", "bilstm"):
        both = config.encoder == "bilstm"
        return LSTMEncoder(config.embedding, config.hidden, config.layers, both, config.dropout)
    if config.encoder == "transformer":
        return TransformerEncoder(
            config.embedding, config.hidden, config.layers, config.dropout, config.heads, positions=config.positions
        )
    raise ConfigError(f"encoder {config.encoder!r} is not one of embedding, affine, lstm, bilstm, transformer")


def run_lstm(lstm: nn.Module, x: Embedded, mask: Mask | None = None) -> tuple[Float[Tensor, "B L H"], LSTMState]:
    """Outputs of a one-layer LSTM, and its state after each text's last real token (without a mask, the last column).

    The cell must pass through padding unchanged. An extra input that is 1 at padding, with weights so large that the
    input gate is exactly 0 and the forget gate exactly 1 there, does that at the speed of a plain LSTM.
    """
    assert isinstance(lstm, nn.LSTM)
    if mask is None:
        outputs, (h, c) = lstm(x)
        return outputs, (h[0], c[0])
    H = lstm.hidden_size
    gate = x.new_zeros(4 * H, 1)
    gate[:H], gate[H : 2 * H] = -1e4, 1e4
    flagged = torch.cat([x, (~mask)[..., None].to(x.dtype)], dim=-1)
    from_input, *others = lstm.all_weights[0]
    weights = [torch.cat([from_input, gate], dim=1), *others]
    start = x.new_zeros(1, len(x), H)
    outputs, _, c = torch.lstm(flagged, (start, start), weights, True, 1, 0.0, lstm.training, False, True)
    last = (mask.sum(1) - 1)[:, None, None].expand(-1, 1, H)
    return outputs, (outputs.gather(1, last)[:, 0], c[0])


def reversal(mask: Mask) -> Int[Tensor, "B L"]:
    """For each position, the index that replaces it when a text is reversed within its length; padding stays.

    >>> reversal(torch.tensor([[True, True, True, False]]))
    tensor([[2, 1, 0, 3]])
    """
    positions = torch.arange(mask.shape[1], device=mask.device)
    mirrored = mask.sum(1, keepdim=True) - 1 - positions
    return torch.where(mask, mirrored, positions)


def reverse(h: Float[Tensor, "B L D"], index: Int[Tensor, "B L"]) -> Float[Tensor, "B L D"]:
    """Put position `index[b, l]` of text b at l.

    >>> reverse(torch.tensor([[[1.0], [2.0]]]), torch.tensor([[1, 0]])).flatten()
    tensor([2., 1.])
    """
    return h.gather(1, index[..., None].expand_as(h))


def sinusoidal_positions(length: int, width: int, device: torch.device, dtype: torch.dtype) -> Float[Tensor, "L D"]:
    """sin and cos of l / 10000^(2i/D), in alternation.

    >>> sinusoidal_positions(1, 4, torch.device("cpu"), torch.float32)
    tensor([[0., 1., 0., 1.]])
    """
    positions = torch.arange(length, device=device, dtype=torch.float64)[:, None]
    rates = torch.exp(torch.arange(0, width, 2, device=device, dtype=torch.float64) * (-math.log(10000.0) / width))
    angles = positions * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width].to(dtype)


def is_plain(lstm: nn.LSTM) -> bool:
    """Whether this is one layer in one direction, without projection.

    >>> is_plain(nn.LSTM(3, 5)), is_plain(nn.LSTM(3, 5, bidirectional=True))
    (True, False)
    """
    return lstm.num_layers == 1 and not lstm.bidirectional and lstm.proj_size == 0


def is_faster_by_word(lstm: nn.Module, embedding: nn.Embedding, words: Int[Tensor, "B L"]) -> bool:
    """Whether `read_words` is faster than an LSTM over embeddings.

    >>> lstm, words = nn.LSTM(256, 256), torch.zeros(128, 40, dtype=torch.long)
    >>> is_faster_by_word(lstm, nn.Embedding(64, 256), words), is_faster_by_word(lstm, nn.Embedding(8000, 256), words)
    (True, False)
    """
    small = embedding.num_embeddings <= MAX_VOCABULARY and len(words) >= MIN_TEXTS
    return isinstance(lstm, nn.LSTM) and is_plain(lstm) and lstm.bias and small and words.is_cpu


def read_words(
    lstm: nn.Module,
    embedding: nn.Embedding,
    words: Int[Tensor, "B L"],
    mask: Mask | None = None,
    start: LSTMState | None = None,
) -> tuple[Float[Tensor, "B L H"], LSTMState]:
    """lstm(embedding(words)) for small vocabularies, and the state after each text's last real token.

        i, f, o = σ(·), g = tanh(·) of T[x_t] + W_hh h_{t−1},   T = E W_ihᵀ + b_ih + b_hh
        c ← f c + i g,   h ← o tanh c

    Half of an LSTM's arithmetic is W_ih e; T has it once per word instead of once per token, forwards and backwards.
    Equal to torch.nn.LSTM up to rounding: tanh x is computed as 2σ(2x) − 1, which is faster. Without a mask the last
    column counts as the last token.
    """
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
    outputs = outputs.transpose(0, 1)
    if mask is None:
        return outputs, (outputs[:, -1], c)
    last = mask.sum(1) - 1
    return outputs, (outputs[torch.arange(len(words), device=words.device), last], c)


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
