"""What every Hugging Face model goes through in an audit: it is opened, asked, and left exactly as it was found."""

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heedful.audits.network import Change, Query
from heedful.audits.tap import Attention, Taps
from heedful.errors import DataError
from heedful.measure.importance_forward import undisturbed

NO_LIMIT = 2**31 - 1
SAMPLE = "One, two and three: this is what a text may look like."


@dataclass(frozen=True)
class Opened:
    """What all Hugging Face models have in common once they are open; see `Network`."""

    model: Any
    query: Query
    layers: int
    heads: int
    taps: Taps | None = None

    @property
    def modules(self) -> tuple[nn.Module, ...]:
        """The model."""
        return (self.model,)

    @property
    def can_change(self) -> bool:
        """Whether the places are known where the model makes its attention."""
        return self.taps is not None

    def ask(self, inputs: Mapping[str, Tensor], change: Change | None = None) -> Any:
        """The model's own answer, with everything that it can say about itself."""
        if change is None:
            return ask(self.model, inputs)
        if self.taps is None:
            raise DataError(f"{name_of(self.model)} makes its attention where no other can be put in its place")
        return self.taps.run(lambda: ask(self.model, inputs), change)

    def fresh(self, seed: int) -> Any:
        """The model's architecture with fresh random parameters; None where its class needs more than a config."""
        first = next(self.model.parameters())
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            try:
                fresh = type(self.model)(copy.deepcopy(self.model.config))
            except TypeError:
                return None
        return fresh.to(first.device, first.dtype).eval().requires_grad_(False)


def ask(model: Any, inputs: Mapping[str, Tensor]) -> Any:
    """Call a model for its attention and hidden states too."""
    return model(**inputs, output_attentions=True, output_hidden_states=True, return_dict=True)


def first_answer(model: Any, inputs: Mapping[str, Tensor]) -> Any:
    """Ask a model that nobody has asked yet, and say what it lacks."""
    takes = inspect.signature(model.forward).parameters
    if "inputs_embeds" not in takes:
        raise DataError(f"{name_of(model)} takes no embeddings in place of pieces (inputs_embeds)")
    try:
        return ask(model, {name: value.to(model.device) for name, value in inputs.items() if name in takes})
    except TypeError as error:
        raise DataError(f"{name_of(model)} cannot be asked for its attention: {error}") from error


def name_of(model: Any) -> str:
    """The class of a model, and where it came from if it says so."""
    came_from = getattr(model.config, "_name_or_path", "")
    return f"{type(model).__name__} ({came_from})" if came_from else type(model).__name__


def attention_of(model: Any, found: tuple[Tensor | None, ...] | None, length: int) -> Attention:
    """The attention that a model returned, from some places to all of `length` pieces in every layer; else an error."""
    given = [alpha for alpha in found or () if alpha is not None and alpha.numel()]
    if not given or len(given) != len(found or ()):
        raise DataError(
            f"{name_of(model)} gave no attention{f' in {len(found) - len(given)} layers' if found else ''}; it was "
            f"asked with output_attentions=True and attention implementation {model.config._attn_implementation!r}, "
            "so its architecture may not compute attention weights"
        )
    for alpha in given:
        if alpha.ndim != 4 or alpha.shape[-1] != length:
            raise DataError(
                f"{name_of(model)} gives attention of shape {tuple(alpha.shape)} for {length} pieces; "
                "an audit needs (texts, heads, places, pieces)"
            )
    return tuple(given)


def in_full(logits: Tensor) -> Tensor:
    """At least single precision."""
    return logits if logits.dtype == torch.float64 else logits.float()


def longest_input(model: Any, tokenizer: Any) -> int:
    """How many pieces both model and tokeniser can take; positions up to the padding's are not for text (RoBERTa)."""
    limits = [NO_LIMIT, tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None)]
    for name, part in model.named_modules():
        if "position" in name and isinstance(part, nn.Embedding) and part.padding_idx is not None:
            limits.append(part.num_embeddings - part.padding_idx - 1)
    return min(int(limit) for limit in limits if limit is not None and limit > 0)


def same_as_text(model: Any, found: Tensor, expected: Tensor) -> None:
    """Refuse a model of which embeddings put in by hand make something else than the text does."""
    tolerance = min(0.02, 100 * torch.finfo(model.dtype).eps)
    if not torch.allclose(found, expected.to(found), rtol=tolerance, atol=tolerance):
        raise DataError(
            f"{name_of(model)} predicts {expected[0, 0]:.4f} from a text, but {found[0, 0]:.4f} from the embeddings of "
            "its pieces; no importance can be taken of such input, and it cannot be audited"
        )


@contextmanager
def as_found(model: nn.Module) -> Iterator[None]:
    """Eager attention, evaluation mode, no gradients for parameters; after it all is as it was.

    That is whatever hangs on its modules and configs (modes, hooks, attention implementations), `requires_grad`, and
    torch's random state.
    """
    restore = [_held(thing) for thing in (*model.modules(), *_configs(model))]
    try:
        with undisturbed([model]):
            for config in _configs(model):
                config._attn_implementation = "eager"
                if getattr(config, "use_cache", False):
                    config.use_cache = False
            yield
    finally:
        for put_back in restore:
            put_back()


def _held(thing: Any) -> Callable[[], None]:
    """A function that gives an object the attributes it has now, and its dicts and sets (of hooks, …) their content."""
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
    """The configs of a model and of its parts, each once, those within others included."""
    from transformers import PretrainedConfig

    found: dict[int, Any] = {}
    waiting = [part.__dict__.get("config") for part in model.modules()]
    while waiting:
        config = waiting.pop()
        if isinstance(config, PretrainedConfig) and id(config) not in found:
            found[id(config)] = config
            waiting.extend(config.__dict__.values())
    return list(found.values())
