"""One trained model of meister2021, and what is measured on it: a unit for each corpus, model and seed.

The weights of the epoch of best validation accuracy are measured, and kept beside the units for the adversaries.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.config import ModelConfig, TrainConfig
from heedful.data.batch import evaluation_batches, training_batches
from heedful.data.corpus import stratified_order
from heedful.data.jain_wallace import SEED, prepare, word_vectors
from heedful.data.tokens import EncodedSplit, Vocabulary
from heedful.model.classifier import AttentionClassifier, predict
from heedful.model.train import Trainable, train
from heedful.papers.experiment import Lab
from heedful.papers.meister2021.budgets import BUDGETS, NAMES, Architecture, Corpus, Projection
from heedful.papers.meister2021.measuring import measure
from heedful.papers.units import Unit, check_beside, write_beside
from heedful.studies.answers import Report
from heedful.typed import content, from_mapping

WEIGHTS = "weights"  # the place of a unit's weights


@dataclass(frozen=True)
class Trained:
    """A kind of model, of which every seed is a unit."""

    corpus: Corpus
    architecture: Architecture
    projection: Projection

    @property
    def name(self) -> str:
        """As the paper calls it.

        >>> Trained(BUDGETS["quick"].corpora[0], "bilstm", Projection("softmax")).name
        'BiLSTM softmax'
        """
        return f"{NAMES[self.architecture]} {self.projection}"

    def unit(self, seed: int, lab: Lab) -> Unit:
        """One seed's training; its weights go where `weights` says."""
        kind = str(self.projection).replace("(", "").replace(")", "")
        name, function = f"{self.corpus.data}-{self.architecture}-{kind}-{seed}", f"{__name__}:trained_and_measured"
        unit = Unit(name, function, self.arguments(seed, lab))
        return replace(unit, places={WEIGHTS: str(weights_of(unit, lab))})

    def arguments(self, seed: int, lab: Lab) -> dict[str, Any]:
        """Everything that decides what a seed comes to."""
        budget, second = BUDGETS[lab.budget], self.architecture == "transformer"
        return {
            "data": self.corpus.data,
            "max_train": self.corpus.max_train,
            "max_test": self.corpus.max_test,
            "longest": self.corpus.longest,
            "vectors": budget.vectors,
            "model": content(budget.model(self.architecture, self.projection)),
            "seed": seed,
            "epochs": self.corpus.epochs[second],
            "learning_rate": budget.rates[second],
            "attention_rate": budget.attention_rate,
            "weight_decay": budget.weight_decay,
            "batch_size": budget.batch_size,
            "examples": self.corpus.examples[second],
            "matrices": self.corpus.matrices[second],
        }


def weights_of(unit: Unit, lab: Lab) -> Path:
    """Where a unit's weights lie."""
    return lab.work / "weights" / unit.file.replace(".json", ".safetensors")


def answers(lab: Lab, wanted: Iterable[Trained], *, weights: bool = False) -> dict[Trained, list[dict[str, Any]]]:
    """What was measured on each kind of model, seed by seed; all that is missing is trained at once.

    weights: whether they are needed too, so that a model whose weights are gone or damaged is trained again.
    """
    kinds, makes = dict.fromkeys(wanted), (WEIGHTS,) if weights else ()
    units = {kind: [replace(kind.unit(seed, lab), makes=makes) for seed in range(kind.corpus.seeds)] for kind in kinds}
    found = lab.compute([unit for seeds in units.values() for unit in seeds])
    return {kind: [found[unit.name] for unit in seeds] for kind, seeds in units.items()}


