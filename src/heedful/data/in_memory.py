"""Tables of data in memory: pandas and polars frames, lists, dictionaries, and `datasets.Dataset`.

Nothing here imports pandas, polars or datasets: each is known by what it offers.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.data.corpus import splits_by_name
from heedful.data.files.tables import MISSING, Choose, Table
from heedful.data.files.text_files import MAX_ROWS
from heedful.errors import DataError

TEXT, TEXT_B, LABEL = "text", "text_b", "label"  # the columns of lists, which have no names
FORMS = (
    "a file, the name of a corpus, a pandas or polars frame, a list of texts, (texts, labels), a list of dictionaries, "
    "a dictionary of columns or a datasets.Dataset"
)


def tables_in_memory(data: Any, choose: Choose | None = None) -> dict[str, Table]:
    """The tables of data in memory, by split; `train` alone where there are no splits.

    choose: which columns of a `datasets.Dataset` to read; all by default. Everything else is in memory already.

    >>> tables_in_memory(["so good", "so dull"])["train"].columns
    {'text': ['so good', 'so dull']}
    >>> tables_in_memory((["so good", "so dull"], [1, 0]))["train"].columns
    {'text': ['so good', 'so dull'], 'label': [1, 0]}
    >>> tables_in_memory([{"review": "so good", "stars": 5}])["train"].columns
    {'review': ['so good'], 'stars': [5]}
    """
    if isinstance(getattr(data, "column_names", None), Mapping):
        named = splits_by_name(data)
        return {split: _dataset_table(data[name], f"dataset[{name!r}]", choose) for split, name in named.items()}
    if hasattr(data, "column_names") and hasattr(data, "features"):
        return {"train": _dataset_table(data, "dataset", choose)}
    kind = type(data).__name__
    columns, classes = _columns(data)
    rows = {len(values) for values in columns.values()}
    if len(rows) != 1 or rows == {0}:
        sizes = ", ".join(f"{name!r} {len(values):,}" for name, values in columns.items())
        raise DataError(f"the {kind} has no rows" if rows <= {0} else f"the columns differ in length: {sizes}")
    if (n := rows.pop()) > MAX_ROWS:
        raise DataError(f"the {kind} has {n:,} rows, more than {MAX_ROWS:,}; select some of them first")
    plain = {name: [_plain(value) for value in values] for name, values in columns.items()}
    return {"train": Table(kind, plain, list(range(n)), "row", (), classes)}


def _plain(value: Any) -> Any:
    """A number of numpy or torch as Python's own."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", 1) == 0 else value


def _columns(data: Any) -> tuple[dict[str, list[Any]], dict[str, tuple[str, ...]]]:
    """Columns by name, and the class names of columns that have them in an order of their own."""
    library = type(data).__module__.split(".")[0]
    if library == "polars" and type(data).__name__ in ("DataFrame", "LazyFrame"):
        frame = data.collect() if type(data).__name__ == "LazyFrame" else data
        return {str(name): frame[name].to_list() for name in frame.columns}, {}
    if library == "pandas" and hasattr(data, "columns"):
        return _pandas_columns(data)
    if library in ("pandas", "polars", "numpy") and hasattr(data, "tolist" if library != "polars" else "to_list"):
        data = data.to_list() if library == "polars" else data.tolist()  # a series or an array of texts
    if isinstance(data, Mapping) and data and all(map(_is_column, data.values())):
        return {str(name): _listed(values) for name, values in data.items()}, {}
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return _listed_columns(data), {}
    raise DataError(f"data come from {FORMS}, not from a {type(data).__name__}")


def _pandas_columns(frame: Any) -> tuple[dict[str, list[Any]], dict[str, tuple[str, ...]]]:
    columns, classes = {}, {}
    for name in frame.columns:
        series = frame[name]
        if series.ndim != 1:
            raise DataError(f"the DataFrame has several columns {str(name)!r}; give each a name of its own")
        columns[str(name)] = series.astype(object).where(series.notna(), None).tolist()
        categories = getattr(series.dtype, "categories", None)
        if categories is not None:
            classes[str(name)] = tuple(map(str, categories))
    return columns, classes


