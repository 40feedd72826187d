"""A Hugging Face model and its tokeniser, from a folder, the Hub or the caller's hands; errors in plain words."""

import copy
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import torch
from torch import nn

from heedful.errors import ConfigError, DataError, MissingExtraError
from heedful.files import usable

MADE_OF_NOTHING = 2  # pieces, besides the special ones, that tokenisers have when their files are missing
NOT_TRUSTED = (
    "it brings code of its own, which would be run on this machine; read it, and where you trust it pass "
    "--trust-remote-code (trust_remote_code=True in Python)"
)
Task = Literal["classifier", "translator"]


@dataclass(frozen=True)
class Kind:
    """The class that opens such a model, the list of architectures that it knows, what all these have, and for what."""

    opens: str
    known: str
    head: str
    data: str


KINDS: Mapping[Task, Kind] = MappingProxyType(
    {
        "classifier": Kind(
            "AutoModelForSequenceClassification",
            "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING",
            "classification head",
            "texts with labels",
        ),
        "translator": Kind(
            "AutoModelForSeq2SeqLM", "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING", "decoder", "sentence pairs"
        ),
    }
)


def load(
    task: Task,
    model: str | Path | nn.Module,
    tokenizer: Any,
    device: str | torch.device,
    *,
    trust_remote_code: bool = False,
) -> tuple[Any, Any]:
    """The model and a tokeniser of our own.

    A model that is handed in stays as and where it is. One that is loaded goes to `device`, in single precision if it
    was saved in half of it. tokenizer: needed beside a model; beside a folder or Hub id, another one's place. Code that
    comes with a model is not run, unless it is to be trusted.

    >>> load("classifier", "no/such/folder", None, "cpu")
    Traceback (most recent call last):
    heedful.errors.DataError: no/such/folder: there is no such folder
    """
    transformers = _transformers()
    if isinstance(model, nn.Module):
        if not isinstance(model, transformers.PreTrainedModel):
            raise ConfigError(f"{type(model).__name__} is no Hugging Face model: not a transformers.PreTrainedModel")
        if tokenizer is None:
            raise ConfigError(f"{type(model).__name__} came without its tokeniser; pass it beside the model")
        return model, _tokenizer(transformers, tokenizer, trust_remote_code)
    place = _place(model)
    with torch.random.fork_rng(devices=[]), _quietly(transformers):
        loaded = _model(transformers, KINDS[task], place, trust_remote_code)
    return loaded.to(device), _tokenizer(transformers, place if tokenizer is None else tokenizer, trust_remote_code)


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as missing:
        raise MissingExtraError("transformers", "hf", "opening a Hugging Face model") from missing
    return transformers


@contextmanager
def _quietly(transformers: Any) -> Iterator[None]:
    """No progress bars of other people's while a model is opened."""
    logging = transformers.utils.logging
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()


def _place(model: str | Path) -> str:
    """A folder that holds a model, or what can only be a Hub id: a name, or two with a stroke between them."""
    folder = Path(os.path.expanduser(model))
    if usable(folder, DataError).is_dir():
        if not (folder / "config.json").is_file():
            raise DataError(f"{model}: the folder has no config.json; one is written by model.save_pretrained(folder)")
        return str(folder)
    if folder.is_file():
        raise DataError(f"{model} is a file; a model is a folder with a config.json, or a Hub id")
    name = str(model)
    if isinstance(model, Path) or name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name:
        raise DataError(f"{model}: there is no such folder")
    return name


def _model(transformers: Any, kind: Kind, place: str, trust: bool) -> Any:
    try:
        config = transformers.AutoConfig.from_pretrained(place, trust_remote_code=trust)
    except (OSError, ValueError) as error:
        raise _unopened(place, error) from error
    brings = kind.opens in (getattr(config, "auto_map", None) or {})
    if type(config) not in getattr(transformers, kind.known) and not (trust and brings):
        if brings:
            raise DataError(f"{place}: {NOT_TRUSTED}")
        raise DataError(f"{place}: the architecture {config.model_type!r} has no {kind.head}, and {kind.data} need one")
    opens = getattr(transformers, kind.opens)
    try:
        model, info = opens.from_pretrained(
            place,
            config=config,
            attn_implementation="eager",
            output_loading_info=True,
            trust_remote_code=trust,
            use_safetensors=True,  # the other format is a pickle
        )
    except (OSError, ValueError) as error:
        raise _unopened(place, error) from error
    missing = sorted(set(info["missing_keys"]) & {name for name, _ in model.named_parameters()})
    if missing:
        raise DataError(
            f"{place}: some parameters were never trained, for they are not there ({', '.join(missing[:3])}); "
            f"train its {kind.head} first"
        )
    return model.float() if model.dtype in (torch.float16, torch.bfloat16) else model


def _unopened(place: str, error: Exception) -> DataError:
    said = str(error).strip().splitlines()[0]
    if "trust_remote_code" in str(error):
        return DataError(f"{place}: {NOT_TRUSTED}")
    if "safetensors" in str(error) and (not Path(place).is_dir() or any(Path(place).glob("*.bin"))):
        return DataError(
            f"{place}: there is no model.safetensors, and weights in a pickle (pytorch_model.bin) are not read, since "
            "they could run code; where you trust them, load them yourself and call model.save_pretrained(folder)"
        )
    if Path(place).is_dir():
        return DataError(f"{place}: the folder cannot be opened as a model: {said}")
    return DataError(
        f"{place} is no folder, and as a Hub id it could not be fetched ({said}); "
        "check the name and the network, or give a folder written by model.save_pretrained(folder)"
    )


def _tokenizer(transformers: Any, given: Any, trust: bool) -> Any:
    """A tokeniser that is handed in is copied, for every use of one changes its settings."""
    if not isinstance(given, str | Path):
        return copy.deepcopy(given)
    advice = "save one there with tokenizer.save_pretrained(folder), or pass one"
    try:
        opened = transformers.AutoTokenizer.from_pretrained(given, trust_remote_code=trust)
    except Exception as error:  # anything may come of files that are not there
        if "trust_remote_code" in str(error):
            raise DataError(f"{given}: {NOT_TRUSTED}") from error
        said = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise DataError(f"{given}: no tokeniser could be opened ({said}); {advice}") from error
    if len(opened) - len(opened.all_special_ids) <= MADE_OF_NOTHING:
        raise DataError(f"{given}: there is no tokeniser, or one without a vocabulary; {advice}")
    return opened
