"""Table of a trained classifier's words: frequency, association with labels, polarity, attention.

A word's *polarity* is what the model predicts from it alone, its *score* the attention score before normalisation
(sunlu2020 §3), its *weight* the attention it gets, n·α, in units of the uniform weight, so that text length does not
matter. Where an encoder mixes words, all three are means over the word's occurrences.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from heedful.attribution.interface import Numbers, numbers
from heedful.attribution.model_files import safetensors_header
from heedful.data.batching import evaluation_batches
from heedful.data.vocabulary import EncodedSplit
from heedful.errors import ConfigError, DamagedError, DataError, RunError
from heedful.metrics.association import association, even_tokens, token_counts, token_labels
from heedful.models.classifier import AttentionClassifier
from heedful.storage.atomic_files import reason
from heedful.studies.run_directory import ModelSpec, RunDirectory

Model = TypeVar("Model", bound=nn.Module)
FEWEST = 3  # a word with fewer occurrences is never suspicious: they could all be in one text
HIGH, LOW = 0.9, 0.5  # quantiles
NOTICED, ATTENDED = 1.5, 1.0  # least weight of a suspicious word: below it, the model hardly looks at the word
UNFOUNDED, OPPOSED = "attention without polarity", "polarity against association"
RULES = {
    UNFOUNDED: f"it occurs at least {FEWEST} times; among such words, its weight is in the top {1 - HIGH:.0%} and at "
    f"least {NOTICED:g} times the uniform weight, but its polarity (without sign) is in the lower {LOW:.0%}",
    OPPOSED: f"it goes with one label in the training texts, occurs at least {FEWEST} times, gets at least "
    f"{ATTENDED:g} times the uniform weight, but its polarity points away from that label",
}


@dataclass(frozen=True, eq=False)
class WordMeans:
    """Means over the occurrences of each word of a vocabulary in a split; NaN where it does not occur.

    logits: of its hidden states, (V, K), one column for two labels. relative: n·α.
    """

    count: NDArray[np.int64]
    logits: Numbers
    score: Numbers
    alpha: Numbers
    relative: Numbers


def token_table(run: RunDirectory | Path | str, seed: int | None = None) -> pl.DataFrame:
    """Every word that the standard model of a seed (the first by default) has seen, the most frequent first.

    Columns: `token`; `frequency` in training texts; `occurrences` in the validation texts that everything else is
    averaged over; `class` and `association` (sunlu2020, Eq. 28; with more than two labels, the label it goes with and
    the largest label's share); `polarity`, the log-odds of the second label that the probe reads off the word (with
    more labels, its most frequent label's logit less the mean of the others'); `polarity_alone`, the same of the word
    without a text, where the encoder looks at one word at a time; `score`; `weight`; and why it is `suspicious`.

    >>> token_table("runs/demo").sort("weight").tail(3)         # doctest: +SKIP
    """
    run = run if isinstance(run, RunDirectory) else RunDirectory(run)
    model, labels = load_model(run, seed), run.data_summary()["labels"]
    words, train = run.vocabulary().words, run.split("train")
    seen = over_occurrences(model, run.split("validation"), len(words))
    counts = token_counts(train.ids, train.labels, vocabulary=len(words), classes=len(labels))
    own = counts.argmax(axis=1)
    polarity = _towards_own(seen.logits, own)
    single = alone(model)
    table = pl.DataFrame(
        {
            "token": list(words),
            "frequency": counts.sum(axis=1),
            "occurrences": seen.count,
            "class": _classes(counts, labels),
            "association": association(counts) if len(labels) == 2 else _largest_share(counts),
            "polarity": polarity,
            "polarity_alone": None if single is None else _towards_own(single[0], own),
            "score": seen.score if single is None else single[1],
            "weight": seen.relative,
            "suspicious": _suspicious(counts, seen, polarity),
        },
        schema_overrides={"polarity_alone": pl.Float64, "suspicious": pl.String},
    ).with_columns(pl.col(pl.Float64).fill_nan(None))
    met = table.filter((pl.col("frequency") > 0) | (pl.col("occurrences") > 0))
    return met.sort("frequency", descending=True, maintain_order=True)


def select(
    table: pl.DataFrame,
    *,
    sort: str = "weight",
    kind: str | None = None,
    min_count: int = 5,
    suspicious: bool = False,
) -> pl.DataFrame:
    """Some words of a `token_table`, the largest first; those without a value to sort by come last.

    kind: only words of this class. min_count: times a word must occur in training texts.

    >>> table = pl.DataFrame({"token": ["a", "b"], "frequency": [3, 1], "class": ["none"] * 2, "weight": [None, 2.0]})
    >>> select(table, min_count=1)["token"].to_list(), select(table, min_count=2)["token"].to_list()
    (['b', 'a'], ['a'])
    """
    numbers = [name for name in table.columns if table[name].dtype.is_numeric()]
    if sort not in numbers:
        raise ConfigError(f"there is no column {sort!r} to sort by; there are {', '.join(numbers)}")
    chosen = table.filter(pl.col("frequency") >= min_count)
    if kind is not None:
        known = sorted(table["class"].unique().to_list())
        if kind not in {*known, "positive", "negative", "neutral", "none"}:
            raise ConfigError(f"there is no class {kind!r} of tokens; there are {', '.join(known)}")
        chosen = chosen.filter(pl.col("class") == kind)
    if suspicious:
        chosen = chosen.filter(pl.col("suspicious").is_not_null())
    return chosen.sort(sort, descending=True, nulls_last=True, maintain_order=True)


def load_model(run: RunDirectory, seed: int | None = None) -> AttentionClassifier:
    """The standard model of a finished classification study, with its last weights."""
    config = run.config()
    if run.is_translation():
        raise RunError(f"{run.root} is a study of translation; only words of a classification study have a polarity")
    chosen = config.seeds[0] if seed is None else seed
    if chosen not in config.seeds:
        raise RunError(f"{run.root} has no model of seed {chosen}; its seeds are {', '.join(map(str, config.seeds))}")
    folder = run.model(ModelSpec("standard", chosen))
    weights = folder.checkpoint_folder(config.train.steps) / "model.safetensors"
    if not folder.is_done() and not weights.exists():
        raise RunError(f"{weights}: no such file; the run is not finished")
    folder.verified(weights)
    words, labels = len(run.vocabulary()), len(run.data_summary()["labels"])
    return load_weights(lambda: AttentionClassifier(config.model, words, labels), weights).eval()


def load_weights(build: Callable[[], Model], path: Path) -> Model:
    """The model that `build` makes, with the weights in a safetensors file; an error names the file if they do not fit.

    The settings of a run may be a stranger's: its sizes are compared with those in the file before it takes memory.
    """
    try:
        with torch.device("meta"):
            expected = {name: list(tensor.shape) for name, tensor in build().state_dict().items()}
        stored = {name: tensor["shape"] for name, tensor in safetensors_header(path).items()}
        for name in sorted(expected.keys() | stored.keys()):
            if expected.get(name) != stored.get(name):
                raise DamagedError(
                    path,
                    f"not the weights of this model: {name[:60]} has the shape {stored.get(name)}, and by the settings "
                    f"of the run {expected.get(name)}",
                )
        model = build()
        model.load_state_dict(load_file(path))
    except (SafetensorError, RuntimeError, OSError, DataError) as error:
        raise DamagedError(path, f"not the weights of this model: {reason(error)}") from None
    return model


@torch.no_grad()
def over_occurrences(model: AttentionClassifier, split: EncodedSplit, vocabulary: int) -> WordMeans:
    """Logits, scores and weights of every word, averaged over its occurrences."""
    device = next(model.parameters()).device
    sums = np.zeros((vocabulary, 3 + model.output.out_features))
    count = np.zeros(vocabulary, dtype=np.int64)
    for batch in evaluation_batches(split, max_tokens=16384, device=device):
        output = model(batch.tokens, batch.mask)
        relative = output.alpha * batch.lengths[:, None]
        columns = torch.stack([output.alpha, relative, output.scores], dim=-1)
        places = numbers(torch.cat([columns, model.output(output.hidden)], dim=-1)[batch.mask])
        word = batch.tokens[batch.mask].cpu().numpy()
        count += np.bincount(word, minlength=vocabulary)
        for column, values in enumerate(places.T):
            sums[:, column] += np.bincount(word, weights=values, minlength=vocabulary)
    means = np.full(sums.shape, np.nan)
    np.divide(sums, count[:, None], out=means, where=count[:, None] > 0)
    return WordMeans(count, means[:, 3:], means[:, 2], means[:, 0], means[:, 1])


@torch.no_grad()
def alone(model: AttentionClassifier) -> tuple[Numbers, Numbers] | None:
    """Logits (V, K) and scores (V,) of every word without a text; None where the encoder mixes words."""
    if model.config.encoder not in ("embedding", "affine"):
        return None
    vectors = model.embedding.weight[None]
    hidden, _ = model.encoder(vectors, torch.ones(vectors.shape[:2], dtype=torch.bool, device=vectors.device))
    return numbers(model.output(hidden)[0]), numbers(model.scorer(hidden)[0])


def towards(logits: Numbers) -> Numbers:
    """Polarity towards each label: of two, ± the logit; of more, a label's logit minus the mean of the others'.

    >>> towards(np.array([[2.0]])), towards(np.array([[3.0, 0.0, 0.0]]))
    (array([[-2.,  2.]]), array([[ 3. , -1.5, -1.5]]))
    """
    K = logits.shape[1]
    if K == 1:
        return np.concatenate([-logits, logits], axis=1)
    others: Numbers = (logits.sum(axis=1, keepdims=True) - logits) / (K - 1)
    return logits - others


def _towards_own(logits: Numbers, own: NDArray[np.int64]) -> Numbers:
    """Polarity towards the second of two labels; of more, towards the word's most frequent one."""
    polarity = towards(logits)
    return polarity[:, 1] if logits.shape[1] == 1 else polarity[np.arange(len(own)), own]


