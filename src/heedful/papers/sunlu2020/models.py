"""The models of sunlu2020, each trained and scored as one unit (§3, §5).

DP attends to word vectors (h = e), DP-A to an affine map of them, DP-L to the states of an LSTM, all by a scaled dot
product; AD attends to word vectors by additive attention; `mean` is DP with uniform weights, what a large λ tends to.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heedful.config import AttentionMode, EncoderName, ModelConfig, TrainConfig
from heedful.data.batching import Batch, evaluation_batches, training_batches
from heedful.data.vocabulary import EncodedSplit
from heedful.execution.pool import OnEvent
from heedful.metrics.association import COUNT, association, dominance
from heedful.models.attention import AdditiveScorer, DotScorer
from heedful.models.classifier import AttentionClassifier, predict
from heedful.models.training import OtherLoss, train
from heedful.papers.experiment import Unit
from heedful.papers.sunlu2020.data import NEUTRAL_CLASS, Sample, SunLuTexts, read_texts
from heedful.storage.atomic_files import without_nan
from heedful.storage.serialization import LATER, content, from_mapping
from heedful.studies.token_table import WordMeans, alone, over_occurrences, towards

LISTED = 300  # tokens of each class that are kept for pictures
QUARTILES = (0.0, 0.25, 0.5, 0.75, 1.0)
Numbers = NDArray[np.float64]


Kind = Literal["DP", "DP-L", "DP-A", "AD", "mean"]
_ENCODERS: dict[Kind, EncoderName] = {"DP-L": "lstm", "DP-A": "affine"}  # the others attend to word vectors
DECAYED: tuple[Kind, ...] = ("DP-L", "DP-A", "AD")


@dataclass(frozen=True)
class Recipe:
    """How models are trained; the defaults are the paper's where it says, else the released code's.

    patience: training ends once the best epoch lies so many behind; None: never. decay: the L2 penalty of DP-L, DP-A
    and AD, whose size the paper does not say. penalised: the parameters that it is on; `layer`, those of the affine
    layer, the LSTM or the additive layer alone, as a footnote of the supplement has it.
    """

    epochs: int = 40
    patience: int | None = None
    batch_size: int = 100
    learning_rate: float = 0.02
    decay: float = 1e-5
    width: int = 100
    penalised: Literal["all", "layer"] = field(default="all", metadata=LATER)


@dataclass(frozen=True)
class TrainingJob:
    """A model to train: everything that decides it.

    coefficient: that of ∣VᵀW∣ in the loss. spread: the standard deviation of V as training begins.
    """

    data: str
    kind: Kind
    scale: float
    seed: int
    coefficient: float = 0.0
    spread: float = 1.0
    sample: Sample = field(default_factory=Sample)
    recipe: Recipe = field(default_factory=Recipe)

    @property
    def unit(self) -> Unit:
        """The unit that trains and scores it."""
        name = f"{self.data}-{self.kind}-{self.scale:g}-{self.seed}"
        name += f"-vw{self.coefficient:g}" if self.coefficient else ""
        name += f"-v{self.spread:g}" if self.spread != 1 else ""
        name += f"-positive{self.sample.positive:g}" if self.sample.positive is not None else ""
        return Unit(name, f"{__name__}:train_and_score", content(self))


def train_and_score(*, device: torch.device, report: OnEvent, **settings: Any) -> dict[str, Any]:
    """A unit: train one model; what is returned is of the epoch with the best dev accuracy, the first of equals.

    `epochs` trained, the `best` one, `dev` and `test` accuracy, `hits` (1 for each test text whose label is predicted,
    shortest first), `dot` (VᵀW; None for AD), and what `summarise` returns.
    """
    job = from_mapping(TrainingJob, settings)
    texts = read_texts(job.data, job.sample)
    model = build_model(job, texts).to(device)
    best: dict[str, Any] = {"dev": -1.0}
    weights: dict[str, Tensor] = {}

    def at_epoch(epoch: int, loss: float) -> bool:
        dev = accuracy(model, texts.validation)
        report({"step": epoch, "steps": job.recipe.epochs, "accuracy": dev})
        if dev > best["dev"]:
            best.update(dev=dev, best=epoch)
            weights.update({name: tensor.clone() for name, tensor in model.state_dict().items()})
        best["epochs"] = epoch
        return job.recipe.patience is not None and epoch - best["best"] >= job.recipe.patience

    train_epochs(model, texts, job, at_epoch)
    model.load_state_dict(weights)
    model.eval()
    right = hits(model, texts.test)
    scored = {"test": float(np.mean(right)), "hits": right, "dot": _dot(model)}
    return best | scored | summarise(model, texts, listed=job.seed == 0)


def build_model(job: TrainingJob, texts: SunLuTexts) -> AttentionClassifier:
    """A model as training begins: E ~ U(±0.1), V ~ N(0, 1) unless `spread` says otherwise, W without a bias."""
    torch.manual_seed(job.seed)
    width = job.recipe.width
    config = ModelConfig(
        embedding=width,
        encoder=_ENCODERS.get(job.kind, "embedding"),
        hidden=width,
        scorer="additive" if job.kind == "AD" else "dot",
        scorer_hidden=width,
        scale=job.scale,
        dropout=0.5,
        output_bias=False,
        embedding_range=0.1,
        orthogonality=job.coefficient,
    )
    mode: AttentionMode = "uniform" if job.kind == "mean" else "learned"
    model = AttentionClassifier(config, len(texts.vocabulary), len(texts.labels), mode)
    assert isinstance(model.scorer, AdditiveScorer | DotScorer)
    V = model.scorer.out if isinstance(model.scorer, AdditiveScorer) else model.scorer.context
    nn.init.normal_(V.weight, std=job.spread)
    return model


class PenalisedLayer(OtherLoss[AttentionClassifier]):
    """A model trained with an L2 penalty on its affine, LSTM or additive layer alone, for `models.training.train`.

    loss + ½ decay ∥θ_layer∥²,   whose gradient is that of weight decay on these parameters
    """

    def __init__(self, model: AttentionClassifier, decay: float) -> None:
        super().__init__(model)
        self.decay = decay
        self.layer = model.scorer.hidden if isinstance(model.scorer, AdditiveScorer) else model.encoder

    def loss(self, batch: Batch) -> Tensor:
        """The model's loss and the penalty."""
        squares = [weight.square().sum() for weight in self.layer.parameters()]
        return self.model.loss(batch) + self.decay / 2 * torch.stack(squares).sum()


