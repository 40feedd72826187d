"""A study of text classification: its data and how each of its models is trained."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heedful.config import AttentionMode, StudyConfig
from heedful.data.batching import evaluation_batches
from heedful.data.corpus import SPLITS, Corpus, require_classes
from heedful.data.vocabulary import SPECIALS, Vocabulary, encode
from heedful.data.word_vectors import WordVectors, read_vectors, vector_words
from heedful.errors import DataError
from heedful.models.classifier import (
    AttentionClassifier,
    BagOfWordsProxy,
    logistic_probe,
    nll,
    predict,
)
from heedful.models.frozen import AttentionTraining, FrozenStates
from heedful.models.guidance import HelpedModel
from heedful.studies.run_directory import RunDirectory
from heedful.studies.training import ModelTraining, records_saliency, train_proxy, train_recorded
from heedful.tracing.recorder import probe_snapshot, record

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
        known=vector_words(config.known_words) if config.known_words else frozenset(),
    )
    splits = {name: getattr(encoded, name) for name in SPLITS}
    run.save_splits(splits, config.train_sample)
    encoded.vocabulary.save(run.data_path("vocabulary.json"))
    run.save_words(encoded.validation_words)
    decisions = [*encoded.decisions, *_save_vectors(run, config, encoded.vocabulary)]
    if config.known_words:
        decisions.append(f"words that {Path(config.known_words).name} has are in the vocabulary however rare they are")
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
            "decisions": decisions,
            "digest": corpus.digest(),
        }
    )


def _save_vectors(run: RunDirectory, config: StudyConfig, vocabulary: Vocabulary) -> list[str]:
    """Keep the vectors that the embeddings start from; a decision says how many words have one."""
    if config.embeddings is None:
        return []
    words = vocabulary.words[len(SPECIALS) :]
    found = read_vectors(config.embeddings, words, config.model.embedding)
    if not len(found):
        raise DataError(f"{config.embeddings}: it has a vector of none of the {len(words):,} words of the vocabulary")
    run.save_vectors(WordVectors(found.index + len(SPECIALS), found.vectors))
    return [f"embeddings start from {Path(config.embeddings).name}: {len(found):,} of {len(words):,} words found"]


def train_model(job: ModelTraining) -> dict[str, Any]:
    """Train, record and store one model of a classification study."""
    if job.spec.kind == "logistic":
        return _fit_logistic(job)
    torch.manual_seed(job.spec.seed)
    return _train_proxy(job) if job.spec.kind == "proxy" else _train_classifier(job)


def _train_classifier(job: ModelTraining) -> dict[str, Any]:
    config, recorded = job.run.config(), job.run.recorded(job.run.split)
    size, classes = len(job.run.vocabulary()), _classes(job.run)
    model = AttentionClassifier(config.model, size, classes, _MODES[job.spec.kind])
    if (vectors := job.run.vectors()) is not None:
        with torch.no_grad():
            model.embedding.weight[torch.from_numpy(vectors.index)] = torch.from_numpy(vectors.vectors)
    model.to(job.device)

    states = {name: FrozenStates(model, split) for name, split in recorded.items()} if model.mode == "only" else {}

    def see(step: int) -> dict[str, float]:
        seen = {
            name: record(model, split, saliency=records_saliency(config, job.spec, name), states=states.get(name))
            for name, split in recorded.items()
        }
        for name, snapshot in seen.items():
            job.folder.record(step, snapshot, name)
        job.record_heads(step, model, recorded["validation"])
        return {"accuracy": seen["validation"].accuracy, "loss": seen["validation"].loss}

    train = job.run.split("train")
    trained: HelpedModel | AttentionTraining | None = None
    if job.spec.kind == "standard" and config.uniform_steps > 0:
        trained = HelpedModel(model, uniform_steps=config.uniform_steps)
    elif model.mode == "only":
        trained = AttentionTraining(model, train)
    return train_recorded(job, model, train, config.train, see, trained)


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

    train = job.run.split("train")
    step = train_proxy(job, model, train, config.schedule(len(train)), evaluate)
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
