"""Model folders from strangers: configs, weights, indices and tokenisers that lie, opened as by `heedful audit`."""

import base64
import json
import os
import pickle
import random
import shutil
import struct
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from heedful.attribution.huggingface import open_model
from heedful.attribution.huggingface_translator import open_translator, output_passages
from tests.audits import tiny
from tests.faults.fuzzing import Tally

CLASSIFIERS = ("bert", "distilbert", "roberta", "deberta", "gpt2")
TRANSLATORS = ("marian", "t5", "bart")
BAD = (0, -1, 1, 3, 7, 10**3, 10**5, 10**7, 10**12, 10**400, 1.5, 1e308, None, True, "x", "", [], {}, [0], [10**9])
WORDS = ("gelu", "quantum", "../../x", "\u0000", "\x1b[31m", "a" * 5000)
GOOD_NAMES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


class Loaded:
    """Unpickling it is a failure."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(Path(tempfile.gettempdir()) / "heedful-unpickled"),)


def fuzz(rounds: int) -> Tally:
    """Every folder made by hand, then `rounds` configs and weights drawn at random for each architecture."""
    tally = Tally("hostile-model-folders")
    with tempfile.TemporaryDirectory() as made, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in (*CLASSIFIERS, *TRANSLATORS):
            good = getattr(tiny, name)().save(Path(made) / f"good-{name}")
            folder = Path(made) / name
            for what, spoil in _spoilers(good, name, rounds):
                shutil.rmtree(folder, ignore_errors=True)
                shutil.copytree(good, folder)
                spoil(folder)
                tally.attempt(f"{name}: {what}", lambda folder=folder, name=name: _open(folder, name))
        unpickled = Path(tempfile.gettempdir()) / "heedful-unpickled"
        if unpickled.exists():
            unpickled.rmdir()
            tally.failures.append("a pickle was loaded")
    return tally


def _open(folder: Path, name: str) -> None:
    """Open the folder and use what opens; the text is one that a tokeniser may blow up."""
    if name in TRANSLATORS:
        with open_translator(folder) as (network, reader):
            output_passages(network, reader, 0, "the film was good", "der film war gut")
    else:
        with open_model(folder) as (_, reader):
            reader.read(0, "the film was good " * 20)


def _spoilers(good: Path, name: str, rounds: int) -> Iterator[tuple[str, Callable[[Path], object]]]:
    draw = random.Random(f"folders {name}")
    config = json.loads((good / "config.json").read_text("utf-8"))
    if name == "bert":
        yield from _hand_made(good)
    keys = sorted(config)
    for _ in range(rounds):
        key, value = draw.choice(keys), draw.choice((*BAD, *WORDS))
        yield f"config {key}={str(value)[:20]!r}", lambda f, k=key, v=value: _change(f / "config.json", {k: v})
    tokenizer = json.loads((good / "tokenizer.json").read_text("utf-8")) if (good / "tokenizer.json").exists() else {}
    for _ in range(rounds // 4 if tokenizer else 0):
        part, value = draw.choice(sorted(tokenizer)), draw.choice((*BAD, *WORDS))
        yield f"tokenizer {part}={str(value)[:20]!r}", lambda f, k=part, v=value: _change(f / "tokenizer.json", {k: v})
    size = (good / "model.safetensors").stat().st_size
    for _ in range(rounds // 4):
        at, byte = draw.randrange(min(size, 4000)), draw.randrange(256)
        yield f"weights byte {at}={byte}", lambda f, at=at, byte=byte: _poke(f / "model.safetensors", at, byte)
        cut = draw.randrange(size)
        yield f"weights cut at {cut}", lambda f, cut=cut: os.truncate(f / "model.safetensors", cut)


def _hand_made(good: Path) -> Iterator[tuple[str, Callable[[Path], object]]]:
    index, weights = "model.safetensors.index.json", "model.safetensors"

    def shards(folder: Path, name: Any, *, pickled: str | None = None) -> None:
        (folder / weights).unlink()
        (folder / index).write_text(json.dumps({"metadata": {}, "weight_map": {"a": name}}))
        if pickled:
            (folder / pickled).write_bytes(pickle.dumps(Loaded()))

    for name in ("pytorch_model.bin", "../x.safetensors", "/etc/passwd", "a\\b.safetensors", "", None, 7, "x" * 999,
                 ".safetensors", "model.pt", "a\0.safetensors", "missing.safetensors"):  # fmt: skip
        yield f"shard {str(name)[:30]!r}", lambda f, n=name: shards(f, n, pickled="pytorch_model.bin")
    yield "shard is a pickle by another name", lambda f: shards(f, "a.safetensors", pickled="a.safetensors")
    for content in ("", "{", "[]", '{"weight_map": []}', '{"weight_map": {}}', "[" * 10**5):
        yield f"index {content[:20]!r}", lambda f, c=content: [(f / weights).unlink(), (f / index).write_text(c)]
    for name in GOOD_NAMES:
        for what, spoil in {
            "gone": Path.unlink,
            "empty": lambda path: path.write_bytes(b""),
            "zeros": lambda path: path.write_bytes(bytes(1000)),
            "a list": lambda path: path.write_text("[]"),
            "deep": lambda path: path.write_text("[" * 10**5),
            "a deep object": lambda path: path.write_text('{"a":' * 10**5),
            "not text": lambda path: path.write_bytes(b"\xff\xfe" * 50),
            "a pipe": lambda path: [path.unlink(), os.mkfifo(path)],
            "a folder": lambda path: [path.unlink(), path.mkdir()],
            "a link out": lambda path: [path.unlink(), path.symlink_to(good / path.name)],
            "a link to zeros": lambda path: [path.unlink(), path.symlink_to("/dev/zero")],
            "a dangling link": lambda path: [path.unlink(), path.symlink_to("nowhere")],
        }.items():
            yield f"{name} {what}", lambda f, n=name, s=spoil: s(f / n)
    for entry in ({"quantization_config": {"quant_method": q}} for q in ("bitsandbytes", "gptq", "awq", "x", None)):
        yield f"config {entry}", lambda f, e=entry: _change(f / "config.json", e)
    for method in ({"auto_map": {"AutoConfig": "x.Y"}}, {"model_type": "x"}, {"model_type": None}, {"architectures": 1},
                   {"id2label": {"0": "a"}}, {"id2label": {str(i): "a" for i in range(5000)}}, {"num_labels": 10**9},
                   {"num_attention_heads": 0}, {"num_attention_heads": 3}, {"vocab_size": 5}, {"vocab_size": 10**9},
                   {"hidden_size": 10**6}, {"max_position_embeddings": 10**12}, {"max_position_embeddings": 1},
                   {"num_hidden_layers": 10**7}, {"num_hidden_layers": 0}, {"torch_dtype": "float8"},
                   {"dtype": "x"}, {"problem_type": "x"}, {"pad_token_id": 10**6}, {"hidden_act": "x"}):  # fmt: skip
        yield f"config {str(method)[:60]}", lambda f, e=method: _change(f / "config.json", e)
    doubling = {"type": "Replace", "pattern": {"String": "o"}, "content": "oo"}
    nested: dict[str, Any] = {"type": "Sequence", "normalizers": [doubling] * 40}
    regex = {"type": "Replace", "pattern": {"Regex": ""}, "content": "x" * 10**6}
    deep: dict[str, Any] = doubling
    for _ in range(50):
        deep = {"type": "Sequence", "normalizers": [deep]}
    charsmap = base64.b64encode(struct.pack("<I", 4) + bytes(4) + b"x" * 10**5 + b"\0").decode()
    for part in (nested, regex, deep, {"type": "Prepend", "prepend": "x" * 10**6}, {"type": "?"},
                 {"type": "Precompiled", "precompiled_charsmap": charsmap},
                 {"type": "Precompiled", "precompiled_charsmap": "!"}):  # fmt: skip
        yield f"normalizer {part['type']}", lambda f, p=part: _change(f / "tokenizer.json", {"normalizer": p})
    padding = {"strategy": {"Fixed": 10**10}, "direction": "Right", "pad_to_multiple_of": None, "pad_id": 0,
               "pad_type_id": 0, "pad_token": "[PAD]"}  # fmt: skip
    yield "padding of ten billion", lambda f: _change(f / "tokenizer.json", {"padding": padding})
    template = {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 10**5, "pair": [],
                "special_tokens": {}}  # fmt: skip
    yield "a template of many", lambda f: _change(f / "tokenizer.json", {"post_processor": template})
    for key in ("vocab_file", "tokenizer_file", "merges_file"):
        yield f"tokenizer {key}", lambda f, k=key: _change(f / "tokenizer_config.json", {k: "/etc/passwd"})
    yield "token ids beyond the table", _large_ids
    yield "an adapter", lambda f: (f / "adapter_config.json").write_text('{"base_model_name_or_path": "/etc"}')
    for length in (0, 1, 7, 2**20, 2**40, 2**63, 2**64 - 1):
        head = struct.pack("<Q", length)
        yield f"weights header of {length}", lambda f, h=head: (f / weights).write_bytes(h + b'{"a": 1}' * 10)
    for tensor in ({}, {"dtype": "F32"}, {"dtype": "X", "shape": [1], "data_offsets": [0, 4]}, 7, None,
                   {"dtype": "F32", "shape": [10**12], "data_offsets": [0, 4]},
                   {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]},
                   {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]},
                   {"dtype": "F32", "shape": ["x"], "data_offsets": [0, 4]},
                   {"dtype": "F32", "shape": [1], "data_offsets": [0]}):  # fmt: skip
        yield f"tensor {str(tensor)[:60]}", lambda f, t=tensor: _header(f / weights, t)


def _change(path: Path, entries: dict[str, Any]) -> None:
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | entries), "utf-8")


def _poke(path: Path, at: int, byte: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([byte]))


def _large_ids(folder: Path) -> None:
    content = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = {word: i if word.startswith("[") else i + 10**6 for word, i in vocabulary.items()}
    (folder / "tokenizer.json").write_text(json.dumps(content), "utf-8")


def _header(path: Path, tensor: Any) -> None:
    content = json.dumps({"a": tensor}).encode()
    path.write_bytes(struct.pack("<Q", len(content)) + content + bytes(4))
