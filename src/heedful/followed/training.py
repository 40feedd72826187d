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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
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
from heedful.attribution.interface import Numbers, Passage, PassageBatch, Reader, Subject, numbers, target_probability
from heedful.attribution.network import Network
from heedful.attribution.task_passages import OpenedTask, open_task, with_values
from heedful.attribution.wrappers import unwrapped
from heedful.audits.audit import fingerprint
from heedful.config import ModelTask
from heedful.data.ragged import Ragged
from heedful.data.rows import Text
from heedful.errors import ConfigError, DataError, MissingExtraError
from heedful.followed.result import FollowedDirectory, FollowedTraining, ProbeTexts
from heedful.storage.serialization import digest
from heedful.studies.run_directory import sample_indices
from heedful.studies.tracking import Tracker, open_trackers
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
    time. texts: the fixed texts to record, or pairs of texts; of more than `max_texts`, that many are sampled under a
    fixed seed. labels: their right labels, by name or number, or None; for a tagger a list of them for each text, and
    for a model that writes, fills masks or answers questions the output to follow, which is needed. tokenizer: that of
    a Hugging Face model; for any other model, `opening` makes a `Network` and a `Reader` for one recording. task: by
    default that of the model's architecture; output: of several labels or values predicted together, the one to
    follow. every, steps: which of the steps that `record` is
    called at to record besides step 0; all of them by default. name: the title of the page, by default the folder's
    name. At most `max_tokens` tokens are run at once; a longer text is run alone. track: trackers that get every
    recorded step, as in `heedful study --track`: `tensorboard`, `mlflow`, `wandb`, `trackio`.
    """

    def __init__(
        self,
        folder: Path | str,
        texts: Iterable[Text],
        tokenizer: Any = None,
        *,
        opening: Opening | None = None,
        labels: Iterable[Any] | None = None,
        task: ModelTask | None = None,
        output: str | None = None,
        every: int | None = None,
        steps: Iterable[int] | None = None,
        max_texts: int = MAX_TEXTS,
        max_tokens: int = MAX_TOKENS,
        name: str | None = None,
        track: Sequence[str] = (),
    ) -> None:
        self.run = FollowedDirectory(folder)
        self.every, self.steps = _chosen_steps(every, steps)
        if (tokenizer is None) == (opening is None):
            raise ConfigError("give a tokenizer, or an `opening` of the model; one of the two")
        self._opening = opening
        self._options: dict[str, Any] = {"tokenizer": tokenizer, "task": task, "output": output}
        self._max_tokens = max_tokens
        self._name = self.run.root.resolve().name if name is None else name
        self._texts, self._labels = _checked(texts, labels)
        if max_texts < 1:
            raise ConfigError(f"max_texts is {max_texts}; it must be 1 or more")
        self._chosen = sample_indices(len(self._texts), max_texts).tolist()
        self._probes: tuple[Probe, ...] = ()
        self._outputs: dict[int, int] | None = None
        self._last: int | None = None
        self._track = track
        self._trackers: list[Tracker] | None = None  # opened with the first recorded step
        self._tracked: set[int] = set()

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
        self.stop_tracking()
        return self.run.close()

    def close(self, model: Any, step: int) -> FollowedTraining:
        """Record the last step in any case, complete the run and return the result of the training.

        Until then the run is listed as running, and its folder is locked.
        """
        if self._last != step:
            self._record(model, step)
        return self.finish()

    def stop_tracking(self, *, failed: bool = False) -> None:
        """Close the trackers; failed: whether they are told that the run was."""
        trackers, self._trackers = self._trackers or (), []
        for tracker in trackers:
            tracker.close(failed)

    def _record(self, model: Any, step: int, source: str = "") -> None:
        self._last = step
        if not all(bool(torch.isfinite(weight).all()) for weight in model.parameters()):
            warnings.warn(f"step {step} is not recorded: the model has parameters that are not finite", stacklevel=3)
            return
        with self._opened(model) as opened:
            if not self._probes:
                self._probes = self._read_texts(opened, type(unwrapped(model, None)[0]).__name__)
            network = opened.network
            if opened.task == "regression":
                network, _ = with_values(network, [probe.passage for probe in self._probes])
            subject = Subject(network, opened.reader, max_tokens=self._max_tokens)
            labelled = all(probe.passage.target >= 0 for probe in self._probes)
            snapshot, special = take_snapshot(subject, self._probes, labelled=labelled, outputs=self._outputs)
            checksum = fingerprint(opened.network) if source else ""
        self._send(self.run.keep(step, snapshot, special, source, checksum))

    def _send(self, result: FollowedTraining) -> None:
        """Every step that the trackers have not had, those of an interrupted training among them."""
        if self._trackers is None:
            probe = self.run.probe()
            settings = {"name": probe.name, "model": probe.model, "texts": result.texts}
            self._trackers = open_trackers(self._track, self.run.root, settings, digest(probe))
        for step in result.steps:
            for tracker in self._trackers if step.step not in self._tracked else ():
                tracker.model("training", step.step, step.metrics)
            self._tracked.add(step.step)

    @contextmanager
    def _opened(self, model: Any) -> Iterator[OpenedTask]:
        if self._opening is None:
            with open_task(model, **self._options) as opened:
                yield opened
            return
        with self._opening(model) as (network, reader):

            def of_text(number: int, text: Text, *_: Any) -> list[Passage]:
                return [reader.read(number, text)]

            yield OpenedTask("classification", network, reader, of_text)

    def _read_texts(self, opened: OpenedTask, model: str) -> "tuple[Probe, ...]":
        names, labels, task = opened.reader.labels, self._labels, opened.task
        read: list[Passage] = []
        if task in ("classification", "multi-label"):
            if len(names) < 2:
                raise DataError(f"{model} has {len(names)} labels; following a training needs at least two")
            for i in self._chosen:
                label = None if labels is None else labels[i]
                several = task == "multi-label" and isinstance(label, tuple | list)  # all labels that apply
                (passage,) = opened.passages(i, self._texts[i], label if several else None)
                right_one = passage.label if several else label
                target = UNKNOWN if right_one is None else _number(right_one, names, i)
                read.append(replace(passage, label=None, target=target))
        elif task == "token-classification":
            for i in self._chosen:
                words = str(self._texts[i]).split()
                tags = None if labels is None else [names[_number(tag, names, i)] for tag in labels[i]]
                for passage in opened.passages(i, self._texts[i], tags, words):
                    known = passage.label is not None
                    read.append(replace(passage, target=names.index(passage.label) if known else UNKNOWN))
        elif task == "regression":
            names = ("lower", "higher")
            read = [passage for i in self._chosen for passage in opened.passages(i, self._texts[i])]
        else:
            if labels is None:
                raise DataError(f"{task}: name the outputs to follow with labels=…, one for each text")
            read = [p for i in self._chosen for p in opened.passages(i, self._texts[i], labels[i])]
            if task == "question-answering":
                names = ("another answer", "the answer")
            else:
                self._outputs = {target: k for k, target in enumerate(dict.fromkeys(p.target for p in read))}
                shown = {p.target: p.output for p in reversed(read)}
                names = (*(shown[target] for target in self._outputs), "another")
        if not read:
            raise DataError(f"{model} gives no word of these texts a label to follow")
        numbers_ = self._outputs or {}
        right = tuple(numbers_.get(p.target, p.target) for p in read) if all(p.target >= 0 for p in read) else ()
        probes = tuple(map(Probe.of, read))
        words_ = tuple(tuple(compress(passage.words, passage.explained())) for passage in read)
        self.run.claim(ProbeTexts(self._name, model, names, words_, right, self._decisions(read)))
        return probes

    def _decisions(self, passages: Sequence[Passage]) -> tuple[str, ...]:
        decisions = []
        if len(passages) < len(self._texts):
            decisions.append(f"{len(passages):,} of {len(self._texts):,} texts sampled, seed 0")
        if cut := [passage.cut for passage in passages if passage.cut]:
            decisions.append(f"{len(cut):,} of {len(passages):,} texts cut, by {sum(cut):,} tokens in all")
        return tuple(decisions)


def take_snapshot(
    subject: Subject, probes: "Sequence[Probe]", *, labelled: bool, outputs: Mapping[int, int] | None = None
) -> tuple[Snapshot, float]:
    """α, β and Δ of every text, and the mean share of attention on special tokens. The model is left as found.

    outputs: where they are pieces rather than labels, the number of each that is followed; any other is the last.
    """
    passages = subject.with_targets([probe.passage for probe in probes])
    attention, delta, odds = zip(*subject.map(passages, lambda b: _observed(subject, b), gradients=True), strict=True)
    words = [passage.explained() for passage in passages]
    targets = [passage.target for passage in passages]
    beta = _alone(subject, probes, targets)

    def numbered(output: int) -> int:
        return output if outputs is None else outputs.get(output, len(outputs))

    snapshot = Snapshot(
        {
            "alpha": shares(passages, attention),
            "beta_logit": Ragged.of(beta),
            "delta": Ragged.of([row[own] for row, own in zip(delta, words, strict=True)]),
        },
        example=np.arange(len(probes), dtype=np.int32),
        output=np.zeros(len(probes), dtype=np.int32),
        label=np.array([numbered(t) if labelled else UNKNOWN for t in targets], dtype=np.int32),
        prediction=np.array([numbered(int(np.argmax(row))) for row in odds], dtype=np.int32),
        log_odds=np.array([row[target] for row, target in zip(odds, targets, strict=True)], dtype=np.float32),
    )
    return snapshot, float(np.mean([row[~own].sum() for row, own in zip(attention, words, strict=True)]))


@dataclass(frozen=True)
class Probe:
    """A text, and the same text with each of its words alone."""

    passage: Passage
    alone: tuple[Passage, ...]

    @classmethod
    def of(cls, passage: Passage) -> "Probe":
        """The probe of a passage; its target is a label, or -1 for the predicted one.

        >>> passage = Passage(0, ("<s>", "good", "film"), (True, False, False), (1, 7, 8, 9), (0, 1, 2, 2))
        >>> [alone.pieces for alone in Probe.of(passage).alone]
        [(1, 7), (1, 8, 9)]
        """
        own = np.flatnonzero(passage.explained())
        if len(own) == 0:
            raise DataError(f"text {passage.text} has no word besides special tokens; leave it out")
        positions = np.arange(len(passage.words))
        return cls(passage, tuple(passage.without(positions == word) for word in own))


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


def _alone(subject: Subject, probes: Sequence[Probe], targets: Sequence[int]) -> list[list[float]]:
    """The log-odds of each text's target for each of its words, read alone; equal words are run once."""

    def key(passage: Passage) -> tuple[Any, ...]:
        return passage.pieces, passage.segments, passage.at

    needed: dict[tuple[Any, ...], dict[int, float]] = {}
    inputs: dict[tuple[Any, ...], Passage] = {}
    for probe, target in zip(probes, targets, strict=True):
        for passage in probe.alone:
            needed.setdefault(key(passage), {})[target] = 0.0
            inputs.setdefault(key(passage), passage)

    def odds(batch: PassageBatch) -> list[None]:
        for passage, row in zip(batch.passages, _log_odds(subject.run(batch).probabilities), strict=True):
            own = needed[key(passage)]
            own.update({target: float(row[target]) for target in own})
        return [None] * len(batch.passages)

    subject.map(list(inputs.values()), odds)
    return [[needed[key(p)][t] for p in probe.alone] for probe, t in zip(probes, targets, strict=True)]