def train_epochs(
    model: AttentionClassifier,
    texts: SunLuTexts,
    job: TrainingJob,
    at_epoch: Callable[[int, float], bool],
    steps_too: tuple[int, ...] = (),
    at_step: Callable[[int], None] = lambda step: None,
) -> None:
    """Train by Adagrad. `at_epoch(epoch, loss)` returns true to end training; `at_step` is called at `steps_too`."""
    recipe = job.recipe
    per_epoch = math.ceil(len(texts.train) / recipe.batch_size)
    decay = recipe.decay if job.kind in DECAYED else 0.0
    apart = bool(decay) and recipe.penalised == "layer"
    ends = range(per_epoch, recipe.epochs * per_epoch + 1, per_epoch)
    config = TrainConfig(
        steps=ends[-1],
        batch_size=recipe.batch_size,
        learning_rate=recipe.learning_rate,
        weight_decay=0.0 if apart else decay,
        optimiser="adagrad",
        evaluate_at=tuple(sorted({*ends, *(step for step in steps_too if step <= ends[-1])})),
    )

    def at_evaluation(step: int, loss: float) -> bool:
        if step in steps_too:
            at_step(step)
        return step in ends and at_epoch(step // per_epoch, loss)

    batches = training_batches(texts.train, recipe.batch_size, job.seed, device=model.output.weight.device)
    train(PenalisedLayer(model, decay) if apart else model, batches, config, at_evaluation)


def accuracy(model: AttentionClassifier, split: EncodedSplit) -> float:
    """Share of texts whose label is predicted."""
    return float(np.mean(hits(model, split)))


@torch.no_grad()
def hits(model: AttentionClassifier, split: EncodedSplit) -> list[int]:
    """1 for each text whose label is predicted, else 0; texts in the order of their length."""
    right: list[int] = []
    for batch in evaluation_batches(split, max_tokens=65536, device=model.output.weight.device):
        right += (predict(model(batch.tokens, batch.mask).logits) == batch.labels).int().tolist()
    return right


def _dot(model: AttentionClassifier) -> float | None:
    """VᵀW; the largest of them for several classes; None for additive attention."""
    if not isinstance(model.scorer, DotScorer):
        return None
    dots = (model.output.weight @ model.scorer.context.weight.T).detach().flatten()
    return float(dots[dots.abs().argmax()])


@dataclass(frozen=True, eq=False)
class TokenScores:
    """Of every token of the vocabulary: its polarity towards each label (V, K) and its attention score (V,)."""

    towards: Numbers
    score: Numbers


def summarise(model: AttentionClassifier, texts: SunLuTexts, *, listed: bool = True) -> dict[str, Any]:
    """Scores and weights of the tokens, as JSON: `classes`, `neutral`, `weights` and, if listed, some `tokens`.

    Pictures show the tokens of the first seed alone; those of the others are not kept.
    """
    scores = token_scores(model, texts)
    seen = over_occurrences(model, texts.test, len(texts.vocabulary))
    names = ("negative", "positive") if len(texts.labels) == 2 else texts.labels
    neutral = texts.token_class == NEUTRAL_CLASS
    frequent = neutral & (texts.frequency > COUNT)
    classes = {}
    for label, name in enumerate(names):
        mine, polarity = texts.token_class == label, scores.towards[:, label]
        classes[name] = {
            "tokens": int(mine.sum()),
            "polarity": _mean(polarity[mine]),
            "score": _mean(scores.score[mine]),
            "polarity_delta": dominance(polarity[mine], polarity[neutral]),
            "score_delta": dominance(scores.score[mine], scores.score[neutral]),
            "score_delta_frequent": dominance(scores.score[mine], scores.score[frequent]),
            "score_gap": _standardised(scores.score[mine], scores.score[neutral]),
            "alpha_delta": dominance(*(_defined(seen.alpha[which]) for which in (mine, neutral))),
            "relative_delta": dominance(*(_defined(seen.relative[which]) for which in (mine, neutral))),
        }
    groups = {name: texts.token_class == label for label, name in enumerate(names)} | {"neutral": neutral}
    summary = {
        "vocabulary": len(texts.vocabulary),
        "classes": classes,
        "neutral": {
            "tokens": int(neutral.sum()),
            "frequent": int(frequent.sum()),
            "polarity": _mean(scores.towards[neutral, -1]),
            "score": _mean(scores.score[neutral]),
        },
        "weights": {
            name: {"alpha": _five(seen.alpha[which]), "relative": _five(seen.relative[which])}
            for name, which in groups.items()
        },
        "tokens": {name: _listed(which, texts, scores, seen) for name, which in groups.items() if listed},
    }
    plain: dict[str, Any] = without_nan(summary)
    return plain


def token_scores(model: AttentionClassifier, texts: SunLuTexts) -> TokenScores:
    """Scores of every token: of its vector where there is no context, averaged over training texts where there is."""
    single = alone(model)
    if single is not None:
        return TokenScores(towards(single[0]), single[1])
    seen = over_occurrences(model, texts.train, len(texts.vocabulary))
    return TokenScores(towards(seen.logits), seen.score)


def _listed(which: NDArray[np.bool_], texts: SunLuTexts, scores: TokenScores, seen: WordMeans) -> dict[str, list[Any]]:
    """Some of these tokens, drawn under a fixed seed, with their scores and weights."""
    chosen = np.sort(np.random.default_rng(0).permutation(np.flatnonzero(which))[:LISTED])
    own = texts.counts.argmax(axis=1)[chosen]
    two = len(texts.labels) == 2
    polarity = scores.towards[chosen, 1] if two else scores.towards[chosen, own]
    gamma = association(texts.counts[chosen]) if two else texts.counts[chosen].max(axis=1) / texts.frequency[chosen]
    return {
        "token": [texts.vocabulary.words[i] for i in chosen],
        "frequency": texts.frequency[chosen].tolist(),
        "association": _short(gamma),
        "polarity": _short(polarity),
        "score": _short(scores.score[chosen]),
        "alpha": _short(seen.alpha[chosen]),
        "relative": _short(seen.relative[chosen]),
    }


def _standardised(a: Numbers, b: Numbers) -> float:
    """The difference of means in units of the pooled standard deviation (Cohen's d)."""
    if min(len(a), len(b)) < 2:
        return float("nan")
    pooled = np.sqrt(((len(a) - 1) * a.var(ddof=1) + (len(b) - 1) * b.var(ddof=1)) / (len(a) + len(b) - 2))
    return float((a.mean() - b.mean()) / pooled) if pooled > 0 else float("nan")


def _five(values: Numbers) -> list[float]:
    """Minimum, quartiles, maximum and mean, as the paper's Figure 5 has them; empty where no value is defined."""
    defined = _defined(values)
    return [*np.quantile(defined, QUARTILES).tolist(), float(defined.mean())] if len(defined) else []


def _defined(values: Numbers) -> Numbers:
    return values[~np.isnan(values)]


def _mean(values: Numbers) -> float:
    return float(values.mean()) if len(values) else float("nan")


def _short(values: Numbers) -> list[float]:
    return [float(f"{value:.4g}") for value in values.tolist()]
