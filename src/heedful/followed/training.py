"""Following somebody else's training: what the model attends to, knows and depends on in some texts, step by step.

    α_l   attention of the last layer, its heads averaged, from where the prediction is read
    β_l   word knowledge: the probability of the label if the model reads this word alone
    Δ_l   saliency: −∂NLL/∂m_l at m = 1, m a multiplicative mask on the word's embeddings:  Δ_l = −e_l · ∂NLL/∂e_l

The label is the right one or, where nobody gave it, the one predicted at that step. Pieces are summed into words. What
the tokeniser added is no word: α is taken over the others, and how much was left to special tokens is kept beside it.

Departure: the papers' β (snell2021, Eq. 9) lets the classifier read one hidden state. In a Transformer every hidden
state has seen all words, so the word itself is read alone, between the special tokens; any classifier allows that.
"""

import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from itertools import compress
from operator import index
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedful.attribution.attention_maps import asked, of_query, shares
from heedful.attribution.huggingface import open_classifier
from heedful.attribution.interface import Network, Passage, Reader
from heedful.attribution.model_queries import Numbers, PassageBatch, Subject, chosen, numbers
from heedful.data.ragged import Ragged
from heedful.errors import ConfigError, DataError
from heedful.followed.result import FollowedDirectory, FollowedTraining, ProbeTexts
from heedful.studies.run_directory import sample_indices
from heedful.tracing.store import Snapshot

Opening = Callable[[Any], AbstractContextManager[tuple[Network, Reader]]]
MAX_TEXTS = 200
MAX_TOKENS = 4096
UNKNOWN = -1  # the right label of a text, where nobody gave it
_LEAST = 1e-16  # probabilities below this, and within it of 1, are not told apart


