"""Checks of a Hugging Face model's files before anything is built from them.

A model folder may come from a stranger. Weights are read only from safetensors files inside it; the sizes in its config
are compared with the tensors that are there; what its tokeniser makes of a text has a bound. A file is refused in words
before a library opens it.
"""

import base64
import ctypes
import errno
import json
import math
import os
import re
import struct
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from heedful.errors import DataError, HeedfulError
from heedful.storage.atomic_files import reason
from heedful.storage.run_files import entries_of, listed, open_regular, read_bounded

CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
TOKENIZER, TOKENIZER_CONFIG = "tokenizer.json", "tokenizer_config.json"
JSON_FILES = (CONFIG, INDEX, TOKENIZER, TOKENIZER_CONFIG, "generation_config.json", "special_tokens_map.json")
PICKLE = (
    "weights in a pickle (pytorch_model.bin) are not read, since they could run code; if you trust them, load them "
    "yourself and call model.save_pretrained(folder)"
)
QUANTISED_BY = ("bitsandbytes", "torchao")  # libraries whose quantised folders are read
MAX_FILES = 10_000  # of a model folder
MAX_JSON = 1 << 28  # bytes of a JSON file; the largest tokenisers have some 40 MB
MAX_CONFIG = 1 << 23  # bytes of a config
MAX_HEADER = 100_000_000  # bytes of the header of a safetensors file, as in its format
MAX_LAYERS = 256  # where the weights do not show that there are more
MAX_SIZE = 1 << 17  # of a dimension that no tensor has
MAX_POSITIONS, MAX_TABLE = 1 << 24, 1 << 16  # with rotary positions, and where each has a row of a table
_ENDLESS = 10**18
MAX_GROWTH = 256  # characters that a tokeniser makes of one
MAX_PADDING = 1 << 17  # pieces
LOAD_SECONDS, BYTES_PER_SECOND = 120, 10_000_000  # time to load a model, longer for large files
ELEMENT_BITS = {
    **{"BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6},
    **{"I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32, "U32": 32, "F32": 32, "I64": 64, "U64": 64, "F64": 64},
    "C64": 64,
}
_LAYERS = re.compile(r"layer|depth|block|group|expert|stage|stack")
_POSITIONS = re.compile(r"position|length|ctx|context|window|seq")
_SIZES = re.compile(r"num_|^n_|size|dim|heads?$|width|vocab|labels|bucket|kernel|rank|^d_|channels|ffn|inner")
_NOT_SIZES = re.compile(r"_id$|_ids$|_index$|theta|seed|eps|drop|norm")


@dataclass(frozen=True)
class Tensors:
    """What the headers of the weights say: how many tensors, their largest dimension, and bytes in all."""

    count: int
    largest: int
    bytes: int


def check_folder(folder: Path) -> Tensors:
    """Refuse a model folder with files that are not to be read; returns what its weights hold.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "config.json").write_text("{}")
    >>> check_folder(folder)
    Traceback (most recent call last):
    heedful.errors.DataError: ...: there is no model.safetensors...
    """
    check_files(folder)
    if (folder / "adapter_config.json").exists():
        raise DataError(f"{folder}: it holds an adapter (adapter_config.json) where a whole model is needed")
    config = check_config(folder / CONFIG)
    tensors = _tensors(folder)
    check_sizes(folder / CONFIG, config, tensors)
    return tensors


def check_files(folder: Path) -> None:
    """Refuse a folder with pipes, devices, or links out of it."""
    for entry in entries_of(folder, MAX_FILES):
        _check_file(folder, Path(entry.path))


def check_index(path: Path) -> list[str]:
    """The files that an index of shards names: only safetensors files beside it.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "model.safetensors.index.json"
    >>> _ = path.write_text('{"weight_map": {"a": "../pytorch_model.bin"}}')
    >>> check_index(path)
    Traceback (most recent call last):
    heedful.errors.DataError: ...: it names the shard '../pytorch_model.bin'; ...
    """
    content = read_json(path)
    shards = content.get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise DataError(f"{path}: there is no weight_map; save the model again with model.save_pretrained(folder)")
    for name in shards.values():
        if not isinstance(name, str) or not re.fullmatch(r"[^/\\\0]{1,250}\.safetensors", name) or name.startswith("."):
            raise DataError(
                f"{path}: it names the shard {str(name)[:60]!r}; weights are read only from safetensors files in the "
                "folder itself, since a pickle could run code"
            )
    return sorted(set(shards.values()))


def check_config(path: Path) -> dict[str, Any]:
    """The config of a model; one that needs other libraries or files is refused."""
    config = read_json(path, MAX_CONFIG)
    _check_quantised(path, config)
    names = config.get("architectures") or []
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise DataError(f"{path}: architectures is {reason(ValueError(names))}, not a list of names; {_AGAIN}")
    return config


def _check_quantised(path: Path, config: Mapping[str, Any]) -> None:
    """Refuse weights that are quantised by a library other than `QUANTISED_BY`, or by one that is not installed."""
    settings = config.get("quantization_config") or config.get("compression_config")
    if not settings:
        return
    method = settings.get("quant_method") if isinstance(settings, dict) else None
    if method is None and isinstance(settings, dict) and {"load_in_8bit", "load_in_4bit"} & set(settings):
        method = "bitsandbytes"  # as older versions saved it
    if method not in QUANTISED_BY:
        raise DataError(
            f"{path}: the weights are quantised by {str(method)[:40]!r}, whose files are not read; those of "
            f"{' and '.join(QUANTISED_BY)} are; or load the model yourself, and save it in full precision"
        )
    if find_spec(method) is None:
        raise DataError(
            f"{path}: the weights are quantised by {method}, a package that is not installed; install it with: "
            f"pip install {method}"
        )


def check_sizes(path: Path, config: Mapping[str, Any], tensors: Tensors) -> None:
    """Refuse sizes in a config that the weights do not have: a model of such sizes could not be built.

    >>> check_sizes(Path("config.json"), {"num_hidden_layers": 10**7}, Tensors(200, 30522, 10**8))
    Traceback (most recent call last):
    heedful.errors.DataError: config.json: num_hidden_layers is 10000000, but the weights have 200 tensors; ...
    """
    rotary = any(word in str(key) for key in config for word in ("rope", "rotary"))
    for name, value in numbers(config):
        key = name.rpartition(".")[2].lower()
        if _NOT_SIZES.search(key) or isinstance(value, bool):
            continue
        if not abs(value) < _ENDLESS:
            raise DataError(f"{path}: {name} is no number that a model could have; {_AGAIN}")
        if _LAYERS.search(key) and value > max(MAX_LAYERS, tensors.count):
            raise DataError(f"{path}: {name} is {value:.0f}, but the weights have {tensors.count:,} tensors; {_AGAIN}")
        if _POSITIONS.search(key):
            limit = MAX_POSITIONS if rotary else max(MAX_TABLE, tensors.largest)
        elif _SIZES.search(key):
            limit = max(MAX_SIZE, tensors.largest)
        else:
            continue
        if value > limit:
            raise DataError(
                f"{path}: {name} is {value:.0f}, more than {limit:,}, and the weights have no such dimension; {_AGAIN}"
            )


def check_built(place: str, built_bytes: int, tensors: Tensors) -> None:
    """Refuse a model whose parameters and buffers take far more memory than its weights.

    >>> check_built("folder", 1 << 40, Tensors(200, 30522, 10**8))
    Traceback (most recent call last):
    heedful.errors.DataError: folder: built from its config, the model takes 1,099.5 GB, but its weights ...
    """
    if built_bytes > 8 * tensors.bytes + (1 << 30):
        raise DataError(
            f"{place}: built from its config, the model takes {built_bytes / 1e9:,.1f} GB, but its weights have "
            f"{tensors.bytes / 1e9:,.1f} GB; {_AGAIN}"
        )


def check_tokenizer(folder: Path) -> None:
    """Refuse a tokeniser that makes very much of little text, or that reads files elsewhere."""
    path = folder / TOKENIZER_CONFIG
    if path.exists():
        for key, value in read_json(path).items():
            if key.endswith("_file") and isinstance(value, str) and value:
                inside = (folder / value).resolve().is_relative_to(folder.resolve())
                if not inside and Path(value).exists():
                    raise DataError(f"{path}: {key} is {value[:80]!r}, a file outside the folder; delete this entry")
    path = folder / TOKENIZER
    if not path.exists():
        return
    content = read_json(path)
    growth = 1.0
    for part in ("normalizer", "pre_tokenizer", "post_processor", "decoder"):
        growth *= _growth(path, content.get(part))
    if growth > MAX_GROWTH:
        raise DataError(
            f"{path}: its replacements can make {growth:,.0f} characters of one, more than {MAX_GROWTH}; "
            "use the tokeniser that the model was trained with"
        )
    padding = content.get("padding")
    if isinstance(padding, dict):
        for name, value in numbers(padding):
            if not name.endswith("_id") and value > MAX_PADDING:
                raise DataError(f"{path}: padding.{name} is {value:.0f} pieces, more than {MAX_PADDING:,}; delete it")


def _growth(path: Path, part: Any, depth: int = 0) -> float:
    """How many times longer a step of a tokeniser can make a text, at most; a sequence multiplies its steps."""
    if not isinstance(part, dict):
        return 1.0
    if depth > 20:
        raise DataError(f"{path}: its steps are nested more than 20 deep; use the model's own tokeniser")
    kind = part.get("type")
    steps = next((part[key] for key in ("normalizers", "pretokenizers", "processors", "decoders") if key in part), None)
    if isinstance(steps, list):
        return math.prod(_growth(path, step, depth + 1) for step in steps[:1000])
    if kind == "Replace":
        pattern, content = part.get("pattern"), str(part.get("content", ""))
        fixed = pattern.get("String") if isinstance(pattern, dict) else None
        return max(1.0, len(content) / len(fixed)) if isinstance(fixed, str) and fixed else 1.0 + len(content)
    if kind == "Prepend":
        return 1.0 + len(str(part.get("prepend", "")))
    if kind == "Precompiled":
        return _longest_mapping(path, part.get("precompiled_charsmap"))
    if kind == "TemplateProcessing":
        return float(
            max((len(part[side]) for side in ("single", "pair") if isinstance(part.get(side), list)), default=1)
        )
    return 1.0


def _longest_mapping(path: Path, packed: Any) -> float:
    """The longest replacement in a character map of SentencePiece: after its trie, texts that end with a zero byte."""
    try:
        content = base64.b64decode(packed or "", validate=True)
        (trie,) = struct.unpack_from("<I", content) if content else (0,)
    except (ValueError, TypeError, struct.error) as error:
        raise DataError(f"{path}: precompiled_charsmap cannot be read: {reason(error)}") from error
    return max(1.0, *map(len, content[4 + trie :].split(b"\0"))) / 4 if content else 1.0


def read_json(path: Path, most: int = MAX_JSON) -> dict[str, Any]:
    """A JSON object of at most so many bytes."""
    try:
        content = json.loads(read_bounded(path, most, follow=True).decode("utf-8"))
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise DataError(
                f"{path}: it has more than {most:,} bytes, which no such file has; save the model again"
            ) from None
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: this is not JSON: {reason(error)}; save the model again") from error
    if not isinstance(content, dict):
        raise DataError(f"{path}: this is not a JSON object; save the model again")
    return content


def numbers(content: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, float]]:
    """Every number in nested JSON, by its name."""
    if depth > 20:
        return
    if isinstance(content, dict):
        for key, value in content.items():
            yield from numbers(value, f"{prefix}.{key}" if prefix else str(key), depth + 1)
    elif isinstance(content, list):
        for value in content:
            yield from numbers(value, prefix, depth + 1)
    elif isinstance(content, int | float):
        yield prefix, content


def _check_file(folder: Path, path: Path) -> None:
    """Refuse pipes and devices, and links, except those from a snapshot of the Hub's cache to its own blobs."""
    if path.is_symlink():
        blobs = folder.resolve().parent.parent / "blobs"
        if folder.resolve().parent.name != "snapshots" or not path.resolve().is_relative_to(blobs):
            raise DataError(f"{path}: this is a link; a model folder must hold its files itself")
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"{path}: this is not a plain file; a model folder holds plain files")


