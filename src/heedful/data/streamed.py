"""Files to be read piece by piece: what they are, and which columns hold what, found by a look at the first rows."""

import os
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from heedful.config import TaskName
from heedful.data.columns import choose
from heedful.data.lines import regular
from heedful.data.pairs import sides_of_table
from heedful.data.pieces import QuoteError, byte_lines, records, text_lines
from heedful.data.readers import Table, as_object, format_of, of_objects, open_parquet, refuse_twins
from heedful.errors import DataError


@dataclass(frozen=True)
class Streamed:
    """Files to be read piece by piece: two of lines, or one table and its two columns.

    `first` and `second` are the columns of the source and the target, or of the text and the label.
    """

    task: TaskName
    path: Path
    target: Path | None = None
    first: str = ""
    second: str = ""
    quoted: bool = True  # whether quotes enclose the fields of a TSV file

    @property
    def name(self) -> str:
        """What the data are called."""
        return self.path.name.removesuffix(".gz")

    @property
    def unit(self) -> str:
        """What places of rows are counted in."""
        return "row" if format_of(self.path) == ".parquet" and self.target is None else "line"

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return sum(path.stat().st_size for path in (self.path, self.target) if path is not None)


def streamed(
    data: str | Path, target: str | Path | None = None, *, task: TaskName, first: str | None, second: str | None
) -> Streamed:
    """What is to be read, its columns found and checked by a look at the first rows."""
    path = regular(Path(os.path.expanduser(data)))
    if target is not None:
        return Streamed("translation", path, regular(Path(os.path.expanduser(target))))
    if format_of(path) is None:
        raise DataError(
            f"{path}: this format is not read piece by piece; give .csv, .tsv, .jsonl (each also .gz), .parquet, "
            "or two text files"
        )
    plain = Streamed(task, path)
    try:
        beginning = _beginning(plain)
    except QuoteError:
        if format_of(path) != ".tsv":
            raise
        beginning = _beginning(replace(plain, quoted=False))
    if task == "translation":
        columns, _ = sides_of_table(beginning, first, second)
        return replace(plain, first=columns[0], second=columns[1])
    text, label, _ = choose(beginning, first, second)
    return replace(plain, first=text, second=label)


def _beginning(of: Streamed) -> Table:
    """The first rows, with all columns."""
    kind = format_of(of.path)
    if kind == ".parquet":
        return _parquet_beginning(of.path)
    if kind == ".jsonl":
        with closing(byte_lines(of.path)) as lines:
            block = [line for line, _ in zip(lines, range(1000), strict=False)]
        table = json_table(of, b"".join(block), 0)
        if not table.lines:
            raise DataError(f"{of.path}: the file is empty; it needs a JSON object in each line")
        return table
    with closing(records(of.path, quoted=of.quoted)) as rows:
        _, names = next(rows)
    refuse_twins(f"{of.path}:1", names)
    return Table(str(of.path), {name: [] for name in names}, [])


def _parquet_beginning(path: Path) -> Table:
    with open_parquet(path) as file:
        some = next(file.iter_batches(batch_size=10), None)
        columns = {name: [] if some is None else some[name].to_pylist() for name in file.schema_arrow.names}
    return Table(str(path), columns, list(range(1, len(next(iter(columns.values()), [])) + 1)), "row")


def json_table(of: Streamed, block: bytes, start: int) -> Table:
    """A block of lines, each a JSON object, as a table; `start` is the number of its first line, from 0."""
    rows: list[dict[str, Any]] = []
    places: list[int] = []
    for place, content in enumerate(text_lines(of.path, block, start), start=start + 1):
        if content.strip():
            rows.append(as_object(of.path, place, content))
            places.append(place)
    sought: tuple[str, ...] = (of.first, of.second) if of.first else ()
    if of.task == "translation" and sought and any("translation" in row for row in rows):
        rows = [{name: value for name, value in row.items() if name not in sought} for row in rows]
        sought = ()
    return of_objects(of.path, rows, places, sought)


def is_large(data: Any, target: Any, above: int) -> bool:
    """Whether these are files of more bytes than that.

    >>> is_large("rotten-tomatoes", None, 0)
    False
    """
    total = 0
    for given in (data, target):
        if isinstance(given, str | Path):
            path = Path(os.path.expanduser(given))
            try:
                total += path.stat().st_size * (4 if path.suffix.lower() == ".gz" else 1) if path.is_file() else 0
            except (OSError, ValueError):
                return False
    return total > above