class Recorder:
    """Records a training from inside its loop, and leaves it as it would have been.

        recorder = Recorder("runs/mine", texts, tokenizer, labels=labels, every=100)
        for step, batch in enumerate(batches):
            recorder.record(model, step)  # `step` updates have been made
            …
        recorder.close(model, step + 1)

    folder: new, or of the same training before it was interrupted; `heedful report` makes a page of it at any time.
    texts: the fixed texts to look at; of more than `max_texts`, that many are drawn under a fixed seed. labels: their
    right labels, by name or number, or none. tokenizer: that of a Hugging Face classifier; of any other model,
    `opening` makes a `Network` and a `Reader` for the time of one recording. every, steps: what `record` is to record
    beside step 0, out of the steps it is called at; all of them if neither is given. name: what the page calls the
    training, its folder's name if left out. At most `max_tokens` tokens are held at once; a text that is longer is held
    alone.
    """

    def __init__(
        self,
        folder: Path | str,
        texts: Iterable[str],
        tokenizer: Any = None,
        *,
        opening: Opening | None = None,
        labels: Iterable[Any] | None = None,
        every: int | None = None,
        steps: Iterable[int] | None = None,
        max_texts: int = MAX_TEXTS,
        max_tokens: int = MAX_TOKENS,
        name: str | None = None,
    ) -> None:
        self.run = FollowedDirectory(folder)
        self.every, self.steps = _chosen_steps(every, steps)
        if (tokenizer is None) == (opening is None):
            raise ConfigError("a model is read by a tokenizer, or an opening of its own; give one of them")
        self._opening = opening or (lambda model: open_classifier(model, tokenizer))
        self._max_tokens = max_tokens
        self._name = self.run.root.resolve().name if name is None else name
        self._texts, self._labels = _checked(texts, labels)
        if max_texts < 1:
            raise ConfigError(f"max_texts is {max_texts}; it must be 1 or more")
        self._chosen = sample_indices(len(self._texts), max_texts).tolist()
        self._probes: tuple[Probe, ...] = ()
        self._last: int | None = None

    def is_due(self, step: int) -> bool:
        """Whether this step is one to record.

        >>> recorder = Recorder("runs/mine", ["a good film"], tokenizer="some/model", every=50)
        >>> recorder.is_due(0), recorder.is_due(49), recorder.is_due(100)
        (True, False, True)
        """
        if self.every is not None:
            return step % self.every == 0
        return self.steps is None or step == 0 or step in self.steps

    def record(self, model: Any, step: int) -> None:
        """Record the model after `step` updates, if that step is one to record."""
        if self.is_due(step):
            self._record(model, step)

    def close(self, model: Any, step: int) -> FollowedTraining:
        """Record the last step, whichever it is, and say what the training has shown."""
        if self._last != step:
            self._record(model, step)
        return self.run.result()

    def _record(self, model: Any, step: int) -> None:
        self._last = step
        if not all(bool(torch.isfinite(weight).all()) for weight in model.parameters()):
            warnings.warn(f"step {step} is not recorded: the model has parameters that are not finite", stacklevel=3)
            return
        with self._opening(model) as (network, reader):
            if not self._probes:
                self._probes = self._read_texts(reader, type(model).__name__)
            subject = Subject(network, reader, max_tokens=self._max_tokens)
            snapshot, special = see(subject, self._probes, labelled=self._labels is not None)
        self.run.keep(step, snapshot, special)

    def _read_texts(self, reader: Reader, model: str) -> "tuple[Probe, ...]":
        names, labels = reader.labels, self._labels
        if len(names) < 2:
            raise DataError(f"{model} has {len(names)} labels; a training is followed through two labels or more")
        right = () if labels is None else tuple(_number(labels[i], names, i) for i in self._chosen)
        targets = right or [UNKNOWN] * len(self._chosen)
        read = [replace(reader.read(i, self._texts[i]), target=t) for i, t in zip(self._chosen, targets, strict=True)]
        probes = tuple(map(Probe.of, read))
        words = tuple(tuple(compress(passage.words, asked(passage))) for passage in read)
        self.run.claim(ProbeTexts(self._name, model, names, words, right, self._decisions(read)))
        return probes

    def _decisions(self, passages: Sequence[Passage]) -> tuple[str, ...]:
        decisions = []
        if len(passages) < len(self._texts):
            decisions.append(f"{len(passages):,} of {len(self._texts):,} texts sampled, seed 0")
        if cut := [passage.cut for passage in passages if passage.cut]:
            decisions.append(f"{len(cut):,} of {len(passages):,} texts cut, by {sum(cut):,} tokens in all")
        return tuple(decisions)


def see(subject: Subject, probes: "Sequence[Probe]", *, labelled: bool) -> tuple[Snapshot, float]:
    """α, β and Δ of every text, and the mean share of attention on special tokens, of a model left as it was found."""
    passages = subject.decide([probe.passage for probe in probes])
    attention, delta, odds = zip(*subject.ask(passages, lambda b: _observed(subject, b), gradients=True), strict=True)
    alone = _alone(subject, probes)
    words = [asked(passage) for passage in passages]
    targets = [passage.target for passage in passages]
    beta = [[alone[word][target] for word in probe.alone] for probe, target in zip(probes, targets, strict=True)]
    snapshot = Snapshot(
        {
            "alpha": shares(passages, attention),
            "beta_logit": Ragged.of(beta),
            "delta": Ragged.of([row[own] for row, own in zip(delta, words, strict=True)]),
        },
        example=np.arange(len(probes), dtype=np.int32),
        output=np.zeros(len(probes), dtype=np.int32),
        label=np.array(targets if labelled else [UNKNOWN] * len(probes), dtype=np.int32),
        prediction=np.argmax(odds, axis=1).astype(np.int32),
        log_odds=np.array([row[target] for row, target in zip(odds, targets, strict=True)], dtype=np.float32),
    )
    return snapshot, float(np.mean([row[~own].sum() for row, own in zip(attention, words, strict=True)]))


