"""A study of translation: its data and how each of its models is trained."""

from typing import Any

import numpy as np
import torch

from heedful.config import AttentionMode, StudyConfig
from heedful.data.batching import evaluation_batches
from heedful.data.corpus import SPLITS
from heedful.data.parallel import ParallelCorpus, ParallelSplit
from heedful.data.subwords import EncodedPairs, Tokeniser, Words, encode_pairs, fit_tokeniser
from heedful.errors import DataError
from heedful.metrics.translation_quality import bleu_gain, corpus_bleu
from heedful.models.classifier import BagOfWordsProxy
from heedful.models.guidance import AttentionGuide, HelpedModel
from heedful.models.lexicon import Lexicon, ibm_model_1
from heedful.models.transformer import build_translator
from heedful.models.translator import PairModel, translate
from heedful.studies.run_directory import RunDirectory, sample_indices
from heedful.studies.training import ModelTraining, records_saliency, train_proxy, train_recorded
from heedful.tracing.recorder import record_lexicon, record_pairs, record_proxy

EM_ITERATIONS = 5
_MODES: dict[str, AttentionMode] = {"standard": "learned", "uniform": "uniform"}


def prepare(run: RunDirectory, config: StudyConfig, corpus: ParallelCorpus) -> None:
    """Split sentences into subwords, and store what the models get."""
    decisions = list(corpus.decisions)
    train = _sample("train", corpus.train, config.max_train, decisions)
    tokeniser, notes = fit_tokeniser(corpus, config.subwords)
    decisions += notes
    chosen = {"train": train, "validation": _sample("validation", corpus.validation, config.max_validation, decisions)}
    chosen["test"] = corpus.test
    encoded = {name: _encode(name, chosen[name], tokeniser, config, decisions) for name in SPLITS}
    if len(encoded["validation"]) < 2:
        raise DataError(f"{corpus.name}: {len(encoded['validation'])} validation pairs; a study needs two or more")
    run.save_splits(encoded, config.train_sample)
    tokeniser.save(run.data_path("vocabulary.json" if isinstance(tokeniser, Words) else "subwords.model"))
    run.save_data_summary(
        {
            "name": corpus.name,
            "languages": [corpus.source_language, corpus.target_language],
            "labels": [],
            **{name: len(pairs) for name, pairs in encoded.items()},
            "vocabulary": len(tokeniser),
            "median_length": float(np.median(encoded["validation"].source.lengths)),
            "gold": encoded["validation"].alignments is not None,
            "licence": corpus.licence,
            "source": corpus.source,
            "decisions": decisions,
            "digest": corpus.digest(),
        }
    )


def _sample(name: str, split: ParallelSplit, size: int | None, decisions: list[str]) -> ParallelSplit:
    if size is None or size >= len(split):
        return split
    decisions.append(f"{name}: {size:,} of {len(split):,} pairs sampled, seed 0")
    return split.take(sample_indices(len(split), size))


def _encode(
    name: str, split: ParallelSplit, tokeniser: Tokeniser, config: StudyConfig, decisions: list[str]
) -> EncodedPairs:
    """Encode pairs; those with a side longer than `max_length` are left out and counted, not truncated."""
    encoded = encode_pairs(split, tokeniser, source_bos=config.source_bos)
    fits = np.flatnonzero(np.maximum(encoded.source.lengths, encoded.target.lengths) <= config.max_length + 2)
    if len(fits) == len(split):
        return encoded
    decisions.append(
        f"{name}: {len(split) - len(fits):,} of {len(split):,} pairs longer than {config.max_length} left out"
    )
    return encode_pairs(split.take(fits), tokeniser, source_bos=config.source_bos)


def train_model(job: ModelTraining) -> dict[str, Any]:
    """Train, record and store one model of a translation study."""
    if job.spec.kind == "lexicon":
        return _count_words(job)
    torch.manual_seed(job.spec.seed)
    return _train_proxy(job) if job.spec.kind == "proxy" else _train_translator(job)


