"""The common part of Hugging Face models as networks: calls, errors in words, and models left as they were found."""

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from heedful.attribution.network import Change, ModelParts, Query
from heedful.attribution.quantised import unpacked
from heedful.attribution.taps import Attention, Taps
from heedful.errors import DataError
from heedful.models.training import evaluation_mode

SAMPLE = "One, two and three: this is what a text may look like."
HALF = (torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class OpenedModel:
    """The common part of all Hugging Face networks; see `Network`."""

    model: Any
    query: Query
    layers: int
    heads: int
    taps: Taps | None = None
    parts: ClassVar[ModelParts | None] = None  # the model can only be run as a whole

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """The model."""
        return (self.model,)

    @property
    def can_change(self) -> bool:
        """Whether it is known where the model computes its attention."""
        return self.taps is not None

    def call(self, inputs: Mapping[str, Tensor], change: Change | None = None) -> Any:
        """The model's own output, with attention and hidden states."""
        if change is None:
            return call(self.model, inputs)
        if self.taps is None:
            raise DataError(f"{name_of(self.model)} computes its attention where it cannot be replaced")
        return self.taps.run(lambda: call(self.model, inputs), change)

    def randomised(self, seed: int) -> Any:
        """The same architecture with new random parameters; None if its class needs more than a config."""
        first, config = next(self.model.parameters()), copy.deepcopy(self.model.config)
        config.dtype = first.dtype  # some classes draw their parameters in the precision that the config names
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            try:
                fresh = type(self.model)(config)
            except TypeError:
                return None
        return replace(self, model=fresh.to(first.device, first.dtype).eval().requires_grad_(False))


def call(model: Any, inputs: Mapping[str, Tensor]) -> Any:
    """Call a model, with attention and hidden states in its output."""
    return model(**inputs, output_attentions=True, output_hidden_states=True, return_dict=True)


def first_call(model: Any, inputs: Mapping[str, Tensor]) -> Any:
    """Call a model for the first time; an error says what it lacks."""
    takes = inspect.signature(model.forward).parameters
    if "inputs_embeds" not in takes:
        raise DataError(f"{name_of(model)} does not accept embeddings as input (inputs_embeds)")
    try:
        return call(model, {name: value.to(model.device) for name, value in inputs.items() if name in takes})
    except TypeError as error:
        raise DataError(f"{name_of(model)} cannot return its attention: {error}") from error


def name_of(model: Any) -> str:
    """The class of a model, and where it was loaded from if known."""
    came_from = getattr(model.config, "_name_or_path", "")
    return f"{type(model).__name__} ({came_from})" if came_from else type(model).__name__


def attention_of(model: Any, returned: tuple[Tensor | None, ...] | None, length: int) -> Attention:
    """The attention that a model returned, to `length` pieces in every layer; else an error."""
    given = [alpha for alpha in returned or () if alpha is not None and alpha.numel()]
    if not given or len(given) != len(returned or ()):
        where = f" in {len(returned) - len(given)} layers" if returned else ""
        raise DataError(
            f"{name_of(model)} returned no attention{where}; it was called with output_attentions=True and attention "
            f"implementation {model.config._attn_implementation!r}; its architecture may not compute attention weights"
        )
    for alpha in given:
        if alpha.ndim != 4 or alpha.shape[-1] != length:
            raise DataError(
                f"{name_of(model)} returned attention of shape {tuple(alpha.shape)} for {length} pieces; "
                "it must be (texts, heads, positions, pieces)"
            )
    return tuple(given)


def check_embeddings(model: Any, predicted: Tensor, expected: Tensor) -> None:
    """Refuse a model whose prediction from embeddings differs from that of the text."""
    tolerance = min(0.02, 100 * torch.finfo(model.dtype).eps)
    if not torch.allclose(predicted, expected.to(predicted), rtol=tolerance, atol=tolerance):
        raise DataError(
            f"{name_of(model)} predicts {expected[0, 0]:.4f} from a text, but {predicted[0, 0]:.4f} from the "
            "embeddings of its pieces; importances of its input would be wrong, so it cannot be audited"
        )


@contextmanager
def restored_afterwards(model: nn.Module) -> Iterator[None]:
    """Eager attention, evaluation mode, no gradients for parameters; afterwards everything is restored.

    That covers all attributes of its modules and configs (modes, hooks, attention implementations), `requires_grad`,
    and torch's random state. Parameters in half precision are used in single precision, which represents them exactly:
    differences of probabilities that matter would be lost in the rounding of half precision. Quantised layers compute
    with their rounded weights in single precision (`quantised`).
    """
    restore = [_saved_state(thing) for thing in (*model.modules(), *_configs(model))]
    try:
        with unpacked(model), evaluation_mode([model]), _single_precision(model):
            for part in model.modules():  # compiled in place, attention could not be seen
                part.__dict__["_compiled_call_impl"] = None
            for config in _configs(model):
                config._attn_implementation = "eager"
                if getattr(config, "use_cache", False):
                    config.use_cache = False
            yield
    finally:
        for put_back in restore:
            put_back()


@contextmanager
def _single_precision(model: nn.Module) -> Iterator[None]:
    """Parameters and buffers in half precision are replaced by single ones; afterwards they are the same tensors."""
    tensors = [tensor for tensor in (*model.parameters(), *model.buffers()) if tensor.dtype in HALF]
    own = [tensor.data for tensor in tensors]
    try:
        for tensor in tensors:
            tensor.data = tensor.data.float()
        yield
    finally:
        for tensor, data in zip(tensors, own, strict=True):
            tensor.data = data


def _saved_state(thing: Any) -> Callable[[], None]:
    """A function that restores the attributes an object has now, and the content of its dicts and sets (of hooks …)."""
    attributes = dict(thing.__dict__)
    contents = [(value, value.copy()) for value in attributes.values() if isinstance(value, dict | set)]

    def put_back() -> None:
        for value, content in contents:
            value.clear()
            value.update(content)
        thing.__dict__.clear()
        thing.__dict__.update(attributes)

    return put_back


def _configs(model: nn.Module) -> list[Any]:
    """The configs of a model and of its parts, nested ones included, each once."""
    from transformers import PretrainedConfig

    configs: dict[int, Any] = {}
    waiting = [part.__dict__.get("config") for part in model.modules()]
    while waiting:
        config = waiting.pop()
        if isinstance(config, PretrainedConfig) and id(config) not in configs:
            configs[id(config)] = config
            waiting.extend(config.__dict__.values())
    return list(configs.values())
