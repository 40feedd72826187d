"""A study of translation: its data, how each of its models is trained, and what is recorded of them."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heedful.config import AttentionMode, StudyConfig
from heedful.data.batching import PairBatch, evaluation_batches
from heedful.data.corpus import SPLITS
from heedful.data.parallel import ParallelCorpus, ParallelSplit
from heedful.data.ragged import FloatArray, Ragged
from heedful.data.subwords import EncodedPairs, Tokeniser, Words, encode_pairs, fit_tokeniser
from heedful.errors import DataError
from heedful.metrics.translation_quality import bleu_gain, corpus_bleu
from heedful.models.classifier import BagOfWordsProxy, log_odds
from heedful.models.lexicon import Lexicon, ibm_model_1
from heedful.models.training import evaluation_mode
from heedful.models.translator import Translator, TranslatorOutput, translate, translator_probe
from heedful.studies.run_directory import RunDirectory, sample_indices
from heedful.studies.training import ModelTraining, train_proxy, train_recorded
from heedful.tracing.store import QUANTITIES, Snapshot

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
    model = Translator(config.translator, len(tokeniser), _MODES[job.spec.kind]).to(job.device)
    signature = corpus_bleu(["a"], ["a"]).signature

    def see(step: int) -> dict[str, float]:
        measured = {}
        for name, pairs in recorded.items():
            seen = record_pairs(model, pairs)
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
        return measured

    trained = train_recorded(job, model, job.run.pairs("train"), config.train, see)
    return trained | {"bleu_signature": signature}


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

    step = train_proxy(job, model, job.run.pairs("train"), config.train, evaluate)
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


def record_pairs(model: Translator, pairs: EncodedPairs, *, max_tokens: int = 2048) -> Snapshot:
    """α (the mean over heads), β and Δ of every output word (SPEC §1); the model is left unchanged.

        Δ_{t,l} = −∂NLL_t/∂m_l at m = 1,  m a multiplicative mask on the source's embeddings

    One backward pass for each output position of a batch, none of them through N. Memory is bounded by `max_tokens`,
    the padded tokens held at once, and by the probe's chunks, not by T·L·V.
    """
    device, outputs = next(model.parameters()).device, pairs.outputs
    n = len(outputs.values)
    rows: dict[str, list[FloatArray]] = {name: [np.empty(0)] * n for name in QUANTITIES}
    prediction, odds = np.empty(n, dtype=np.int32), np.empty(n, dtype=np.float32)
    with evaluation_mode([model]), torch.enable_grad():
        for batch in evaluation_batches(pairs, max_tokens=max_tokens, device=device):
            embedded = model.embedding(batch.source).detach().requires_grad_()
            output = model.from_embeddings(embedded, batch)
            delta, log_odds_there, words = _saliency(model, output, embedded, batch)
            beta = translator_probe(model, output.hidden, output.states, batch.target_out)
            values = {"alpha": output.alpha.detach().mean(1), "beta_logit": beta, "delta": delta}
            for name, value in values.items():
                _scatter(rows[name], value, outputs, batch)
            for b, i in enumerate(batch.index):
                place = slice(outputs.offsets[i], outputs.offsets[i + 1])
                prediction[place] = words[b, : outputs.lengths[i]].cpu().numpy()
                odds[place] = log_odds_there[b, : outputs.lengths[i]].cpu().numpy()
    return _snapshot(pairs, {name: Ragged.of(rows[name]) for name in QUANTITIES}, prediction, odds)


@torch.no_grad()
def record_proxy(model: BagOfWordsProxy, pairs: EncodedPairs, *, max_tokens: int = 2048) -> Snapshot:
    """β^px of every output word and input position (snell2021, Eq. 6): logit σ(W e_{x_l})_{y_t}."""
    device, outputs = next(model.parameters()).device, pairs.outputs
    rows: list[FloatArray] = [np.empty(0)] * len(outputs.values)
    for batch in evaluation_batches(pairs, max_tokens=max_tokens, device=device):
        B, L = batch.source.shape
        T = batch.target_out.shape[1]
        beta = torch.empty(B, T, L, device=device)
        for b in range(B):
            log_p = model.output(model.embedding(batch.source[b])).double().log_softmax(-1)
            beta[b] = _logit(log_p[:, batch.target_out[b]].T).float()
        _scatter(rows, beta, outputs, batch)
    return _snapshot(pairs, {"beta_logit": Ragged.of(rows)})


def record_lexicon(lexicon: Lexicon, pairs: EncodedPairs) -> Snapshot:
    """α^IBM, and β^IBM on the log-odds scale (snell2021, Eqs 18–19), of every output word."""
    targets = pairs.outputs
    beta, alpha = lexicon.beta(pairs.source, targets), lexicon.alpha(pairs.source, targets)
    with np.errstate(divide="ignore"):
        beta_logit = np.clip(np.log(beta.values) - np.log1p(-beta.values), -50.0, 50.0)
    return _snapshot(pairs, {"alpha": alpha, "beta_logit": Ragged(beta_logit, beta.offsets)})


def _saliency(
    model: Translator, output: TranslatorOutput, embedded: Float[Tensor, "B L E"], batch: PairBatch
) -> tuple[Float[Tensor, "B T L"], Float[Tensor, "B T"], Int[Tensor, "B T"]]:
    """Δ, the log-odds of the correct words, and the words predicted.

    NLL_t depends on the source through c_t and s_t alone. Its gradients there come from one backward pass through N
    for all t together; only the layers below need one backward pass for each t.
    """
    reached = [t.detach().requires_grad_() for t in (output.context, output.states)]
    logits = model.read(*reached)
    odds = log_odds(logits, batch.target_out)
    slopes = torch.autograd.grad(torch.nn.functional.softplus(-odds).sum(), reached)
    T = odds.shape[1]
    rows = []
    for t in range(T):
        here = [torch.zeros_like(slope) for slope in slopes]
        for empty, slope in zip(here, slopes, strict=True):
            empty[:, t] = slope[:, t]
        (gradient,) = torch.autograd.grad((output.context, output.states), embedded, here, retain_graph=t + 1 < T)
        rows.append(-(embedded.detach() * gradient).sum(-1))
    return torch.stack(rows, dim=1), odds.detach(), logits.detach().argmax(-1)


def _logit(log_p: Float[Tensor, "*rows L"]) -> Float[Tensor, "*rows L"]:
    """ln p/(1 − p) from ln p."""
    return log_p - torch.log(-torch.expm1(log_p))


def _scatter(rows: list[FloatArray], values: Float[Tensor, "B T L"], outputs: Ragged, batch: PairBatch) -> None:
    """Put the rows of a batch, without padding, where the split has them."""
    matrix, lengths = values.cpu().numpy(), batch.source_mask.sum(1).tolist()
    for b, i in enumerate(batch.index):
        for t in range(outputs.lengths[i]):
            rows[outputs.offsets[i] + t] = matrix[b, t, : lengths[b]].copy()


def _snapshot(pairs: EncodedPairs, quantities: dict[str, Ragged], *predicted: NDArray[Any]) -> Snapshot:
    outputs = pairs.outputs
    output = np.arange(len(outputs.values)) - outputs.offsets[outputs.row_of]
    return Snapshot(quantities, outputs.row_of.astype(np.int32), output.astype(np.int32), outputs.values, *predicted)
