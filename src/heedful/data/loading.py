"""Whatever a user calls data: a corpus of texts with labels, or of sentence pairs."""

import os
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from heedful.config import TaskName
from heedful.data import multi30k
from heedful.data.catalog import CATALOG, nearest, open_corpus
from heedful.data.corpus import EMPTY, Corpus, Split, divide, splits_by_name
from heedful.data.files.columns import Examples, class_indices, class_names, examples
from heedful.data.files.tables import SUFFIXES, Table, format_of, read_table
from heedful.data.parallel import NO_PAIRS, ParallelCorpus, ParallelSplit, load_parallel, pairs_of_files, pairs_of_table
from heedful.data.synthetic.tasks import TASKS, generated_texts
from heedful.errors import DataError
from heedful.storage.atomic_files import valid_path


@runtime_checkable
class HubData(Protocol):
    """A `datasets.Dataset` or `DatasetDict`, known by what both have, so that nothing here imports `datasets`."""

    @property
    def column_names(self) -> Any:
        """The names of the columns, by split if there are several."""


def load(
    data: str | Path | Corpus | HubData,
    *,
    text: str | None = None,
    label: str | None = None,
    validation: str | Path | None = None,
    test: str | Path | None = None,
    lower: bool | None = None,
    seed: int = 0,
) -> Corpus:
    """The corpus of that name, or in that file or `datasets.Dataset`.

    `text` and `label` name columns; obvious ones are found. What has no validation set of its own is split 80/10/10
    (90/10 if it has a test set), stratified by label under `seed`; a named corpus has its own fixed splits.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "reviews.csv"
    ...     _ = file.write_text("review,stars\\n" + "so good,1\\nso dull,0\\n" * 10)
    ...     corpus = load(file)
    >>> corpus.labels, len(corpus.train), len(corpus.validation), len(corpus.test)
    (('0', '1'), 16, 2, 2)
    >>> load("rotten-tomatos")
    Traceback (most recent call last):
    heedful.errors.DataError: there is no corpus or file named 'rotten-tomatos'; did you mean 'rotten-tomatoes'? ...
    """
    if isinstance(data, Corpus):
        corpus = data
    elif isinstance(data, str) and data in CATALOG:
        _no_options(data, text=text, label=label, validation=validation, test=test)
        corpus = open_corpus(data)
    elif isinstance(data, str | Path):
        path = _existing(data)
        found = {"train": examples(read_table(path), text, label)}
        corpus = _assemble(path.name, str(path), found, _own(validation, test, text, label), seed)
    else:
        found = _hub_splits(data, text, label)
        corpus = _assemble("dataset", type(data).__name__, found, _own(validation, test, text, label), seed)
    return corpus if lower is None else replace(corpus, rules=replace(corpus.rules, lower=lower))


def _no_options(name: str, **options: object) -> None:
    given = [f"--{option}" for option, value in options.items() if value is not None]
    if given:
        raise DataError(f"{name} is a named corpus with its own columns and splits, so it takes no {', '.join(given)}")


def _existing(data: str | Path) -> Path:
    path = Path(os.path.expanduser(data))
    if valid_path(path, DataError).is_file():
        return path
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; give a file that ends in {', '.join(SUFFIXES)}")
    if isinstance(data, Path) or format_of(path) or len(path.parts) > 1:
        raise DataError(f"{path}: there is no such file; check its name and folder")
    raise DataError(f"there is no corpus or file named {data!r}; {nearest(data)}")


def _own(
    validation: str | Path | None, test: str | Path | None, text: str | None, label: str | None
) -> dict[str, Examples]:
    files = {"validation": validation, "test": test}
    return {
        name: examples(read_table(_existing(Path(file))), text, label)
        for name, file in files.items()
        if file is not None
    }


