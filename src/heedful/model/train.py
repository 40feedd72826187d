"""One training loop for every model: those that have a `loss` of a batch."""

import math
from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.config import TrainConfig
from heedful.errors import ConfigError, TrainingError


@runtime_checkable
class Trainable(Protocol):
    """What the loop needs of a model."""

    def loss(self, batch: Any) -> Float[Tensor, ""]:
        """The quantity to be made small."""
        ...

    def parameters(self) -> Iterator[nn.Parameter]:
        """All parameters; those that need no gradient stay as they are."""
        ...

    def train(self, mode: bool = True) -> object:
        """Switch dropout on or off."""
        ...


def train(
    model: Trainable,
    batches: Iterator[Any],
    config: TrainConfig,
    at_step: Callable[[int, float], bool | None],
    every_step: Callable[[int, float], None] = lambda step, loss: None,
) -> None:
    """Train by Adam, calling `at_step(step, mean loss since the last call)` at every step of `evaluate_at`.

    `at_step` returns true to end training there. The model is in evaluation mode while it runs. A loss that is not
    finite ends training with an error, not with a model full of NaN.
    """
    optimiser = build_optimiser(model, config)
    due = set(config.evaluate_at)
    losses: list[float] = []
    for step in range(config.steps + 1):
        if step in due:
            model.train(False)
            if at_step(step, sum(losses) / len(losses) if losses else math.nan):
                return
            losses.clear()
        if step == config.steps:
            return
        model.train()
        optimiser.zero_grad(set_to_none=True)
        loss = model.loss(next(batches))
        loss.backward()  # type: ignore[no-untyped-call]
        losses.append(loss.item())
        if not math.isfinite(losses[-1]):
            raise TrainingError(
                f"the loss is {losses[-1]} at step {step}; lower --learning-rate (now {config.learning_rate:g})"
            )
        optimiser.step()
        every_step(step + 1, losses[-1])


def build_optimiser(model: Trainable, config: TrainConfig) -> torch.optim.Optimizer:
    """Adam or Adagrad over the parameters that train, fused where the device has it (1.1 to 1.5 times as fast).

    The parameters of `model.scorer`, which make the attention, may have a learning rate of their own and no weight
    decay (meister2021, App. B).
    """
    scorer = getattr(model, "scorer", None)
    attention = set(scorer.parameters()) if isinstance(scorer, nn.Module) else set()
    trained = [p for p in model.parameters() if p.requires_grad]
    if not trained:
        raise ConfigError("the model has no parameter left to train")
    groups: list[dict[str, Any]] = [
        {"params": [p for p in trained if p not in attention]},
        {
            "params": [p for p in trained if p in attention],
            "lr": config.learning_rate * config.attention_rate,
            "weight_decay": config.weight_decay if config.attention_decay else 0.0,
        },
    ]
    shared: dict[str, Any] = {
        "lr": config.learning_rate,
        "weight_decay": config.weight_decay,
        "fused": trained[0].device.type in ("cpu", "cuda"),
    }
    groups = [group for group in groups if group["params"]]
    if config.optimiser == "adagrad":
        return torch.optim.Adagrad(groups, **shared | {"fused": trained[0].device.type == "cpu"})
    return torch.optim.Adam(groups, amsgrad=config.amsgrad, **shared)


def choose_device(name: str = "auto") -> torch.device:
    """The device of that name; `auto` takes a GPU when there is one.

    >>> choose_device("cpu")
    device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ConfigError(f"device {name!r} cannot be used: {str(error).splitlines()[0]}") from None
    return device
