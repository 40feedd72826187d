"""A model of one of our own studies as an audit sees it: one layer, one head, looking from one place at every word."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, Int
from safetensors.torch import load_file
from torch import Tensor, nn

from heedful.attribution.forward import Forward, States, classifier_forward
from heedful.attribution.interface import Change, Network, Output, Passage, Query
from heedful.attribution.modules import ModuleNetwork, WordReader
from heedful.data.alignments import Alignment
from heedful.data.catalog import CATALOG
from heedful.data.subwords import EncodedPairs, Tokeniser
from heedful.data.vocabulary import BOS, EOS, SPECIALS, UNK
from heedful.data.words import PLAIN, TokenRules, tokenise
from heedful.errors import DataError, RunError
from heedful.models.adversary import probabilities
from heedful.models.classifier import AttentionClassifier
from heedful.models.translator import Translator
from heedful.studies.run_directory import ModelSpec, RunDirectory
from heedful.studies.token_table import load_model


def open_run(
    run: RunDirectory | Path | str, seed: int | None = None, *, rules: TokenRules | None = None
) -> tuple[ModuleNetwork, WordReader]:
    """The standard model of that seed (the first, unless said) of a finished classification study, and its reader.

    rules: how texts become words, where the study's data had others than the corpus of that name.

    >>> network, reader = open_run("runs/demo")         # doctest: +SKIP
    """
    run = run if isinstance(run, RunDirectory) else RunDirectory(run)
    config = run.config()
    if config.task != "classification":
        raise RunError(f"{run.root} is a study of translation; open_translator_run opens those")
    model = load_model(run, seed)
    words = run.vocabulary().words
    chosen = rules or _rules(config.data, config.lower)
    reader = WordReader(
        {word: i for i, word in enumerate(words) if i >= len(SPECIALS)},
        tuple(run.data_summary()["labels"]),
        unknown=UNK,
        split=lambda text: tokenise(text, chosen),
        first=(SPECIALS[BOS], BOS),
        last=(SPECIALS[EOS], EOS),
        longest=config.max_length,
    )
    return classifier_network(model), reader


def validation_passages(run: RunDirectory | Path | str, reader: WordReader) -> list[Passage]:
    """The validation texts of a study as its models were given them, with their labels."""
    run = run if isinstance(run, RunDirectory) else RunDirectory(run)
    labels = run.split("validation").labels
    as_written = replace(reader, split=str.split)
    return [
        as_written.read(i, " ".join(words), reader.labels[int(label)])
        for i, (words, label) in enumerate(zip(run.words(), labels, strict=True))
    ]


def classifier_network(model: AttentionClassifier) -> ModuleNetwork:
    """An attention classifier as a network; another attention takes the place of α, the encoder stays as it is.

    >>> from heedful.config import ModelConfig
    >>> model = AttentionClassifier(ModelConfig(embedding=3, hidden=2), vocabulary=7, classes=2)
    >>> network = classifier_network(model.eval())
    >>> output = network.run(network.embed(torch.tensor([[4, 5, 6]])))
    >>> output.probabilities.shape, output.attention[0].shape, output.hidden[0].shape
    (torch.Size([1, 2]), torch.Size([1, 1, 1, 3]), torch.Size([1, 3, 4]))
    """
    parts = classifier_forward(model)

    remembered = _Remembered(model, parts)

    def run(embedded: Tensor, change: Change | None) -> Output:
        mask = torch.ones(embedded.shape[:2], dtype=torch.bool, device=embedded.device)
        states = remembered.states(embedded) if change is not None else encoded(parts, embedded)
        alpha = parts.project(parts.score(states), mask)[:, None, None]
        alpha = alpha if change is None else change(0, alpha)
        logits = model.from_attention(alpha[:, 0, 0], states.hidden)
        return Output(probabilities(logits), (alpha,), (states.hidden,))

    def fresh(seed: int) -> Network:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            other = AttentionClassifier(model.config, model.embedding.num_embeddings, model.classes, model.mode)
        return classifier_network(other.to(model.output.weight).eval())

    return ModuleNetwork((model,), model.embedding, run, layers=1, heads=1, query="only", can_change=True, fresh=fresh)


def encoded(parts: Forward, embedded: Float[Tensor, "B L E"]) -> States:
    """The states of texts of one length, none of it padding."""
    mask = torch.ones(embedded.shape[:2], dtype=torch.bool, device=embedded.device)
    return parts.encode(embedded, mask, torch.arange(len(embedded), device=embedded.device))


class _Remembered:
    """States of texts that are asked about again and again, each time with another attention: encoded once."""

    def __init__(self, model: AttentionClassifier, parts: Forward) -> None:
        self.model, self.parts = model, parts
        self.known: tuple[list[int], Tensor, States] | None = None

    def states(self, embedded: Float[Tensor, "B L E"]) -> States:
        """Those of equal texts once, and of the texts that came last not again, unless gradients or training ask."""
        if embedded.requires_grad or self.model.training:
            return encoded(self.parts, embedded)
        texts, which = torch.unique(embedded, dim=0, return_inverse=True)
        versions = [parameter._version for parameter in self.model.parameters()]
        if self.known is None or self.known[0] != versions or not torch.equal(self.known[1], texts):
            with torch.no_grad():
                self.known = versions, texts, encoded(self.parts, texts)
        return self.known[2].rows(which)


def _rules(data: str, lower: bool | None) -> TokenRules:
    rules = CATALOG[data].rules if data in CATALOG else PLAIN
    return rules if lower is None else replace(rules, lower=lower)


def open_translator_run(
    run: RunDirectory | Path | str, seed: int | None = None
) -> tuple["TranslatorNetwork", "PieceReader", list[Passage], Mapping[int, Alignment] | None]:
    """The standard model of a finished translation study, its reader, its validation pairs, and their gold links.

    >>> network, reader, passages, links = open_translator_run("runs/toy-de-en")         # doctest: +SKIP
    """
    run = run if isinstance(run, RunDirectory) else RunDirectory(run)
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
        source = reader.passage(m, pairs.source[m].tolist(), pairs.source_words[m].tolist())
        said, word = pairs.target[m].tolist(), pairs.target_words[m]
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