def _listed_columns(data: Sequence[Any]) -> dict[str, list[Any]]:
    """Texts; two columns of texts and labels; rows of a text and a label; or rows as dictionaries."""
    rows = list(data)
    if not rows:
        return {TEXT: []}
    if all(isinstance(row, Mapping) for row in rows):
        names = dict.fromkeys(str(name) for row in rows for name in row)
        return {name: [row.get(name, MISSING) for row in rows] for name in names}
    if all(isinstance(row, str) for row in rows):
        return {TEXT: rows}
    in_rows = isinstance(data, list) and all(isinstance(row, tuple) for row in rows)
    if len(rows) == 2 and all(map(_is_column, rows)) and not in_rows and all(map(_is_text, _listed(rows[0]))):
        texts, labels = map(_listed, rows)
        if len(texts) != len(labels):
            raise DataError(f"(texts, labels): {len(texts):,} texts, but {len(labels):,} labels")
        return _texts(texts) | {LABEL: labels}
    if all(isinstance(row, tuple | list) and len(row) == 2 for row in rows):
        return _texts([row[0] for row in rows]) | {LABEL: [row[1] for row in rows]}
    odd = next((i for i, row in enumerate(rows) if type(row) is not type(rows[0])), 0)
    raise DataError(
        f"item {odd} of the list is of type {type(rows[odd]).__name__}; a list holds texts, (text, label) "
        "or dictionaries"
    )


def _texts(texts: list[Any]) -> dict[str, list[Any]]:
    """One column of texts; two where every text is a pair."""
    if texts and all(isinstance(text, tuple | list) and len(text) == 2 for text in texts):
        return {TEXT: [text[0] for text in texts], TEXT_B: [text[1] for text in texts]}
    return {TEXT: texts}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) or (isinstance(value, tuple | list) and all(isinstance(part, str) for part in value))


def _is_column(values: Any) -> bool:
    is_list = isinstance(values, Sequence) and not isinstance(values, str | bytes)
    return is_list or hasattr(values, "tolist") or hasattr(values, "to_list")


def _listed(values: Any) -> list[Any]:
    for method in ("tolist", "to_list"):
        if hasattr(values, method):
            return list(getattr(values, method)())
    return list(values)


def _dataset_table(data: Any, name: str, choose: Choose | None) -> Table:
    """The columns of a dataset that are asked for; no value of another is read."""
    if not hasattr(data, "num_rows"):
        raise DataError(f"{name} is a {type(data).__name__}, which has no length; load it without streaming")
    if data.num_rows == 0:
        raise DataError(f"{name} has no rows")
    classes = {column: _class_names(data.features[column]) for column in data.column_names}
    if data.num_rows > MAX_ROWS:
        raise DataError(f"{name} has {data.num_rows:,} rows, more than {MAX_ROWS:,}; select some of them first")
    header = _dataset_header(data, name, classes)
    chosen = data.column_names if choose is None else choose(header)
    columns = {column: _named(data[column][:], classes[column]) for column in chosen}
    return Table(name, columns, list(range(data.num_rows)), "row", (), classes)


def _dataset_header(data: Any, name: str, classes: Mapping[str, tuple[str, ...]]) -> Table:
    """The names of the columns, without a row; `translation` has its first value, which names its languages."""
    columns: dict[str, list[Any]] = {column: [] for column in data.column_names}
    if "translation" in columns:
        columns["translation"] = data[:1]["translation"]
    return Table(name, columns, [0], "row", (), classes)


def _class_names(feature: Any) -> tuple[str, ...]:
    """The names of a column of classes, or of lists of classes."""
    inner = getattr(feature, "feature", feature)
    return tuple(getattr(inner, "names", None) or ())


def _named(values: list[Any], names: tuple[str, ...]) -> list[Any]:
    def named(value: Any) -> Any:
        if isinstance(value, list):
            return [named(part) for part in value]
        return names[value] if isinstance(value, int) and 0 <= value < len(names) else value

    return [named(value) for value in values] if names else values
