"""Pretrained word vectors: which words a file has, and the vectors of a vocabulary.

A text file has a word and its numbers on each line, as GloVe and fastText write it (a first line of two counts is
skipped). An `.npz` file has the arrays `words` and `vectors`. The name `glove` is the file of the data directory.
"""

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from heedful.data.catalog import data_directory
from heedful.data.files.text_files import byte_lines, refuse_bomb
from heedful.errors import DataError
from heedful.storage.atomic_files import reason, regular

GLOVE = "glove"
_GLOVE_FILE = "glove/glove.6B.100d.subset.float16.npz"
_MAX_WIDTH = 1 << 16
_MAX_WORDS = 5_000_000
_MAX_ARRAYS = 1 << 33  # bytes of an .npz, unpacked: two million words of a thousand numbers


@dataclass(frozen=True, eq=False)
class WordVectors:
    """The vectors of some words of a vocabulary. index: which words these are; vectors: a row for each."""

    index: NDArray[np.int64]
    vectors: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.index)


def vector_words(source: str) -> frozenset[str]:
    """The words that a file of vectors has.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = path.write_text("good 0.5 1\\nfilm 2 -1\\n")
    >>> sorted(vector_words(str(path)))
    ['film', 'good']
    """
    path = vectors_path(source)
    if path.suffix == ".npz":
        return frozenset(map(str, _load(path)[0].tolist()))
    return frozenset(word for word, _ in _lines(path))


def read_vectors(source: str, words: Sequence[str], width: int) -> WordVectors:
    """The vectors of those of `words` that a file has; an error where its vectors have another width.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "vectors.txt"
    >>> _ = path.write_text("good 0.5 1\\nfilm 2 -1\\n")
    >>> found = read_vectors(str(path), ["<pad>", "film", "plot"], width=2)
    >>> found.index, found.vectors
    (array([1]), array([[ 2., -1.]], dtype=float32))
    """
    path, place = vectors_path(source), {word: i for i, word in enumerate(words)}
    if path.suffix == ".npz":
        names, table = _load(path)
        _require_width(path, table.shape[1], width)
        rows = [(place[word], k) for k, word in enumerate(names.tolist()) if word in place]
        index = np.array([i for i, _ in rows], dtype=np.int64)
        return WordVectors(index, table[[k for _, k in rows]].astype(np.float32))
    found: dict[int, NDArray[np.float32]] = {}
    for word, numbers in _lines(path):
        if word in place and place[word] not in found:
            found[place[word]] = _row(path, word, numbers, width)
    vectors = np.stack(list(found.values())) if found else np.empty((0, width), dtype=np.float32)
    return WordVectors(np.array(list(found), dtype=np.int64), vectors)


def vectors_path(source: str) -> Path:
    """The file that a name or a path stands for.

    >>> vectors_path("glove").name
    'glove.6B.100d.subset.float16.npz'
    """
    if source != GLOVE:
        return Path(source).expanduser()
    return data_directory() / _GLOVE_FILE


def _lines(path: Path) -> Iterator[tuple[str, list[str]]]:
    """The word and the numbers of each line; words may have spaces, numbers may not."""
    width = 0
    for number, line in enumerate(byte_lines(path)):
        if number > _MAX_WORDS:
            raise DataError(f"{path}: more than {_MAX_WORDS:,} words; give a file of the most frequent ones")
        try:
            parts = line.decode("utf-8").rstrip().split(" ")
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: this is not UTF-8 text ({reason(error)}); give a text file or .npz") from None
        if number == 0 and len(parts) == 2 and all(part.isdecimal() for part in parts):
            continue
        width = width or len(parts) - 1
        if not 1 <= width <= _MAX_WIDTH or len(parts) <= width:
            raise DataError(f"{path}:{number + 1}: not a word and its {width or 'few'} numbers")
        yield " ".join(parts[:-width]), parts[-width:]


def _row(path: Path, word: str, numbers: list[str], width: int) -> NDArray[np.float32]:
    _require_width(path, len(numbers), width)
    try:
        row = np.array(numbers, dtype=np.float32)
    except ValueError:
        raise DataError(f"{path}: the vector of {word!r} has something else than numbers") from None
    if not np.isfinite(row).all():
        raise DataError(f"{path}: the vector of {word!r} has a number that is not finite")
    return row


def _load(path: Path) -> tuple[NDArray[Any], NDArray[Any]]:
    try:
        with ZipFile(regular(path)) as packed:
            unpacked = sum(packed.getinfo(f"{name}.npy").file_size for name in ("words", "vectors"))
        refuse_bomb(path, path.stat().st_size, unpacked)
        if unpacked > _MAX_ARRAYS:
            raise DataError(f"{path}: its arrays have {unpacked:,} bytes, more than {_MAX_ARRAYS:,}; give fewer words")
        with np.load(path, allow_pickle=False) as arrays:
            words, vectors = arrays["words"], arrays["vectors"]
    except (KeyError, ValueError, OSError, BadZipFile, zlib.error, MemoryError, NotImplementedError) as error:
        raise DataError(f"{path}: not an .npz with the arrays `words` and `vectors` ({reason(error)})") from None
    if words.ndim != 1 or words.dtype.kind != "U" or vectors.ndim != 2 or len(words) != len(vectors):
        raise DataError(f"{path}: {words.shape} words and {vectors.shape} vectors; it must have a row for each word")
    if vectors.dtype.kind != "f" or not np.isfinite(vectors).all():
        raise DataError(f"{path}: its vectors must be finite numbers")
    return words, vectors


def _require_width(path: Path, has: int, width: int) -> None:
    if has != width:
        raise DataError(
            f"{path}: its vectors have {has} numbers, the model's embeddings {width}; set embedding = {has}"
        )
