"""The tables that can be asked about: what all runs below a folder measured, and their traces as they lie on disk."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from heedful.audits.followed import FollowedTraining
from heedful.audits.result import AuditResult, score_row
from heedful.papers.results import Result
from heedful.records.found import SCHEMA as RUNS
from heedful.records.found import FoundRun
from heedful.studies.result import StudyResult, agreement_row
from heedful.studies.swept import SweepResult
from heedful.studies.tabular import arrow_table
from heedful.typed import content

Row = dict[str, Any]
_TEXT, _WHOLE, _REAL, _ROW = pa.string(), pa.int64(), pa.float64(), pa.list_(pa.float32())
_METRICS = ("accuracy", "loss", "train_loss", "bleu")


@dataclass(frozen=True)
class View:
    """A table by name: its columns, and what fills it."""

    name: str
    about: str
    schema: Mapping[str, pa.DataType]
    rows: Callable[[Sequence[FoundRun]], Iterator[Row]] | None = None

    def empty(self) -> pa.Table:
        """The columns without a row."""
        return arrow_table([], self.schema)

    def of(self, found: Sequence[FoundRun]) -> Any:
        """The table of these runs; a trace stays on disk until it is asked about."""
        if self.rows is None:
            return _trace(found, pa.schema(list(self.schema.items())))
        return arrow_table(list(self.rows(found)), self.schema)


def _runs(found: Sequence[FoundRun]) -> Iterator[Row]:
    for each in found:
        yield asdict(each.record)


def _settings(found: Sequence[FoundRun]) -> Iterator[Row]:
    for each in found:
        if each.config is not None:
            for name, value in _flat(content(each.config)):
                yield {
                    "run": each.record.run,
                    "setting": name,
                    "value": value if isinstance(value, str) else json.dumps(value),
                }


def _agreements(found: Sequence[FoundRun]) -> Iterator[Row]:
    for each in found:
        if isinstance(each.result, StudyResult):
            for row in each.result.agreements:
                yield {"run": each.record.run, "data": each.record.what, **agreement_row(row)}


def _models(found: Sequence[FoundRun]) -> Iterator[Row]:
    for each in found:
        if isinstance(each.result, StudyResult):
            for model in each.result.models:
                yield {
                    "run": each.record.run,
                    "model": model.name,
                    "kind": model.kind,
                    "seed": model.seed,
                    "steps": model.steps[-1] if model.steps else None,
                    "best_step": model.best_step,
                    "accuracy": model.accuracy[-1] if model.accuracy else None,
                    "loss": model.loss[-1] if model.loss else None,
                    "bleu": model.bleu[-1] if model.bleu else None,
                }


def _metrics(found: Sequence[FoundRun]) -> Iterator[Row]:
    """Every line of every metrics.jsonl, unfinished models' too; a line that cannot be read is left out."""
    for each in found:
        for model, folder in _models_on_disk(each):
            with suppress(OSError, UnicodeDecodeError):
                for text in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines():
                    if (line := _metric(text)) is not None:
                        yield {"run": each.record.run, **model, **line}


def _metric(text: str) -> Row | None:
    with suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
        line = dict(json.loads(text))
        numbers = {name: float(line[name]) for name in _METRICS if line.get(name) is not None}
        return {"step": pa.scalar(int(line["step"]), _WHOLE).as_py(), **numbers}
    return None


def _audits(found: Sequence[FoundRun]) -> Iterator[Row]:
    for each in found:
        if isinstance(each.result, AuditResult):
            about = {"run": each.record.run, "model": each.result.model, "data": each.result.data}
            for score in each.result.scores:
                yield about | {"headline": score.of == each.result.headline} | score_row(score)


def _followed(found: Sequence[FoundRun]) -> Iterator[Row]:
    for each in found:
        if isinstance(each.result, FollowedTraining):
            for row in each.result.to_rows():
                yield {"run": each.record.run, **row}


def _sweeps(found: Sequence[FoundRun]) -> Iterator[Row]:
    for each in found:
        if isinstance(each.result, SweepResult):
            for study in each.result.studies:
                for axis, value in zip(each.result.axes, study.place, strict=True):
                    yield {
                        "sweep": each.record.run,
                        "run": study.folder if each.record.run == "." else f"{each.record.run}/{study.folder}",
                        "axis": axis.name,
                        "value": value,
                        "state": study.state,
                        "error": study.error,
                    }


