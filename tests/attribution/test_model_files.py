"""Model folders are checked before anything is built from them."""

import json
import threading
import time

import pytest

from heedful.attribution import model_files
from heedful.attribution.huggingface import open_model
from heedful.attribution.model_files import (
    Tensors,
    check_folder,
    check_sizes,
    check_tokenizer,
    in_words,
    safetensors_header,
    time_limit,
)
from heedful.errors import DataError
from tests.audits import tiny


@pytest.fixture
def folder(tmp_path):
    return tiny.bert().save(tmp_path / "bert")


def change(path, **entries):
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


def test_what_the_weights_hold(folder):
    header = safetensors_header(folder / "model.safetensors")
    made = tiny.bert().model
    assert {name: tuple(entry["shape"]) for name, entry in header.items()} == {
        name: tuple(value.shape) for name, value in made.state_dict().items()
    }
    found = check_folder(folder)
    assert (found.count, found.largest) == (len(header), max(max(entry["shape"]) for entry in header.values()))


def test_shards_in_the_folder_are_read(tmp_path):
    made = tiny.bert()
    made.model.save_pretrained(tmp_path, max_shard_size=5000)
    made.tokenizer.save_pretrained(tmp_path)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    with open_model(tmp_path) as (network, _):
        assert network.layers == 2


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"num_hidden_layers": 10**7}, "num_hidden_layers is 10000000, but the weights have 41 tensors"),
        ({"vocab_size": 10**9}, "vocab_size is 1000000000, more than 131,072"),
        ({"num_labels": 10**9}, "num_labels is 1000000000"),
        ({"max_position_embeddings": 10**6}, "max_position_embeddings is 1000000, more than 65,536"),
        ({"hidden_size": 10**400}, "hidden_size is no number that a model could have"),
        ({"num_attention_heads": 0}, "building the model from its config failed"),
        ({"vocab_size": 7}, "its weights have other shapes than its config says"),
        ({"quantization_config": {"quant_method": "gptq"}}, "the weights are quantised"),
    ],
)
def test_configs_that_lie(folder, entries, words):
    change(folder / "config.json", **entries)
    with pytest.raises(DataError, match=words), open_model(folder):
        pass


def test_real_configs_pass():
    large = Tensors(291, 128256, 16 * 10**9)
    llama = {"num_hidden_layers": 80, "max_position_embeddings": 131072, "rope_theta": 5000000, "vocab_size": 128256}
    check_sizes(model_files.Path("config.json"), llama, large)
    albert = {"num_hidden_layers": 48, "num_hidden_groups": 1, "vocab_size": 30000, "layer_norm_eps": 1e-12}
    check_sizes(model_files.Path("config.json"), albert, Tensors(25, 30000, 10**7))


def test_a_model_that_would_take_far_more_than_its_weights(folder, monkeypatch):
    monkeypatch.setattr(model_files, "MAX_SIZE", 10**9)
    change(folder / "config.json", intermediate_size=10**8)
    with pytest.raises(DataError, match="built from its config, the model takes"), open_model(folder):
        pass


def test_links_out_of_the_folder_are_refused_but_not_those_of_the_hub_cache(folder, tmp_path):
    blobs, snapshot = tmp_path / "hub" / "blobs", tmp_path / "hub" / "snapshots" / "0"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for i, path in enumerate(sorted(folder.iterdir())):
        (snapshot / path.name).symlink_to(path.rename(blobs / str(i)))
    with open_model(snapshot) as (network, _):
        assert network.layers == 2
    (snapshot / "config.json").unlink()
    (snapshot / "config.json").symlink_to("/etc/hostname")
    with pytest.raises(DataError, match="this is a link"), open_model(snapshot):
        pass


def test_tokenisers_that_grow(folder):
    for kind in (tiny.word_pieces, tiny.byte_pieces, tiny.sentence_pieces):
        kind().save_pretrained(folder)
        check_tokenizer(folder)
    doubling = {"type": "Replace", "pattern": {"String": "o"}, "content": "oo"}
    change(folder / "tokenizer.json", normalizer={"type": "Sequence", "normalizers": [doubling] * 30})
    with pytest.raises(DataError, match=r"its replacements can make .* characters of one"):
        check_tokenizer(folder)


def test_the_time_to_build_a_model_is_limited(monkeypatch):
    monkeypatch.setattr(model_files, "LOAD_SECONDS", 0.05)
    errors = []

    def build():
        try:
            with time_limit("a", 0):
                while True:
                    time.sleep(0.001)
        except DataError as error:
            errors.append(str(error))

    build()
    worker = threading.Thread(target=build)
    worker.start()
    worker.join()
    assert errors == ["a: building the model took longer than 0 s; check the sizes in its config"] * 2


def test_what_is_built_in_time_is_not_stopped_later(monkeypatch):
    monkeypatch.setattr(model_files, "LOAD_SECONDS", 0.02)
    with time_limit("a", 0):
        pass
    for _ in range(50):
        time.sleep(0.001)
    with pytest.raises(KeyError), time_limit("a", 0):
        raise KeyError


def test_errors_of_libraries_become_words():
    with pytest.raises(DataError, match=r"a: loading failed \(ZeroDivisionError: integer"), in_words("a", "loading"):
        1 // 0  # noqa: B018
    with pytest.raises(KeyboardInterrupt), in_words("a", "loading"):
        raise KeyboardInterrupt
