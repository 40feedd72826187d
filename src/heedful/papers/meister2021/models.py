"""The models of meister2021, trained and measured: a unit for each corpus, model and seed.

The weights of the epoch of best validation accuracy are measured, and stored for the adversaries.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from heedful.attribution.attention_maps import Importance, normalised, shares
from heedful.attribution.importance import d_y_h, d_y_x, g_h_x, gradients
from heedful.attribution.interface import Passage, Subject
from heedful.attribution.modules import classifier_network
from heedful.config import ModelConfig, TrainConfig
from heedful.data.batching import Batch, collate, evaluation_batches, training_batches
from heedful.data.corpus import stratified_order
from heedful.data.ragged import Ragged, as_ragged
from heedful.data.vocabulary import Encoded, EncodedSplit, Vocabulary
from heedful.execution.pool import OnEvent
from heedful.metrics.entropy import normalised_entropy
from heedful.metrics.rank import kendall_ceiling, kendall_tau_b
from heedful.models.attention import project
from heedful.models.classifier import AttentionClassifier, predict
from heedful.models.encoders import TransformerEncoder
from heedful.models.training import Trainable, train
from heedful.papers.experiment import Unit
from heedful.papers.meister2021.config import BUDGETS, NAMES, Architecture, MeisterCorpus, Projection
from heedful.papers.meister2021.data import SEED, encode_corpus, word_vectors
from heedful.storage.atomic_files import damaged_error
from heedful.storage.serialization import content, from_mapping
from heedful.storage.step_cache import record_beside, write_with_record

IMPORTANCES = ("g_y_x", "d_y_x", "g_y_h", "d_y_h", "g_y_x detached", "g_y_h detached")
DIGITS = 4  # of each text's numbers: its answer is stored beside the results
MAX_TOKENS = 65_536  # run at once
EXAMPLE_LENGTH = 14  # words of the text that is shown as an example, or the next longer one
WEIGHTS = "weights"  # the argument that says where a unit stores its weights


@dataclass(frozen=True)
class MeisterModel:
    """A kind of model; the training of each seed is a unit. rate, epochs: where they are not the budget's."""

    corpus: MeisterCorpus
    architecture: Architecture
    projection: Projection
    rate: float | None = None
    epochs: int | None = None

    @property
    def name(self) -> str:
        """The paper's name for it.

        >>> MeisterModel(BUDGETS["quick"].corpora[0], "bilstm", Projection("softmax")).name
        'BiLSTM softmax'
        """
        return f"{NAMES[self.architecture]} {self.projection}"

    def unit(self, seed: int, budget: str) -> Unit:
        """One seed's training; its weights are stored under the name of its answer."""
        kind = str(self.projection).replace("(", "").replace(")", "")
        kind += "" if self.rate is None else f"-rate-{self.rate:g}"
        name, function = f"{self.corpus.data}-{self.architecture}-{kind}-{seed}", f"{__name__}:train_and_measure"
        arguments = content(self.run(seed, budget))
        weights = f"weights/{Path(Unit(name, function, arguments).file).stem}.safetensors"
        return Unit(name, function, {**arguments, WEIGHTS: weights}, paths=(WEIGHTS,))

    def run(self, seed: int, budget: str) -> "MeisterRun":
        """Everything that decides the answer of a seed."""
        corpus, sizes, second = self.corpus, BUDGETS[budget], self.architecture == "transformer"
        return MeisterRun(
            corpus.data,
            corpus.max_train,
            corpus.max_test,
            corpus.longest,
            vectors=sizes.vectors,
            model=sizes.model(self.architecture, self.projection),
            seed=seed,
            epochs=self.epochs or corpus.epochs[second],
            learning_rate=self.rate or sizes.rates[second],
            attention_rate=sizes.attention_rate,
            weight_decay=sizes.weight_decay,
            batch_size=sizes.batch_size,
            examples=corpus.examples[second],
            matrices=corpus.matrices[second],
        )

    def units(self, budget: str) -> list[Unit]:
        """The training of every seed."""
        return [self.unit(seed, budget) for seed in range(self.corpus.seeds)]


