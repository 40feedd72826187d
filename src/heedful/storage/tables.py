"""Results that are a table: as pandas, Polars, Arrow, plain rows, a file, or a table in a notebook."""

import html
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from heedful.errors import ConfigError
from heedful.storage.atomic_files import without_nan, write_atomically, write_text
from heedful.storage.serialization import frame

if TYPE_CHECKING:
    import pandas
    import polars

ENDINGS = (".parquet", ".csv", ".json")
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a formula at the beginning of a text


class Tabular(ABC):
    """Anything that knows itself as an Arrow table."""

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """The rows and columns."""

    def to_rows(self) -> list[dict[str, Any]]:
        """One dictionary a row."""
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def to_polars(self) -> "polars.DataFrame":
        """As a Polars frame."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_pandas(self) -> "pandas.DataFrame":
        """As a pandas frame."""
        return frame(self.to_rows(), self.to_arrow().column_names)

    def save_table(self, path: Path | str) -> None:
        """Write the table to a .parquet, .csv or .json file, whole or not at all."""
        write_table(self.to_arrow(), Path(path))

    def _repr_html_(self) -> str:
        table = self.to_arrow()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in table.column_names)
        cells = zip(*(column.to_pylist() for column in table.itercolumns()), strict=True)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(cell(v))}</td>' for v in row)}</tr>" for row in cells)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def write_table(table: pa.Table, path: Path) -> None:
    """Write an Arrow table by the ending of the file's name; in CSV no text begins as a formula would."""
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        write_atomically(path, lambda place: pq.write_table(table, place, compression="zstd"))
    elif path.suffix == ".csv":
        write_text(path, csv_text(table))
    elif path.suffix == ".json":
        write_text(path, json_text(table))
    else:
        raise ConfigError(f"{path}: a table is written to a file that ends in {', '.join(ENDINGS)}")


def csv_text(table: pa.Table) -> str:
    """A table as CSV; a list is JSON within its field.

    >>> csv_text(pa.table({"a": [1.5, None], "b": ["=x", "y"]})).split()
    ['a,b', "1.5,'=x", ',y']
    """
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow([_unspread(name) for name in table.column_names])
    for row in zip(*(column.to_pylist() for column in table.itercolumns()), strict=True):
        writer.writerow([_csv_cell(value) for value in row])
    return out.getvalue()


def json_text(table: pa.Table) -> str:
    """A table as a JSON list of objects; NaN is null, and what JSON does not know is written as text."""
    plain = without_nan(table.to_pylist())
    return json.dumps(plain, indent=1, ensure_ascii=False, default=str) + "\n"


def arrow_table(rows: Sequence[Mapping[str, Any]], schema: Mapping[str, pa.DataType]) -> pa.Table:
    """Rows as an Arrow table with just these columns; what a row lacks is null.

    >>> arrow_table([{"a": 1}], {"a": pa.int64(), "b": pa.string()}).to_pylist()
    [{'a': 1, 'b': None}]
    """
    columns = {name: pa.array([without_nan(row.get(name)) for row in rows], kind) for name, kind in schema.items()}
    return pa.table(columns)


def cell(value: Any) -> str:
    """A value as a short text for people.

    >>> cell(0.123456), cell(None), cell([1.0, 2.5])
    ('0.123', '', '[1, 2.5]')
    """
    if value is None:
        return ""
    if isinstance(value, list | tuple):
        return f"[{', '.join(f'{v:.3g}' if isinstance(v, float) else str(v) for v in value)}]"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _csv_cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(without_nan(value), ensure_ascii=False, default=str)
    return _unspread(value) if isinstance(value, str) else without_nan(value)


def _unspread(text: str) -> str:
    return f"'{text}" if text.startswith(_FORMULA) else text
