"""Following a training of any model: record its attention, word knowledge and saliency on some texts, step by step.

    α_l   attention of the last layer, averaged over heads, from the position that makes the prediction
    β_l   word knowledge: the probability of the label if the model reads this word alone
    Δ_l   saliency: −∂NLL/∂m_l at m = 1, m a multiplicative mask on the word's embeddings:  Δ_l = −e_l · ∂NLL/∂e_l

The label is the right one or, if not given, the one predicted at that step. Pieces are summed into words. Special
tokens are not words: α is normalised over the others, and the share of attention on special tokens is recorded too.

Departure: the papers' β (snell2021, Eq. 9) lets the classifier read one hidden state. In a Transformer every hidden
state depends on all words, so the word itself is read alone, between the special tokens; any classifier allows that.
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

from heedful.attribution.attention_maps import query_rows, shares
from heedful.attribution.huggingface import open_classifier
from heedful.attribution.interface import Numbers, Passage, PassageBatch, Reader, Subject, numbers, target_probability
from heedful.attribution.network import Network
from heedful.audits.audit import fingerprint
from heedful.data.ragged import Ragged
from heedful.errors import ConfigError, DataError, MissingExtraError
from heedful.followed.result import FollowedDirectory, FollowedTraining, ProbeTexts
from heedful.studies.run_directory import sample_indices
from heedful.tracing.store import Snapshot

Opening = Callable[[Any], AbstractContextManager[tuple[Network, Reader]]]
MAX_TEXTS = 200
MAX_TOKENS = 4096
UNKNOWN = -1  # the right label of a text, if it was not given
_LEAST = 1e-16  # probabilities are clamped to this, and to this far from 1


class Recorder:
    """Records a training from inside its loop, without changing it.

        recorder = Recorder("runs/mine", texts, tokenizer, labels=labels, every=100)
        for step, batch in enumerate(batches):
            recorder.record(model, step)  # `step` updates have been made
            …
        recorder.close(model, step + 1)

    folder: new, or that of the same training before it was interrupted; `heedful report` makes a page of it at any
    time. texts: the fixed texts to record; of more than `max_texts`, that many are sampled under a fixed seed. labels:
    their right labels, by name or number, or None. tokenizer: that of a Hugging Face classifier; for any other model,
    `opening` makes a `Network` and a `Reader` for one recording. every, steps: which of the steps that `record` is
    called at to record besides step 0; all of them by default. name: the title of the page, by default the folder's
    name. At most `max_tokens` tokens are run at once; a longer text is run alone.
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
            raise ConfigError("give a tokenizer, or an `opening` of the model; one of the two")
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
        """Whether this step is to be recorded.

        >>> recorder = Recorder("runs/mine", ["a good film"], tokenizer="some/model", every=50)
        >>> recorder.is_due(0), recorder.is_due(49), recorder.is_due(100)
        (True, False, True)
        """
        if self.every is not None:
            return step % self.every == 0
        return self.steps is None or step == 0 or step in self.steps

    def record(self, model: Any, step: int, *, source: str = "") -> None:
        """Record the model after `step` updates, if that step is to be recorded.

        source: the name of the checkpoint that it was loaded from; the checksum of its weights is then kept too.
        """
        if self.is_due(step):
            self._record(model, step, source)

    def finish(self) -> FollowedTraining:
        """Complete the run as it is, and return the result of the training."""
        return self.run.close()

    def close(self, model: Any, step: int) -> FollowedTraining:
        """Record the last step in any case, complete the run and return the result of the training.

        Until then the run is listed as running, and its folder is locked.
        """
        if self._last != step:
            self._record(model, step)
        return self.run.close()

    def _record(self, model: Any, step: int, source: str = "") -> None:
        self._last = step
        if not all(bool(torch.isfinite(weight).all()) for weight in model.parameters()):
            warnings.warn(f"step {step} is not recorded: the model has parameters that are not finite", stacklevel=3)
            return
        with self._opening(model) as (network, reader):
            if not self._probes:
                self._probes = self._read_texts(reader, type(model).__name__)
            subject = Subject(network, reader, max_tokens=self._max_tokens)
            snapshot, special = take_snapshot(subject, self._probes, labelled=self._labels is not None)
            checksum = fingerprint(network) if source else ""
        self.run.keep(step, snapshot, special, source, checksum)

    def _read_texts(self, reader: Reader, model: str) -> "tuple[Probe, ...]":
        names, labels = reader.labels, self._labels
        if len(names) < 2:
            raise DataError(f"{model} has {len(names)} labels; following a training needs at least two")
        right = () if labels is None else tuple(_number(labels[i], names, i) for i in self._chosen)
        targets = right or [UNKNOWN] * len(self._chosen)
        read = [replace(reader.read(i, self._texts[i]), target=t) for i, t in zip(self._chosen, targets, strict=True)]
        probes = tuple(map(Probe.of, read))
        words = tuple(tuple(compress(passage.words, passage.explained())) for passage in read)
        self.run.claim(ProbeTexts(self._name, model, names, words, right, self._decisions(read)))
        return probes

    def _decisions(self, passages: Sequence[Passage]) -> tuple[str, ...]:
        decisions = []
        if len(passages) < len(self._texts):
            decisions.append(f"{len(passages):,} of {len(self._texts):,} texts sampled, seed 0")
        if cut := [passage.cut for passage in passages if passage.cut]:
            decisions.append(f"{len(cut):,} of {len(passages):,} texts cut, by {sum(cut):,} tokens in all")
        return tuple(decisions)


