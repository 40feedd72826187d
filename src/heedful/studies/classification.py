"""A study of text classification: its data, how each of its models is trained, and what is recorded of them."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.config import AttentionMode, StudyConfig
from heedful.data.batching import evaluation_batches
from heedful.data.corpus import SPLITS, Corpus, require_classes
from heedful.data.ragged import FloatArray, Ragged
from heedful.data.vocabulary import EncodedSplit, encode
from heedful.errors import DataError
from heedful.models.classifier import (
    AttentionClassifier,
    BagOfWordsProxy,
    lexical_probe,
    log_odds,
    logistic_probe,
    nll,
    predict,
)
from heedful.models.training import evaluation_mode
from heedful.studies.run_directory import RunDirectory
from heedful.studies.training import ModelTraining, train_proxy, train_recorded
from heedful.tracing.store import QUANTITIES, WRONG, Snapshot

_MODES: dict[str, AttentionMode] = {"standard": "learned", "uniform": "uniform", "attention-only": "only"}


def prepare(run: RunDirectory, config: StudyConfig, corpus: Corpus) -> None:
    """Encode the texts, and store what the models get."""
    with torch.random.fork_rng(devices=[]):
        AttentionClassifier(config.model, 3, 2)  # refuses settings that no model can have, before anything is written
    require_classes(corpus.name, corpus.labels, corpus.train, corpus.validation)
    encoded = encode(
        corpus,
        min_count=config.min_count,
        max_length=config.max_length,
        max_train=config.max_train,
        max_validation=config.max_validation,
    )
    if len(encoded.validation) < 2:
        raise DataError(f"{corpus.name}: {len(encoded.validation)} validation texts; a study needs two or more")
    splits = {name: getattr(encoded, name) for name in SPLITS}
    run.save_splits(splits, config.train_sample)
    encoded.vocabulary.save(run.data_path("vocabulary.json"))
    run.save_words(encoded.validation_words)
    run.save_data_summary(
        {
            "name": corpus.name,
            "labels": list(corpus.labels),
            **{name: len(split) for name, split in splits.items()},
            "vocabulary": len(encoded.vocabulary),
            "median_length": float(np.median(encoded.validation.lengths)),
            "majority": float(np.bincount(encoded.validation.labels).max() / len(encoded.validation)),
            "licence": corpus.licence,
            "source": corpus.source,
            "decisions": list(encoded.decisions),
            "digest": corpus.digest(),
        }
    )


def train_model(job: ModelTraining) -> dict[str, Any]:
    """Train, record and store one model of a classification study."""
    if job.spec.kind == "logistic":
        return _fit_logistic(job)
    torch.manual_seed(job.spec.seed)
    return _train_proxy(job) if job.spec.kind == "proxy" else _train_classifier(job)


def _train_classifier(job: ModelTraining) -> dict[str, Any]:
    config, recorded = job.run.config(), job.run.recorded(job.run.split)
    size, classes = len(job.run.vocabulary()), _classes(job.run)
    model = AttentionClassifier(config.model, size, classes, _MODES[job.spec.kind]).to(job.device)

    def see(step: int) -> dict[str, float]:
        seen = {name: record(model, split) for name, split in recorded.items()}
        for name, snapshot in seen.items():
            job.folder.record(step, snapshot, name)
        return {"accuracy": seen["validation"].accuracy, "loss": seen["validation"].loss}

    return train_recorded(job, model, job.run.split("train"), config.train, see)


def _train_proxy(job: ModelTraining) -> dict[str, Any]:
    config, validation = job.run.config().proxy, job.run.split("validation")
    model = BagOfWordsProxy(len(job.run.vocabulary()), _classes(job.run), config.width).to(job.device)

    @torch.no_grad()
    def evaluate() -> dict[str, float]:
        loss = correct = 0.0
        for batch in evaluation_batches(validation, max_tokens=65536, device=job.device):
            logits = model(batch.tokens, batch.mask)
            loss += nll(logits, batch.labels).sum().item()
            correct += (predict(logits) == batch.labels).sum().item()
        return {"accuracy": correct / len(validation), "loss": loss / len(validation)}

    step = train_proxy(job, model, job.run.split("train"), config.train, evaluate)
    _record_probe(job, step, model.word_log_odds().cpu().numpy())
    return {"best_step": step}


def _fit_logistic(job: ModelTraining) -> dict[str, Any]:
    run, validation = job.run, job.run.split("validation")
    probe = logistic_probe(run.split("train"), validation, len(run.vocabulary()), _classes(run))
    _record_probe(job, 0, probe.word_log_odds)
    job.folder.save_metrics([{"step": 0, "accuracy": probe.accuracy}])
    job.report({"model": job.spec.name, "step": 1, "steps": 1, "accuracy": probe.accuracy})
    return {"best_step": 0, "inverse_penalty": probe.inverse_penalty}


def _record_probe(job: ModelTraining, step: int, word_log_odds: NDArray[np.floating]) -> None:
    for name, split in job.run.recorded(job.run.split).items():
        job.folder.record(step, probe_snapshot(word_log_odds, split), name)


def _classes(run: RunDirectory) -> int:
    return len(run.data_summary()["labels"])


def wrong_labels(labels: NDArray[np.int64], classes: int) -> NDArray[np.int64]:
    """A fixed wrong label for each text, the same for all models of a study; they take turns.

    >>> wrong_labels(np.array([0, 0, 0, 2]), 3)
    array([1, 2, 1, 1])
    """
    turn = np.arange(len(labels)) % (classes - 1)
    wrong: NDArray[np.int64] = (labels + 1 + turn) % classes
    return wrong


def record(model: AttentionClassifier, split: EncodedSplit, *, max_tokens: int = 2048) -> Snapshot:
    """α, β and Δ of every text (SPEC §1); the model is left unchanged.

        Δ_l = −∂NLL/∂m_l at m = 1,  m a multiplicative mask on embeddings:  Δ_l = −e_l · ∂NLL/∂e_l

    With more than two labels also β of a wrong label; with two its log-odds are those of the right one, negated.
    Memory is bounded by `max_tokens`, the padded tokens held at once. Dropout is off while it runs.
    """
    device = next(model.parameters()).device
    names = QUANTITIES if model.classes == 2 else (*QUANTITIES, WRONG)
    wrong = torch.from_numpy(wrong_labels(split.labels, model.classes)).to(device)
    rows: dict[str, list[FloatArray]] = {name: [np.empty(0)] * len(split) for name in names}
    odds, prediction = np.empty(len(split), dtype=np.float32), np.empty(len(split), dtype=np.int32)
    with evaluation_mode([model]), torch.enable_grad():
        for batch in evaluation_batches(split, max_tokens=max_tokens, device=device):
            embedded = model.embedding(batch.tokens).detach().requires_grad_()
            output = model.from_embeddings(embedded, batch.mask)
            (gradient,) = torch.autograd.grad(nll(output.logits, batch.labels).sum(), embedded)
            with torch.no_grad():
                values = {
                    "alpha": output.alpha.detach(),
                    "beta_logit": lexical_probe(model, output.hidden, batch.labels),
                    "delta": -(embedded * gradient).sum(-1),
                }
                if WRONG in rows:
                    values[WRONG] = lexical_probe(model, output.hidden, wrong[batch.index])
                odds[batch.index] = log_odds(output.logits, batch.labels).cpu().numpy()
                prediction[batch.index] = predict(output.logits).cpu().numpy()
            lengths = batch.lengths.tolist()
            for name, value in values.items():
                for i, row, length in zip(batch.index, value.cpu().numpy(), lengths, strict=True):
                    rows[name][i] = row[:length].copy()
    return _snapshot(split, {name: Ragged.of(rows[name]) for name in names}, prediction, odds)


def probe_snapshot(word_log_odds: NDArray[np.floating], split: EncodedSplit) -> Snapshot:
    """A bag-of-words model's probe (β^px, β^log) of every position: the log-odds its word gives the text's label.

    word_log_odds: (V, K). With more than two labels also those of a wrong label.
    """

    def probe(labels: NDArray[np.int64]) -> Ragged:
        label = np.repeat(labels, split.lengths)
        return Ragged(word_log_odds[split.ids.values, label].astype(np.float64), split.ids.offsets)

    quantities, classes = {"beta_logit": probe(split.labels)}, word_log_odds.shape[1]
    if classes > 2:
        quantities[WRONG] = probe(wrong_labels(split.labels, classes))
    return _snapshot(split, quantities)


def _snapshot(split: EncodedSplit, quantities: dict[str, Ragged], *predicted: NDArray[Any]) -> Snapshot:
    n = len(split)
    example, output = np.arange(n, dtype=np.int32), np.zeros(n, dtype=np.int32)
    return Snapshot(quantities, example, output, split.labels.astype(np.int32), *predicted)
