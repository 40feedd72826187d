"""One question in SQL about all runs below a folder, answered by DuckDB, which sees these tables and nothing else."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
from pyarrow import fs

from heedful.audits.result import AuditResult, score_row
from heedful.errors import ConfigError, HeedfulError
from heedful.followed.result import FollowedTraining
from heedful.papers.results import Result
from heedful.runs.index import SCHEMA as RUNS
from heedful.runs.index import RunEntry, find_runs
from heedful.storage.atomic_files import without_nan
from heedful.storage.serialization import content
from heedful.storage.tables import Tabular, arrow_table
from heedful.studies.result import StudyResult, agreement_row
from heedful.sweeps.result import SweepResult

Row = dict[str, Any]
_TEXT, _WHOLE, _REAL, _ROW = pa.string(), pa.int64(), pa.float64(), pa.list_(pa.float32())
_METRICS = ("accuracy", "loss", "train_loss", "bleu")


@dataclass(frozen=True)
class View:
    """A table by name: its columns, and what fills it."""

    name: str
    about: str
    schema: Mapping[str, pa.DataType]
    rows: Callable[[Sequence[RunEntry]], Iterator[Row]] | None = None

    def empty(self) -> pa.Table:
        """The columns without a row."""
        return arrow_table([], self.schema)

    def of(self, found: Sequence[RunEntry]) -> Any:
        """The table of these runs; a trace stays on disk until it is asked about."""
        if self.rows is None:
            return _trace(found, pa.schema(list(self.schema.items())))
        return arrow_table(list(self.rows(found)), self.schema)


def _runs(found: Sequence[RunEntry]) -> Iterator[Row]:
    for each in found:
        yield asdict(each.record)


def _settings(found: Sequence[RunEntry]) -> Iterator[Row]:
    for each in found:
        if each.config is not None:
            for name, value in _flat(content(each.config)):
                yield {
                    "run": each.record.run,
                    "setting": name,
                    "value": value if isinstance(value, str) else json.dumps(value),
                }


def _agreements(found: Sequence[RunEntry]) -> Iterator[Row]:
    for each in found:
        if isinstance(each.result, StudyResult):
            for row in each.result.agreements:
                yield {"run": each.record.run, "data": each.record.what, **agreement_row(row)}


def _models(found: Sequence[RunEntry]) -> Iterator[Row]:
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


def _metrics(found: Sequence[RunEntry]) -> Iterator[Row]:
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


def _audits(found: Sequence[RunEntry]) -> Iterator[Row]:
    for each in found:
        if isinstance(each.result, AuditResult):
            about = {"run": each.record.run, "model": each.result.model, "data": each.result.data}
            for score in each.result.scores:
                yield about | {"headline": score.of == each.result.headline} | score_row(score)


def _followed(found: Sequence[RunEntry]) -> Iterator[Row]:
    for each in found:
        if isinstance(each.result, FollowedTraining):
            for row in each.result.to_rows():
                yield {"run": each.record.run, **row}


def _sweeps(found: Sequence[RunEntry]) -> Iterator[Row]:
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


def _findings(found: Sequence[RunEntry]) -> Iterator[Row]:
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


def _models_on_disk(each: RunEntry) -> Iterator[tuple[Row, Path]]:
    if each.record.kind == "followed":
        yield {"model": "model", "kind": "followed", "seed": None}, each.root
    elif each.record.kind == "study":
        for folder in sorted((each.root / "models").glob("*")):
            kind, _, seed = folder.name.rpartition("-")
            if folder.is_dir() and seed.isdecimal():
                yield {"model": folder.name, "kind": kind, "seed": int(seed)}, folder


def _trace(found: Sequence[RunEntry], schema: pa.Schema) -> ds.Dataset:
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


_SEALED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "python_enable_replacements": "false",
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "temp_directory": "",
}
_ASKS = ("SELECT", "EXPLAIN", "MULTI")  # kinds of statements that only ask; PIVOT counts as several


class QueryError(HeedfulError):
    """SQL that cannot be answered."""


@dataclass(frozen=True)
class Answer(Tabular):
    """The rows that answer a question."""

    sql: str
    table: pa.Table

    def to_arrow(self) -> pa.Table:
        """The rows and columns."""
        return self.table

    def to_dict(self) -> dict[str, Any]:
        """Plain values: the question, the columns, the rows."""
        rows = without_nan(self.to_rows())
        return {"sql": self.sql, "columns": self.table.column_names, "rows": rows}

    def save(self, path: Path | str) -> None:
        """Write the rows to a .parquet, .csv or .json file."""
        self.save_table(path)


def ask(sql: str, folder: Path | str) -> Answer:
    """The answer to one SELECT about the runs below a folder; see `schema` for what can be asked about.

    Nothing is written, no file is read that is not a run's, and no extension is loaded.
    """
    _refuse_other(sql)
    asked = {name for name in VIEWS if re.search(rf"\b{name}\b", sql, re.IGNORECASE)}
    found = find_runs(Path(folder)) if asked else []
    with duckdb.connect(":memory:", config=_SEALED) as connection:
        for name, view in VIEWS.items():
            connection.register(name, view.of(found) if name in asked else view.empty())
        connection.execute("SET lock_configuration = true")
        try:
            table = connection.sql(sql).to_arrow_table()
        except (duckdb.Error, pa.ArrowException, OSError) as error:
            raise _in_words(error) from None
    return Answer(sql, table)


def schema() -> Answer:
    """Every table that can be asked about, with its columns.

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
    if kind not in _ASKS:
        raise QueryError(f"{kind} is not answered: a query may only SELECT")


def _in_words(error: Exception) -> QueryError:
    """What DuckDB says, as one sentence without the drawing below it."""
    said = str(error).split("\n\nLINE ")[0]
    return QueryError(f"{' '.join(said.split())} (tables and columns: heedful query --schema)")