@dataclass(frozen=True)
class Probe:
    """A text, and what the model reads when it is given one of its words alone."""

    passage: Passage
    alone: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, passage: Passage) -> "Probe":
        """The probe of a passage, whose target is the label asked about, or -1 for the one predicted.

        >>> passage = Passage(0, ("<s>", "good", "film"), (True, False, False), (1, 7, 8, 9), (0, 1, 2, 2))
        >>> Probe.of(passage).alone
        ((1, 7), (1, 8, 9))
        """
        own = np.flatnonzero(asked(passage))
        if len(own) == 0:
            raise DataError(f"text {passage.text} has no word to look at; leave it out")
        places, special = np.arange(len(passage.words)), np.array(passage.special, dtype=bool)
        return cls(passage, tuple(passage.without(special | (places == word)) for word in own))


def _observed(subject: Subject, batch: PassageBatch) -> list[tuple[Numbers, Numbers, Numbers]]:
    """Of every passage: α of the last layer and Δ, one value per word, and the log-odds of every label."""
    embedded = subject.network.embed(batch.pieces).detach().requires_grad_()
    output = subject.run(batch, embedded)
    likelihood = chosen(output.probabilities, batch).double().clamp_min(_LEAST).log()
    (gradient,) = torch.autograd.grad(likelihood.sum(), embedded)
    alpha = numbers(of_query(output.attention[-1], subject.network.query).double().mean(1))
    delta = numbers((embedded.double() * gradient.double()).sum(-1))
    rows = zip(batch.passages, alpha, delta, _log_odds(output.probabilities), strict=True)
    return [(passage.words_of(a), passage.words_of(d), odds) for passage, a, d, odds in rows]


def _alone(subject: Subject, probes: Sequence[Probe]) -> dict[tuple[int, ...], Numbers]:
    """The log-odds of every label for each word of the texts, read alone; a word that comes twice is read once."""
    words = dict.fromkeys(pieces for probe in probes for pieces in probe.alone)
    passages = [Passage(i, ("",), (False,), pieces, (0,) * len(pieces)) for i, pieces in enumerate(words)]
    return dict(zip(words, subject.ask(passages, lambda b: _log_odds(subject.run(b).probabilities)), strict=True))


def _log_odds(probabilities: Float[Tensor, "B K"]) -> Float[Numbers, "B K"]:
    """ln p/(1 − p); 1 − p is what the other labels have, which near p = 1 has more digits than the difference."""
    p = probabilities.double()
    return numbers(p.clamp_min(_LEAST).log() - (p.sum(-1, keepdim=True) - p).clamp_min(_LEAST).log())


def _checked(texts: Iterable[str], labels: Iterable[Any] | None) -> tuple[list[str], list[Any] | None]:
    if isinstance(texts, str):
        raise DataError("texts is a single text; give a list of them")
    found, given = list(texts), None if labels is None else list(labels)
    if not found:
        raise DataError("there is no text to follow a training on")
    if (odd := next((i for i, text in enumerate(found) if not isinstance(text, str)), None)) is not None:
        raise DataError(f"text {odd} is of type {type(found[odd]).__name__}; texts are strings")
    if given is not None and len(given) != len(found):
        raise DataError(f"{len(found)} texts, but {len(given)} labels; give one for each, or none")
    return found, given


def _number(label: Any, names: Sequence[str], text: int) -> int:
    """A label by its number, whichever way it was given."""
    if isinstance(label, str) and label in names:
        return names.index(label)
    if isinstance(label, SupportsIndex) and 0 <= index(label) < len(names):
        return index(label)
    raise DataError(
        f"text {text}: label {label!r} is not one of {', '.join(names)}, nor a number from 0 to {len(names) - 1}"
    )


def _chosen_steps(every: int | None, steps: Iterable[int] | None) -> tuple[int | None, frozenset[int] | None]:
    if every is not None and steps is not None:
        raise ConfigError("every and steps both say which steps to record; give one of them")
    if every is not None and every < 1:
        raise ConfigError(f"every is {every}; it must be 1 or more")
    chosen = None if steps is None else frozenset(steps)
    if chosen is not None and any(step < 0 for step in chosen):
        raise ConfigError(f"steps has {min(chosen)}; steps are counted from 0")
    return every, chosen