def _train_translator(job: ModelTraining) -> dict[str, Any]:
    config, recorded, tokeniser = job.run.config(), job.run.recorded(job.run.pairs), job.run.tokeniser()
    model = build_translator(config.translator, len(tokeniser), _MODES[job.spec.kind]).to(job.device)
    signature = corpus_bleu(["a"], ["a"]).signature

    def see(step: int) -> dict[str, float]:
        measured = {}
        for name, pairs in recorded.items():
            seen = record_pairs(model, pairs, saliency=records_saliency(config, job.spec, name))
            job.folder.record(step, seen, name)
            translations = [tokeniser.decode(ids) for ids in translate(model, pairs)]
            references = [tokeniser.decode(target) for target in pairs.target]
            bleu = corpus_bleu(translations, references)
            if name == "train":
                measured["train_bleu"] = bleu.score
            else:
                gain = bleu_gain(translations, references)
                measured |= {"accuracy": seen.accuracy, "loss": seen.loss, "bleu": bleu.score}
                measured |= {"bleu_gain": gain.gain, "bleu_gain_se": gain.se}
        job.record_heads(step, model, recorded["validation"])
        return measured

    train = job.run.pairs("train")
    helped = _helped(model, config, train) if job.spec.kind == "standard" else None
    trained = train_recorded(job, model, train, config.train, see, helped)
    return trained | {"bleu_signature": signature}


def _helped(model: PairModel, config: StudyConfig, train: EncodedPairs) -> HelpedModel | None:
    """The help that the settings name; None where they name none."""
    guide = None
    if config.guide == "ibm":
        size = model.embedding.num_embeddings
        lexicon = ibm_model_1(train.source, train.outputs, EM_ITERATIONS, source_size=size, target_size=size)
        guide = AttentionGuide(lexicon, config.guide_steps or max(1, config.train.steps // 4))
    if guide is None and not config.uniform_steps:
        return None
    return HelpedModel(model, uniform_steps=config.uniform_steps, guide=guide)


def _train_proxy(job: ModelTraining) -> dict[str, Any]:
    config, validation = job.run.config().proxy, job.run.pairs("validation")
    size = len(job.run.tokeniser())
    model = BagOfWordsProxy(size, size, config.width).to(job.device)

    @torch.no_grad()
    def evaluate() -> dict[str, float]:
        loss, correct, words = 0.0, 0, 0
        for batch in evaluation_batches(validation, device=job.device):
            logits = model(batch.source, batch.source_mask)
            log_p = logits.log_softmax(-1).gather(1, batch.target_out)
            loss -= log_p[batch.target_mask].sum().item()
            guess = logits.argmax(-1, keepdim=True).expand_as(batch.target_out)
            correct += int((guess == batch.target_out)[batch.target_mask].sum())
            words += int(batch.target_mask.sum())
        return {"accuracy": correct / words, "loss": loss / words}

    train = job.run.pairs("train")
    step = train_proxy(job, model, train, config.schedule(len(train)), evaluate)
    for name, pairs in job.run.recorded(job.run.pairs).items():
        job.folder.record(step, record_proxy(model, pairs), name)
    return {"best_step": step}


def _count_words(job: ModelTraining) -> dict[str, Any]:
    """IBM Model 1: step k is its k-th iteration; the first is the paper's count table (snell2021, Eqs 16–19)."""
    train, size = job.run.pairs("train"), len(job.run.tokeniser())
    metrics: list[dict[str, Any]] = []

    def see(lexicon: Lexicon) -> None:
        k, loss = len(metrics) + 1, -lexicon.log_likelihood[-1] / len(train.outputs.values)
        for name, pairs in job.run.recorded(job.run.pairs).items():
            job.folder.record(k, record_lexicon(lexicon, pairs), name)
        metrics.append({"step": k, "loss": loss, "accuracy": None})
        job.report({"model": job.spec.name, "step": k, "steps": EM_ITERATIONS, "loss": loss})

    ibm_model_1(train.source, train.outputs, EM_ITERATIONS, source_size=size, target_size=size, on_iteration=see)
    job.folder.save_metrics(metrics)
    return {"best_step": 1}
