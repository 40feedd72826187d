"""Models of our own studies, opened for an audit: network, reader, and the validation data of the run."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from safetensors.torch import load_file

from heedful.attribution.interface import Passage
from heedful.attribution.modules import OpenNetwork, WordReader, classifier_network, translator_network
from heedful.data.alignments import Alignment
from heedful.data.catalog import CATALOG
from heedful.data.subwords import EncodedPairs, Tokeniser
from heedful.data.vocabulary import BOS, EOS, SPECIALS, UNK
from heedful.data.words import PLAIN, TokenRules, tokenise
from heedful.errors import RunError
from heedful.models.translator import Translator
from heedful.studies.run_directory import ModelSpec, RunDirectory
from heedful.studies.token_table import load_model


def open_run(
    run: RunDirectory | Path | str, seed: int | None = None, *, rules: TokenRules | None = None
) -> tuple[OpenNetwork, WordReader]:
    """The standard model of a finished classification study (of the first seed by default), and its reader.

    rules: how texts become words, where the study's data had other rules than the corpus of that name.

    >>> network, reader = open_run("runs/demo")         # doctest: +SKIP
    """
    run = run if isinstance(run, RunDirectory) else RunDirectory(run)
    config = run.config()
    if config.task != "classification":
        raise RunError(f"{run.root} is a study of translation; open it with open_translator_run")
    model = load_model(run, seed)
    words = run.vocabulary().words
    token_rules = rules or _rules(config.data, config.lower)
    reader = WordReader(
        {word: i for i, word in enumerate(words) if i >= len(SPECIALS)},
        tuple(run.data_summary()["labels"]),
        unknown=UNK,
        split=lambda text: tokenise(text, token_rules),
        first=(SPECIALS[BOS], BOS),
        last=(SPECIALS[EOS], EOS),
        longest=config.max_length,
    )
    return classifier_network(model), reader


def validation_passages(run: RunDirectory | Path | str, reader: WordReader) -> list[Passage]:
    """The validation texts of a study with their labels, as its models were given them."""
    run = run if isinstance(run, RunDirectory) else RunDirectory(run)
    labels = run.split("validation").labels
    as_written = replace(reader, split=str.split)
    return [
        as_written.read(i, " ".join(words), reader.labels[int(label)])
        for i, (words, label) in enumerate(zip(run.words(), labels, strict=True))
    ]


def open_translator_run(
    run: RunDirectory | Path | str, seed: int | None = None
) -> tuple[OpenNetwork, "PieceReader", list[Passage], Mapping[int, Alignment] | None]:
    """The standard model of a finished translation study, its reader, its validation pairs, and their gold links.

    >>> network, reader, passages, links = open_translator_run("runs/toy-de-en")         # doctest: +SKIP
    """
    run = run if isinstance(run, RunDirectory) else RunDirectory(run)
    config, tokeniser = run.config(), run.tokeniser()
    seed = config.seeds[0] if seed is None else seed
    weights = run.model(ModelSpec("standard", seed)).checkpoint_folder(config.train.steps) / "model.safetensors"
    if not weights.exists():
        raise RunError(f"{weights}: no such file; the run is not finished, or has no model of seed {seed}")
    model = Translator(config.translator, len(tokeniser))
    model.load_state_dict(load_file(weights))
    pairs, reader = run.pairs("validation"), PieceReader(tokeniser)
    links = None if pairs.alignments is None else dict(enumerate(pairs.alignments))
    return translator_network(model.eval()), reader, pair_passages(pairs, reader), links


def pair_passages(pairs: EncodedPairs, reader: "PieceReader") -> list[Passage]:
    """One passage for each word of each target: it explains the word's first piece, given the pieces before it."""
    passages = []
    for m in range(len(pairs)):
        source = reader.passage(m, pairs.source[m].tolist(), pairs.source_words[m].tolist())
        pieces, word = pairs.target[m].tolist(), pairs.target_words[m]
        for w in range(int(word.max()) + 1):
            own = np.flatnonzero(word == w)
            if len(own):  # a word that was cut has none
                at = int(own[0])
                output = reader.tokeniser.decode([pieces[i] for i in own]) or str(pieces[at])
                passages.append(replace(source, target=pieces[at], output=output, before=tuple(pieces[:at])))
    return passages


@dataclass(frozen=True)
class PieceReader:
    """A reader with the tokeniser of a translation study; there are no labels."""

    tokeniser: Tokeniser
    labels: tuple[str, ...] = ()

    def read(self, number: int, text: str, label: str | None = None) -> Passage:
        """A source sentence between its start and end symbols."""
        pieces, words = self.tokeniser.encode(text)
        return self.passage(number, [BOS, *pieces, EOS], [-1, *words, -1])

    def passage(self, number: int, pieces: list[int], words: list[int]) -> Passage:
        """The passage of these pieces; words: the word of each piece, -1 for start and end symbols."""
        starts = [i for i, word in enumerate(words) if i == 0 or word == -1 or word != words[i - 1]]
        groups = [pieces[a:b] for a, b in zip(starts, [*starts[1:], len(pieces)], strict=True)]
        special = tuple(words[start] == -1 for start in starts)
        shown = (
            SPECIALS[group[0]] if is_special else self.tokeniser.decode(group) or str(group[0])
            for group, is_special in zip(groups, special, strict=True)
        )
        word = tuple(np.repeat(np.arange(len(groups)), [len(group) for group in groups]).tolist())
        return Passage(number, tuple(shown), special, tuple(pieces), word)


def _rules(data: str, lower: bool | None) -> TokenRules:
    rules = CATALOG[data].rules if data in CATALOG else PLAIN
    return rules if lower is None else replace(rules, lower=lower)