def take_snapshot(subject: Subject, probes: "Sequence[Probe]", *, labelled: bool) -> tuple[Snapshot, float]:
    """α, β and Δ of every text, and the mean share of attention on special tokens. The model is left as found."""
    passages = subject.with_targets([probe.passage for probe in probes])
    attention, delta, odds = zip(*subject.map(passages, lambda b: _observed(subject, b), gradients=True), strict=True)
    alone = _alone(subject, probes)
    words = [passage.explained() for passage in passages]
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
    """A text, and the input for each of its words alone."""

    passage: Passage
    alone: tuple[tuple[int, ...], ...]

    @classmethod
    def of(cls, passage: Passage) -> "Probe":
        """The probe of a passage; its target is a label, or -1 for the predicted one.

        >>> passage = Passage(0, ("<s>", "good", "film"), (True, False, False), (1, 7, 8, 9), (0, 1, 2, 2))
        >>> Probe.of(passage).alone
        ((1, 7), (1, 8, 9))
        """
        own = np.flatnonzero(passage.explained())
        if len(own) == 0:
            raise DataError(f"text {passage.text} has no word besides special tokens; leave it out")
        positions, special = np.arange(len(passage.words)), np.array(passage.special, dtype=bool)
        return cls(passage, tuple(passage.pieces_of(special | (positions == word)) for word in own))


def _observed(subject: Subject, batch: PassageBatch) -> list[tuple[Numbers, Numbers, Numbers]]:
    """For every passage: α of the last layer and Δ, one value per word, and the log-odds of every label."""
    embedded = subject.network.embed(batch.pieces).detach().requires_grad_()
    output = subject.run(batch, embedded)
    likelihood = target_probability(output.probabilities, batch).double().clamp_min(_LEAST).log()
    (gradient,) = torch.autograd.grad(likelihood.sum(), embedded)
    weights = subject.reading(batch)
    alpha = query_rows(output.attention[-1], subject.network.query, weights).double().mean(1)
    delta = (embedded.double() * gradient.double()).sum(-1)
    return list(zip(batch.words_of(alpha), batch.words_of(delta), _log_odds(output.probabilities), strict=True))


def _alone(subject: Subject, probes: Sequence[Probe]) -> dict[tuple[int, ...], Numbers]:
    """The log-odds of every label for each word of the texts, read alone; equal words are run once."""
    words = dict.fromkeys(pieces for probe in probes for pieces in probe.alone)
    passages = [Passage.of_pieces(i, pieces) for i, pieces in enumerate(words)]
    return dict(zip(words, subject.map(passages, lambda b: _log_odds(subject.run(b).probabilities)), strict=True))


