"""A Transformer encoder–decoder for sentence pairs, whose cross-attention can be read, held uniform and probed.

The last layer's cross-attention is treated as snell2021 treats an LSTM's: s_t is what comes out of the layer's
self-attention, c_t the output of its cross-attention, and everything above reads their sum.
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.config import AttentionMode, TranslatorConfig
from heedful.data.batching import PairBatch
from heedful.models.encoders import Embedded, Hidden, Mask, TransformerEncoder, sinusoidal_positions
from heedful.models.matmul import Linear
from heedful.models.translator import PairModel, State, Translator, attention_weights, build_embedding


def build_translator(config: TranslatorConfig, vocabulary: int, mode: AttentionMode = "learned") -> PairModel:
    """The model of sentence pairs that a configuration names.

    >>> type(build_translator(TranslatorConfig(8, 8, layers=1, cell="transformer"), 7)).__name__
    'Transformer'
    """
    kind = Transformer if config.cell == "transformer" else Translator
    return kind(config, vocabulary, mode)


class CrossScorer(nn.Module):
    """Scaled dot products, head by head: a^(k)_{t,l} = (Q^(k) s_t)ᵀ(K^(k) h_l) / √d."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key = Linear(width, width), Linear(width, width)

    def forward(self, states: Float[Tensor, "B T D"], hidden: Hidden) -> Float[Tensor, "B H T L"]:
        """One score for each head, output position and input position."""
        queries, keys = (part.unflatten(-1, (self.heads, -1)) for part in (self.query(states), self.key(hidden)))
        return torch.einsum("bthd,blhd->bhtl", queries, keys) / math.sqrt(queries.shape[-1])


