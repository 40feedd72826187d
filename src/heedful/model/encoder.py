"""Encoders: word embeddings become hidden states, one per position.

Texts of a batch are padded on the right. No encoder lets padding reach a real position, so that a text has the same
hidden states alone and in a batch, without packed sequences (which are twice as slow).
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heedful.config import ModelConfig
from heedful.errors import ConfigError

Embedded = Float[Tensor, "B L E"]
Hidden = Float[Tensor, "B L D"]
Mask = Bool[Tensor, "B L"]


class Encoder(nn.Module):
    """Maps embeddings to hidden states; `width` is the size of one hidden state."""

    width: int

    def forward(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, tuple[Float[Tensor, "B H L L"], ...]]:
        """Hidden states, and the self-attention weights of each layer (none but in a Transformer)."""
        raise NotImplementedError


class IdentityEncoder(Encoder):
    """h_l = e_l (sunlu2020, DP)."""

    def __init__(self, embedding: int) -> None:
        super().__init__()
        self.width = embedding

    def forward(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, tuple[()]]:
        """The embeddings themselves."""
        return embedded, ()


class AffineEncoder(Encoder):
    """h_l = A e_l + b (sunlu2020, DP-A)."""

    def __init__(self, embedding: int, hidden: int) -> None:
        super().__init__()
        self.width = hidden
        self.affine = nn.Linear(embedding, hidden)

    def forward(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, tuple[()]]:
        """One affine map, the same at every position."""
        return self.affine(embedded), ()


class LSTMEncoder(Encoder):
    """One or two directions of LSTM layers.

    The backward direction is an LSTM of its own over each text reversed within its own length, so that padding comes
    last in both directions and reaches no state.
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
        h = embedded
        backwards_index = reversal(mask) if len(self.backwards) else None
        for layer, ahead in enumerate(self.forwards):
            if layer:
                h = self.dropout(h)
            states = [ahead(h)[0]]
            if backwards_index is not None:
                back, _ = self.backwards[layer](reverse(h, backwards_index))
                states.append(reverse(back, backwards_index))
            h = torch.cat(states, dim=-1)
        return h, ()


class TransformerEncoder(Encoder):
    """Post-norm Transformer layers whose self-attention weights are returned (meister2021, App. B).

    α = softmax(QKᵀ / √d);  sinusoidal positions; a feed-forward layer of four times the width.
    """

    def __init__(self, embedding: int, hidden: int, layers: int, dropout: float, heads: int = 1) -> None:
        super().__init__()
        self.width = hidden
        self.project = nn.Linear(embedding, hidden) if embedding != hidden else nn.Identity()
        self.layers = nn.ModuleList([_TransformerLayer(hidden, heads, dropout) for _ in range(layers)])

    def forward(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, tuple[Float[Tensor, "B H L L"], ...]]:
        """The states of the last layer and every layer's weights."""
        h = self.project(embedded)
        h = h + sinusoidal_positions(h.shape[1], h.shape[2], h.device, h.dtype)
        weights = []
        for layer in self.layers:
            h, alpha = layer(h, mask)
            weights.append(alpha)
        return h, tuple(weights)


class _TransformerLayer(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(width, heads, dropout=dropout, batch_first=True)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)
        self.norm_attention = nn.LayerNorm(width)
        self.norm_feedforward = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, h: Hidden, mask: Mask) -> tuple[Hidden, Float[Tensor, "B H L L"]]:
        attended, alpha = self.attend(
            h, h, h, key_padding_mask=~mask, need_weights=True, average_attn_weights=False
        )
        h = self.norm_attention(h + self.dropout(attended))
        h = self.norm_feedforward(h + self.dropout(self.contract(self.expand(h).relu())))
        return h, alpha


def build_encoder(config: ModelConfig) -> Encoder:
    """The encoder a configuration names.

    >>> build_encoder(ModelConfig()).width
    512
    """
    if config.encoder == "embedding":
        return IdentityEncoder(config.embedding)
    if config.encoder == "affine":
        return AffineEncoder(config.embedding, config.hidden)
    if config.encoder in ("lstm", "bilstm"):
        both = config.encoder == "bilstm"
        return LSTMEncoder(config.embedding, config.hidden, config.layers, both, config.dropout)
    if config.encoder == "transformer":
        return TransformerEncoder(config.embedding, config.hidden, config.layers, config.dropout)
    raise ConfigError(f"encoder {config.encoder!r} is not one of embedding, affine, lstm, bilstm, transformer")


def reversal(mask: Mask) -> Int[Tensor, "B L"]:
    """For each position, the one that takes its place when a text is reversed within its length; padding stays.

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


def sinusoidal_positions(
    length: int, width: int, device: torch.device, dtype: torch.dtype
) -> Float[Tensor, "L D"]:
    """sin and cos of l / 10000^(2i/D), in alternation.

    >>> sinusoidal_positions(1, 4, torch.device("cpu"), torch.float32)
    tensor([[0., 1., 0., 1.]])
    """
    positions = torch.arange(length, device=device, dtype=torch.float64)[:, None]
    rates = torch.exp(torch.arange(0, width, 2, device=device, dtype=torch.float64) * (-math.log(10000.0) / width))
    angles = positions * rates
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :width].to(dtype)
