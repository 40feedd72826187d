"""Open data of any kind as a corpus with three splits: a name, one or two files, or data in memory."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from heedful.config import TaskName
from heedful.data.catalog import is_named, nearest, open_corpus, task_of_name
from heedful.data.corpus import EMPTY, SPLITS, Corpus, S, Split, eighty_ten_ten, sizes_of
from heedful.data.files.columns import (
    Examples,
    class_indices,
    class_names,
    examples,
    pair_columns,
    text_and_label_columns,
)
from heedful.data.files.tables import SUFFIXES, Choose, Table, format_of, read_table
from heedful.data.in_memory import tables_in_memory
from heedful.data.parallel import NO_PAIRS, Pairs, ParallelCorpus, pairs_of_files, pairs_of_table
from heedful.errors import DataError
from heedful.storage.atomic_files import valid_path

FilePath = str | Path
Part = TypeVar("Part", Examples, Pairs)


def open_data(
    data: Any,
    target: FilePath | None = None,
    *,
    task: TaskName | None = None,
    text: str | None = None,
    label: str | None = None,
    validation: FilePath | tuple[FilePath, FilePath] | None = None,
    test: FilePath | tuple[FilePath, FilePath] | None = None,
    lower: bool | None = None,
    drop_numerical: bool = True,
    size: int | None = None,
    all_as_test: bool = False,
    seed: int = 0,
) -> Corpus | ParallelCorpus:
    """The corpus of that name, in that file or pair of files, or in memory.

    In memory: a pandas or polars frame, `(texts, labels)`, a list of `(text, label)` or of dictionaries, a dictionary
    of columns, or a `datasets.Dataset`.

    `open_data("sst")`, `open_data("multi30k:en-de")`, `open_data("reviews.csv")`, `open_data("train.de", "train.en")`,
    `open_data("pairs.tsv", task="translation")`. A single file holds texts unless `task` says otherwise.

    `text` and `label` name the columns of the text and the label, or of the source and the target; obvious ones are
    found. `validation` and `test` are files too (of sentence pairs: a table or two text files). What has no validation
    set is split 80/10/10 (90/10 with a test set) under `seed`, texts stratified by label; named corpora have fixed
    splits. With `all_as_test`, data without splits are not split: all of it is the test set.

    Sentence pairs with an empty side are left out, and so are pairs of numbers alone (snell2021 A.5) unless
    `drop_numerical` is false. `size` is the number of training examples of a generated task.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "reviews.csv"
    ...     _ = file.write_text("review,stars\\n" + "so good,1\\nso dull,0\\n" * 10)
    ...     corpus = open_data(file)
    >>> corpus.labels, len(corpus.train), len(corpus.validation), len(corpus.test)
    (('0', '1'), 16, 2, 2)
    >>> open_data("rotten-tomatos")
    Traceback (most recent call last):
    heedful.errors.DataError: there is no corpus or file named 'rotten-tomatos'; did you mean 'rotten-tomatoes'? ...
    """
    held_out = {"validation": validation, "test": test}
    is_whole = all_as_test and validation is None and test is None
    corpus: Corpus | ParallelCorpus
    if isinstance(data, Corpus | ParallelCorpus):
        corpus = data
    elif isinstance(data, str) and is_named(data):
        _check_named(data, task, target=target, text=text, label=label, **held_out)
        corpus = open_corpus(data, size=size, seed=seed)
    elif (task or task_of(data, target)) == "translation":

        def choose_pairs(header: Table) -> Sequence[str]:
            return pair_columns(header, text, label)

        def read_pairs(table: Table) -> Pairs:
            return pairs_of_table(table, text, label, drop_numerical=drop_numerical)

        def read_pair_files(first: FilePath, second: FilePath | None) -> Pairs:
            if second is None:
                return read_pairs(read_table(_table_of_pairs(first), choose_pairs))
            source, target = (Path(os.path.expanduser(path)) for path in (first, second))
            return pairs_of_files(source, target, drop_numerical=drop_numerical)

        pairs, source = _parts(data, target, held_out, read_pair_files, read_pairs, choose_pairs)
        corpus = _parallel_corpus(pairs, source, None if is_whole and len(pairs) == 1 else seed)
    else:

        def choose_texts(header: Table) -> Sequence[str]:
            return text_and_label_columns(header, text, label)[:2]

        def read_texts(table: Table) -> Examples:
            return examples(table, text, label)

        def read_text_file(first: FilePath, _: FilePath | None) -> Examples:
            return read_texts(read_table(existing_file(first), choose_texts))

        texts, source = _parts(data, None, held_out, read_text_file, read_texts, choose_texts, label)
        name = Path(os.path.expanduser(data)).name if isinstance(data, str | Path) else "dataset"
        corpus = _corpus(name, texts, source, None if is_whole and len(texts) == 1 else seed)
    if lower is not None and isinstance(corpus, Corpus):
        return replace(corpus, rules=replace(corpus.rules, lower=lower))
    return corpus


def task_of(data: Any, target: FilePath | None = None) -> TaskName:
    """What kind of study suits the data, from their name or shape alone.

    >>> task_of("multi30k:en-de"), task_of("sst"), task_of("a.de", "a.en")
    ('translation', 'classification', 'translation')
    """
    if target is not None or isinstance(data, ParallelCorpus):
        return "translation"
    if isinstance(data, str) and is_named(data):
        return task_of_name(data)
    is_lazy = type(data).__name__ == "LazyFrame"  # its names are known only once it is collected
    columns = () if is_lazy else getattr(data, "column_names", getattr(data, "columns", ()))
    names = next(iter(columns.values()), ()) if isinstance(columns, dict) else columns
    return "translation" if "translation" in names else "classification"


def _check_named(name: str, task: TaskName | None, **options: object) -> None:
    given = [f"--{option}" for option, value in options.items() if value is not None]
    if given:
        raise DataError(f"{name} is a named corpus with its own columns and splits, so it takes no {', '.join(given)}")
    if task is not None and task != task_of_name(name):
        raise DataError(f"{name} is a corpus for {task_of_name(name)}, not for {task}; leave out --task")


def _parts(
    data: Any,
    target: FilePath | None,
    held_out: dict[str, Any],
    read_files: Callable[[FilePath, FilePath | None], Part],
    read_rows: Callable[[Table], Part],
    choose: Choose,
    label: str | None = None,
) -> tuple[dict[str, Part], str]:
    """What is in the data, by split, and where it comes from."""
    if isinstance(data, str | Path):
        parts = {"train": read_files(data, target)}
        source = str(Path(os.path.expanduser(data))) if target is None else f"{data}, {target}"
    else:
        parts = _without_secret_labels(tables_in_memory(data, choose), read_rows, label)
        source = type(data).__name__
    for split, files in held_out.items():
        if files is not None:
            parts[split] = read_files(*files) if isinstance(files, tuple) else read_files(files, None)
    return parts, source


def existing_file(data: FilePath) -> Path:
    """The path of a file; where there is none, an error that names what it may be meant for."""
    path = Path(os.path.expanduser(data))
    if valid_path(path, DataError).is_file():
        return path
    if path.is_dir():
        raise DataError(f"{path}: this is a folder; give a file that ends in {', '.join(SUFFIXES)}")
    if isinstance(data, Path) or format_of(path) or len(path.parts) > 1:
        raise DataError(f"{path}: there is no such file; check its name and folder")
    raise DataError(f"there is no corpus or file named {data!r}; {nearest(data)}")


def _table_of_pairs(data: FilePath) -> Path:
    path = existing_file(data)
    if format_of(path) is None:
        raise DataError(
            f"{path}: one text file is half a corpus; give the file of the other side too, "
            "or a table (.csv, .tsv, .jsonl, .parquet)"
        )
    return path


def _without_secret_labels(
    tables: dict[str, Table], read: Callable[[Table], Part], label: str | None
) -> dict[str, Part]:
    """The splits of a dataset; one whose labels are all -1 is left out, and a decision says so."""
    parts: dict[str, Part] = {}
    for split, table in tables.items():
        labels = next((table.columns[c] for c in ([label] if label else ["label", "labels"]) if c in table.columns), [])
        if split != "train" and labels and all(value == -1 for value in labels):
            decision = f"{table.name}: every label is -1, that is secret, so there is no {split} set"
            parts["train"] = replace(parts["train"], decisions=(*parts["train"].decisions, decision))
        else:
            parts[split] = read(table)
    return parts


def _corpus(name: str, parts: dict[str, Examples], source: str, seed: int | None) -> Corpus:
    """The corpus of labelled texts; without a seed nothing is split and the only part is the test set."""
    train = parts["train"]
    decisions = [decision for part in parts.values() for decision in part.decisions]
    if seed is None and len(set(train.labels)) == 1:
        names = train.labels[:1]  # one label is enough where nothing is trained
    else:
        names = class_names(train.name, train.labels, len(train.labels), train.classes)
    splits = {split: Split(part.texts, class_indices(part, names)) for split, part in parts.items()}
    if seed is None:
        splits = {"test": splits["train"]}
    else:
        splits, made = _three_splits(splits, "texts", "stratified, ", seed)
        if len(set(splits["train"].labels)) < 2 or not len(splits["validation"]):
            few = len(train.texts)
            raise DataError(f"{source}: {few} texts are too few to split; give more, or a file with --validation")
        decisions += [*made, *_repeated(splits["train"], splits["validation"])]
    train_set, validation, test = (splits.get(split, EMPTY) for split in SPLITS)
    return Corpus(name, names, train_set, validation, test, source=source, decisions=tuple(decisions))


def _repeated(train: Split, validation: Split) -> list[str]:
    counts = Counter(train.texts)
    again, shared = len(train) - len(counts), sum(text in counts for text in validation.texts)
    decisions = [f"{again:,} training texts repeat an earlier one; they are kept"] if again else []
    return decisions + ([f"{shared:,} validation texts are also in training; they are kept"] if shared else [])


def _parallel_corpus(parts: dict[str, Pairs], source: str, seed: int | None) -> ParallelCorpus:
    """The corpus of sentence pairs; without a seed nothing is split and the only part is the test set."""
    train = parts["train"]
    decisions = [decision for part in parts.values() for decision in part.decisions]
    splits = {split: part.pairs for split, part in parts.items()}
    if seed is None:
        splits = {"test": train.pairs}
    else:
        if "validation" not in parts and len(train.pairs) < 10:
            few = len(train.pairs)
            raise DataError(f"{source}: {few} pairs are too few to split; give more, or a validation set of its own")
        splits, made = _three_splits(splits, "pairs", "", seed)
        decisions += made
    pairs, validation, test = (splits.get(split, NO_PAIRS) for split in SPLITS)
    languages = train.languages
    return ParallelCorpus(train.name, pairs, validation, test, *languages, source=source, decisions=tuple(decisions))


def _three_splits(splits: dict[str, S], kind: str, how: str, seed: int) -> tuple[dict[str, S], list[str]]:
    """The splits, a validation set made where there is none, and the decision that says so."""
    if "validation" in splits:
        return splits, []
    train, test = splits["train"], splits.get("test")
    made = eighty_ten_ten(train, test, seed)
    sizes = sizes_of(*made[: 3 if test is None else 2])
    decision = f"no validation set given: {len(train):,} {kind} split {sizes}, {how}seed {seed}"
    return dict(zip(SPLITS, made, strict=True)), [decision]
