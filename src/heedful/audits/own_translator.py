"""The translator of one of our own studies as an audit sees it: one layer, from an output word to the source."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch import Tensor, nn

from heedful.audits.network import Change, Output, Query
from heedful.audits.passage import Passage
from heedful.data.alignments import Alignment
from heedful.data.subwords import EncodedPairs, Tokeniser
from heedful.data.tokens import BOS, EOS, SPECIALS
from heedful.errors import DataError, RunError
from heedful.model.translator import Translator
from heedful.studies.run import ModelSpec, Run


def open_translator_run(
    run: Run | Path | str, seed: int | None = None
) -> tuple["TranslatorNetwork", "PieceReader", list[Passage], Mapping[int, Alignment] | None]:
    """The standard model of a finished translation study, its reader, its validation pairs, and their gold links.

    >>> network, reader, passages, links = open_translator_run("runs/toy-de-en")         # doctest: +SKIP
    """
    run = run if isinstance(run, Run) else Run(run)
    config, tokeniser = run.config(), run.tokeniser()
    chosen = config.seeds[0] if seed is None else seed
    weights = run.model(ModelSpec("standard", chosen)).checkpoint_folder(config.train.steps) / "model.safetensors"
    if not weights.exists():
        raise RunError(f"{weights}: no such file; the run is not finished, or has no model of seed {chosen}")
    model = Translator(config.translator, len(tokeniser))
    model.load_state_dict(load_file(weights))
    pairs, reader = run.pairs("validation"), PieceReader(tokeniser)
    links = None if pairs.alignments is None else dict(enumerate(pairs.alignments))
    return TranslatorNetwork(model.eval()), reader, pair_passages(pairs, reader), links


def pair_passages(pairs: EncodedPairs, reader: "PieceReader") -> list[Passage]:
    """One passage for each word of each target: its first piece is asked about, the pieces before it are given."""
    found = []
    for m in range(len(pairs)):
        first, last = pairs.source.offsets[m : m + 2]
        source = reader.passage(m, pairs.source.values[first:last].tolist(), pairs.source_words[first:last].tolist())
        first, last = pairs.target.offsets[m : m + 2]
        said, word = pairs.target.values[first:last].tolist(), pairs.target_words[first:last]
        for w in range(int(word.max()) + 1):
            places = np.flatnonzero(word == w)
            if len(places):  # none of a word that was cut
                at = int(places[0])
                output = reader.tokeniser.decode([said[i] for i in places]) or str(said[at])
                found.append(
                    Passage(
                        m,
                        source.words,
                        source.special,
                        source.pieces,
                        source.word,
                        target=said[at],
                        output=output,
                        before=tuple(said[:at]),
                    )
                )
    return found


@dataclass(frozen=True)
class PieceReader:
    """Sentences by the tokeniser of a study; it writes sentences, so it has no labels."""

    tokeniser: Tokeniser
    labels: tuple[str, ...] = ()

    def read(self, number: int, text: str, label: str | None = None) -> Passage:
        """A source sentence between its ends."""
        pieces, words = self.tokeniser.encode(text)
        return self.passage(number, [BOS, *pieces, EOS], [-1, *words, -1])

    def passage(self, number: int, pieces: list[int], words: list[int]) -> Passage:
        """Pieces and the word of each, -1 at the ends, as a passage."""
        starts = [i for i, word in enumerate(words) if i == 0 or word == -1 or word != words[i - 1]]
        parts = [pieces[a:b] for a, b in zip(starts, [*starts[1:], len(pieces)], strict=True)]
        special = tuple(words[start] == -1 for start in starts)
        shown = (
            SPECIALS[part[0]] if alone else self.tokeniser.decode(part) or str(part[0])
            for part, alone in zip(parts, special, strict=True)
        )
        word = tuple(np.repeat(np.arange(len(parts)), [len(part) for part in parts]).tolist())
        return Passage(number, tuple(shown), special, tuple(pieces), word)


class TranslatorNetwork:
    """A translator as a network; another attention takes the place of α, encoder and decoder stay as they are.

    >>> from heedful.config import TranslatorConfig
    >>> network = TranslatorNetwork(Translator(TranslatorConfig(embedding=3, hidden=2, layers=1), vocabulary=7).eval())
    >>> output = network.run(network.embed(torch.tensor([[4, 5, 6]])), torch.tensor([[2]]))
    >>> output.probabilities.shape, output.attention[0].shape, output.hidden[0].shape
    (torch.Size([1, 7]), torch.Size([1, 1, 1, 3]), torch.Size([1, 3, 2]))
    """

    query: Query = "last"
    layers = 1
    can_change = True

    def __init__(self, model: Translator) -> None:
        self.model, self.heads = model, model.config.heads
        self.modules: tuple[nn.Module, ...] = (model,)

    def embed(self, pieces: Int[Tensor, "B L"]) -> Float[Tensor, "B L E"]:
        """The embeddings of source pieces."""
        embedded: Tensor = self.model.embedding(pieces)
        return embedded

    def run(
        self, embedded: Float[Tensor, "B L E"], before: Int[Tensor, "B T"] | None = None, change: Change | None = None
    ) -> Output:
        """Read B source sentences of one length, given the output pieces `before` the one asked about."""
        if before is None:
            raise DataError("a translator is asked about an output word; the passage has no output before it")
        model, mask = self.model, torch.ones(embedded.shape[:2], dtype=torch.bool, device=embedded.device)
        hidden, start = model.encode(embedded, mask)
        state = model.decoder(model.embedding(before), start)[0][:, -1:]
        _, alpha = model.attend(state, hidden, mask)
        alpha = alpha if change is None else change(0, alpha)
        context = torch.einsum("bhtl,bld->btd", alpha, hidden)
        return Output(model.read(context[:, 0], state[:, 0]).softmax(-1), (alpha,), (hidden,))

    def randomised(self, seed: int) -> "TranslatorNetwork":
        """The same architecture with fresh random parameters."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            other = Translator(self.model.config, self.model.embedding.num_embeddings, self.model.mode)
        return TranslatorNetwork(other.to(self.model.embedding.weight).eval())
