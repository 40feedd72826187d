"""Sequence-to-sequence models with attention: snell2021's translator, copying model and linear translator.

Teacher forcing runs over whole sequences at once, since the decoder's states do not depend on attention. `PairModel` is
what training, recording and decoding need of any such model; `models.transformer` has another.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.config import AttentionMode, TranslatorConfig
from heedful.data.batching import PairBatch, evaluation_batches
from heedful.data.subwords import EncodedPairs
from heedful.data.vocabulary import BOS, EOS, PAD
from heedful.errors import ConfigError
from heedful.models.attention import project
from heedful.models.classifier import log_odds
from heedful.models.encoders import Embedded, GRUEncoder, Hidden, LSTMEncoder, Mask
from heedful.models.matmul import Linear
from heedful.models.recurrence import is_faster_by_word, read_words
from heedful.models.training import evaluation_mode

State = tuple[Shaped[Tensor, "_ B _"], ...]  # h and c of an LSTM, h of a GRU


@dataclass(frozen=True)
class TranslatorOutput:
    """What a teacher-forced pass computes before the network N; `alpha` has the rows of each head.

    The logits are `model.read(context, states)`: they are large and not always needed.
    """

    context: Float[Tensor, "B T C"]
    alpha: Float[Tensor, "B H T L"]
    hidden: Hidden
    states: Float[Tensor, "B T S"]


class PairScorer(nn.Module):
    """Attention scores of every decoder state for every encoder state, for each head.

    bilinear   a^(k)_{t,l} = s_tᵀ W^(k) h_l                          (snell2021, Eqs 1, 20)
    affine     a^(k)_{t,l} = (W^(k) s_t + b^(k))ᵀ h_l                (its released code: a bias)
    """

    def __init__(self, queries: int, keys: int, kind: str, heads: int) -> None:
        super().__init__()
        self.weights = nn.ModuleList([Linear(queries, keys, bias=kind == "affine") for _ in range(heads)])

    def forward(self, states: Float[Tensor, "B T S"], hidden: Hidden) -> Float[Tensor, "B H T L"]:
        """One score for each head, output position and input position."""
        queries = torch.stack([weight(states) for weight in self.weights], dim=1)
        return torch.einsum("bhtd,bld->bhtl", queries, hidden)


class PairModel(nn.Module):
    """A model of sentence pairs: encode, decode, attend from each decoder state to the encoder's, read both.

    `mode` says whether attention is learned or uniform. The state that `decode` starts from has the batch as its second
    axis in every part.
    """

    embedding: nn.Embedding
    encoder: nn.Module
    scorer: nn.Module

    def __init__(self, config: TranslatorConfig, mode: AttentionMode) -> None:
        super().__init__()
        if mode not in ("learned", "uniform"):
            raise ConfigError(f"a translator's attention is learned or uniform, not {mode!r}")
        self.config, self.mode = config, mode

    def embed_target(self, words: Int[Tensor, "B T"]) -> Embedded:
        """The embeddings that the decoder reads."""
        raise NotImplementedError

    def encode(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, State]:
        """Encoder states, and the state the decoder starts from."""
        raise NotImplementedError

    def decode(self, embedded: Embedded, state: State) -> tuple[Float[Tensor, "B T S"], State]:
        """Decoder states from the embeddings of the words before them, and the state after the last."""
        raise NotImplementedError

    def pool(self, alpha: Float[Tensor, "B H T L"], hidden: Hidden) -> Float[Tensor, "B T C"]:
        """Context vectors under some attention weights."""
        raise NotImplementedError

    def pool_one(self, hidden: Float[Tensor, "*rows D"]) -> Float[Tensor, "*rows C"]:
        """The context vector where every head attends to one position alone, from that position's state."""
        raise NotImplementedError

    def read(self, context: Float[Tensor, "*rows C"], states: Float[Tensor, "*rows S"]) -> Float[Tensor, "*rows V"]:
        """Logits of the next word from a context vector and a decoder state."""
        raise NotImplementedError

    def forward(self, batch: PairBatch) -> TranslatorOutput:
        """Teacher forcing over the whole target."""
        return self.from_embeddings(self.embedding(batch.source), batch)

    def from_embeddings(self, embedded: Embedded, batch: PairBatch) -> TranslatorOutput:
        """The same from source embeddings, so that gradients can be taken with respect to them."""
        hidden, start = self.encode(embedded, batch.source_mask)
        states, _ = self.decode(self.embed_target(batch.target_in), start)
        context, alpha = self.attend(states, hidden, batch.source_mask)
        return TranslatorOutput(context, alpha, hidden, states)

    def attend(
        self, states: Float[Tensor, "B T S"], hidden: Hidden, mask: Mask
    ) -> tuple[Float[Tensor, "B T C"], Float[Tensor, "B H T L"]]:
        """Context vectors and the attention weights."""
        alpha = attention_weights(self.scorer, self.mode, self.config.heads, states, hidden, mask)
        return self.pool(alpha, hidden), alpha

    def cross_attention(self, batch: PairBatch) -> tuple[Float[Tensor, "B H T L"], ...]:
        """The weights of every layer, from the first to the last; most models have one."""
        return (self(batch).alpha,)

    def loss(self, batch: PairBatch) -> Float[Tensor, ""]:
        """Mean negative log-likelihood of the target words."""
        output, real = self(batch), batch.target_mask
        return F.cross_entropy(self.read(output.context[real], output.states[real]), batch.target_out[real])