def _findings(found: Sequence[FoundRun]) -> Iterator[Row]:
    for each in found:
        if isinstance(each.result, Result):
            for value in each.result.finding.values:
                yield {
                    "run": each.record.run,
                    "paper": each.result.paper,
                    "experiment": each.result.experiment,
                    "budget": each.result.budget,
                    "name": value.name,
                    **asdict(value.estimate),
                }


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _models_on_disk(each: FoundRun) -> Iterator[tuple[Row, Path]]:
    if each.record.kind == "followed":
        yield {"model": "model", "kind": "followed", "seed": None}, each.root
    elif each.record.kind == "study":
        for folder in sorted((each.root / "models").glob("*")):
            kind, _, seed = folder.name.rpartition("-")
            if folder.is_dir() and seed.isdecimal():
                yield {"model": folder.name, "kind": kind, "seed": int(seed)}, folder


def _trace(found: Sequence[FoundRun], schema: pa.Schema) -> ds.Dataset:
    """All traces as one table, whose first columns say where a row is from; files that cannot be read are left out."""
    reader, local = ds.ParquetFileFormat(), fs.LocalFileSystem()
    fragments = []
    for each in found:
        for model, folder in _models_on_disk(each):
            for split, name in (("validation", "trace"), ("train", "trace-train")):
                for path in sorted((folder / name).glob("*.parquet")):
                    if not path.stem.isdecimal():
                        continue
                    here = (
                        (ds.field("run") == each.record.run)
                        & (ds.field("model") == model["model"])
                        & (ds.field("split") == split)
                        & (ds.field("step") == int(path.stem))
                    )
                    fragment = reader.make_fragment(str(path.resolve()), local, partition_expression=here)
                    with suppress(pa.ArrowException, OSError):
                        fragment.ensure_complete_metadata()
                        fragments.append(fragment)
    return ds.FileSystemDataset(fragments, schema, reader, local)


_ESTIMATE = {"value": _REAL, "low": _REAL, "high": _REAL, "n": _WHOLE, "undefined": _WHOLE}
_AGREEMENT = {
    "agreement": _REAL,
    "low": _REAL,
    "high": _REAL,
    "n": _WHOLE,
    "random": _REAL,
    "shuffle": _REAL,
    "excess_low": _REAL,
    "excess_high": _REAL,
}
VIEWS = {
    view.name: view
    for view in (
        View("runs", "every run: kind, state, when, main figures", RUNS, _runs),
        View(
            "settings",
            "every setting of every study, by its dotted name",
            {"run": _TEXT, "setting": _TEXT, "value": _TEXT},
            _settings,
        ),
        View(
            "agreements",
            "every agreement of every finished study",
            {"run": _TEXT, "data": _TEXT, "quantity": _TEXT, "convention": _TEXT}
            | _AGREEMENT
            | dict.fromkeys(("split_half", "xi", "xi_low", "xi_high"), _REAL)
            | {"xi_reached": pa.bool_(), "ties": _WHOLE},
            _agreements,
        ),
        View(
            "models",
            "every model of every finished study, at its last step",
            {"run": _TEXT, "model": _TEXT, "kind": _TEXT, "seed": _WHOLE, "steps": _WHOLE, "best_step": _WHOLE}
            | dict.fromkeys(("accuracy", "loss", "bleu"), _REAL),
            _models,
        ),
        View(
            "metrics",
            "every evaluation of every model, unfinished ones too",
            {"run": _TEXT, "model": _TEXT, "kind": _TEXT, "seed": _WHOLE, "step": _WHOLE}
            | dict.fromkeys(_METRICS, _REAL),
            _metrics,
        ),
        View(
            "trace",
            "α, β and Δ of every text at every recorded step, read from disk as asked",
            {
                "run": _TEXT,
                "model": _TEXT,
                "split": _TEXT,
                "step": _WHOLE,
                "example": pa.int32(),
                "output": pa.int32(),
                "alpha": _ROW,
                "beta_logit": _ROW,
                "delta": _ROW,
                "label": pa.int32(),
                "prediction": pa.int32(),
                "log_odds": pa.float32(),
            },
        ),
        View(
            "audits",
            "every score of every audit",
            {"run": _TEXT, "model": _TEXT, "data": _TEXT, "headline": pa.bool_()}
            | {"quantity": _TEXT, "of": _TEXT, "against": _TEXT}
            | _ESTIMATE,
            _audits,
        ),
        View(
            "followed",
            "every agreement at every step of followed trainings",
            {"run": _TEXT, "step": _WHOLE, "quantity": _TEXT}
            | dict.fromkeys(("accuracy", "loss", "entropy", "special"), _REAL)
            | _AGREEMENT
            | dict.fromkeys(("gain", "gain_low", "gain_high"), _REAL)
            | {"ties": _WHOLE},
            _followed,
        ),
        View(
            "sweeps",
            "where each study of a sweep stands on each axis",
            dict.fromkeys(("sweep", "run", "axis", "value", "state", "error"), _TEXT),
            _sweeps,
        ),
        View(
            "findings",
            "numbers that claims of the papers are judged by",
            dict.fromkeys(("run", "paper", "experiment", "budget", "name"), _TEXT) | _ESTIMATE,
            _findings,
        ),
    )
}
