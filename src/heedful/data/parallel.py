"""Sentence pairs in three splits, from two files, a table, a `datasets.Dataset`, or a name."""

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.alignments import Alignment
from heedful.data.corpus import splits_by_name, stratified_order
from heedful.data.pairs import Pairs, pairs_of_files, pairs_of_table
from heedful.data.readers import Table, format_of, read_table
from heedful.errors import DataError


@dataclass(frozen=True)
class ParallelSplit:
    """Source sentence m translates into target sentence m; `alignments` are gold word alignments, if there are any."""

    sources: tuple[str, ...]
    targets: tuple[str, ...]
    alignments: tuple[Alignment, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.targets):
            raise DataError(f"{len(self.sources)} source sentences but {len(self.targets)} target sentences")
        if self.alignments is not None and len(self.alignments) != len(self.sources):
            raise DataError(f"{len(self.alignments)} alignments for {len(self.sources)} sentence pairs")

    def __len__(self) -> int:
        return len(self.sources)

    def take(self, indices: Sequence[int] | NDArray[np.int64]) -> "ParallelSplit":
        """The pairs at `indices`, in that order.

        >>> ParallelSplit(("ein", "zwei"), ("one", "two")).take([1]).targets
        ('two',)
        """
        gold = None if self.alignments is None else tuple(self.alignments[i] for i in indices)
        return ParallelSplit(tuple(self.sources[i] for i in indices), tuple(self.targets[i] for i in indices), gold)

    def reversed(self) -> "ParallelSplit":
        """The other direction.

        >>> ParallelSplit(("ein",), ("one",)).reversed().sources
        ('one',)
        """
        gold = None if self.alignments is None else tuple(alignment.reversed() for alignment in self.alignments)
        return ParallelSplit(self.targets, self.sources, gold)


NO_PAIRS = ParallelSplit((), ())


@dataclass(frozen=True)
class ParallelCorpus:
    """A translation task. `in_words` says that its sentences are words with spaces between: no subwords are needed."""

    name: str
    train: ParallelSplit
    validation: ParallelSplit
    test: ParallelSplit
    source_language: str = "source"
    target_language: str = "target"
    licence: str = "unknown"
    source: str = ""
    decisions: tuple[str, ...] = ()
    in_words: bool = False

    def digest(self) -> str:
        """SHA-256 of everything a result depends on: the sentences of each split in order, and how they are cut.

        >>> corpus = ParallelCorpus("tiny", ParallelSplit(("ein",), ("one",)), NO_PAIRS, NO_PAIRS)
        >>> corpus.digest() == replace(corpus, name="other").digest() != replace(corpus, in_words=True).digest()
        True
        """
        sha = hashlib.sha256(repr(self.in_words).encode())
        for name, split in (("train", self.train), ("validation", self.validation), ("test", self.test)):
            sha.update(f"\n{name} {len(split)}\n".encode())
            for sentence in (*split.sources, *split.targets):
                content = sentence.encode("utf-8", "surrogatepass")
                sha.update(b"%d " % len(content) + content)
        return sha.hexdigest()

    def reversed(self) -> "ParallelCorpus":
        """The other direction."""
        return replace(
            self,
            train=self.train.reversed(),
            validation=self.validation.reversed(),
            test=self.test.reversed(),
            source_language=self.target_language,
            target_language=self.source_language,
        )


