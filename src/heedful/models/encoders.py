"""Encoders: embedding, affine, LSTM and Transformer; one hidden state per position.

Texts of a batch are padded on the right. Padding never affects a real position, so a text has the same hidden states
alone and in a batch, without packed sequences (which are twice as slow).
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.errors import ConfigError
from heedful.models.matmul import Linear
from heedful.models.recurrence import LSTMState

Embedded = Float[Tensor, "B L E"]
Hidden = Float[Tensor, "B L D"]
Mask = Bool[Tensor, "B L"]


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
