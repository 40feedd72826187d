"""Texts with rationales, words that people marked: folders laid out as in ERASER (DeYoung et al. 2020).

`docs/` (or `docs.tar.gz`) holds the texts, words separated by spaces; `train.jsonl`, `val.jsonl` and `test.jsonl` (or
the same gzipped) hold a label and spans of words for each.
"""

import json
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from io import BufferedIOBase
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.corpora.entry import FILM_SENTIMENT, POLARITY, CatalogEntry, Parts, files
from heedful.data.corpus import Split
from heedful.data.files.text_files import (
    open_bytes,
    read_lines,
    read_text,
    refuse_bomb,
    refuse_rows,
    refuse_whole,
    unreadable,
)
from heedful.errors import DataError
from heedful.storage.atomic_files import reason
from heedful.storage.run_files import listed

PARTS = ("train", "val", "test")
MOVIES = ("NEG", "POS")
Span = tuple[int, int]


@dataclass(frozen=True)
class Marked:
    """Texts of one part, in order: their words joined by single spaces, the label's name, and the spans marked."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    spans: tuple[tuple[Span, ...], ...]
    ids: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def mask(self, number: int) -> NDArray[np.bool_]:
        """Which words of a text were marked.

        >>> Marked(("a dull , dull film",), ("NEG",), (((1, 2), (3, 4)),), ("0",)).mask(0)
        array([False,  True, False,  True, False])
        """
        marked = np.zeros(len(self.texts[number].split()), dtype=bool)
        for start, end in self.spans[number]:
            marked[start:end] = True
        return marked


def is_eraser(folder: Path) -> bool:
    """Whether a folder has that layout.

    >>> is_eraser(Path("nowhere"))
    False
    """
    try:
        has_docs = (folder / "docs").is_dir() or (folder / "docs.tar.gz").is_file()
        return has_docs and any(_annotations(folder, part).is_file() for part in PARTS)
    except (OSError, ValueError):  # no name of a folder
        return False


def read_marked(folder: Path, part: str) -> Marked:
    """The texts of one part (`train`, `val` or `test`) with what people marked in them."""
    if part not in PARTS:
        raise DataError(f"{part!r} is not a part of an ERASER folder; it has {', '.join(PARTS)}")
    if not is_eraser(folder):
        raise DataError(f"{folder}: not laid out as in ERASER; it needs docs/ or docs.tar.gz and {part}.jsonl")
    path = _annotations(folder, part)
    if not path.is_file():
        raise DataError(f"{folder} has no {part}.jsonl")
    documents = _documents(folder)
    rows = []
    for number, line in enumerate(read_lines(path), 1):
        try:
            rows.append(_row(json.loads(line), documents))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
            why = f"there is no {error}" if isinstance(error, KeyError) else reason(error)
            raise DataError(f"{path}:{number}: {why}; each line is a JSON object as in ERASER") from None
    texts, labels, spans, ids = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Marked(texts, labels, spans, ids)


def eraser_movies(root: Path) -> Parts[Split]:
    """The film reviews of ERASER. The validation texts are in the training file too, and are removed from it."""
    train, validation, test = (read_marked(root / "eraser_movies", part) for part in PARTS)
    known = set(validation.ids)
    kept = [i for i, name in enumerate(train.ids) if name not in known]
    decision = f"train: {len(train) - len(kept):,} texts that are validation texts too dropped"
    return Parts(
        _split(train).take(kept), _split(validation), _split(test), (decision,) if len(kept) < len(train) else ()
    )


def _annotations(folder: Path, part: str) -> Path:
    plain = folder / f"{part}.jsonl"
    return plain if plain.is_file() else folder / f"{part}.jsonl.gz"


def _documents(folder: Path) -> Mapping[str, str]:
    if (folder / "docs").is_dir():
        documents, total = {}, 0
        for path in listed(folder / "docs", "*"):
            if path.is_file():
                documents[path.name] = read_text(path)
                total += len(documents[path.name])
                refuse_whole(folder / "docs", total)
        return documents
    return _unpacked(folder / "docs.tar.gz")


class _Counted:
    """A packed file whose unpacked bytes are counted as they are read, headers and long names of members included."""

    def __init__(self, path: Path, file: BufferedIOBase) -> None:
        self.path, self.file, self.size, self.total = path, file, path.stat().st_size, 0

    def read(self, size: int) -> bytes:
        content = self.file.read(size)
        self.total += len(content)
        refuse_bomb(self.path, self.size, self.total)
        refuse_whole(self.path, self.total)
        return content


def _archive(file: Any) -> tarfile.TarFile:
    return tarfile.open(fileobj=file, mode="r|")


def _unpacked(path: Path) -> Mapping[str, str]:
    """The texts of an archive, read in memory; links and devices are skipped."""
    documents = {}
    try:
        with open_bytes(path) as file, _archive(_Counted(path, file)) as archive:
            for count, member in enumerate(archive, start=1):
                refuse_rows(path, count, 1, "members")
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None:
                    documents[Path(member.name).name] = content.read().decode("utf-8")
    except (OSError, EOFError, ValueError, tarfile.TarError, zlib.error) as error:
        raise unreadable(path, error) from error
    return documents


def _row(row: Mapping[str, object], documents: Mapping[str, str]) -> tuple[str, str, tuple[Span, ...], str]:
    name = str(row["annotation_id"])
    if name not in documents:
        raise ValueError(f"there is no document {name!r}")
    words = documents[name].split()
    spans = []
    for group in row["evidences"]:  # type: ignore[attr-defined]
        for evidence in group:
            start, end = int(evidence["start_token"]), int(evidence["end_token"])
            if not 0 <= start <= end <= len(words):
                raise ValueError(f"the span {start}–{end} does not lie within the {len(words)} words of {name!r}")
            if start < end:  # the real files have some that are empty
                spans.append((start, end))
    return " ".join(words), str(row["classification"]), tuple(sorted(set(spans))), name


def _split(marked: Marked) -> Split:
    return Split(marked.texts, tuple(MOVIES.index(label) for label in marked.labels))


_ERASER = files(
    "eraser_movies",
    """
a916048fda96c39d67230bb467b7f793a1a70f5694d121a96b0f4eda956e3b64 3090345 docs.tar.gz
9977dd20059e3cc1a466d6c2026ed306e8e7b0fae5052169a019723b2a0e007c 489276 train.jsonl.gz
cb93dd4b3455fd26a20445405cff78005945ba01a36393165a405070aab919f1 45688 val.jsonl.gz
8e16d917835b61df8b64c962c2c2fc2c3158ba2bf110bf8d2334176912bef031 124524 test.jsonl.gz
""",
)

ENTRIES = (
    CatalogEntry(
        "eraser-movies",
        "ERASER film reviews with the words that people marked (Zaidan & Eisner 2008; DeYoung et al. 2020)",
        FILM_SENTIMENT,
        POLARITY,
        "Apache 2.0 (ERASER's code); none stated for the reviews",
        "https://www.eraserbenchmark.com",
        _ERASER,
        eraser_movies,
    ),
)