def _log_odds(probabilities: Float[Tensor, "B K"]) -> Float[Numbers, "B K"]:
    """ln p/(1 − p); 1 − p is summed over the other labels, which is more exact near p = 1 than the difference."""
    p = probabilities.double()
    return numbers(p.clamp_min(_LEAST).log() - (p.sum(-1, keepdim=True) - p).clamp_min(_LEAST).log())


def _checked(texts: Iterable[Text], labels: Iterable[Any] | None) -> tuple[list[Text], list[Any] | None]:
    if isinstance(texts, str):
        raise DataError("texts is a single text; give a list of them")
    all_texts, all_labels = list(texts), None if labels is None else list(labels)
    if not all_texts:
        raise DataError("there are no texts; following a training needs at least one")
    if (odd := next((i for i, text in enumerate(all_texts) if not _is_text(text)), None)) is not None:
        raise DataError(f"text {odd} is of type {type(all_texts[odd]).__name__}; texts are strings, or pairs of them")
    if all_labels is not None and len(all_labels) != len(all_texts):
        raise DataError(f"{len(all_texts)} texts, but {len(all_labels)} labels; give one for each, or none")
    return all_texts, all_labels


def _is_text(text: Any) -> bool:
    is_pair = isinstance(text, tuple | list) and len(text) == 2 and all(isinstance(part, str) for part in text)
    return isinstance(text, str) or is_pair


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
    """Records attention, word knowledge and saliency while a `Trainer` trains a model; training is not changed.

        callback = TraceCallback("runs/mine", texts, tokenizer, labels=labels, every=50)
        Trainer(model, args, train_dataset=…, callbacks=[callback]).train()

    folder, texts, tokenizer: as for `Recorder`, as are the settings `labels`, `max_texts`, `max_tokens`, `name`
    and `track`.
    every, steps: which steps to record besides the first and the last; give one of the two. `heedful report runs/mine`
    makes the page, also while the training is still running. A training that resumes from a checkpoint continues in the
    same folder. Whatever cannot be recorded ends the recording with one warning, never the training.

    >>> callback = TraceCallback("runs/mine", ["a good film", "a bad one"], "some/model", labels=[1, 0], steps=(10,))
    >>> callback.recorder.is_due(10), callback.recorder.is_due(11)
    (True, False)
    """

    def __init__(
        self,
        folder: Path | str,
        texts: Iterable[Text],
        tokenizer: Any,
        *,
        every: int | None = None,
        steps: Iterable[int] | None = None,
        **settings: Any,
    ) -> None:
        if every is None and steps is None:
            raise ConfigError("no steps to record; give every=… or steps=(…)")
        self.recorder = Recorder(folder, texts, tokenizer, every=every, steps=steps, **settings)
        self.stopped = False

    def on_train_begin(self, args: Any, state: Any, control: Any, model: Any = None, **rest: Any) -> None:
        """Record the model before its first update, or before the first update after a checkpoint."""
        self._try(self.recorder.record, model, state)

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **rest: Any) -> None:
        """Record this step if it is due, or if it is the last."""
        self._try(self.recorder.close if state.global_step >= state.max_steps else self.recorder.record, model, state)

    def on_train_end(self, args: Any, state: Any, control: Any, model: Any = None, **rest: Any) -> None:
        """Record the last step of a training that was stopped early."""
        if not (args.load_best_model_at_end and state.best_model_checkpoint is not None):
            self._try(self.recorder.close, model, state)

    def _try(self, record: Callable[[Any, int], Any], model: Any, state: Any) -> None:
        """Record; an error ends the recording, never the training."""
        if self.stopped or not state.is_world_process_zero:  # of several processes, only the first records
            return
        try:
            record(model, state.global_step)
        except Exception as error:  # whatever it is, the training goes on
            self.stopped = True
            with suppress(Exception):
                self.recorder.stop_tracking(failed=True)
            warnings.warn(
                f"TraceCallback stopped recording at step {state.global_step}; the training goes on: {error}",
                stacklevel=2,
            )
