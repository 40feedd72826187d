"""Experiment tracking by TensorBoard, MLflow, Weights & Biases or trackio, while a model is trained.

A tracker receives every evaluation of every model. Those of models that were finished before are read from their
`metrics.jsonl`.
"""

import importlib
import math
import os
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from contextvars import Context
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from heedful.config import StudyConfig, flat
from heedful.errors import ConfigError, MissingExtraError
from heedful.execution.pool import Event, OnEvent
from heedful.storage.run_files import listed, member
from heedful.storage.serialization import content, digest
from heedful.studies.result import StudyResult
from heedful.studies.run_directory import RunDirectory, model_specs

METRICS = ("accuracy", "loss", "train_loss", "bleu", "train_bleu")
EXPERIMENT = "heedful"
LOGGERS = ("wandb", "trackio")


@runtime_checkable
class Tracker(Protocol):
    """A service that metrics are sent to."""

    def model(self, name: str, step: int, values: Mapping[str, float]) -> None:
        """One evaluation of one model."""

    def study(self, values: Mapping[str, float]) -> None:
        """The results of the study."""

    def close(self, failed: bool) -> None:
        """End of the run."""


class Tracking:
    """All trackers of a study; each gets every evaluation once. Thread-safe."""

    def __init__(self, trackers: Sequence[Tracker], run: RunDirectory, config: StudyConfig) -> None:
        self._trackers, self._run = trackers, run
        self._specs = {spec.name: spec for spec in model_specs(config)}
        self._sent: set[tuple[str, int]] = set()
        self._lock = threading.Lock()

    def event(self, event: Event) -> None:
        """A progress event: an evaluation is passed on; at the end of a model, those that were missed are sent."""
        name = event.get("model")
        if name not in self._specs:
            return
        with self._lock:
            if event.get("done"):
                self._send_missed(name)
            elif "step" in event and self._specs[name].kind != "logistic":  # which is fitted without steps
                self._send(name, event)

    def result(self, result: StudyResult) -> None:
        """Send the metrics of models that were finished before, and the study's agreements."""
        with self._lock:
            for name in self._specs:
                self._send_missed(name)
            for tracker in self._trackers:
                tracker.study(result_metrics(result))

    def _send_missed(self, name: str) -> None:
        for line in self._run.model(self._specs[name]).metrics():
            self._send(name, line)

    def _send(self, name: str, line: Mapping[str, Any]) -> None:
        values = {key: float(line[key]) for key in METRICS if line.get(key) is not None}
        values = {key: value for key, value in values.items() if math.isfinite(value)}
        if values and (name, line["step"]) not in self._sent:
            self._sent.add((name, line["step"]))
            for tracker in self._trackers:
                tracker.model(name, line["step"], values)


@contextmanager
def tracking(
    wanted: Sequence[str], folder: Path, config: StudyConfig, on_event: OnEvent = lambda event: None
) -> Iterator[OnEvent]:
    """Trackers by name, see `open_trackers`, for as long as a study runs; they get its result too.

    Gives the handler of the study's events, which passes all of them on to `on_event`.
    """
    trackers = open_trackers(wanted, folder, flat(content(config)), digest(config))
    try:
        tracked = Tracking(trackers, RunDirectory(folder), config)

        def on_progress(event: Event) -> None:
            on_event(event)
            tracked.event(event)

        yield on_progress
        tracked.result(RunDirectory(folder).result())
    except BaseException:
        for tracker in trackers:
            tracker.close(failed=True)
        raise
    for tracker in trackers:
        tracker.close(failed=False)


def result_metrics(result: StudyResult) -> dict[str, float]:
    """A study's agreements by names that every tracker accepts.

    `agreement/alpha-beta/own` is A(α, β) of one model's own quantities, `…/shuffle` what a matched shuffle gives.
    """
    values = {"xi_final": result.xi_final.value, "entropy_final": result.entropy_final.value}
    for row in result.agreements:
        name = f"{agreement_name(row.name)}/{row.convention}"
        values |= {name: row.estimate.value, f"{name}/shuffle": row.shuffle.value}
    return {key: value for key, value in values.items() if math.isfinite(value)}


