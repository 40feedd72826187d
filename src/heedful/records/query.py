"""SQL queries over all runs below a folder, run by DuckDB, which has access to these tables only."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from heedful.audits.result import AuditResult, score_row
from heedful.errors import ConfigError, DamagedError, HeedfulError
from heedful.followed.result import FollowedTraining
from heedful.papers.experiment import Result
from heedful.records.index import SCHEMA as RUNS
from heedful.records.index import Row, RunEntry, find_runs
from heedful.storage.atomic_files import reason, without_nan
from heedful.storage.manifest import MANIFEST
from heedful.storage.run_files import listed, read_bounded
from heedful.storage.serialization import content
from heedful.storage.step_cache import StepRecord
from heedful.storage.tables import Tabular, arrow_table
from heedful.studies.result import StudyResult, agreement_row
from heedful.studies.run_directory import RunDirectory
from heedful.sweeps.result import SweepResult
from heedful.tracing.store import regular_parquet

_TEXT, _WHOLE, _SMALL, _REAL, _ROW = pa.string(), pa.int64(), pa.int32(), pa.float64(), pa.list_(pa.float32())
_METRICS = ("accuracy", "loss", "train_loss", "bleu")


@dataclass(frozen=True)
class View:
    """A table that can be queried: its name, its columns, and the rows that a run adds to it; `run` names the run."""

    name: str
    about: str
    schema: Mapping[str, pa.DataType]
    rows: Callable[[RunEntry], Iterable[Row]] | None = None

    def empty(self) -> pa.Table:
        """The columns without a row."""
        return arrow_table([], self.schema)

    def of(self, entries: Sequence[RunEntry]) -> Any:
        """The table of these runs; traces stay on disk until they are queried."""
        if self.rows is None:
            return _trace(entries, pa.schema(list(self.schema.items())))
        return arrow_table([{"run": e.record.run, **row} for e in entries for row in self.rows(e)], self.schema)


def _settings(entry: RunEntry) -> Iterable[Row]:
    settings = [] if entry.config is None else _flat(content(entry.config))
    return ({"setting": k, "value": v if isinstance(v, str) else json.dumps(v)} for k, v in settings)


def _agreements(entry: RunEntry) -> Iterable[Row]:
    rows = entry.result.agreements if isinstance(entry.result, StudyResult) else ()
    return ({"data": entry.record.what, **agreement_row(row)} for row in rows)


def _models(entry: RunEntry) -> Iterator[Row]:
    for model in entry.result.models if isinstance(entry.result, StudyResult) else ():
        yield {
            "model": model.name,
            "kind": model.kind,
            "seed": model.seed,
            "best_step": model.best_step,
            **{name: (getattr(model, name) or (None,))[-1] for name in ("steps", "accuracy", "loss", "bleu")},
        }


def _metrics(entry: RunEntry) -> Iterator[Row]:
    """Every line of every metrics.jsonl, of unfinished models too; what is damaged or unreadable is left out."""
    for model, files in _models_on_disk(entry):
        for path in files.verified("", "metrics.jsonl"):
            for number, text in enumerate(read_bounded(path).decode("utf-8", "replace").splitlines(), start=1):
                if (line := _metric(text)) is not None:
                    yield {**model, **line}
                else:
                    entry.notes.append(f"{path}:{number}: not a line of metrics")


def _metric(text: str) -> Row | None:
    with suppress(ValueError, TypeError, KeyError, OverflowError, RecursionError):
        line = dict(json.loads(text))
        numbers = {name: float(line[name]) for name in _METRICS if line.get(name) is not None}
        return {"step": pa.scalar(int(line["step"]), _WHOLE).as_py(), **numbers}
    return None


def _audits(entry: RunEntry) -> Iterator[Row]:
    if isinstance(entry.result, AuditResult):
        about = {"model": entry.result.model, "data": entry.result.data}
        for score in entry.result.scores:
            yield about | {"headline": score.of == entry.result.headline} | score_row(score)


def _followed(entry: RunEntry) -> Iterable[Row]:
    return entry.result.to_rows() if isinstance(entry.result, FollowedTraining) else ()


def _sweeps(entry: RunEntry) -> Iterator[Row]:
    if isinstance(entry.result, SweepResult):
        sweep = entry.record.run
        for study in entry.result.studies:
            run = study.folder if sweep == "." else f"{sweep}/{study.folder}"
            about = {"sweep": sweep, "run": run, "state": study.state, "error": study.error}
            for axis, value in zip(entry.result.axes, study.place, strict=True):
                yield about | {"axis": axis.name, "value": value}


def _findings(entry: RunEntry) -> Iterator[Row]:
    if isinstance(entry.result, Result):
        about = {name: getattr(entry.result, name) for name in ("paper", "experiment", "budget")}
        for value in entry.result.finding.values:
            yield about | {"name": value.name, **asdict(value.estimate)}


def _flat(table: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


@dataclass(frozen=True)
class ModelFiles:
    """The files of one model on disk, and the record with their checksums; None for a model that still trains."""

    folder: Path
    record: StepRecord | None
    notes: list[str]

    def verified(self, folder: str, pattern: str) -> Iterator[Path]:
        """The files in a folder of the model whose checksums are right; the others are left out, with a note.

        A model that is not trained yet has no checksums; its files are used as they are.
        """
        for path in listed(self.folder / folder, pattern):
            try:
                if self.record is not None:
                    self.record.verified(path.relative_to(self.folder).as_posix())
                yield path
            except DamagedError as error:
                self.notes.append(str(error))


def _models_on_disk(entry: RunEntry) -> Iterator[tuple[Row, ModelFiles]]:
    """The models of a run; of one that is damaged, none."""
    if entry.record.state == "damaged":
        return
    if entry.record.kind == "followed":
        files = ModelFiles(entry.root, StepRecord(entry.root / MANIFEST), entry.notes)
        yield {"model": "model", "kind": "followed", "seed": None}, files
    elif entry.record.kind == "study":
        run = RunDirectory(entry.root)
        for folder in listed(entry.root / "models", "*"):
            kind, _, seed = folder.name.rpartition("-")
            if not folder.is_dir() or not seed.isdecimal():
                continue
            model = run.model(folder.name)
            try:
                record = model.done if model.is_done() and model.summary() else None
            except HeedfulError as error:
                entry.notes.append(str(error))
                continue
            if record is None:
                entry.notes.append(f"{folder}: not trained to its end; its files have no checksums yet")
            yield {"model": folder.name, "kind": kind, "seed": int(seed)}, ModelFiles(folder, record, entry.notes)


def _trace(entries: Sequence[RunEntry], schema: pa.Schema) -> ds.Dataset:
    """All traces as one table, whose first columns name the run and model; damaged files are left out."""
    reader, local = ds.ParquetFileFormat(), fs.LocalFileSystem()
    fragments = []
    for entry in entries:
        for model, files in _models_on_disk(entry):
            for split, name in (("validation", "trace"), ("train", "trace-train")):
                for path in files.verified(name, "*.parquet"):
                    if not path.stem.isdecimal():
                        continue
                    here = (
                        (ds.field("run") == entry.record.run)
                        & (ds.field("model") == model["model"])
                        & (ds.field("split") == split)
                        & (ds.field("step") == int(path.stem))
                    )
                    fragment = reader.make_fragment(str(path.resolve()), local, partition_expression=here)
                    try:
                        regular_parquet(path)
                        fragment.ensure_complete_metadata()
                        fragments.append(fragment)
                    except (pa.ArrowException, OSError) as error:
                        entry.notes.append(f"{path}: cannot be read: {reason(error)}")
    return ds.FileSystemDataset(fragments, schema, reader, local)


_ESTIMATE = {"value": _REAL, "low": _REAL, "high": _REAL, "n": _WHOLE, "undefined": _WHOLE}
_AGREEMENT = dict.fromkeys(("agreement", "low", "high"), _REAL) | {
    "n": _WHOLE,
    **dict.fromkeys(("random", "shuffle", "excess_low", "excess_high"), _REAL),
}
VIEWS = {
    view.name: view
    for view in (
        View("runs", "every run: kind, state, when, main figures", RUNS, lambda entry: [asdict(entry.record)]),
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
            | dict.fromkeys(("held_out", "held_out_low", "held_out_high", "wrong_label", "expected", "excess"), _REAL)
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
            {"run": _TEXT, "model": _TEXT, "split": _TEXT, "step": _WHOLE, "example": _SMALL, "output": _SMALL}
            | {"alpha": _ROW, "beta_logit": _ROW, "delta": _ROW, "label": _SMALL, "prediction": _SMALL}
            | {"log_odds": pa.float32()},
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


_ISOLATED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "temp_directory": "",
}
_READ_ONLY = ("SELECT", "EXPLAIN", "MULTI")  # kinds of statements; PIVOT counts as several


class QueryError(HeedfulError):
    """SQL that cannot be run."""


@dataclass(frozen=True)
class Answer(Tabular):
    """The result of a query. notes: runs and files that were left out or unchecked."""

    sql: str
    table: pa.Table
    notes: tuple[str, ...] = ()

    def to_arrow(self) -> pa.Table:
        """The rows and columns."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """Plain values: the query, the columns, the rows."""
        rows = without_nan(self.to_rows())
        return {"sql": self.sql, "columns": self.table.column_names, "rows": rows, "notes": list(self.notes)}

    def save(self, path: Path | str) -> None:
        """Write the rows to a .parquet, .csv or .json file."""
        self.save_table(path)


def ask(sql: str, folder: Path | str) -> Answer:
    """Run one SELECT over the runs below a folder; `schema` lists the tables.

    Nothing is written, no file is read that is not a run's, and no extension is loaded.
    """
    _refuse_other(sql)
    queried = {name for name in VIEWS if re.search(rf"\b{name}\b", sql, re.IGNORECASE)}
    entries = find_runs(Path(folder)) if queried else []
    with duckdb.connect(":memory:", config=_ISOLATED) as connection:
        for name, view in VIEWS.items():
            connection.register(name, view.of(entries) if name in queried else view.empty())
        connection.execute("SET lock_configuration = true")
        try:
            relation = connection.sql(sql)
            table = relation.to_arrow_table()
            if beyond := [name for name in table.column_names if not _in_python(table[name])]:
                casts = [
                    f"CAST({_quoted(n)} AS VARCHAR) AS {_quoted(n)}" if n in beyond else _quoted(n)
                    for n in table.column_names
                ]
                table = relation.project(", ".join(casts)).to_arrow_table()
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise _in_words(error) from None
    return Answer(sql, table, tuple(_said(entries)) if queried - {"runs"} else ())


def _said(entries: Sequence[RunEntry]) -> Iterator[str]:
    """What the tables besides `runs` lack: damaged runs, and damaged files of the others."""
    for entry in entries:
        if entry.record.state == "damaged":
            yield f"{entry.record.run}: {entry.record.said}"
        yield from dict.fromkeys(entry.notes)


def _in_python(column: pa.ChunkedArray) -> bool:
    """Whether Python has all values of a column; it has no infinite time, and none after the year 9999."""
    if pa.types.is_primitive(column.type) and not pa.types.is_temporal(column.type):
        return True
    try:
        column.to_pylist()
    except (ValueError, OverflowError, ArithmeticError, pa.ArrowException):
        return False
    return True


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def schema() -> Answer:
    """Every table that can be queried, with its columns.

    >>> schema().to_rows()[0]["table"]
    'runs'
    """
    rows = [
        {"table": name, "column": column, "type": str(kind), "about": view.about}
        for name, view in VIEWS.items()
        for column, kind in view.schema.items()
    ]
    columns = dict.fromkeys(("table", "column", "type", "about"), pa.string())
    return Answer("", arrow_table(rows, columns))


def _refuse_other(sql: str) -> None:
    if not sql.strip():
        raise ConfigError('no question; ask such as: heedful query "SELECT run, accuracy FROM runs"')
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise _in_words(error) from None
    if len(statements) != 1:
        raise QueryError(f"{len(statements)} statements; ask one question at a time")
    kind = str(statements[0].type).rpartition(".")[2]
    if kind not in _READ_ONLY:
        raise QueryError(f"{kind} is not answered: a query may only SELECT")


def _in_words(error: Exception) -> QueryError:
    """DuckDB's message as one sentence, without the excerpt below it."""
    message = str(error).split("\n\nLINE ")[0]
    return QueryError(f"{' '.join(message.split())} (tables and columns: heedful query --schema)")