def _log_odds(probabilities: Float[Tensor, "B K"]) -> Float[Numbers, "B K"]:
    """ln p/(1 − p); 1 − p is summed over the other labels, which is more exact near p = 1 than the difference."""
    p = probabilities.double()
    return numbers(p.clamp_min(_LEAST).log() - (p.sum(-1, keepdim=True) - p).clamp_min(_LEAST).log())


def _checked(texts: Iterable[str], labels: Iterable[Any] | None) -> tuple[list[str], list[Any] | None]:
    if isinstance(texts, str):
        raise DataError("texts is a single text; give a list of them")
    all_texts, all_labels = list(texts), None if labels is None else list(labels)
    if not all_texts:
        raise DataError("there are no texts; following a training needs at least one")
    if (odd := next((i for i, text in enumerate(all_texts) if not isinstance(text, str)), None)) is not None:
        raise DataError(f"text {odd} is of type {type(all_texts[odd]).__name__}; texts are strings")
    if all_labels is not None and len(all_labels) != len(all_texts):
        raise DataError(f"{len(all_texts)} texts, but {len(all_labels)} labels; give one for each, or none")
    return all_texts, all_labels


def _number(label: Any, names: Sequence[str], text: int) -> int:
    """The number of a label that was given by name or number."""
    if isinstance(label, str) and label in names:
        return names.index(label)
    if isinstance(label, SupportsIndex) and 0 <= index(label) < len(names):
        return index(label)
    raise DataError(
        f"text {text}: label {label!r} is not one of {', '.join(names)}, nor a number from 0 to {len(names) - 1}"
    )


def _chosen_steps(every: int | None, steps: Iterable[int] | None) -> tuple[int | None, frozenset[int] | None]:
    if every is not None and steps is not None:
        raise ConfigError("every and steps both choose the steps to record; give one of them")
    if every is not None and every < 1:
        raise ConfigError(f"every is {every}; it must be 1 or more")
    chosen = None if steps is None else frozenset(steps)
    if chosen is not None and any(step < 0 for step in chosen):
        raise ConfigError(f"steps has {min(chosen)}; steps are counted from 0")
    return every, chosen


try:
    from transformers import TrainerCallback
except ImportError as missing:
    raise MissingExtraError("transformers", "hf", "TraceCallback") from missing


class TraceCallback(TrainerCallback):
    """Records attention, word knowledge and saliency while a `Trainer` trains a classifier; training is not changed.

        callback = TraceCallback("runs/mine", texts, tokenizer, labels=labels, every=50)
        Trainer(model, args, train_dataset=…, callbacks=[callback]).train()

    folder, texts, tokenizer: as for `Recorder`, as are the settings `labels`, `max_texts`, `max_tokens` and `name`.
    every, steps: which steps to record besides the first and the last; give one of the two. `heedful report runs/mine`
    makes the page, also while the training is still running. A training that resumes from a checkpoint continues in the
    same folder.

    >>> callback = TraceCallback("runs/mine", ["a good film", "a bad one"], "some/model", labels=[1, 0], steps=(10,))
    >>> callback.recorder.is_due(10), callback.recorder.is_due(11)
    (True, False)
    """

    def __init__(
        self,
        folder: Path | str,
        texts: Iterable[str],
        tokenizer: Any,
        *,
        every: int | None = None,
        steps: Iterable[int] | None = None,
        **settings: Any,
    ) -> None:
        if every is None and steps is None:
            raise ConfigError("no steps to record; give every=… or steps=(…)")
        self.recorder = Recorder(folder, texts, tokenizer, every=every, steps=steps, **settings)

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **rest: Any) -> None:
        """Record the model before its first update, or before the first update after a checkpoint."""
        if state.is_world_process_zero:  # of several processes that train one model, only the first records
            self.recorder.record(model, state.global_step)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **rest: Any) -> None:
        """Record this step if it is due, or if it is the last."""
        if state.is_world_process_zero:
            record = self.recorder.close if state.global_step >= state.max_steps else self.recorder.record
            record(model, state.global_step)

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **rest: Any) -> None:
        """Record the last step of a training that was stopped early."""
        loaded_earlier_step = args.load_best_model_at_end and state.best_model_checkpoint is not None
        if state.is_world_process_zero and not loaded_earlier_step:
            self.recorder.close(model, state.global_step)