def _classes(counts: NDArray[np.int64], labels: list[str]) -> list[str]:
    names = np.array(["negative", "positive"] if len(labels) == 2 else labels, dtype=object)
    own, even = token_labels(counts), even_tokens(counts)
    return [str(names[c]) if c >= 0 else "neutral" if e else "none" for c, e in zip(own, even, strict=True)]


def _largest_share(counts: NDArray[np.int64]) -> Numbers:
    total = counts.sum(axis=1)
    share = np.full(len(counts), np.nan)
    np.divide(counts.max(axis=1), total, out=share, where=total > 0)
    return share


def _suspicious(counts: NDArray[np.int64], seen: WordMeans, polarity: Numbers) -> list[str | None]:
    """Why each word is suspicious, by `RULES`; None where it is not."""
    judged = seen.count >= FEWEST
    marks: list[str | None] = [None] * len(counts)
    if not judged.any():
        return marks
    high, low = np.quantile(seen.relative[judged], HIGH), np.quantile(np.abs(polarity[judged]), LOW)
    unfounded = judged & (seen.relative >= max(high, NOTICED)) & (np.abs(polarity) < low)
    goes_with = token_labels(counts)
    against = towards(seen.logits)[np.arange(len(counts)), goes_with] < 0
    opposed = judged & (seen.relative >= ATTENDED) & (goes_with >= 0) & against
    for mark, which in ((UNFOUNDED, unfounded), (OPPOSED, opposed)):
        for i in np.flatnonzero(which):
            marks[i] = mark
    return marks