def _tensors(folder: Path) -> Tensors:
    if (folder / WEIGHTS).is_file():
        names = [WEIGHTS]
    elif (folder / INDEX).is_file():
        names = check_index(folder / INDEX)
    else:
        if listed(folder, "*.bin"):
            raise DataError(f"{folder}: there is no model.safetensors, and {PICKLE}")
        raise DataError(f"{folder}: there is no model.safetensors; save the model with model.save_pretrained(folder)")
    count, largest, size = 0, 1, 0
    for name in names:
        for entry in safetensors_header(folder / name).values():
            count += 1
            largest = max(largest, *entry["shape"], 1)
        size += (folder / name).stat().st_size
    return Tensors(count, largest, size)


def safetensors_header(path: Path) -> dict[str, Any]:
    """The tensors of a safetensors file by name, each within the file and as long as its shape says."""
    try:
        with open_regular(path, follow=True) as file:
            size = os.fstat(file.fileno()).st_size
            head = file.read(8)
            length = int.from_bytes(head, "little")
            if len(head) < 8 or length > min(MAX_HEADER, size - 8):
                raise ValueError("its header is cut short, or it is another format")
            tensors = json.loads(file.read(length).decode("utf-8"))
        if not isinstance(tensors, dict):
            raise ValueError("its header is not a JSON object")
        tensors.pop("__metadata__", None)
        for name, entry in tensors.items():
            _check_tensor(name, entry, size - 8 - length)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        why = f"there is no {error}" if isinstance(error, KeyError) else reason(error)
        raise DataError(
            f"{path}: this is not a whole safetensors file ({why}); copy it again, or save the model again"
        ) from error
    return tensors


