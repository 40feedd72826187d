"""The training loop, for every model that has a `loss` of a batch; optimisers and devices."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from heedful.config import TrainConfig
from heedful.data.batching import Batch, parts_by_length
from heedful.errors import ConfigError, TrainingError


@runtime_checkable
class Trainable(Protocol):
    """What the training loop needs of a model."""

    def loss(self, batch: Any) -> Float[Tensor, ""]:
        """The loss of a batch, to be minimised."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """All parameters; those without `requires_grad` are not trained."""

    def train(self, mode: bool = True) -> object:
        """Switch dropout on or off."""


M = TypeVar("M", bound=nn.Module)


class OtherLoss(Generic[M]):
    """A model that is trained with another loss than its own; everything else is the model's."""

    def __init__(self, model: M) -> None:
        self.model = model

    @property
    def scorer(self) -> nn.Module:
        """The parameters of attention, which may have a learning rate of their own."""
        return self.model.get_submodule("scorer")

    def parameters(self) -> Iterator[nn.Parameter]:
        """Those of the model."""
        return self.model.parameters()

    def train(self, mode: bool = True) -> object:
        """Switch the model's dropout on or off."""
        return self.model.train(mode)

    def loss(self, batch: Any) -> Float[Tensor, ""]:
        """The loss of a batch, to be minimised."""
        raise NotImplementedError


@dataclass(frozen=True)
class TrainingState:
    """State of training before a step: with the weights, everything needed to resume it exactly.

    losses: of the steps since the last evaluation. optimiser: its moments, as `<parameter>.<name>`. randomness: the
    states of torch's random generators, which dropout uses; training uses no others. Batches depend only on the step.
    """

    step: int
    losses: tuple[float, ...]
    optimiser: dict[str, Tensor]
    randomness: dict[str, Tensor]


def train(
    model: Trainable,
    batches: Iterator[Any],
    config: TrainConfig,
    at_step: Callable[[int, float], bool | None],
    every_step: Callable[[int, float], None] = lambda step, loss: None,
    *,
    since: TrainingState | None = None,
    before_step: Callable[[int, Callable[[], TrainingState]], None] = lambda step, state: None,
) -> None:
    """Train, calling `at_step(step, mean loss since the last call)` at every step of `evaluate_at`.

    `at_step` returns true to stop training. The model is in evaluation mode while it runs. A loss that is not finite
    is an error.

    since: resume from this state, exactly; the model must have the weights of that step and `batches` must begin with
    it. before_step: called before each step, after its evaluation, with the step and a function that returns the state.
    """
    optimiser = build_optimiser(model, config)
    due = set(config.evaluate_at)
    first, losses = (since.step, list(since.losses)) if since else (0, [])
    if since:
        _restore(optimiser, since)
    for step in range(first, config.steps + 1):
        if step in due and not (since and step == first):
            model.train(False)
            if at_step(step, sum(losses) / len(losses) if losses else math.nan):
                return
            losses.clear()
        if step == config.steps:
            return
        before_step(step, lambda step=step: _state(step, losses, optimiser))  # type: ignore[misc]
        model.train()
        optimiser.zero_grad(set_to_none=True)
        losses.append(_backward(model, next(batches), parted=not config.bucketed))
        if not math.isfinite(losses[-1]):
            raise TrainingError(
                f"the loss is {losses[-1]} at step {step}; lower --learning-rate (now {config.learning_rate:g})"
            )
        optimiser.step()
        every_step(step + 1, losses[-1])


def _backward(model: Trainable, batch: Any, *, parted: bool) -> float:
    """Add the gradients of a batch, and return its loss.

    parted: the texts of a batch part by part, of similar length each. The loss is a mean over texts, so the gradients
    of the parts add up to those of the batch.
    """
    parts = parts_by_length(batch) if parted and isinstance(batch, Batch) else [batch]
    total = 0.0
    for part in parts:
        loss = model.loss(part)
        if len(parts) > 1:
            loss = loss * (len(part.index) / len(batch.index))
        loss.backward()  # type: ignore[no-untyped-call]
        total += loss.item()
    return total


def _state(step: int, losses: list[float], optimiser: torch.optim.Optimizer) -> TrainingState:
    moments = {
        f"{index}.{name}": tensor.detach()
        for index, state in optimiser.state_dict()["state"].items()
        for name, tensor in state.items()
    }
    randomness = {"cpu": torch.get_rng_state()}
    device = optimiser.param_groups[0]["params"][0].device
    if device.type == "cuda":
        randomness["cuda"] = torch.cuda.get_rng_state(device)
    return TrainingState(step, tuple(losses), moments, randomness)


def _restore(optimiser: torch.optim.Optimizer, since: TrainingState) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in since.optimiser.items():
        index, name = key.split(".")
        state.setdefault(int(index), {})[name] = tensor.clone()
    optimiser.load_state_dict({"state": state, "param_groups": optimiser.state_dict()["param_groups"]})
    torch.set_rng_state(since.randomness["cpu"])
    if "cuda" in since.randomness:
        torch.cuda.set_rng_state(since.randomness["cuda"], optimiser.param_groups[0]["params"][0].device)


def build_optimiser(model: Trainable, config: TrainConfig) -> torch.optim.Optimizer:
    """Adam or Adagrad over the trainable parameters, fused where the device supports it (1.1 to 1.5 times as fast).

    The parameters of `model.scorer`, which computes attention, can have their own learning rate and no weight decay
    (meister2021, App. B).
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
    """A device by name; `auto` is a GPU if there is one.

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


@contextmanager
def evaluation_mode(modules: Sequence[nn.Module]) -> Iterator[None]:
    """Evaluation mode without gradients of parameters; restores modes, `requires_grad` and random state afterwards.

    cuDNN is off: it has no backward pass for recurrent layers in evaluation mode.
    """
    parts = [part for module in modules for part in module.modules()]
    modes = [(part, part.training) for part in parts]
    trainable = [(p, p.requires_grad) for part in parts for p in part.parameters(recurse=False)]
    random = torch.get_rng_state()
    try:
        if any(mode for _, mode in modes):
            for module in modules:
                module.eval()
        for parameter, required in trainable:
            if required:
                parameter.requires_grad_(False)
        with torch.backends.cudnn.flags(enabled=False):
            yield
    finally:
        for part, mode in modes:
            if part.training != mode:
                part.training = mode
        for parameter, required in trainable:
            if parameter.requires_grad != required:
                parameter.requires_grad_(required)
        torch.set_rng_state(random)
