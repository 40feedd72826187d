"""Data that nothing is trained on: every row of a file or `datasets.Dataset` is a test text."""

import os
from pathlib import Path
from typing import Any

from heedful.config import TaskName
from heedful.data.columns import Examples, class_indices, class_names, examples
from heedful.data.corpus import EMPTY, Corpus, Split
from heedful.data.load import hub_split
from heedful.data.pairs import pairs_of_files, pairs_of_table
from heedful.data.parallel import NO_PAIRS, ParallelCorpus, ParallelSplit
from heedful.data.readers import read_table
from heedful.errors import DataError
from heedful.files import usable


def is_one_set(data: Any) -> bool:
    """Whether data are one set of rows, with no splits of their own.

    >>> is_one_set("rotten-tomatoes"), is_one_set(Path("nowhere.csv"))
    (False, False)
    """
    if isinstance(data, str | Path):
        return usable(Path(os.path.expanduser(data)), DataError).is_file()
    return isinstance(getattr(data, "column_names", None), list)


def open_whole(
    data: Any,
    target: str | Path | None = None,
    *,
    text: str | None = None,
    label: str | None = None,
    task: TaskName | None = None,
) -> Corpus | ParallelCorpus:
    """All texts of one set, or all sentence pairs of two files or of a table (`task="translation"`), in their order.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "reviews.csv"
    ...     _ = file.write_text("review,stars\\nso good,1\\nso dull,0\\n")
    ...     corpus = open_whole(file)
    >>> len(corpus.train), corpus.test.texts, corpus.labels
    (0, ('so good', 'so dull'), ('0', '1'))
    """
    if not isinstance(data, str | Path):
        return _texts("dataset", hub_split(data, "dataset", text, label))
    path = Path(os.path.expanduser(data))
    if target is not None:
        found = pairs_of_files(path, Path(os.path.expanduser(target)))
    elif task == "translation":
        found = pairs_of_table(read_table(path), text, label)
    else:
        return _texts(path.name, examples(read_table(path), text, label))
    pairs = ParallelSplit(found.sources, found.targets)
    return ParallelCorpus(found.name, NO_PAIRS, NO_PAIRS, pairs, *found.languages, decisions=found.decisions)


def _texts(name: str, found: Examples) -> Corpus:
    """A single label is enough where nothing is to be learned."""
    names = found.labels[:1] if len(set(found.labels)) == 1 else class_names(found)
    split = Split(found.texts, class_indices(found, names))
    return Corpus(name, names, EMPTY, EMPTY, split, decisions=found.decisions)