def _check_tensor(name: str, entry: Any, room: int) -> None:
    shape, (start, end), bits = entry["shape"], entry["data_offsets"], ELEMENT_BITS.get(entry["dtype"])
    if not all(isinstance(n, int) and n >= 0 for n in (*shape, start, end)):
        raise ValueError(f"{name[:60]!r} has sizes that are no numbers")
    if bits is None:
        raise ValueError(f"{name[:60]!r} is of the unknown type {str(entry['dtype'])[:20]!r}")
    if not start <= end <= room:
        raise ValueError(f"{name[:60]!r} ends after {end:,} bytes, but there are {room:,}")
    if math.prod(shape) * bits != 8 * (end - start):
        raise ValueError(f"{name[:60]!r} has the shape {shape}, but {end - start:,} bytes")


@contextmanager
def in_words(place: str, what: str) -> Iterator[None]:
    """Turn every error of a library into one sentence; `what` says what the library was doing."""
    try:
        yield
    except HeedfulError:
        raise
    except BaseException as error:  # a model can fail in as many ways as there are libraries
        if not is_failure(error):
            raise
        lines = str(error).strip().splitlines() or [""]
        why = f"{type(error).__name__}: {reason(ValueError(lines[0]))}".rstrip(": ")
        raise DataError(f"{place}: {what} failed ({why}); check that its files belong together") from error


