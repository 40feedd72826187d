"""Callback that records a training of Hugging Face's `Trainer`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from heedful.errors import ConfigError, MissingExtraError
from heedful.followed.training import MAX_TEXTS, MAX_TOKENS, Recorder

try:
    from transformers import TrainerCallback
except ImportError as missing:
    raise MissingExtraError("transformers", "hf", "TraceCallback") from missing


class TraceCallback(TrainerCallback):
    """Records attention, word knowledge and saliency while a `Trainer` trains a classifier; training is not changed.

        callback = TraceCallback("runs/mine", texts, tokenizer, labels=labels, every=50)
        Trainer(model, args, train_dataset=…, callbacks=[callback]).train()

    folder, texts, tokenizer, labels, max_texts, max_tokens, name: as for `Recorder`. every, steps: which steps to
    record besides the first and the last; give one of the two. `heedful report runs/mine` makes the page, also while
    the training is still running. A training that resumes from a checkpoint continues in the same folder.

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
        labels: Iterable[Any] | None = None,
        every: int | None = None,
        steps: Iterable[int] | None = None,
        max_texts: int = MAX_TEXTS,
        max_tokens: int = MAX_TOKENS,
        name: str | None = None,
    ) -> None:
        if every is None and steps is None:
            raise ConfigError("no steps to record; give every=… or steps=(…)")
        self.recorder = Recorder(
            folder,
            texts,
            tokenizer,
            labels=labels,
            every=every,
            steps=steps,
            max_texts=max_texts,
            max_tokens=max_tokens,
            name=name,
        )

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
