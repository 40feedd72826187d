"""Labels that a study could lose: they are kept, or the file is refused before anything is trained."""

from collections import Counter

import pytest

from heedful.api import study_config
from heedful.errors import DataError
from heedful.studies.run_directory import RunDirectory
from heedful.studies.study import prepare_data


def write(path, counts):
    rows = [f"{label} film {i % 7},{label}\n" for label, count in counts.items() for i in range(count)]
    path.write_text("text,label\n" + "".join(rows), "utf-8")
    return path


def prepared(path, tmp_path):
    config = study_config(str(path), budget="smoke")
    run = RunDirectory(tmp_path / "run")
    run.claim(config)
    prepare_data(run, config, None)
    return [Counter(run.split(name).labels.tolist()) for name in ("train", "validation")]


def test_three_rare_rows_of_3003_are_kept(tmp_path):
    train, validation = prepared(write(tmp_path / "rare.csv", {"a": 1500, "b": 1500, "c": 3}), tmp_path)
    assert (sum(train.values()), sum(validation.values())) == (256, 48)
    assert train[2] >= 1
    assert validation[2] == 1


def test_fifty_labels_at_smoke_are_kept(tmp_path):
    train, validation = prepared(write(tmp_path / "many.csv", {f"label{k}": 30 for k in range(50)}), tmp_path)
    assert len(train) == len(validation) == 50
    assert sum(validation.values()) == 50
    assert max(train.values()) - min(train.values()) <= 2


def test_a_label_of_one_row_is_refused_before_training(tmp_path):
    path = write(tmp_path / "single.csv", {"a": 60, "b": 60, "c": 1})
    with pytest.raises(DataError, match=r"^single.csv: label 'c' has no validation text .*c 1 / 0\); give more texts"):
        prepared(path, tmp_path)
    assert not (tmp_path / "run" / "models").exists()