def attention_weights(
    scorer: nn.Module, mode: AttentionMode, heads: int, states: Float[Tensor, "B T S"], hidden: Hidden, mask: Mask
) -> Float[Tensor, "B H T L"]:
    """The softmax of a scorer's scores; uniform over each source's words, whatever the scores, if the mode says so."""
    if mode == "uniform":
        row = project("uniform", hidden.new_zeros(mask.shape), mask)
        return row[:, None, None, :].expand(-1, heads, states.shape[1], -1)
    scores = scorer(states, hidden)
    return project("softmax", scores, mask[:, None, None, :].expand_as(scores))


class Translator(PairModel):
    """Encoder, decoder, attention between them, and the network N that reads both (snell2021 §2.1, A.8).

        c_t = Σ_k Σ_l α^(k)_{t,l} h_l                  attention = "bilinear" (Eqs 2, 21)
        c_t = (1/K) Σ_k P^(k)(Σ_l α^(k)_{t,l} h_l)     attention = "affine", as the released code has it
        p_t = N([c_t, s_t]), one hidden layer;   p_t = σ(W(c_t + s_t))   (A.1, `output = "linear"`)

    h_l is the encoder's own state, both directions side by side; P^(k) maps it to the decoder's width after pooling.
    One embedding serves both sides, or each has its own. The decoder starts from the encoder's last state, layer by
    layer the mean of both directions.
    """

    def __init__(self, config: TranslatorConfig, vocabulary: int, mode: AttentionMode = "learned") -> None:
        super().__init__(config, mode)
        width = config.hidden
        self.embedding = build_embedding(config, vocabulary)
        if not config.shared_embedding:
            self.embedding_target = build_embedding(config, vocabulary)
        self.encoder: LSTMEncoder | GRUEncoder
        self.decoder: nn.LSTM | nn.GRU
        if config.cell == "gru":
            self.encoder = GRUEncoder(config.embedding, width)
            self.decoder = nn.GRU(config.embedding, width, batch_first=True)
        else:
            dropout = config.dropout if config.layers > 1 else 0.0
            self.encoder = LSTMEncoder(config.embedding, width, config.layers, config.bidirectional, config.dropout)
            self.decoder = nn.LSTM(config.embedding, width, config.layers, batch_first=True, dropout=dropout)
        self.scorer: PairScorer = PairScorer(width, self.encoder.width, config.attention, config.heads)
        projected = config.attention == "affine"
        heads = config.heads if projected else 0
        self.values = nn.ModuleList([Linear(self.encoder.width, width) for _ in range(heads)])
        if config.output == "linear":
            self.output: nn.Module = Linear(width, vocabulary, bias=False)
        else:
            self.context_in = Linear((width if projected else self.encoder.width) + width, width)
            self.output = Linear(width, vocabulary)

    def embed_target(self, words: Int[Tensor, "B T"]) -> Embedded:
        """The embeddings that the decoder reads."""
        embedded: Tensor = self.embedding(words) if self.config.shared_embedding else self.embedding_target(words)
        return embedded

    def encode(self, embedded: Embedded, mask: Mask) -> tuple[Hidden, State]:
        """Encoder states, and the state the decoder starts from."""
        hidden, last = self.encoder.with_last_state(embedded, mask)
        directions = 2 if self.config.bidirectional else 1
        starts = []
        for part in zip(*last, strict=True):
            every = torch.stack(part)
            starts.append(every.view(self.config.layers, directions, *every.shape[1:]).mean(1))
        return hidden, tuple(starts)

    def decode(self, embedded: Embedded, state: State) -> tuple[Float[Tensor, "B T S"], State]:
        """Decoder states from the embeddings of the words before them, and the state after the last."""
        if isinstance(self.decoder, nn.GRU):
            states, h = self.decoder(embedded, state[0])
            return states, (h,)
        states, after = self.decoder(embedded, (state[0], state[1]))
        return states, after

    def forward(self, batch: PairBatch) -> TranslatorOutput:
        """Teacher forcing over the whole target."""
        if not self.config.bidirectional and is_faster_by_word(self.decoder, self.embedding, batch.source):
            encoder = self.encoder.gru if isinstance(self.encoder, GRUEncoder) else self.encoder.forwards[0]
            hidden, start = read_words(encoder, self.embedding, batch.source, batch.source_mask)
            target = self.embedding if self.config.shared_embedding else self.embedding_target
            states, _ = read_words(self.decoder, target, batch.target_in, start=start)
            context, alpha = self.attend(states, hidden, batch.source_mask)
            return TranslatorOutput(context, alpha, hidden, states)
        return super().forward(batch)

    def pool(self, alpha: Float[Tensor, "B H T L"], hidden: Hidden) -> Float[Tensor, "B T C"]:
        """Context vectors under some attention weights."""
        if not len(self.values):
            return torch.einsum("bhtl,bld->btd", alpha, hidden)
        pooled = torch.einsum("bhtl,bld->bhtd", alpha, hidden)
        return torch.stack([value(h) for value, h in zip(self.values, pooled.unbind(1), strict=True)]).mean(0)

    def pool_one(self, hidden: Float[Tensor, "*rows D"]) -> Float[Tensor, "*rows C"]:
        """The context vector where every head attends to one position alone, from that position's state."""
        if not len(self.values):
            return self.config.heads * hidden
        return torch.stack([value(hidden) for value in self.values]).mean(0)

    def read(self, context: Float[Tensor, "*rows C"], states: Float[Tensor, "*rows S"]) -> Float[Tensor, "*rows V"]:
        """N: logits of the next word from a context vector and a decoder state."""
        if self.config.output == "linear":
            logits: Tensor = self.output(context + states)
            return logits
        inner = self.context_in(torch.cat([context, states], dim=-1))
        logits = self.output(inner.tanh() if self.config.output == "tanh" else inner.relu())
        return logits


