"""Networks of `nn.Module`s: any module by two functions; our classifiers and translators by their parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from heedful.attribution.interface import Passage
from heedful.attribution.network import Before, Change, Embedded, LSTMLayer, ModelParts, Network, Output, Query, States
from heedful.data.rows import Text, single_text
from heedful.errors import ConfigError, DataError
from heedful.models.adversary import probabilities
from heedful.models.attention import project
from heedful.models.classifier import AttentionClassifier
from heedful.models.encoders import LSTMEncoder
from heedful.models.transformer import build_translator
from heedful.models.translator import PairModel

SpecialWord = tuple[str, int]  # a word that is added to every text, and its number


class ModuleNetwork:
    """A classifier made of `modules`, by its functions `embed(pieces)` and `run(embedded, change)`.

    `run` returns an `Output`. Where `can_change` is true, it uses `change(layer, α)` in place of each layer's α, unless
    `change` is None. `fresh(seed)` makes the same network with random parameters, if that is possible.
    `values(layer, embedded)` states what each head takes over from each position, (B, H, L, D); see `value_vectors`.

    >>> table, output = nn.Embedding(9, 4), nn.Linear(4, 2)
    >>> def run(embedded, change):
    ...     alpha = embedded[..., 0].softmax(-1)[:, None, None]
    ...     alpha = alpha if change is None else change(0, alpha)
    ...     probabilities = output((alpha[:, 0] @ embedded)[:, 0]).softmax(-1)
    ...     return Output(probabilities, (alpha,), (embedded,))
    >>> network = ModuleNetwork((table, output), table, run, layers=1, heads=1, can_change=True)
    >>> network.run(network.embed(torch.tensor([[1, 2, 3]]))).probabilities.shape
    torch.Size([1, 2])
    """

    parts: ModelParts | None = None

    def __init__(
        self,
        modules: Sequence[nn.Module],
        embed: Callable[[Tensor], Tensor],
        run: Callable[[Tensor, Change | None], Output],
        *,
        layers: int,
        heads: int,
        query: Query = "mean",
        can_change: bool = False,
        fresh: Callable[[int], "Network | None"] = lambda seed: None,
        values: Callable[[int, Tensor], Tensor] | None = None,
    ) -> None:
        if layers < 1 or heads < 1:
            raise ConfigError(f"the network has {layers} layers of {heads} heads; it needs at least one of each")
        self.modules, self.query = tuple(modules), query
        self.layers, self.heads, self.can_change = layers, heads, can_change
        self.embed, self._run, self.randomised, self.values = embed, run, fresh, values

    def run(self, embedded: Embedded, before: Before = None, change: Change | None = None) -> Output:
        """The result of the function `run`."""
        _refuse_output(before)
        return self._run(embedded, change)


class OpenNetwork:
    """A network with one layer of attention, given by its parts. cache: whether to keep the last encoded texts.

    >>> parts = ModelParts(
    ...     encode=lambda embedded, mask, before: States(embedded),
    ...     score=lambda states: states.hidden[..., 0],
    ...     project=lambda scores, mask: scores.masked_fill(~mask, -torch.inf).softmax(-1)[:, None, None],
    ...     read=lambda states, alpha: (alpha[:, 0] @ states.hidden)[:, 0].softmax(-1),
    ... )
    >>> table = nn.Embedding(9, 4)
    >>> network = OpenNetwork(table, table, parts)
    >>> network.run(network.embed(torch.tensor([[1, 2, 3]]))).probabilities.shape
    torch.Size([1, 4])
    """

    layers = 1
    can_change = True

    def __init__(
        self,
        model: nn.Module,
        embed: Callable[[Tensor], Tensor],
        parts: ModelParts,
        *,
        heads: int = 1,
        query: Query = "only",
        fresh: Callable[[int], "Network | None"] = lambda seed: None,
        cache: bool = False,
    ) -> None:
        self.modules: tuple[nn.Module, ...] = (model,)
        self.parts: ModelParts | None = parts
        self.heads, self.query = heads, query
        self.embed, self.randomised, self._encode = embed, fresh, parts.encode
        self._encode_again = _EncodingCache(model, parts).encode if cache else parts.encode

    def run(self, embedded: Embedded, before: Before = None, change: Change | None = None) -> Output:
        """Run on B inputs of one length; another attention replaces α, the encoder's states stay the same."""
        assert self.parts is not None
        mask = torch.ones(embedded.shape[:2], dtype=torch.bool, device=embedded.device)
        encode = self._encode if change is None else self._encode_again
        return self.parts.output(encode(embedded, mask, before), mask, change)