def agreement_name(name: str) -> str:
    """The name of an agreement that every tracker accepts.

    >>> agreement_name("A(alpha,beta)")
    'agreement/alpha-beta'
    """
    return f"agreement/{name.removeprefix('A(').removesuffix(')').replace(',', '-')}"


def open_trackers(wanted: Sequence[str], folder: Path, settings: Mapping[str, Any], key: str) -> list[Tracker]:
    """Trackers by name: `tensorboard`, `mlflow`, `mlflow:URI`, `wandb`, `wandb:PROJECT`, `trackio`, `trackio:PROJECT`.

    settings: of the run, shown beside its metrics; key: their digest. Where one cannot be opened, none stays open.

    >>> open_trackers(["csv"], Path("runs/mine"), {}, "")
    Traceback (most recent call last):
      ...
    heedful.errors.ConfigError: --track 'csv' is not one of tensorboard, mlflow, wandb, trackio; after a colon, ...
    """
    if isinstance(wanted, str):
        raise ConfigError(f"trackers are a list of names, such as [{wanted!r}]")
    trackers: list[Tracker] = []
    try:
        for name in wanted:
            trackers.append(_open(name, folder, settings, key))
    except BaseException:
        for tracker in trackers:
            tracker.close(failed=True)
        raise
    return trackers


def _open(name: str, folder: Path, settings: Mapping[str, Any], key: str) -> Tracker:
    kind, _, place = name.partition(":")
    if name == "tensorboard":
        return TensorBoard(folder)
    if kind == "mlflow":
        return MLflow(folder, settings, key, place or None)
    if kind in LOGGERS:
        return LoggedRun(kind, folder, settings, key, place or EXPERIMENT)
    raise ConfigError(
        f"--track {name!r} is not one of tensorboard, mlflow, wandb, trackio; after a colon, mlflow takes a store's "
        "URI, wandb and trackio the name of a project"
    )


class TensorBoard:
    """Event files in `<run>/tensorboard/<model>/`, one curve for each model: `tensorboard --logdir <run>`."""

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboard.summary import Writer
        except ImportError:
            raise MissingExtraError("tensorboard", "track", "--track tensorboard") from None
        self._make, self._folder = Writer, folder / "tensorboard"
        self._writers: dict[str, Any] = {}

    def model(self, name: str, step: int, values: Mapping[str, float]) -> None:
        """Each value under its own name, so that the models' curves lie over one another."""
        writer = self._writer(name)
        for key, value in values.items():
            writer.add_scalar(key, value, step)
        writer.flush()

    def study(self, values: Mapping[str, float]) -> None:
        """The study's agreements, as single points."""
        self.model("study", 0, values)

    def close(self, failed: bool) -> None:
        """Close the event files."""
        for writer in self._writers.values():
            writer.close()

    def _writer(self, name: str) -> Any:
        if name not in self._writers:
            # Points of an earlier process are sent again from metrics.jsonl, so that none is there twice.
            for path in listed(member(self._folder.parent, f"{self._folder.name}/{name}"), "events.out.tfevents.*"):
                if path.is_file():
                    path.unlink()
            self._writers[name] = self._make(str(self._folder / name))
        return self._writers[name]