def trained_and_measured(
    *,
    data: str,
    max_train: int | None,
    max_test: int | None,
    longest: int | None,
    vectors: bool,
    model: Mapping[str, Any],
    seed: int,
    epochs: int,
    learning_rate: float,
    attention_rate: float,
    weight_decay: float,
    batch_size: int,
    examples: int,
    matrices: int,
    weights: str,
    device: torch.device,
    report: Report,
) -> dict[str, Any]:
    """Train one model and measure it on a sample of the test texts; see `measuring.measure`."""
    encoded = prepare(data, max_train, max_test, longest)
    classifier = build(from_mapping(ModelConfig, model), encoded.vocabulary, vectors, seed).to(device)
    best: dict[str, Any] = {"validation_accuracy": -1.0}

    def at_epoch(epoch: int) -> None:
        seen = accuracy(classifier, encoded.validation)
        if seen > best["validation_accuracy"]:
            state = {name: tensor.detach().cpu().clone() for name, tensor in classifier.state_dict().items()}
            best.update(validation_accuracy=seen, epoch=epoch, state=state)

    settings = train_settings(
        len(encoded.train), epochs, batch_size, learning_rate, attention_rate=attention_rate, weight_decay=weight_decay
    )
    train_by_epoch(classifier, encoded.train, settings, seed, device, report, at_epoch)
    state = best.pop("state")
    classifier.load_state_dict(state)
    write_beside(WEIGHTS, Path(weights), lambda path: save_file(state, path))
    sizes = {"train": len(encoded.train), "validation": len(encoded.validation), "test": len(encoded.test)}
    words = encoded.vocabulary.words
    return {
        **best,
        "sizes": sizes,
        "vocabulary": len(words),
        "decisions": list(encoded.decisions),
        "accuracy": accuracy(classifier, encoded.test),
        **measure(classifier, chosen_texts(encoded.test, examples), matrices, words),
    }


def build(config: ModelConfig, vocabulary: Vocabulary, vectors: bool, seed: int) -> AttentionClassifier:
    """A new model of two classes; words that have a vector start there."""
    torch.manual_seed(seed)
    model = AttentionClassifier(config, len(vocabulary), 2)
    if vectors:
        known, values = word_vectors(vocabulary)
        with torch.no_grad():
            model.embedding.weight[torch.from_numpy(known)] = torch.from_numpy(values)
    return model


def load_base(config: ModelConfig, vocabulary: Vocabulary, weights: str) -> AttentionClassifier:
    """A model that was trained before; a clear error where its weights are gone or damaged."""
    check_beside(WEIGHTS, Path(weights))
    model = AttentionClassifier(config, len(vocabulary), 2)
    state: dict[str, Tensor] = load_file(weights)
    model.load_state_dict(state)
    return model.eval()


def train_settings(
    texts: int, epochs: int, batch_size: int, rate: float, *, attention_rate: float, weight_decay: float
) -> TrainConfig:
    """Adam with amsgrad, no weight decay on the attention parameters (App. B), evaluated after every epoch.

    >>> train_settings(65, 2, 32, 1e-3, attention_rate=10.0, weight_decay=1e-5).evaluate_at
    (3, 6)
    """
    per_epoch = -(-texts // batch_size)
    return TrainConfig(
        steps=per_epoch * epochs,
        batch_size=batch_size,
        learning_rate=rate,
        weight_decay=weight_decay,
        amsgrad=True,
        attention_rate=attention_rate,
        attention_decay=False,
        evaluate_at=tuple(per_epoch * (epoch + 1) for epoch in range(epochs)),
    )


def train_by_epoch(
    model: Trainable,
    texts: EncodedSplit,
    settings: TrainConfig,
    seed: int,
    device: torch.device,
    report: Report,
    at_epoch: Callable[[int], None] = lambda epoch: None,
) -> None:
    """Train over some texts, calling `at_epoch` after each epoch."""

    def at_step(step: int, loss: float) -> None:
        report({"step": step, "steps": settings.steps, "loss": loss})
        at_epoch(settings.evaluate_at.index(step) + 1)

    train(model, training_batches(texts, settings.batch_size, seed, device=device), settings, at_step)


@torch.no_grad()
def accuracy(model: AttentionClassifier, split: EncodedSplit) -> float:
    """Share of texts whose label is predicted."""
    batches = evaluation_batches(split, device=model.output.weight.device)
    hits = sum(int((predict(model(b.tokens, b.mask).logits) == b.labels).sum()) for b in batches)
    return hits / len(split)


def chosen_texts(split: EncodedSplit, count: int) -> EncodedSplit:
    """A stratified sample, the same for every model; so is whatever it begins with."""
    return split.take(stratified_order(split.labels, SEED)[:count])
