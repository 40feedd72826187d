"""One question in SQL about all runs below a folder, answered by DuckDB, which sees these tables and nothing else."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from heedful.errors import ConfigError, HeedfulError
from heedful.files import without_nan
from heedful.records.found import find_runs
from heedful.records.views import VIEWS
from heedful.studies.tabular import Tabular, arrow_table

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