def _assemble(name: str, source: str, found: dict[str, Examples], own: dict[str, Examples], seed: int) -> Corpus:
    parts = {**found, **own}
    names = class_names(parts["train"])
    decisions = [said for part in parts.values() for said in part.decisions]
    splits = {split: Split(part.texts, class_indices(part, names)) for split, part in parts.items()}
    train, validation, test = splits["train"], splits.get("validation"), splits.get("test")
    if validation is None:
        sizes = [len(train) * 8 // 10, len(train) // 10] if test is None else [len(train) * 9 // 10]
        pieces = divide(train, sizes, seed)
        decisions.append(
            f"no validation set given: {len(train):,} texts split "
            f"{' / '.join(f'{len(piece):,}' for piece in pieces)}, stratified, seed {seed}"
        )
        train, validation, test = pieces[0], pieces[1], pieces[2] if test is None else test
    if len(set(train.labels)) < 2 or not len(validation):
        raise DataError(
            f"{source}: {len(parts['train'].texts)} texts are too few to split; give more, or a file with --validation"
        )
    decisions += _repeated(train, validation)
    return Corpus(name, names, train, validation, test or EMPTY, source=source, decisions=tuple(decisions))


def _repeated(train: Split, validation: Split) -> list[str]:
    counts = Counter(train.texts)
    again, shared = len(train) - len(counts), sum(text in counts for text in validation.texts)
    said = [f"{again:,} training texts repeat an earlier one; they are kept"] if again else []
    return said + ([f"{shared:,} validation texts are also in training; they are kept"] if shared else [])


def _hub_splits(data: Any, text: str | None, label: str | None) -> dict[str, Examples]:
    if not isinstance(data.column_names, dict):
        return {"train": hub_split(data, "dataset", text, label)}
    splits: dict[str, Examples] = {}
    for split, name in splits_by_name(data).items():
        if split != "train" and _secret(data[name], label):
            said = f"dataset[{name!r}]: every label is -1, that is secret, so there is no {split} set"
            splits["train"] = replace(splits["train"], decisions=(*splits["train"].decisions, said))
        else:
            splits[split] = hub_split(data[name], f"dataset[{name!r}]", text, label)
    return splits


def hub_split(data: Any, name: str, text: str | None, label: str | None) -> Examples:
    """The texts and labels of one `datasets.Dataset`."""
    if not hasattr(data, "num_rows"):
        raise DataError(f"{name} is a {type(data).__name__}, which has no length; load it without streaming")
    if data.num_rows == 0:
        raise DataError(f"{name} has no rows")
    columns = {column: _hub_column(data, column) for column in data.column_names}
    classes = {column: tuple(_class_labels(data, column)) for column in data.column_names}
    return examples(Table(name, columns, list(range(data.num_rows)), "row", (), classes), text, label)


def _hub_column(data: Any, column: str) -> list[Any]:
    names = _class_labels(data, column)
    values = data[column][:]
    return [names[value] if names and isinstance(value, int) and 0 <= value < len(names) else value for value in values]


def _class_labels(data: Any, column: str) -> list[str]:
    return getattr(data.features[column], "names", None) or []


def _secret(data: Any, label: str | None) -> bool:
    """Whether a split's labels are all -1, as the hub marks labels that are kept for a contest."""
    names = [label] if label else [name for name in ("label", "labels") if name in data.column_names]
    return bool(names) and names[0] in data.column_names and set(data[names[0]][:]) == {-1}


def open_data(
    data: Any,
    target: str | Path | None = None,
    *,
    task: TaskName | None = None,
    text: str | None = None,
    label: str | None = None,
    validation: str | Path | None = None,
    test: str | Path | None = None,
    lower: bool | None = None,
    seed: int = 0,
) -> Corpus | ParallelCorpus:
    """The corpus of that name, in that file (or pair of files), or in that `datasets.Dataset`.

    `text` and `label` name columns; obvious ones are found. In a file of sentence pairs they are the columns of the
    source and of the target. `task` says which of the two a single file holds: texts unless it says otherwise.

    >>> open_data("copy-vocab").in_words, open_data("keyword").labels
    (True, ('negative', 'positive'))
    """
    if isinstance(data, Corpus | ParallelCorpus):
        return data
    if (task or task_of(data, target)) == "translation":
        return load_parallel(
            data, target, source_column=text, target_column=label, validation=validation, test=test, seed=seed
        )
    if isinstance(data, str) and data in TASKS:
        return generated_texts(data, seed=seed)
    return load(data, text=text, label=label, validation=validation, test=test, lower=lower, seed=seed)


def describe(name: str) -> dict[str, Any] | None:
    """What a parallel corpus or a generated task of that name is; nothing for any other name.

    >>> describe("keyword")["task"], describe("sst")
    ('classification', None)
    """
    if name in TASKS:
        task = TASKS[name]
        return {
            "name": name,
            "title": f"generated: {task.description}",
            "task": task.kind,
            "labels": ["negative", "positive"] if task.kind == "classification" else [],
            "licence": "none needed: generated, seeded, any size",
            "source": "generated",
            "here": True,
        }
    if name.partition(":")[0] != "multi30k":
        return None
    return {
        "name": name,
        "title": "Multi30k image captions, German to English (multi30k:en-de for the other direction)",
        "task": "translation",
        "labels": [],
        "licence": multi30k.LICENCE,
        "source": multi30k.SOURCE,
        "here": multi30k.is_here(),
    }


def task_of(data: Any, target: str | Path | None = None) -> TaskName:
    """What kind of study data ask for, from their name or shape alone.

    >>> task_of("multi30k:en-de"), task_of("sst"), task_of("a.de", "a.en")
    ('translation', 'classification', 'translation')
    """
    if target is not None or isinstance(data, ParallelCorpus):
        return "translation"
    if isinstance(data, str):
        if data in TASKS:
            return TASKS[data].kind
        return "translation" if data.partition(":")[0] == "multi30k" else "classification"
    columns = getattr(data, "column_names", ())
    names = next(iter(columns.values()), ()) if isinstance(columns, dict) else columns
    return "translation" if "translation" in names else "classification"


def is_one_set(data: Any) -> bool:
    """Whether data are one set of rows, with no splits of their own.

    >>> is_one_set("rotten-tomatoes"), is_one_set(Path("nowhere.csv"))
    (False, False)
    """
    if isinstance(data, str | Path):
        return valid_path(Path(os.path.expanduser(data)), DataError).is_file()
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