class MLflow:
    """A run of MLflow's for the study, in the experiment `heedful`, and one within it for each model."""

    def __init__(self, folder: Path, settings: Mapping[str, Any], key: str, uri: str | None) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # nothing is sent anywhere that was not asked for
        try:
            import mlflow
            from mlflow.exceptions import MlflowException
        except ImportError:
            raise MissingExtraError("mlflow", "track", "--track mlflow") from None
        try:
            self._client = mlflow.MlflowClient(tracking_uri=uri)
            found = self._client.get_experiment_by_name(EXPERIMENT)
            self._experiment = found.experiment_id if found else self._client.create_experiment(EXPERIMENT)
        except MlflowException as error:
            raise ConfigError(f"--track mlflow:{uri or ''}: {str(error).splitlines()[0]}") from None
        self._runs: dict[str, str] = {}
        self._parent = self._begin(folder.name, {"heedful.folder": str(folder), "heedful.digest": key})
        for name, value in settings.items():
            if value is not None:
                self._client.log_param(self._parent, name, value)

    def model(self, name: str, step: int, values: Mapping[str, float]) -> None:
        """Into the model's own run."""
        if name not in self._runs:
            self._runs[name] = self._begin(name, {"mlflow.parentRunId": self._parent})
        self._log(self._runs[name], values, step)

    def study(self, values: Mapping[str, float]) -> None:
        """Into the study's run."""
        self._log(self._parent, values, 0)

    def close(self, failed: bool) -> None:
        """Set the state of the runs: failed or finished."""
        for run in (*self._runs.values(), self._parent):
            self._client.set_terminated(run, "FAILED" if failed else "FINISHED")

    def _begin(self, name: str, tags: Mapping[str, str]) -> str:
        made = self._client.create_run(self._experiment, run_name=name, tags=dict(tags))
        return str(made.info.run_id)

    def _log(self, run: str, values: Mapping[str, float], step: int) -> None:
        for key, value in values.items():
            self._client.log_metric(run, key, value, step=step)


class LoggedRun:
    """A run of Weights & Biases or of trackio, which have the same functions; a model's metrics are `<model>/loss` etc.

    Both keep it on this machine unless they are told where else: trackio always, Weights & Biases with
    WANDB_MODE=offline.
    """

    def __init__(self, library: str, folder: Path, settings: Mapping[str, Any], key: str, project: str) -> None:
        try:
            logger = importlib.import_module(library)
        except ImportError:
            if library == "wandb":
                raise MissingExtraError("wandb", "track", "--track wandb") from None
            raise ConfigError(f"--track {library} needs the package {library}: pip install {library}") from None
        self._curves = library == "wandb"
        shown = {name: value for name, value in settings.items() if value is not None} | {"heedful.digest": key}
        options: dict[str, Any] = {"project": project, "name": folder.name, "config": shown}
        if self._curves:  # a training may have a run of its own, and the terminal is not its
            options |= {"reinit": "create_new", "settings": logger.Settings(console="off")}
        else:
            options |= {"embed": False, "auto_log_cpu": False, "auto_log_gpu": False}
        try:
            with redirect_stdout(sys.stderr):
                # In a context of its own: trackio ends the run that it finds in the context, which may be a user's.
                self._run = Context().run(logger.init, **options)
        except Exception as error:  # each library has its own
            offline = "; WANDB_MODE=offline keeps the run on this machine" if self._curves else ""
            raise ConfigError(f"--track {library}: {str(error).strip().splitlines()[0]}{offline}") from None
        self._known: set[str] = set()

    def model(self, name: str, step: int, values: Mapping[str, float]) -> None:
        """Under the model's name. Models are trained side by side, so that each has steps of its own."""
        named = {f"{name}/{key}": value for key, value in values.items()}
        if not self._curves:
            self._run.log(named, step=step)
            return
        if name not in self._known:
            self._run.define_metric(f"{name}/*", step_metric=f"{name}/step")
            self._known.add(name)
        self._run.log(named | {f"{name}/step": step})

    def study(self, values: Mapping[str, float]) -> None:
        """The study's agreements, as single points."""
        self.model("study", 0, values)

    def close(self, failed: bool) -> None:
        """End the run: failed or finished."""
        with redirect_stdout(sys.stderr):
            if self._curves:
                self._run.finish(exit_code=int(failed))
            else:
                self._run.finish()