def build_embedding(config: TranslatorConfig, vocabulary: int) -> nn.Embedding:
    """Embeddings drawn from a normal distribution of the configured spread; that of padding is not trained."""
    embedding = nn.Embedding(vocabulary, config.embedding, padding_idx=PAD)
    nn.init.normal_(embedding.weight, std=config.embedding_scale)
    return embedding


@torch.no_grad()
def translator_probe(
    model: PairModel,
    hidden: Hidden,
    states: Float[Tensor, "B T S"],
    targets: Int[Tensor, "B T"],
    *,
    max_logits: int = 8_000_000,
) -> Float[Tensor, "B T L"]:
    """β on the log-odds scale (snell2021, Eq. 4): the correct word's if the model attends to position l alone.

        logit β_{t,l} = logit N([c_l, s_t])_{y_t},   c_l the context where every head attends to l

    c_l is K·h_l where heads are summed (Eq. 21), and the mean of P^(k)(h_l) where each projects. Memory is bounded by
    `max_logits`, the logits held at once, whatever B·T·L·V is.
    """
    B, L, _ = hidden.shape
    T = states.shape[1]
    rows = torch.cartesian_prod(torch.arange(B), torch.arange(T)).to(hidden.device)
    at_once = max(1, max_logits // (L * model.embedding.num_embeddings))
    result, contexts = hidden.new_empty(B * T, L), model.pool_one(hidden)
    for first in range(0, B * T, at_once):
        b, t = rows[first : first + at_once].T
        logits = model.read(contexts[b], states[b, t][:, None].expand(-1, L, -1))
        result[first : first + at_once] = log_odds(logits, targets[b, t][:, None].expand(-1, L))
    return result.view(B, T, L)


def translate(
    model: PairModel, pairs: EncodedPairs, *, beam: int = 1, max_length: int | None = None, max_tokens: int = 8192
) -> list[list[int]]:
    """Translate every source; the ids are without `<bos>` and `<eos>`. The model's mode is restored.

    max_length: most words of a translation; by default twice the source's length plus ten.
    """
    if beam < 1:
        raise ConfigError(f"the beam is {beam}; it must be 1 or more")
    device = next(model.parameters()).device
    result: list[list[int]] = [[] for _ in range(len(pairs))]
    with evaluation_mode([model]):
        for batch in evaluation_batches(pairs, max_tokens=max(1, max_tokens // beam), device=device):
            limits = 2 * batch.source_mask.sum(1) + 10
            if max_length is not None:
                limits = torch.full_like(limits, max_length)
            ids = beam_search(model, batch.source, batch.source_mask, limits, beam)
            for place, row in zip(batch.index, ids, strict=True):
                result[int(place)] = row
    return result


@torch.no_grad()
def beam_search(
    model: PairModel, source: Int[Tensor, "B L"], mask: Mask, limits: Int[Tensor, " B"], beam: int
) -> list[list[int]]:
    """The most probable of `beam` hypotheses for each source, by the sum of log-probabilities; beam 1 is greedy.

    A finished hypothesis stays in the beam with its score. Each source has its own length limit, so a sentence gets
    the same translation alone and in a batch.
    """
    B = len(source)
    hidden, state = model.encode(model.embedding(source), mask)
    hidden, mask = hidden.repeat_interleave(beam, 0), mask.repeat_interleave(beam, 0)
    state = tuple(part.repeat_interleave(beam, 1).contiguous() for part in state)
    words = torch.full((B * beam, 1), BOS, device=source.device)
    scores = hidden.new_full((B, beam), -torch.inf)
    scores[:, 0] = 0.0  # the copies of the start are one hypothesis
    done = torch.zeros(B * beam, dtype=torch.bool, device=source.device)
    for length in range(int(limits.max())):
        states, state = model.decode(model.embed_target(words[:, -1:]), state)
        context, _ = model.attend(states, hidden, mask)
        logits = model.read(context, states)[:, 0]
        logits[:, [PAD, BOS]] = -torch.inf
        log_p = logits.log_softmax(-1)
        log_p[done] = -torch.inf
        log_p[done, PAD] = 0.0  # a finished hypothesis continues with padding only, at no cost
        V = log_p.shape[-1]
        totals = (scores.view(B * beam, 1) + log_p).view(B, beam * V)
        scores, chosen = totals.topk(beam, dim=1)
        parent = (chosen // V + torch.arange(B, device=source.device)[:, None] * beam).view(-1)
        words = torch.cat([words[parent], (chosen % V).view(-1, 1)], dim=1)
        state = tuple(part[:, parent].contiguous() for part in state)
        done = done[parent] | (words[:, -1] == EOS) | (length + 1 >= limits.repeat_interleave(beam))
        if bool(done.all()):
            break
    best = scores.argmax(1) + torch.arange(B, device=source.device) * beam
    return [[int(w) for w in row if w not in (BOS, EOS, PAD)] for row in words[best].tolist()]