def is_failure(error: BaseException) -> bool:
    """Whether an error is a library's: not a request to stop, but also a panic of one that is written in Rust.

    >>> is_failure(ZeroDivisionError()), is_failure(KeyboardInterrupt())
    (True, False)
    """
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


@contextmanager
def time_limit(place: str, size: int) -> Iterator[None]:
    """Stop with words what takes longer than weights of so many bytes need, in any thread.

    A timer raises the exception in the thread that loads, between two instructions of Python: what waits within a
    library is stopped when it returns. The sizes have bounds besides.
    """
    seconds = LOAD_SECONDS + size / BYTES_PER_SECOND
    thread, finished = threading.get_ident(), threading.Event()
    turn = threading.Lock()

    def stop() -> None:
        with turn:
            if not finished.is_set():
                _raise_in(thread, _OverdueError)

    timer = threading.Timer(seconds, stop)
    timer.daemon = True
    timer.start()
    try:
        try:
            yield
        finally:
            with turn:
                finished.set()
            timer.cancel()
            _raise_in(thread, None)  # where the time was up at the very end
    except _OverdueError:
        raise DataError(
            f"{place}: building the model took longer than {seconds:,.0f} s; check the sizes in its config"
        ) from None


class _OverdueError(BaseException):
    """The time is up: nothing that catches an `Exception` catches this."""


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise an exception in a running thread at its next instruction; None takes back one that was not raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), error and ctypes.py_object(error))


_AGAIN = "save the model again with model.save_pretrained(folder)"
