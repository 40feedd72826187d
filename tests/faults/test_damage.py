"""Each kind of file, damaged: named, set aside, computed again to the same bytes; readers say which file it is."""

import shutil

import pytest

from heedful.config import with_overrides
from heedful.errors import DamagedError, HeedfulError, RunError
from heedful.reports.study_page import render_study
from heedful.studies.run_directory import ModelSpec, RunDirectory, damages, is_intact
from heedful.studies.token_table import token_table
from tests.faults.damage import FINISHED, HARMS, UNFINISHED, flip, last, truncate
from tests.faults.small import TEXTS, die_at_rename, finish


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    out = tmp_path_factory.mktemp("damage") / "whole"
    finish(TEXTS, out)
    return out


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory):
    out = tmp_path_factory.mktemp("damage") / "broken-off"
    assert die_at_rename(TEXTS, out, 27, before=False)
    return out


@pytest.fixture
def run(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "run")


@pytest.mark.parametrize(
    ("kind", "harm"), [(kind, list(HARMS)[i % 3]) for i, kind in enumerate(FINISHED)], ids=lambda value: str(value)
)
def test_a_finished_run_is_mended(whole, run, kind, harm):
    HARMS[harm](run / kind)
    assert not is_intact(RunDirectory(run))
    notices = []
    assert finish(TEXTS, run, notices) == (whole / "result.json").read_bytes()
    assert [n for n in notices if str(run / kind) in n and f"{(run / kind).name}.damaged-1" in n], notices
    assert (run / f"{kind}.damaged-1").exists()
    assert is_intact(RunDirectory(run))
    if kind != "manifest.json":
        assert RunDirectory(run).manifest().details["set_aside"] == notices
    if kind not in ("manifest.json", "models/proxy-0/done.json"):  # these know how long it took
        assert (run / kind).read_bytes() == (whole / kind).read_bytes()


@pytest.mark.parametrize("kind", UNFINISHED)
def test_an_unfinished_run_is_mended(whole, broken_off, tmp_path, kind):
    run = shutil.copytree(broken_off, tmp_path / "run")
    harmed = last(run, kind)
    flip(harmed)
    notices = []
    assert finish(TEXTS, run, notices) == (whole / "result.json").read_bytes()
    assert [n for n in notices if str(harmed) in n and "damaged-1" in n], notices


@pytest.mark.parametrize("kind", [kind for kind in FINISHED if "logistic" not in kind and "test." not in kind])
def test_readers_name_the_damaged_file(run, kind):
    flip(run / kind)

    def read_everything():
        render_study(RunDirectory(run))
        token_table(run, seed=1)
        RunDirectory(run).split("train")
        RunDirectory(run).recorded(RunDirectory(run).split)
        RunDirectory(run).model(ModelSpec("proxy", 0)).summary()
        RunDirectory(run).model(ModelSpec("attention-only", 0)).trace("train").quantity("alpha", 5)
        for damage in damages(RunDirectory(run)):
            raise DamagedError(damage.path, damage.why)

    with pytest.raises(HeedfulError) as error:
        read_everything()
    assert str(run / kind) in str(error.value)


def test_a_file_that_is_gone_is_made_again(whole, run):
    (run / "models" / "standard-0" / "trace" / "2.parquet").unlink()
    notices = []
    assert finish(TEXTS, run, notices) == (whole / "result.json").read_bytes()
    assert "trace/2.parquet was damaged (it is gone): gone, and computed again" in notices[0]


def test_a_damaged_config_does_not_let_another_study_in(run):
    truncate(run / "config.toml")
    with pytest.raises(RunError, match="other settings"):
        finish(with_overrides(TEXTS, min_count=2), run)


def test_a_checkpoint_of_other_data_is_of_no_use(broken_off, tmp_path):
    run = shutil.copytree(broken_off, tmp_path / "run")
    other = with_overrides(TEXTS, min_count=2)
    with pytest.raises(RunError, match="other settings"):
        finish(other, run)


def test_a_config_that_is_no_toml_is_written_anew_where_others_know_what_was_asked(whole, run):
    (run / "config.toml").write_text("data = \n")
    assert not is_intact(RunDirectory(run))
    notices = []
    assert finish(TEXTS, run, notices) == (whole / "result.json").read_bytes()
    assert notices[0].startswith(f"{run / 'config.toml'} was damaged (")
    assert notices[0].endswith("): set aside as config.toml.damaged-1, and computed again")
    assert notices[0].count(str(run)) == 1
    assert (run / "config.toml.damaged-1").read_text() == "data = \n"
    assert (run / "config.toml").read_bytes() == (whole / "config.toml").read_bytes()


def test_a_damaged_config_that_nothing_vouches_for(run):
    truncate(run / "config.toml")
    (run / "data" / "checksums.json").unlink()
    for done in run.glob("models/*/done.json"):
        done.unlink()
    with pytest.raises(RunError, match=r"config\.toml: damaged .* no other file records the settings; choose another"):
        finish(TEXTS, run)
    assert (run / "models").exists()


def test_data_that_their_checksums_do_not_list(run):
    shutil.copy(run / "data" / "train.parquet", run / "data" / "more.parquet")
    with pytest.raises(DamagedError, match=r"more\.parquet: damaged \(checksums\.json does not list it\)"):
        RunDirectory(run).split("more")


@pytest.mark.parametrize("content", [b'{"step": 0}\n{"step"', b"\xff\n"], ids=["half a line", "no text"])
def test_metrics_of_a_model_that_is_not_trained(run, content):
    folder = RunDirectory(run).model(ModelSpec("standard", 0))
    folder.done.path.unlink()
    assert [line["step"] for line in folder.metrics()] == [0, 2, 5]
    (folder.root / "metrics.jsonl").write_bytes(content)
    with pytest.raises(DamagedError, match=rf"metrics\.jsonl: damaged .*; delete {folder.root} and run again"):
        folder.metrics()
    (folder.root / "metrics.jsonl").unlink()
    with pytest.raises(RunError, match=r"metrics\.jsonl: no such file; the model was not trained"):
        folder.metrics()


def test_words_of_a_run_that_is_not_finished(run):
    folder = run / "models" / "standard-0"
    (folder / "done.json").unlink()
    shutil.rmtree(folder / "checkpoints")
    with pytest.raises(RunError, match=r"5/model\.safetensors: no such file; the run is not finished"):
        token_table(run)