class DecoderLayer(nn.Module):
    """A post-norm decoder layer in three parts: causal self-attention, cross-attention, and what reads both."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attend = nn.MultiheadAttention(width, heads, dropout=dropout, batch_first=True)
        self.scorer = CrossScorer(width, heads)
        self.value, self.out = Linear(width, width), Linear(width, width)
        self.expand, self.contract = Linear(width, 4 * width), Linear(4 * width, width)
        self.norm_self, self.norm_cross, self.norm_feedforward = (nn.LayerNorm(width) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def before(self, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B T D"]:
        """s_t: every position attends to itself and those before it."""
        T = x.shape[1]
        later = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        attended, _ = self.attend(x, x, x, attn_mask=later, need_weights=False)
        states: Tensor = self.norm_self(x + self.dropout(attended))
        return states

    def pool(self, alpha: Float[Tensor, "B H T L"], hidden: Hidden) -> Float[Tensor, "B T D"]:
        """c_t = O Σ_k Σ_l α^(k)_{t,l} V^(k) h_l + b."""
        values = self.value(hidden).unflatten(-1, (alpha.shape[1], -1))
        context: Tensor = self.out(torch.einsum("bhtl,blhd->bthd", alpha, values).flatten(2))
        return context

    def after(self, context: Float[Tensor, "*rows D"], states: Float[Tensor, "*rows D"]) -> Float[Tensor, "*rows D"]:
        """What the layer makes of s_t + c_t."""
        h = self.norm_cross(states + self.dropout(context))
        result: Tensor = self.norm_feedforward(h + self.dropout(self.contract(self.expand(h).relu())))
        return result


class Transformer(PairModel):
    """Encoder and decoder layers with cross-attention between them (Vaswani et al. 2017), post-norm.

        s_t = self-attention of the target words so far;   c_t = O Σ_k Σ_l α^(k)_{t,l} V^(k) h_l
        p_t = W FFN(s_t + c_t)

    α is that of the last layer, one row per head; `cross_attention` returns every layer's. β puts the value of one
    position in the place of c_t: c = O V h_l, every head attending to l alone. With `mode` uniform every layer's
    cross-attention is uniform; self-attention is learned. `positions`: sinusoidal ones are added to both sides.
    """

    def __init__(self, config: TranslatorConfig, vocabulary: int, mode: AttentionMode = "learned") -> None:
        super().__init__(config, mode)
        width = config.hidden
        self.embedding = build_embedding(config, vocabulary)
        if not config.shared_embedding:
            self.embedding_target = build_embedding(config, vocabulary)
        self.encoder = TransformerEncoder(
            config.embedding, width, config.layers, config.dropout, config.heads, positions=config.positions
        )
        self.project = Linear(config.embedding, width) if config.embedding != width else nn.Identity()
        self.layers = nn.ModuleList([DecoderLayer(width, config.heads, config.dropout) for _ in range(config.layers)])
        self.output = Linear(width, vocabulary)

    @property
    def last(self) -> DecoderLayer:
        """The layer whose cross-attention is α."""
        layer = self.layers[-1]
        assert isinstance(layer, DecoderLayer)
        return layer

    @property
    def scorer(self) -> nn.Module:  # type: ignore[override]
        """The scores of α."""
        return self.last.scorer

    def embed_target(self, words: Int[Tensor, "B T"]) -> Embedded:
        """The embeddings that the decoder reads."""
        embedded: Tensor = self.embedding(words) if self.config.shared_embedding else self.embedding_target(words)
        return embedded

    def encode(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, State]:
        """Encoder states; the decoder starts from them, without any word of its own."""
        hidden, _ = self.encoder(embedded, mask)
        nothing = embedded.new_zeros(0, len(embedded), embedded.shape[2])
        return hidden, (nothing, hidden.transpose(0, 1), mask.t()[..., None])

    def decode(self, embedded: Float[Tensor, "B T E"], state: State) -> tuple[Float[Tensor, "B T D"], State]:
        """s_t of the words of `embedded`, which follow those in the state."""
        states, after, _ = self._decode(embedded, state)
        return states, after

    def cross_attention(self, batch: PairBatch) -> tuple[Float[Tensor, "B H T L"], ...]:
        """The weights of every layer, from the first to the last."""
        hidden, start = self.encode(self.embedding(batch.source), batch.source_mask)
        states, _, below = self._decode(self.embed_target(batch.target_in), start)
        return (*below, self.attend(states, hidden, batch.source_mask)[1])

    def _decode(
        self, embedded: Float[Tensor, "B T E"], state: State
    ) -> tuple[Float[Tensor, "B T D"], State, list[Float[Tensor, "B H T L"]]]:
        """s_t, the state after the last word, and the cross-attention of the layers below the last."""
        T, prefix = embedded.shape[1], torch.cat([state[0], embedded.transpose(0, 1)])
        hidden, mask, alphas = state[1].transpose(0, 1), state[2][..., 0].t(), []
        h = self.project(prefix.transpose(0, 1))
        if self.config.positions:
            h = h + sinusoidal_positions(h.shape[1], h.shape[2], h.device, h.dtype)
        for layer in self.layers:
            assert isinstance(layer, DecoderLayer)
            h = layer.before(h)
            if layer is not self.last:
                alpha = attention_weights(layer.scorer, self.mode, self.config.heads, h, hidden, mask)
                alphas.append(alpha[:, :, -T:])
                h = layer.after(layer.pool(alpha, hidden), h)
        return h[:, -T:], (prefix, state[1], state[2]), alphas

    def pool(self, alpha: Float[Tensor, "B H T L"], hidden: Hidden) -> Float[Tensor, "B T D"]:
        """c_t under some attention weights."""
        return self.last.pool(alpha, hidden)

    def pool_one(self, hidden: Float[Tensor, "*rows D"]) -> Float[Tensor, "*rows D"]:
        """The value of one position, attended to by every head."""
        context: Tensor = self.last.out(self.last.value(hidden))
        return context

    def read(self, context: Float[Tensor, "*rows D"], states: Float[Tensor, "*rows D"]) -> Float[Tensor, "*rows V"]:
        """Logits of the next word."""
        logits: Tensor = self.output(self.last.after(context, states))
        return logits
