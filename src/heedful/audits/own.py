"""A model of one of our own studies as an audit sees it: one layer, one head, looking from one place at every word."""

from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from heedful.audits.module import ModuleNetwork, WordReader
from heedful.audits.network import Change, Network, Output
from heedful.audits.passage import Passage
from heedful.data.entries import CATALOG
from heedful.data.tokens import BOS, EOS, SPECIALS, UNK
from heedful.data.words import PLAIN, TokenRules, tokenise
from heedful.errors import RunError
from heedful.measure.importance_forward import Forward, States
from heedful.model.adversary import probabilities
from heedful.model.classifier import AttentionClassifier
from heedful.model.forward import classifier_forward
from heedful.studies.run import Run
from heedful.studies.tokens import load_model


def open_run(
    run: Run | Path | str, seed: int | None = None, *, rules: TokenRules | None = None
) -> tuple[ModuleNetwork, WordReader]:
    """The standard model of that seed (the first, unless said) of a finished classification study, and its reader.

    rules: how texts become words, where the study's data had others than the corpus of that name.

    >>> network, reader = open_run("runs/demo")         # doctest: +SKIP
    """
    run = run if isinstance(run, Run) else Run(run)
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


def validation_passages(run: Run | Path | str, reader: WordReader) -> list[Passage]:
    """The validation texts of a study as its models were given them, with their labels."""
    run = run if isinstance(run, Run) else Run(run)
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