def load_parallel(
    data: Any,
    target: str | Path | None = None,
    *,
    source_column: str | None = None,
    target_column: str | None = None,
    validation: str | Path | tuple[str | Path, str | Path] | None = None,
    test: str | Path | tuple[str | Path, str | Path] | None = None,
    drop_numerical: bool = True,
    size: int | None = None,
    seed: int = 0,
) -> ParallelCorpus:
    """The sentence pairs of two text files, of one table, of a `datasets.Dataset`, or of that name.

    `load_parallel("train.de", "train.en")`, `load_parallel("pairs.tsv")`, `load_parallel("multi30k:en-de")`,
    `load_parallel("copy-vocab", size=1000)`. Columns are named, or found (`translation`; source and target; or the only
    two). `validation` and `test` are a table, or a pair of text files. What has no validation set of its own is split
    80/10/10 (90/10 with a test set) under `seed`. Pairs with an empty side, and pairs of numbers alone (snell2021 A.5),
    are left out and reported with their lines. `size` is the number of training pairs of a generated task.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     german, english = Path(folder) / "a.de", Path(folder) / "a.en"
    ...     _ = german.write_text("ein Hund\\n" * 10), english.write_text("a dog\\n" * 10)
    ...     corpus = load_parallel(german, english)
    >>> corpus.source_language, corpus.target_language, len(corpus.train), len(corpus.validation)
    ('de', 'en', 8, 1)
    """
    if isinstance(data, ParallelCorpus):
        return data
    if isinstance(data, str):
        named = _named(data, size=size, seed=seed)
        if named is not None:
            if (target, source_column, target_column, validation, test) != (None,) * 5:
                raise DataError(f"{data} is a named corpus with its own columns and splits; it takes no other files")
            return named
    columns = source_column, target_column
    if isinstance(data, str | Path):
        found = {"train": _read(data, target, columns, drop_numerical)}
        source = str(data) if target is None else f"{data}, {target}"
    elif hasattr(data, "column_names"):
        found, source = _hub(data, columns, drop_numerical), "a datasets.Dataset"
    else:
        raise DataError(
            f"sentence pairs come from files, a datasets.Dataset or a name, not from a {type(data).__name__}"
        )
    for name, given in (("validation", validation), ("test", test)):
        if given is not None:
            first, second = given if isinstance(given, tuple) else (given, None)
            found[name] = _read(first, second, columns, drop_numerical)
    return _assemble(found, source, seed)


def _named(name: str, *, size: int | None, seed: int) -> ParallelCorpus | None:
    from heedful.data.multi30k import multi30k
    from heedful.data.synthetic import TASKS, generated_pairs

    corpus, _, direction = name.partition(":")
    if corpus == "multi30k":
        return multi30k(direction or "de-en")
    if name in TASKS:
        return generated_pairs(name, size=size, seed=seed)
    return None


def _read(first: str | Path, second: str | Path | None, columns: tuple[str | None, str | None], drop: bool) -> Pairs:
    path = Path(os.path.expanduser(first))
    if second is not None:
        return pairs_of_files(path, Path(os.path.expanduser(second)), drop_numerical=drop)
    if format_of(path) is None:
        raise DataError(
            f"{path}: one text file is half a corpus; give the file of the other side too, "
            "or a table (.csv, .tsv, .jsonl, .parquet)"
        )
    return pairs_of_table(read_table(path), *columns, drop_numerical=drop)


def _hub(data: Any, columns: tuple[str | None, str | None], drop: bool) -> dict[str, Pairs]:
    splits: Mapping[str, Any] = data if isinstance(data.column_names, dict) else {"train": data}
    found = {}
    for split, name in splits_by_name(splits).items():
        rows = splits[name]
        table = Table(
            f"dataset[{name!r}]", {c: list(rows[c]) for c in rows.column_names}, list(range(rows.num_rows)), "row"
        )
        found[split] = pairs_of_table(table, *columns, drop_numerical=drop)
    return found


def _assemble(found: dict[str, Pairs], source: str, seed: int) -> ParallelCorpus:
    decisions = [said for pairs in found.values() for said in pairs.decisions]
    splits = {name: ParallelSplit(pairs.sources, pairs.targets) for name, pairs in found.items()}
    train, test = splits["train"], splits.get("test")
    validation = splits.get("validation")
    if validation is None:
        n = len(train)
        if n < 10:
            raise DataError(f"{source}: {n} pairs are too few to split; give more, or a validation set of its own")
        order = stratified_order([0] * n, seed)
        ends = (n * 8 // 10, n * 9 // 10) if test is None else (n * 9 // 10, n)
        pieces = [train.take(np.sort(part)) for part in np.split(order, ends)]
        train, validation = pieces[0], pieces[1]
        sizes = f"{len(train):,} / {len(validation):,}"
        if test is None:
            test = pieces[2]
            sizes += f" / {len(test):,}"
        decisions.append(f"no validation set given: {n:,} pairs split {sizes}, seed {seed}")
    languages = found["train"].languages
    return ParallelCorpus(
        found["train"].name,
        train,
        validation,
        test or NO_PAIRS,
        languages[0],
        languages[1],
        source=source,
        decisions=tuple(decisions),
    )
