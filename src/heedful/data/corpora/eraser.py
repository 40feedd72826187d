"""Texts with rationales, words that people marked: folders laid out as in ERASER (DeYoung et al. 2020).

`docs/` (or `docs.tar.gz`) holds the texts, words separated by spaces; `train.jsonl`, `val.jsonl` and `test.jsonl` (or
the same gzipped) hold a label and spans of words for each.
"""

import json
import tarfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heedful.data.files.text_files import read_lines, read_text, refuse_bomb, unreadable
from heedful.errors import DataError
from heedful.storage.atomic_files import reason

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


def _annotations(folder: Path, part: str) -> Path:
    plain = folder / f"{part}.jsonl"
    return plain if plain.is_file() else folder / f"{part}.jsonl.gz"


def _documents(folder: Path) -> Mapping[str, str]:
    if (folder / "docs").is_dir():
        return {path.name: read_text(path) for path in sorted((folder / "docs").iterdir()) if path.is_file()}
    return _unpacked(folder / "docs.tar.gz")


def _unpacked(path: Path) -> Mapping[str, str]:
    """The texts of an archive, read in memory; links and devices are skipped."""
    documents, total = {}, 0
    try:
        size = path.stat().st_size
        with tarfile.open(path) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content is None:
                    continue
                total += member.size
                refuse_bomb(path, size, total)
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