@dataclass(frozen=True)
class MeisterRun:
    """The training and measuring of one model from one seed."""

    data: str
    max_train: int | None
    max_test: int | None
    longest: int | None
    vectors: bool
    model: ModelConfig
    seed: int
    epochs: int
    learning_rate: float
    attention_rate: float
    weight_decay: float
    batch_size: int
    examples: int
    matrices: int

    def encoded(self) -> Encoded:
        """Its corpus as ids."""
        return encode_corpus(self.data, self.max_train, self.max_test, self.longest)

    def training(self, texts: int) -> TrainConfig:
        """Adam with amsgrad, no weight decay on the attention parameters (App. B), evaluated after every epoch.

        >>> model = MeisterModel(BUDGETS["quick"].corpora[0], "bilstm", Projection("softmax"))
        >>> model.run(0, "quick").training(65).evaluate_at
        (3, 6, 9)
        """
        per_epoch = -(-texts // self.batch_size)
        return TrainConfig(
            steps=per_epoch * self.epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            weight_decay=self.weight_decay,
            amsgrad=True,
            attention_rate=self.attention_rate,
            attention_decay=False,
            evaluate_at=tuple(per_epoch * (epoch + 1) for epoch in range(self.epochs)),
        )


def train_and_measure(*, weights: str, device: torch.device, report: OnEvent, **settings: Any) -> dict[str, Any]:
    """A unit: train one model and measure it on a sample of the test texts; see `measure`."""
    run = from_mapping(MeisterRun, settings)
    encoded = run.encoded()
    classifier = build(run.model, encoded.vocabulary, run.vectors, run.seed).to(device)
    best: dict[str, Any] = {"validation_accuracy": -1.0}

    def at_epoch(epoch: int) -> None:
        validation = accuracy(classifier, encoded.validation)
        if validation > best["validation_accuracy"]:
            state = {name: tensor.detach().cpu().clone() for name, tensor in classifier.state_dict().items()}
            best.update(validation_accuracy=validation, epoch=epoch, state=state)

    train_by_epoch(classifier, encoded.train, run, run.seed, device, report, at_epoch)
    state = best.pop("state")
    classifier.load_state_dict(state)
    write_with_record(Path(weights), lambda path: save_file(state, path))
    words = encoded.vocabulary.words
    return {
        **best,
        "sizes": {name: len(getattr(encoded, name)) for name in ("train", "validation", "test")},
        "vocabulary": len(words),
        "decisions": list(encoded.decisions),
        "accuracy": accuracy(classifier, encoded.test),
        **measure(classifier, chosen_texts(encoded.test, run.examples), run.matrices, words),
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
    """A trained model; an error where its weights are gone or damaged."""
    path = Path(weights)
    if not path.exists():
        raise damaged_error(path, "it is gone")
    record_beside(path).verified(path.name)
    model = AttentionClassifier(config, len(vocabulary), 2)
    state: dict[str, Tensor] = load_file(weights)
    model.load_state_dict(state)
    return model.eval()


def train_by_epoch(
    model: Trainable,
    texts: EncodedSplit,
    run: MeisterRun,
    seed: int,
    device: torch.device,
    report: OnEvent,
    at_epoch: Callable[[int], None] = lambda epoch: None,
) -> None:
    """Train over some texts, calling `at_epoch` after each epoch."""
    settings = run.training(len(texts))

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
    """A stratified sample, the same for every model; a smaller one is the beginning of a larger."""
    return split.take(stratified_order(split.labels, SEED)[:count])


def measure(model: AttentionClassifier, texts: EncodedSplit, matrices: int, words: Sequence[str]) -> dict[str, Any]:
    """All measures of some texts, `matrices` of which have g_h(x); and one text with its g_h(x) and α in full."""
    batch = collate(texts, np.arange(len(texts)), model.output.weight.device)
    alpha = attention(model, batch)
    rows = importances(model, texts)
    measures: dict[str, Any] = {
        "length": alpha.lengths.tolist(),
        "support": np.add.reduceat(alpha.values > 0, alpha.offsets[:-1], dtype=np.int64).tolist(),
        "ceiling": listed(kendall_ceiling(alpha)),
        "entropy alpha": listed(normalised_entropy(alpha)),
    }
    for name, importance in rows.items():
        measures[f"tau {name}"] = listed(kendall_tau_b(alpha, importance))
        measures[f"tau {name} support"] = listed(kendall_tau_b(alpha, importance, support=True))
        measures[f"entropy {name}"] = listed(_entropy(importance))
    measures |= _contextualisation(model, texts, min(matrices, len(texts)))
    measures["layers"] = _layers(model, batch, rows)
    if isinstance(model.encoder, TransformerEncoder):
        others = {"zeroed": without_states(model, batch), "below": without_keys(model, texts)}
        measures |= {f"tau d_y_h {name}": listed(kendall_tau_b(alpha, row)) for name, row in others.items()}
    measures["example"] = _example(model, texts, words)
    return measures


@torch.no_grad()
def attention(model: AttentionClassifier, batch: Batch) -> Ragged:
    """α of each text."""
    alpha = model(batch.tokens, batch.mask).alpha
    return as_ragged(alpha.double().cpu().numpy(), batch.mask.cpu().numpy())


def importances(model: AttentionClassifier, texts: EncodedSplit) -> dict[str, Importance]:
    """The importances of `IMPORTANCES`, a row for each text; only gradients can hold α fixed (“detached”)."""
    subject, passages = attribution_subject(model), text_passages(texts)
    attached, detached = (gradients(subject, passages, attach=attach) for attach in (True, False))
    rows = {
        "g_y_x": attached.g_y_x,
        "d_y_x": d_y_x(subject, passages),
        "g_y_h": [layers[0] for layers in attached.g_y_h],
        "d_y_h": d_y_h(subject, passages),
        "g_y_x detached": detached.g_y_x,
        "g_y_h detached": [layers[0] for layers in detached.g_y_h],
    }
    return {name: shares(passages, rows[name]) for name in IMPORTANCES}


def state_importances(model: AttentionClassifier, texts: EncodedSplit) -> Importance:
    """g_h(x): for each text in turn, a row for each of its hidden states."""
    matrices, lengths = g_h_x(attribution_subject(model), text_passages(texts)), texts.lengths
    return normalised(np.concatenate([matrix.ravel() for matrix in matrices]), np.repeat(lengths, lengths))


def attribution_subject(model: AttentionClassifier) -> Subject:
    """The model in padded batches, an LSTM on the fast path."""
    return Subject(classifier_network(model), max_tokens=MAX_TOKENS, padded=True)


def text_passages(texts: EncodedSplit) -> list[Passage]:
    """Texts as passages; ŷ is the probability of the second of two classes."""
    return [Passage.of_pieces(i, texts.text(i).tolist(), target=1) for i in range(len(texts))]


def _entropy(importance: Importance) -> NDArray[np.float64]:
    """H̃; NaN where every importance is 0, which is not the same as all being equal."""
    return np.where(importance.undefined, np.nan, normalised_entropy(importance))


def _contextualisation(model: AttentionClassifier, texts: EncodedSplit, count: int) -> dict[str, list[float | None]]:
    """H̃(g_{h_p}(x)), and the share of h_p that is its own token's, both in the mean over p."""
    chosen = texts.take(np.arange(count))
    matrix, lengths = state_importances(model, chosen), chosen.lengths
    starts = np.concatenate([[0], np.cumsum(lengths)])[:-1]  # where the rows of each text begin
    place = np.concatenate([np.arange(n) for n in lengths])
    own = np.where(matrix.undefined, np.nan, matrix.values[matrix.offsets[:-1] + place])
    return {
        "entropy g_h_x": listed(_mean_of_rows(_entropy(matrix), starts)),
        "own g_h_x": listed(_mean_of_rows(own, starts)),
    }


def _mean_of_rows(values: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The mean within each text over the rows that have a value; NaN where none has."""
    defined = ~np.isnan(values)
    total = np.add.reduceat(np.where(defined, values, 0.0), starts)
    count = np.add.reduceat(defined, starts, dtype=np.int64)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


@torch.no_grad()
def without_states(model: AttentionClassifier, batch: Batch) -> Ragged:
    """∣ŷ − ŷ_{−i}∣ where α_i h_i is taken out of the sum and the other weights stay as they are: another D_ŷ(I)."""
    output = model(batch.tokens, batch.mask)
    parts = output.alpha * (output.hidden @ model.output.weight[0])
    changed = (output.logits.sigmoid() - (output.logits - parts).sigmoid()).abs()
    return as_ragged(changed.double().cpu().numpy(), batch.mask.cpu().numpy())


@torch.no_grad()
def without_keys(model: AttentionClassifier, texts: EncodedSplit) -> Ragged:
    """∣ŷ − ŷ_{−i}∣ where the last self-attention layer and the pooling do not see position i: another D_ŷ(I)."""
    encoder = model.encoder
    assert isinstance(encoder, TransformerEncoder)
    rows = []
    for i in range(len(texts)):
        batch = collate(texts, np.array([i]), model.output.weight.device)
        states = encoder.states(model.embedding(batch.tokens), batch.mask)[-2]
        n = states.shape[1]
        seen = torch.cat([batch.mask, ~torch.eye(n, dtype=torch.bool, device=states.device)])[: n + 1 if n > 1 else 1]
        hidden, _ = encoder.layers[-1](states.expand(len(seen), -1, -1), seen)
        alpha = project(model.config.projection, model.scorer(hidden), seen, model.config.projection_parameter)
        y = model.from_attention(alpha, hidden)[:, 0].sigmoid()
        rows.append((y[1:] - y[0]).abs().double().cpu().numpy() if n > 1 else np.zeros(1))
    return Ragged.of(rows)


@torch.no_grad()
def _layers(
    model: AttentionClassifier, batch: Batch, rows: dict[str, Importance]
) -> list[dict[str, list[float | None]]]:
    """Of each self-attention layer: how much each token receives, averaged over queries, as if it were α.

    Beside it the rows of the first and of the last query alone.
    """
    layers = []
    mask, words = batch.mask, batch.mask.cpu().numpy()
    for weights in model(batch.tokens, mask).self_attention:
        per_query = weights.double().mean(1)  # over heads: (B, L, L)
        received = (per_query * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
        row = as_ragged(received.cpu().numpy(), words)
        each = [as_ragged(p[q][:, q]) for p, q in zip(per_query.cpu().numpy(), words, strict=True)]
        ends = {
            "first": Ragged.of([text[0] for text in each]),
            "last": Ragged.of([text[len(text) - 1] for text in each]),
        }
        layers.append(
            {
                "entropy received": listed(normalised_entropy(row)),
                "entropy of a query": listed([normalised_entropy(text).mean() for text in each]),
                "tau g_y_x": listed(kendall_tau_b(row, rows["g_y_x"])),
                "tau d_y_x": listed(kendall_tau_b(row, rows["d_y_x"])),
                "tau g_y_h": listed(kendall_tau_b(row, rows["g_y_h"])),
                "tau d_y_h": listed(kendall_tau_b(row, rows["d_y_h"])),
                **{
                    f"{name} tau {importance}": listed(kendall_tau_b(end, rows[importance]))
                    for name, end in ends.items()
                    for importance in ("g_y_h", "d_y_h")
                },
            }
        )
    return layers


def _example(model: AttentionClassifier, texts: EncodedSplit, words: Sequence[str]) -> dict[str, Any]:
    """The words of one text, its g_h(x), a row for each p, and its α."""
    long_enough = np.where(texts.lengths >= EXAMPLE_LENGTH, texts.lengths, np.iinfo(np.int64).max)
    at = int(np.argmin(long_enough)) if texts.lengths.max() >= EXAMPLE_LENGTH else int(np.argmax(texts.lengths))
    batch = collate(texts, np.array([at]), model.output.weight.device)
    matrix = state_importances(model, texts.take(np.array([at])))
    n = int(texts.lengths[at])
    return {
        "words": [words[int(i)] for i in texts.text(at)],
        "g_h_x": np.round(matrix.values.reshape(n, n), DIGITS).tolist(),
        "alpha": np.round(attention(model, batch).values, DIGITS).tolist(),
    }


def listed(values: NDArray[np.float64] | Sequence[float]) -> list[float | None]:
    """Numbers for JSON: rounded, None for NaN.

    >>> listed(np.array([0.12345678, np.nan]))
    [0.1235, None]
    """
    return [None if np.isnan(value) else round(float(value), DIGITS) for value in values]
