"""Models inside other objects: adapters (PEFT), `torch.compile`, data-parallel modules and `CrossEncoder`.

The model that is explained is the Hugging Face model inside, with the adapter's weights in its layers.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heedful.attribution.model_files import in_words, read_json, safetensors_header
from heedful.errors import ConfigError, DataError, MissingExtraError

ADAPTER, ADAPTER_WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
MAX_CONFIG = 1 << 20
_HEAD = re.compile(r"\.(?:classifier|score|classifier\.out_proj)(?:\.modules_to_save)?\.weight$")


def unwrapped(model: Any, tokenizer: Any) -> tuple[Any, Any]:
    """The Hugging Face model inside an object, and its tokeniser, where the object has one.

    >>> from types import SimpleNamespace
    >>> unwrapped(SimpleNamespace(_orig_mod="the model"), "its tokeniser")         # torch.compile
    ('the model', 'its tokeniser')
    """
    while True:
        kind = type(model).__name__
        if hasattr(model, "_orig_mod"):
            model = model._orig_mod
        elif kind in ("DataParallel", "DistributedDataParallel"):
            model = model.module
        elif hasattr(model, "peft_config") and hasattr(model, "get_base_model"):
            _refuse_prompts(kind, model.peft_config.values())
            model = model.get_base_model()
        elif kind == "CrossEncoder":
            model, tokenizer = model.model, model.tokenizer if tokenizer is None else tokenizer
        elif kind == "SentenceTransformer":
            raise ConfigError(
                "a SentenceTransformer makes vectors of texts, not predictions; a CrossEncoder is audited"
            )
        else:
            break
    if any(getattr(weight, "is_meta", False) for weight in getattr(model, "parameters", tuple)()):
        raise DataError(
            f"{type(model).__name__} has weights that are not in memory (device_map offloads them); load it onto "
            "devices with room for all of them"
        )
    return model, tokenizer


def is_adapter(folder: Path | str) -> bool:
    """Whether a folder holds an adapter rather than a whole model.

    >>> is_adapter("no/such/folder")
    False
    """
    return (Path(folder) / ADAPTER).is_file()


def base_of(folder: Path) -> tuple[str, int | None]:
    """The model that an adapter was trained on, and how many labels it gave its head; None if it has no head.

    The weights must be a safetensors file: a pickle could run code.
    """
    content = read_json(folder / ADAPTER, MAX_CONFIG)
    base = content.get("base_model_name_or_path")
    if not isinstance(base, str) or not base:
        raise DataError(f"{folder / ADAPTER}: it does not say which model it is for (base_model_name_or_path)")
    if content.get("peft_type") in ("PROMPT_TUNING", "PREFIX_TUNING", "P_TUNING", "MULTITASK_PROMPT_TUNING"):
        raise DataError(f"{folder}: {_PROMPTS.format(json.dumps(content['peft_type']))}")
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise DataError(f"{folder}: there is no {ADAPTER_WEIGHTS}; save the adapter with model.save_pretrained(folder)")
    shapes = {name: entry["shape"] for name, entry in safetensors_header(folder / ADAPTER_WEIGHTS).items()}
    heads = [shape[0] for name, shape in shapes.items() if _HEAD.search(name)]
    return base, heads[-1] if heads else None


def with_adapter(folder: Path, load_base: Callable[[str, int | None], tuple[Any, list[str]]]) -> Any:
    """The model of an adapter folder: its base model with the adapter's weights in it.

    load_base: loads a model with so many labels, and names the parameters that its files lack.
    """
    try:
        import peft
    except ImportError as missing:
        raise MissingExtraError("peft", "hf", "opening an adapter") from missing
    base, labels = base_of(folder)
    model, lacking = load_base(base, labels)
    with in_words(str(folder), f"putting the adapter into {base}"):
        whole = peft.PeftModel.from_pretrained(model, str(folder), use_safetensors=True)
    saved = [name.split(".modules_to_save.")[0] for name, _ in whole.named_parameters() if ".modules_to_save." in name]
    trained = tuple(f"{name.removeprefix('base_model.model.')}." for name in saved)
    untrained = [name for name in lacking if not name.startswith(trained)]
    if untrained:
        raise DataError(
            f"{folder}: neither the adapter nor {base} has the trained parameters {', '.join(untrained[:3])}; "
            "train its head with the adapter (modules_to_save)"
        )
    return whole.get_base_model()


_PROMPTS = "the adapter ({}) adds positions to the input, which no word of the text owns; LoRA and its like are audited"


def _refuse_prompts(kind: str, configs: Any) -> None:
    for config in configs:
        if getattr(config, "is_prompt_learning", False):
            raise DataError(f"{kind}: {_PROMPTS.format(config.peft_type)}")
