"""Any `nn.Module` as an audit sees it, from two functions: one that embeds, and one that does the rest."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor, nn

from heedful.attribution.interface import Change, Network, Output, Passage, Query
from heedful.errors import ConfigError, DataError

Special = tuple[str, int]  # a word that every text gets, and its number


class ModuleNetwork:
    """A classifier made of `modules`, by its functions `embed(pieces)` and `run(embedded, change)`.

    `run` gives an `Output`; where `can_change`, it uses `change(layer, α)` in place of each layer's α, unless `change`
    is None. `fresh(seed)` makes the same network with random parameters, where there is a way.

    >>> import torch
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
    ) -> None:
        if layers < 1 or heads < 1:
            raise ConfigError(f"the network has {layers} layers of {heads} heads; an audit needs one of each")
        self.modules, self.query = tuple(modules), query
        self.layers, self.heads, self.can_change = layers, heads, can_change
        self._embed, self._run, self._fresh = embed, run, fresh

    def embed(self, pieces: Int[Tensor, "B L"]) -> Float[Tensor, "B L E"]:
        """What the function `embed` makes of pieces."""
        return self._embed(pieces)

    def run(
        self, embedded: Float[Tensor, "B L E"], before: Int[Tensor, "B T"] | None = None, change: Change | None = None
    ) -> Output:
        """What the function `run` makes of embeddings."""
        if before is not None:
            raise DataError("this network is a classifier; its passages can have no output `before`")
        return self._run(embedded, change)

    def randomised(self, seed: int) -> "Network | None":
        """What `fresh` makes of a seed."""
        return self._fresh(seed)


@dataclass(frozen=True)
class WordReader:
    """One piece per word, by its number in a vocabulary; `first` and `last` are added to every text.

    unknown: the number of words that are not in the vocabulary; left out, they are an error. longest: texts with more
    words are cut.

    >>> reader = WordReader({"good": 1, "film": 2}, ("bad", "good"), unknown=0, last=("<eos>", 3))
    >>> reader.read(0, "a good film").pieces
    (0, 1, 2, 3)
    """

    vocabulary: Mapping[str, int]
    labels: tuple[str, ...]
    unknown: int | None = None
    split: Callable[[str], Sequence[str]] = str.split
    first: Special | None = None
    last: Special | None = None
    longest: int | None = None

    def read(self, number: int, text: str, label: str | None = None) -> Passage:
        """A text of the data as a passage."""
        words = self.split(text)
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
        found = self.vocabulary.get(word, self.unknown)
        if found is None:
            raise DataError(f"text {text}: {word!r} is not in the vocabulary; give the number of unknown words")
        return found