def classifier_network(model: AttentionClassifier) -> OpenNetwork:
    """An attention classifier as a network; two classes have two probabilities.

    >>> from heedful.config import ModelConfig
    >>> model = AttentionClassifier(ModelConfig(embedding=3, hidden=2), vocabulary=7, classes=2)
    >>> network = classifier_network(model.eval())
    >>> output = network.run(network.embed(torch.tensor([[4, 5, 6]])))
    >>> output.probabilities.shape, output.attention[0].shape, output.hidden[0].shape
    (torch.Size([1, 2]), torch.Size([1, 1, 1, 3]), torch.Size([1, 3, 4]))
    """
    name = "uniform" if model.mode == "uniform" else model.config.projection

    def encode(embedded: Tensor, mask: Tensor, before: Tensor | None) -> States:
        _refuse_output(before)
        return States(model.encoder(model.dropout(embedded), mask)[0])

    def fresh(seed: int) -> Network:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            other = AttentionClassifier(model.config, model.embedding.num_embeddings, model.classes, model.mode)
        return classifier_network(other.to(model.output.weight).eval())

    parts = ModelParts(
        encode,
        score=lambda states: model.scorer(states.hidden),
        project=lambda scores, mask: project(name, scores, mask, model.config.projection_parameter)[:, None, None],
        read=lambda states, alpha: probabilities(model.from_attention(alpha[:, 0, 0], states.hidden)),
        lstm=_lstm_layer(model.encoder, lambda hidden, last, before: States(hidden)),
        values=lambda states: states.hidden[:, None],
    )
    return OpenNetwork(model, model.embedding, parts, fresh=fresh, cache=True)


def translator_network(model: PairModel) -> OpenNetwork:
    """A translator as a network: probabilities of the next output piece, given those before it.

    The decoder's state is part of what is encoded: deleting a source piece changes the state it starts from.

    >>> from heedful.config import TranslatorConfig
    >>> model = build_translator(TranslatorConfig(embedding=3, hidden=2, layers=1), vocabulary=7)
    >>> network = translator_network(model.eval())
    >>> output = network.run(network.embed(torch.tensor([[4, 5, 6]])), torch.tensor([[2]]))
    >>> output.probabilities.shape, output.attention[0].shape, output.hidden[0].shape
    (torch.Size([1, 7]), torch.Size([1, 1, 1, 3]), torch.Size([1, 3, 4]))
    """
    name = "uniform" if model.mode == "uniform" else "softmax"

    def decode(hidden: Tensor, start: tuple[Tensor, ...], before: Tensor | None) -> States:
        if before is None:
            raise DataError("a translator predicts an output word; the passage has no output pieces before it")
        return States(hidden, (model.decode(model.embed_target(before), start)[0][:, -1:],))

    def finish(hidden: Tensor, last: Sequence[tuple[Tensor, Tensor]], before: Tensor | None) -> States:
        h, c = (torch.stack(parts).mean(0, keepdim=True) for parts in zip(*last, strict=True))
        return decode(hidden, (h, c), before)

    def read(states: States, alpha: Tensor) -> Tensor:
        return model.read(model.pool(alpha, states.hidden)[:, 0], states.aside[0][:, 0]).softmax(-1)

    def values(states: States) -> Tensor:
        (B, L), H = states.hidden.shape[:2], model.config.heads
        nothing = states.hidden.new_zeros(B, H, L, L)
        rows = []
        for head in range(H):  # each place attends to itself alone
            itself = nothing.clone()
            itself[:, head] = torch.eye(L, dtype=itself.dtype, device=itself.device)
            rows.append(model.pool(itself, states.hidden) - model.pool(nothing, states.hidden))
        return torch.stack(rows, dim=1)

    def fresh(seed: int) -> Network:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            other = build_translator(model.config, model.embedding.num_embeddings, model.mode)
        return translator_network(other.to(model.embedding.weight).eval())

    parts = ModelParts(
        encode=lambda embedded, mask, before: decode(*model.encode(embedded, mask), before),
        score=lambda states: model.scorer(states.aside[0], states.hidden),
        project=lambda scores, mask: project(name, scores, mask[:, None, None].expand_as(scores)),
        read=read,
        lstm=_lstm_layer(model.encoder, finish),
        values=values,
    )
    return OpenNetwork(model, model.embedding, parts, heads=model.config.heads, query="last", fresh=fresh)


