"""The attribution interface: passages of text, and how a network is run on them (`Subject`).

Every attribution method takes a `Subject` and some `Passage`s, and returns one row of words for each passage. The model
is left as it was found, and a batch gives the same numbers as its passages one by one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.attribution.network import (
    Before,
    Change,
    Layout,
    Network,
    Output,
    PaddingNetwork,
    Pieces,
    PlacedNetwork,
    PredictingNetwork,
    ResumingNetwork,
    WeighingNetwork,
)
from heedful.data.rows import Text
from heedful.errors import DataError
from heedful.models.training import evaluation_mode

T = TypeVar("T")
Numbers = NDArray[np.float64]
Keep = NDArray[np.bool_]  # one for each word of a passage
MAX_TOKENS = 4096
LONG = 512  # pieces of a text from which on neither all attention nor hidden states are kept
PADDING = 64.0  # pieces of padding that cost more than a batch of its own


@dataclass(frozen=True)
class Passage:
    """A text as a model reads it, or a source sentence together with one output word of its translation.

    text: its number in the data. words: as a reader sees them; special: which of them the tokeniser added. pieces: the
    model's input, one or more to a word; word: the word that each piece belongs to. target: the number of the label or
    output piece to explain, and `output` its name; -1 and "" until the model has predicted it. label: the right one,
    where known. before: of an encoder–decoder, the output pieces before this one. cut: pieces lost to truncation.
    segments: of a pair of texts, the one that each piece belongs to, as the model is told. at: the pieces where the
    output is read, if it is read at some of them; their words are special. Special words are no part of an explanation
    and are never erased: besides those of the tokeniser, the output so far of a language model.
    """

    text: int
    words: tuple[str, ...]
    special: tuple[bool, ...]
    pieces: tuple[int, ...]
    word: tuple[int, ...]
    target: int = -1
    output: str = ""
    label: str | None = None
    before: tuple[int, ...] = ()
    cut: int = 0
    segments: tuple[int, ...] = ()
    at: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.words) != len(self.special):
            raise DataError(
                f"text {self.text}: {len(self.words)} words, but {len(self.special)} marks of special words"
            )
        if len(self.pieces) != len(self.word):
            raise DataError(f"text {self.text}: {len(self.pieces)} pieces, but word numbers for {len(self.word)}")
        if self.segments and len(self.segments) != len(self.pieces):
            raise DataError(f"text {self.text}: {len(self.pieces)} pieces, but segments for {len(self.segments)}")
        if not all(0 <= i < len(self.pieces) and self.special[self.word[i]] for i in self.at):
            raise DataError(f"text {self.text}: the output is read at {self.at}, which must be pieces of special words")

    @classmethod
    def of_pieces(
        cls, text: int, pieces: Sequence[int], *, target: int = -1, before: tuple[int, ...] = ()
    ) -> "Passage":
        """A passage whose words are its pieces, none of them special.

        >>> Passage.of_pieces(0, [7, 8], target=1).words
        ('7', '8')
        """
        words, numbers = tuple(map(str, pieces)), tuple(range(len(pieces)))
        return cls(text, words, (False,) * len(words), tuple(pieces), numbers, target, str(target), before=before)

    def explained(self, *, include_special: bool = False) -> NDArray[np.bool_]:
        """Which words an explanation covers: all but the special ones, or all.

        >>> Passage(0, ("<s>", "good"), (True, False), (1, 7), (0, 1)).explained()
        array([False,  True])
        """
        return ~np.array(self.special, dtype=bool) | include_special

    def words_of(self, values: NDArray[np.floating]) -> Numbers:
        """Values of pieces (last axis) summed into their words.

        >>> Passage(0, ("un", "do"), (False, False), (7, 8, 9), (0, 0, 1)).words_of(np.array([0.1, 0.2, 0.7])).round(2)
        array([0.3, 0.7])
        """
        summed = np.zeros((*values.shape[:-1], len(self.words)))
        np.add.at(summed.T, list(self.word), values.T)
        return summed

    def pieces_of(self, keep: Keep) -> tuple[int, ...]:
        """The pieces of the words to keep, in order."""
        return tuple(piece for piece, word in zip(self.pieces, self.word, strict=True) if keep[word])

    def without(self, keep: Keep) -> "Passage":
        """The passage without the pieces of words that are neither kept nor special."""
        kept = keep | np.array(self.special, dtype=bool)
        stay = [i for i, word in enumerate(self.word) if kept[word]]
        return replace(
            self,
            pieces=tuple(self.pieces[i] for i in stay),
            word=tuple(self.word[i] for i in stay),
            segments=tuple(self.segments[i] for i in stay) if self.segments else (),
            at=tuple(map(stay.index, self.at)),
        )

    def masked(self, keep: Keep, mask: int) -> "Passage":
        """The passage with the piece `mask` for each piece of the words that are neither kept nor special.

        >>> Passage(0, ("<s>", "good"), (True, False), (1, 7), (0, 1)).masked(np.array([False, False]), 9).pieces
        (1, 9)
        """
        kept = keep | np.array(self.special, dtype=bool)
        pieces = tuple(p if kept[word] else mask for p, word in zip(self.pieces, self.word, strict=True))
        return replace(self, pieces=pieces)


@runtime_checkable
class Reader(Protocol):
    """The tokeniser's side of a model: turns texts into passages."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the model's labels, in order; none where it writes sentences."""

    def read(self, number: int, text: Text, label: str | None = None) -> Passage:
        """The passage of a text or of a pair; long texts are cut, and `Passage.cut` counts the lost pieces."""


@dataclass(frozen=True)
class PassageBatch:
    """Passages that are run together, padded on the right. targets: the output that each passage explains."""

    passages: tuple[Passage, ...]
    pieces: Pieces
    mask: Bool[Tensor, "B L"]
    before: Before
    targets: Int[Tensor, " B"]
    layout: Layout | None = None

    def take(self, rows: Int[Tensor, " R"]) -> "PassageBatch":
        """The rows at these indices, repeated as the indices are."""
        return PassageBatch(
            tuple(self.passages[i] for i in rows.tolist()),
            self.pieces[rows],
            self.mask[rows],
            None if self.before is None else self.before[rows],
            self.targets[rows],
            None if self.layout is None else self.layout.rows(rows),
        )

    def words_of(self, values: Tensor) -> list[Numbers]:
        """Values of pieces (B, …, L) of each passage, summed into its words."""
        rows = zip(self.passages, numbers(values), strict=True)
        return [passage.words_of(row[..., : len(passage.pieces)]) for passage, row in rows]


BatchChange = Callable[[PassageBatch, int, Tensor], Tensor]  # a `Change` that depends on the passages


class Subject:
    """A model to be explained: its network, and the reader that makes its passages.

    At most `max_tokens` pieces are run at once (a longer passage is run alone), a quarter of that where gradients are
    taken. padded: run texts of different lengths together, through `Network.parts`; one-layer LSTMs then take the fast
    path. Without it, every batch holds inputs of one length, unless the network is a `PaddingNetwork`. mask: words are
    erased by this piece in their place; without it they are deleted. on_run: called with the number of inputs and
    their length whenever the network is run. kept: by layer, the states that it reads of each passage, see `keep`.
    """

    def __init__(
        self,
        network: Network,
        reader: Reader | None = None,
        *,
        max_tokens: int = MAX_TOKENS,
        padded: bool = False,
        mask: int | None = None,
        on_run: Callable[[int, int], None] = lambda inputs, length: None,
    ) -> None:
        self.network, self.reader, self.max_tokens, self.mask, self.on_run = network, reader, max_tokens, mask, on_run
        self.memo: dict[tuple[Any, ...], float] | None = None
        self.visible: dict[int, list[Tensor]] = {}  # by length: which places each layer can see
        self.kept: dict[int, dict[tuple[Any, ...], Tensor]] = {}
        self.parts = network.parts if padded else None
        if padded and self.parts is None:
            raise DataError("padded batches need a network with `parts`; this one can only be run as a whole")
        self._pads = isinstance(network, PaddingNetwork) and network.pads
        weights = (weight for module in network.modules for weight in module.parameters())
        self.device = next((weight.device for weight in weights), torch.device("cpu"))

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the model's labels, in order; none where it writes sentences."""
        return () if self.reader is None else self.reader.labels

    def with_targets(
        self, passages: Sequence[Passage], probabilities: Float[Numbers, "B K"] | None = None
    ) -> tuple[Passage, ...]:
        """The same passages; those without a target get the model's prediction as theirs.

        probabilities: the model's own for these passages, if they are known; else it is run.
        """
        open_ = [i for i, passage in enumerate(passages) if passage.target < 0]
        if probabilities is None:
            best = self.map([passages[i] for i in open_], lambda batch: self.probabilities(batch).argmax(1).tolist())
        else:
            best = probabilities[open_].argmax(1).tolist()
        target = {i: passage.target for i, passage in enumerate(passages)} | dict(zip(open_, best, strict=True))
        return tuple(
            replace(passage, target=target[i], output=passage.output or self.output_name(target[i]))
            for i, passage in enumerate(passages)
        )

    def output_name(self, output: int) -> str:
        """A label's name; an output piece's number."""
        return self.labels[output] if output < len(self.labels) else str(output)

    def predict(self, passages: Sequence[Passage], keep: Sequence[Keep]) -> Numbers:
        """The probability ŷ of each passage's target when the words that are not kept are erased.

        They are deleted, or replaced by the piece `mask`. Special words always stay. NaN where nothing would be left to
        read. The same text is predicted once, and not again while `memo` holds it.
        """
        erased = Passage.without if self.mask is None else partial(Passage.masked, mask=self.mask)
        left = [erased(passage, kept) for passage, kept in zip(passages, keep, strict=True)]
        known = {} if self.memo is None else self.memo
        keys = [(*_input_of(p), p.target) for p in left]
        new = {key: passage for key, passage in zip(keys, left, strict=True) if key not in known and passage.pieces}
        predicted: list[float] = self.map(
            list(new.values()), lambda batch: numbers(target_probability(self.probabilities(batch), batch))
        )
        known.update(zip(new, predicted, strict=True))
        return np.array([known.get(key, np.nan) for key in keys])

    def with_attention(self, passages: Sequence[Passage], change: BatchChange) -> Float[Numbers, "B K"]:
        """Probabilities when the model uses another attention than its own."""
        self.require_change("replacing attention")
        return np.stack(
            self.map(passages, lambda batch: numbers(self.probabilities(batch, change=partial(change, batch))))
        )

    def require_change(self, purpose: str) -> None:
        """Refuse what needs to replace the attention of a network that does not allow it."""
        if not self.network.can_change:
            raise DataError(f"{purpose} needs a network whose attention can be replaced; this one does not allow it")

    def run(
        self,
        batch: PassageBatch,
        embedded: Tensor | None = None,
        change: Change | None = None,
        *,
        finite: bool = True,
    ) -> Output:
        """Run the network on a batch, or on embeddings in its place; an error where the output is malformed.

        finite: whether a prediction that is not a number is an error too.
        """
        network, parts = self.placed(batch), self.parts
        own = embedded is None and change is None
        embedded = network.embed(batch.pieces) if embedded is None else embedded
        self.on_run(*embedded.shape[:2])
        if parts is not None:
            output = parts.output(parts.encode(embedded, batch.mask, batch.before), batch.mask, change)
        elif self._pads and not bool(batch.mask.all()):
            output = cast(PaddingNetwork, network).run_padded(embedded, batch.mask, change)
        else:
            output = network.run(embedded, batch.before, change)
        self._check(output, batch, finite=finite)
        if own:
            self._keep_states(batch, output.hidden)
        return output

    def probabilities(
        self,
        batch: PassageBatch,
        embedded: Tensor | None = None,
        change: Change | None = None,
        *,
        finite: bool = True,
    ) -> Float[Tensor, "B K"]:
        """The probabilities of `run`, without its attention and states where the network then has less to do."""
        network = self.placed(batch)
        mask = None if bool(batch.mask.all()) else batch.mask
        can_read = batch.before is None and (mask is None or self._pads)
        if self.parts is not None or not can_read or not isinstance(network, PredictingNetwork):
            return self.run(batch, embedded, change, finite=finite).probabilities
        embedded = network.embed(batch.pieces) if embedded is None else embedded
        self.on_run(*embedded.shape[:2])
        found = network.predict(embedded, mask, change)
        if finite:
            check_finite(found, batch)
        return found

    def resumes_at(self, layer: int) -> bool:
        """Whether the network can be run from this layer on (`resume`)."""
        network = self.network
        return self.parts is None and isinstance(network, ResumingNetwork) and network.resumes_at(layer)

    def rows_read(self, layer: int) -> slice:
        """The positions from which a layer's attention can change the prediction, as far as that is known."""
        network = self.network
        first = self.parts is None and isinstance(network, ResumingNetwork) and network.reads_first_row(layer)
        return slice(0, 1) if first else slice(None)

    def resume(
        self,
        batch: PassageBatch,
        layer: int,
        states: Tensor,
        change: Change | None = None,
        remembered: dict[nn.Module, Any] | None = None,
        *,
        everywhere: bool = False,
    ) -> Tensor:
        """Probabilities for these states at the input of a layer; they are not checked to be numbers.

        remembered, everywhere: see `ResumingNetwork.resume`.
        """
        self.on_run(*states.shape[:2])
        return cast(ResumingNetwork, self.placed(batch)).resume(
            layer, states, None if bool(batch.mask.all()) else batch.mask, change, remembered, everywhere
        )

    def states(self, batch: PassageBatch, change: Change | None = None) -> tuple[Float[Tensor, "B L D"], ...]:
        """The states that each layer's attention reads, as in `Output.hidden`.

        Attention is not kept where the network allows it: a long text needs the memory of one layer.
        """
        network = self.placed(batch)
        if self.parts is not None or batch.before is not None or not isinstance(network, ResumingNetwork):
            return self.run(batch, change=change).hidden
        embedded = network.embed(batch.pieces)
        self.on_run(*embedded.shape[:2])
        return network.states(embedded, None if bool(batch.mask.all()) else batch.mask, change)

    def keep(self, *layers: int) -> None:
        """From now on, keep the states that these layers read, of texts of at most `LONG` pieces; forget all others."""
        self.kept = {layer: {} for layer in layers}

    def states_at(self, batch: PassageBatch, layer: int) -> Float[Tensor, "B L D"]:
        """The states that a layer reads, without gradients; kept ones are not computed again.

        Kept states are 0 at padding, where the network computes something that no result depends on.
        """
        kept = [self.kept.get(layer, {}).get(_input_of(passage)) for passage in batch.passages]
        known = [rows for rows in kept if rows is not None]
        if len(known) == len(kept):
            return nn.utils.rnn.pad_sequence(known, batch_first=True)
        with torch.no_grad():
            states = self.states(batch)
        self._keep_states(batch, states)
        return states[layer]

    def _keep_states(self, batch: PassageBatch, states: Sequence[Tensor]) -> None:
        if batch.pieces.shape[1] > LONG:
            return
        for layer, rows in self.kept.items():
            for passage, row in zip(batch.passages, states[layer] if layer < len(states) else (), strict=False):
                rows[_input_of(passage)] = row[: len(passage.pieces)].detach().clone()

    def entered(self, batch: PassageBatch, layer: int) -> tuple[Float[Tensor, "B H Q L"], Float[Tensor, "B L D"]]:
        """A layer's attention, and the states that it reads; nothing of other layers is kept if that can be avoided."""
        if not self.network.can_change:
            output = self.run(batch)
            return output.attention[layer], output.hidden[layer]
        seen: list[Tensor] = []

        def keep(number: int, alpha: Tensor) -> Tensor:
            if number == layer:
                seen.append(alpha)
            return alpha

        if layer in self.kept and batch.pieces.shape[1] <= LONG and self.resumes_at(layer):
            states = self.states_at(batch, layer)
            self.resume(batch, layer, states, keep)
        else:
            states = self.states(batch, keep)[layer]
        return seen[0], states

    def changed(
        self, batch: PassageBatch, layer: int, states: Float[Tensor, "B L D"]
    ) -> Callable[[Int[Tensor, " R"] | None, Change], Float[Tensor, "R K"]]:
        """A function of rows of a batch (None for all) and a change of attention, in a layer or above it.

        It returns probabilities that are not checked to be numbers: a change may make a prediction that is none.
        states: the batch's own, at the input of that layer; where the network allows it, the layers below are not run
        again, nor, for all rows, what the layer itself computes from the states.
        """
        remembered: dict[nn.Module, Any] = {}

        def resumed(rows: Tensor | None, change: Change) -> Tensor:
            if rows is None:
                return self.resume(batch, layer, states, change, remembered)
            return self.resume(batch.take(rows), layer, states[rows], change)

        def whole(rows: Tensor | None, change: Change) -> Tensor:
            return self.probabilities(batch if rows is None else batch.take(rows), change=change, finite=False)

        return resumed if self.resumes_at(layer) else whole

    def reading(self, batch: PassageBatch) -> Float[Tensor, "B L"] | None:
        """The share of each position in what the head reads; None where the query is a single position."""
        network = self.placed(batch)
        if network.query == "weighted" and isinstance(network, WeighingNetwork):
            return network.reading(network.embed(batch.pieces), batch.mask)
        if network.query == "at":
            if batch.layout is None or batch.layout.at is None:
                raise DataError(f"text {batch.passages[0].text} does not say at which pieces its output is read")
            at = batch.layout.at
            read = torch.zeros(batch.pieces.shape, device=at.device).scatter_(1, at, 1.0)
            return read / read.sum(1, keepdim=True)
        if network.query == "mean" and not bool(batch.mask.all()):
            return batch.mask.double() / batch.mask.sum(1, keepdim=True)
        return None

    def placed(self, batch: PassageBatch) -> Network:
        """The network, told of the batch's layout if there is one."""
        if batch.layout is None:
            return self.network
        if not isinstance(self.network, PlacedNetwork):
            raise DataError("pairs of texts and outputs at single pieces need a network with `with_layout`")
        return self.network.with_layout(batch.layout)

    def _check(self, output: Output, batch: PassageBatch, *, finite: bool) -> None:
        network, (B, L), p = self.network, batch.pieces.shape, output.probabilities
        shapes = [tuple(alpha.shape) for alpha in output.attention]
        if len(shapes) != network.layers or any(
            len(shape) != 4 or (shape[0], shape[1], shape[3]) != (B, network.heads, L) for shape in shapes
        ):
            raise DataError(
                f"the network returned attention of shapes {shapes}; it has {network.layers} layers, each of shape "
                f"({B}, {network.heads}, Q, {L})"
            )
        if p.ndim != 2 or len(p) != B:
            raise DataError(f"the network returned probabilities of shape {tuple(p.shape)}; they must be ({B}, labels)")
        if finite:
            check_finite(p, batch)

    def map(
        self,
        passages: Sequence[Passage],
        function: Callable[[PassageBatch], Sequence[T] | Numbers],
        *,
        gradients: bool = False,
        at_once: Callable[[int], int] | None = None,
        padding: float = PADDING,
    ) -> list[T]:
        """The results of `function` for every passage, in their order; the model is left as it was found.

        gradients: of inputs, never of the model's parameters. at_once: how many inputs of a given length to run
        together; as many as `max_tokens` allows unless given. padding: see `_padded`.
        """
        fits = at_once or within(self.max_tokens // 4 if gradients else self.max_tokens)
        padded = self.parts is not None or self._pads
        batches = self._padded(passages, fits, padding) if padded else self._same_length(passages, fits)
        results: dict[int, T] = {}
        with evaluation_mode(self.network.modules), torch.set_grad_enabled(gradients):
            for places in batches:
                batch = self._batch([passages[i] for i in places])
                results.update(zip(places, function(batch), strict=True))
        return [results[i] for i in range(len(passages))]

    def _same_length(self, passages: Sequence[Passage], fits: Callable[[int], int]) -> Iterator[list[int]]:
        """Longest first: if memory does not suffice, that shows at once."""

        def size(i: int) -> tuple[int, int]:
            return len(passages[i].pieces), len(passages[i].before)

        for lengths, group in groupby(sorted(range(len(passages)), key=size, reverse=True), size):
            places, count = list(group), fits(max(1, sum(lengths)))
            yield from (places[start : start + count] for start in range(0, len(places), count))

    def _padded(self, passages: Sequence[Passage], fits: Callable[[int], int], padding: float) -> Iterator[list[int]]:
        """Shortest first, so that little is padded; all of a batch have equally much output before them.

        A batch of a `PaddingNetwork` ends where the next length would take more pieces of padding than `padding`.
        """
        lengths, before = [len(passage.pieces) for passage in passages], [len(passage.before) for passage in passages]
        order = sorted(range(len(passages)), key=lambda i: (before[i], lengths[i]))
        for _, group in groupby(order, before.__getitem__):
            batch: list[int] = []
            for i in group:
                added = len(batch) * (lengths[i] - lengths[batch[-1]]) if batch else 0
                if batch and ((self._pads and added > padding) or len(batch) >= fits(lengths[i])):
                    yield batch
                    batch = []
                batch.append(i)
            yield batch

    def _batch(self, passages: Sequence[Passage]) -> PassageBatch:
        lengths = [len(passage.pieces) for passage in passages]
        if 0 in lengths:
            raise DataError(f"text {passages[lengths.index(0)].text} is empty; there is nothing to read")
        L, device = max(lengths), self.device
        padded = [passage.pieces + (0,) * (L - len(passage.pieces)) for passage in passages]
        mask = torch.arange(L, device=device) < torch.tensor(lengths, device=device)[:, None]
        before = torch.tensor([passage.before for passage in passages], device=device) if passages[0].before else None
        targets = torch.tensor([passage.target for passage in passages], device=device)
        return PassageBatch(
            tuple(passages), torch.tensor(padded, device=device), mask, before, targets, layout_of(passages, device)
        )


def _input_of(passage: Passage) -> tuple[Any, ...]:
    """Everything of a passage that the network is given."""
    return passage.pieces, passage.before, passage.segments, passage.at


def layout_of(passages: Sequence[Passage], device: torch.device | str = "cpu") -> Layout | None:
    """The layout of passages that are run together; None if they have none.

    >>> layout_of([Passage.of_pieces(0, [7, 8])]) is None
    True
    """
    L = max(len(passage.pieces) for passage in passages)
    segments, at = None, None
    if any(passage.segments for passage in passages):
        rows = [passage.segments + (0,) * (L - len(passage.segments)) for passage in passages]
        segments = torch.tensor(rows, device=device)
    if passages[0].at:
        at = torch.tensor([passage.at for passage in passages], device=device)
    return None if segments is None and at is None else Layout(segments, at)


def within(limit: int) -> Callable[[int], int]:
    """How many inputs of a length stay within a limit of pieces; at least one.

    >>> within(100)(30), within(100)(200)
    (3, 1)
    """
    return lambda length: max(1, limit // max(1, length))


def target_probability(probabilities: Float[Tensor, "B K"], batch: PassageBatch) -> Float[Tensor, " B"]:
    """The probability ŷ of each passage's target."""
    K, targets = probabilities.shape[1], batch.targets
    if not bool(((targets >= 0) & (targets < K)).all()):
        raise DataError(f"targets {targets.tolist()} do not all exist: the model has outputs 0 to {K - 1}")
    check_finite(probabilities, batch)
    return probabilities.gather(1, targets[:, None])[:, 0]


def check_finite(probabilities: Tensor, batch: PassageBatch) -> None:
    """Refuse predictions that are not numbers; the error names the text."""
    if not bool(torch.isfinite(probabilities).all()):
        row = int((~torch.isfinite(probabilities)).any(1).nonzero()[0])
        raise DataError(f"text {batch.passages[row].text}: the model's prediction is not a number")


def numbers(tensor: Tensor) -> Numbers:
    """A tensor as an array of doubles."""
    array: Numbers = tensor.detach().double().cpu().numpy()
    return array
