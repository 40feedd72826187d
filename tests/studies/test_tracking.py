"""Metrics reach the real TensorBoard, MLflow, Weights & Biases and trackio, each evaluation once."""

import json
import math

import pytest

from heedful.api import study
from heedful.errors import ConfigError
from heedful.followed.training import Recorder
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import RunDirectory, model_specs
from heedful.studies.tracking import Tracking, open_trackers, result_metrics, tracking
from tests.audits import tiny
from tests.conftest import tiny_corpus


class Heard:
    def __init__(self):
        self.points, self.closed = [], None

    def model(self, name, step, values):
        self.points.append((name, step, dict(values)))

    def study(self, values):
        self.points.append(("study", 0, dict(values)))

    def close(self, failed):
        self.closed = failed


@pytest.fixture(scope="module")
def tracked_run(tmp_path_factory):
    """A study that went to both trackers, and was asked for a second time when everything was there."""
    pytest.importorskip("tensorboard", reason="the extra track is not installed")
    pytest.importorskip("mlflow", reason="the extra track is not installed")
    folder = tmp_path_factory.mktemp("tracked")
    out, store = folder / "run", f"sqlite:///{folder / 'mlflow.db'}"
    for _ in range(2):
        study(
            tiny_corpus(),
            budget="smoke",
            out=out,
            jobs=1,
            device="cpu",
            progress=False,
            track=["tensorboard", f"mlflow:{store}"],
        )
    return out, store


def metrics_of(run):
    return {
        spec.name: {line["step"]: line["accuracy"] for line in RunDirectory(run).model(spec).metrics()}
        for spec in model_specs(RunDirectory(run).config())
    }


def test_tensorboard_has_every_evaluation_once(tracked_run):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, _ = tracked_run
    for name, wanted in metrics_of(run).items():
        events = EventAccumulator(str(run / "tensorboard" / name))
        events.Reload()
        seen = {event.step: event.value for event in map(_scalar(events), range(len(events.Tensors("accuracy"))))}
        assert seen == pytest.approx(wanted)
        assert len(events.Tensors("accuracy")) == len(wanted)


def _scalar(events):
    from types import SimpleNamespace

    from tensorboard.util.tensor_util import make_ndarray

    found = events.Tensors("accuracy")
    return lambda i: SimpleNamespace(step=found[i].step, value=float(make_ndarray(found[i].tensor_proto)))


def test_mlflow_has_a_run_within_the_studys_for_each_model(tracked_run):
    import mlflow

    run, store = tracked_run
    client = mlflow.MlflowClient(tracking_uri=store)
    experiment = client.get_experiment_by_name("heedful")
    runs = client.search_runs([experiment.experiment_id])
    parents = [each for each in runs if "mlflow.parentRunId" not in each.data.tags]
    assert len(parents) == 2  # one for each time it was asked for
    assert {each.info.status for each in runs} == {"FINISHED"}
    result = StudyResult.load(run / "result.json")
    for parent in parents:
        assert parent.data.params["train.steps"] == "12"
        assert parent.data.tags["heedful.digest"] == result.config_digest
        assert parent.data.metrics["agreement/alpha-beta/own"] == pytest.approx(
            result.agreement("A(alpha,beta)").estimate.value
        )
        within = {r.info.run_name: r for r in runs if r.data.tags.get("mlflow.parentRunId") == parent.info.run_id}
        for name, wanted in metrics_of(run).items():
            history = client.get_metric_history(within[name].info.run_id, "accuracy")
            assert {point.step: point.value for point in history} == pytest.approx(wanted)
            assert len(history) == len(wanted)