@dataclass(frozen=True)
class WordReader:
    """A reader with one piece per word, by its number in a vocabulary; `first` and `last` are added to every text.

    unknown: the number of words that are not in the vocabulary; without it they are an error. longest: texts with more
    words are cut.

    >>> reader = WordReader({"good": 1, "film": 2}, ("bad", "good"), unknown=0, last=("<eos>", 3))
    >>> reader.read(0, "a good film").pieces
    (0, 1, 2, 3)
    """

    vocabulary: Mapping[str, int]
    labels: tuple[str, ...]
    unknown: int | None = None
    split: Callable[[str], Sequence[str]] = str.split
    first: SpecialWord | None = None
    last: SpecialWord | None = None
    longest: int | None = None
    special: Mapping[str, int] = field(default_factory=dict)  # the numbers of `pad` and `mask`, if it has them

    def special_piece(self, name: str) -> int | None:
        """The number of the `pad` or `mask` word; None if there is none."""
        return self.special.get(name)

    def read(self, number: int, text: Text, label: str | None = None) -> Passage:
        """The passage of a text."""
        words = self.split(single_text(number, text))
        kept = words[: self.longest]
        before = (self.first,) if self.first else ()
        after = (self.last,) if self.last else ()
        inside = tuple((word, self._number(word, number)) for word in kept)
        everything = (*before, *inside, *after)
        return Passage(
            number,
            words=tuple(word for word, _ in everything),
            special=(*(True for _ in before), *(False for _ in inside), *(True for _ in after)),
            pieces=tuple(piece for _, piece in everything),
            word=tuple(range(len(everything))),
            label=label,
            cut=len(words) - len(kept),
        )

    def _number(self, word: str, text: int) -> int:
        number = self.vocabulary.get(word, self.unknown)
        if number is None:
            raise DataError(f"text {text}: {word!r} is not in the vocabulary; pass `unknown`, the number of such words")
        return number


class _EncodingCache:
    """The states of the last batch of texts: these are often run again, each time with another attention."""

    def __init__(self, model: nn.Module, parts: ModelParts) -> None:
        self.model, self.parts = model, parts
        self.last: tuple[list[int], Tensor, States] | None = None

    def encode(self, embedded: Tensor, mask: Tensor, before: Tensor | None) -> States:
        """As `ModelParts.encode` for texts without padding. Equal texts are encoded once."""
        if embedded.requires_grad or self.model.training:
            return self.parts.encode(embedded, mask, before)
        texts, which = torch.unique(embedded, dim=0, return_inverse=True)
        versions = [parameter._version for parameter in self.model.parameters()]
        if self.last is None or self.last[0] != versions or not torch.equal(self.last[1], texts):
            with torch.no_grad():
                self.last = versions, texts, self.parts.encode(texts, mask[: len(texts)], None)
        return self.last[2].rows(which)


def _refuse_output(before: Tensor | None) -> None:
    if before is not None:
        raise DataError("this network is a classifier; its passages can have no output `before`")


def _lstm_layer(
    encoder: nn.Module, finish: Callable[[Tensor, Sequence[tuple[Tensor, Tensor]], Tensor | None], States]
) -> LSTMLayer | None:
    """For the fast path; None unless the encoder is one LSTM layer."""
    if not isinstance(encoder, LSTMEncoder) or len(encoder.forwards) > 1:
        return None
    forward = encoder.forwards[0]
    backward = encoder.backwards[0] if len(encoder.backwards) else None
    assert isinstance(forward, nn.LSTM)
    assert backward is None or isinstance(backward, nn.LSTM)
    return LSTMLayer(forward, backward, finish)