def points_of_wandb(folder):
    """Every metric of the only run as {name: [(step, value), …]}, its settings, and its exit code."""
    from wandb.proto.wandb_internal_pb2 import Record
    from wandb.sdk.internal.datastore import DataStore

    (path,) = folder.glob("wandb/offline-run-*/*.wandb")
    store, points, settings, code = DataStore(), {}, {}, None
    store.open_for_scan(path)
    while (data := store.scan_data()) is not None:
        record = Record()
        record.ParseFromString(data)
        settings |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
        code = record.exit.exit_code if record.HasField("exit") else code
        row = {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for name, value in row.items():
            model, _, metric = name.partition("/")
            if metric and metric != "step":
                points.setdefault(name, []).append((row[f"{model}/step"], value))
    store.close()
    return points, settings, code


def points_of_trackio(folder):
    """Every metric of the only run as {name: [(step, value), …]}, and its settings."""
    from trackio.sqlite_storage import SQLiteStorage

    (run,) = SQLiteStorage.get_runs("mine")
    points = {}
    for row in SQLiteStorage.get_logs("mine", run):
        for name, value in row.items():
            if "/" in name:
                points.setdefault(name, []).append((row["step"], value))
    return points, SQLiteStorage.get_run_config("mine", run), None


@pytest.fixture(params=["wandb", "trackio"])
def logger(request, tmp_path, monkeypatch):
    """The name of a logger that keeps its runs in a folder, and a function that reads the only run there."""
    library = pytest.importorskip(request.param, reason="it is not installed")
    for name, value in {"WANDB_MODE": "offline", "WANDB_DIR": tmp_path, "WANDB_SILENT": "true"}.items():
        monkeypatch.setenv(name, str(value))
    if request.param == "trackio":
        for module in ("trackio.sqlite_storage", "trackio.utils"):
            monkeypatch.setattr(f"{module}.TRACKIO_DIR", tmp_path / "trackio")
    read = {"wandb": points_of_wandb, "trackio": points_of_trackio}[request.param]
    # At the end of the process wandb waits until its service has written everything, and forgets its environment.
    teardown = library.teardown if request.param == "wandb" else lambda: None
    return f"{request.param}:mine", lambda: (teardown(), read(tmp_path))[1]


def test_a_loggers_run_has_every_evaluation_once(logger, smoke_run, capsys):
    name, read = logger
    config = RunDirectory(smoke_run).config()
    with tracking([name], smoke_run, config) as on_event:
        on_event({"model": "standard-0", "step": 12, "steps": 12, "accuracy": 0.5, "loss": math.nan})
    points, settings, code = read()
    wanted = metrics_of(smoke_run)
    wanted["standard-0"] |= {12: 0.5}  # as it was heard while it ran
    for model, course in wanted.items():
        assert sorted(points[f"{model}/accuracy"]) == sorted((step, pytest.approx(v)) for step, v in course.items())
    result = StudyResult.load(smoke_run / "result.json")
    for key, value in result_metrics(result).items():
        assert points[f"study/{key}"] == [(0, pytest.approx(value))]
    assert settings["train.steps"] == config.train.steps
    assert settings["heedful.digest"] == result.config_digest
    assert code in (0, None)
    assert capsys.readouterr().out == ""


def test_a_recorder_sends_every_step(logger, tmp_path):
    name, read = logger
    recorder = Recorder(tmp_path / "run", tiny.TEXTS, tiny.bert().tokenizer, labels=[1, 0] * 3, track=[name])
    recorder.record(tiny.bert(0).model, 0)
    result = recorder.close(tiny.bert(1).model, 40)
    points, settings, _ = read()
    for metric in ("accuracy", "loss", "entropy", "special", "agreement/alpha-beta", "agreement/alpha-beta/shuffle"):
        assert points[f"training/{metric}"] == [(s.step, pytest.approx(s.metrics[metric])) for s in result.steps]
    assert settings["model"] == "BertForSequenceClassification"


def test_wandb_without_a_login_is_one_sentence(tmp_path, monkeypatch):
    wandb = pytest.importorskip("wandb", reason="the extra track is not installed")

    def refuse(**options):
        raise wandb.errors.UsageError("No API key configured.\nUse `wandb login`.")

    monkeypatch.setattr(wandb, "init", refuse)
    with pytest.raises(ConfigError, match=r"--track wandb: No API key configured\.; WANDB_MODE=offline keeps"):
        open_trackers(["wandb"], tmp_path, {}, "")


def test_what_came_before_is_read_from_the_runs_files(smoke_run):
    heard, config = Heard(), RunDirectory(smoke_run).config()
    told = Tracking([heard], RunDirectory(smoke_run), config)
    told.event({"model": "standard-0", "step": 12, "steps": 12, "accuracy": 0.5, "loss": math.nan, "train_loss": None})
    told.event({"model": "standard-0", "step": 9, "steps": 12, "batch_loss": 0.1})
    told.event({"model": "somebody-else", "step": 9, "accuracy": 0.1})
    assert heard.points == [("standard-0", 12, {"accuracy": 0.5})]
    told.event({"model": "standard-0", "done": True})
    assert [step for _, step, _ in heard.points] == [12, 0, 4, 8]
    result = StudyResult.load(smoke_run / "result.json")
    told.result(result)
    assert heard.points[-1] == ("study", 0, result_metrics(result))
    assert len(heard.points) == 1 + sum(len(course) for course in metrics_of(smoke_run).values())
    assert all(json.dumps(values, allow_nan=False) for _, _, values in heard.points)


def test_an_unknown_tracker(tmp_path, smoke_run):
    with (
        pytest.raises(ConfigError, match="'comet' is not one of tensorboard, mlflow, wandb, trackio"),
        tracking(["comet"], tmp_path, RunDirectory(smoke_run).config()),
    ):
        pass


def test_a_study_that_fails_is_marked_so(tmp_path, smoke_run):
    mlflow = pytest.importorskip("mlflow", reason="the extra track is not installed")
    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    with pytest.raises(KeyError), tracking([f"mlflow:{store}"], tmp_path, RunDirectory(smoke_run).config()):
        raise KeyError
    client = mlflow.MlflowClient(tracking_uri=store)
    runs = client.search_runs([client.get_experiment_by_name("heedful").experiment_id])
    assert [each.info.status for each in runs] == ["FAILED"]


def test_an_mlflow_that_cannot_be_reached(tmp_path, smoke_run):
    pytest.importorskip("mlflow", reason="the extra track is not installed")
    with (
        pytest.raises(ConfigError, match="--track mlflow:nonsense://"),
        tracking(["mlflow:nonsense://x"], tmp_path, RunDirectory(smoke_run).config()),
    ):
        pass
