import io
from zipfile import ZipFile

import numpy as np
import pytest

from heedful.data.files import text_files
from heedful.data.word_vectors import read_vectors, vector_words, vectors_path
from heedful.errors import DataError

LINES = "good 0.5 1 -2\nfilm 2 -1 0\n. . . 3 4 5\n"


@pytest.fixture(params=["text", "with a header", "npz"])
def vectors(request, tmp_path):
    if request.param == "npz":
        words, rows = np.array(["good", "film", ". . ."]), [[0.5, 1, -2], [2, -1, 0], [3, 4, 5]]
        np.savez(tmp_path / "v.npz", words=words, vectors=np.array(rows, dtype=np.float16))
        return str(tmp_path / "v.npz")
    path = tmp_path / "v.txt"
    path.write_text(("3 3\n" if request.param == "with a header" else "") + LINES)
    return str(path)


def test_words_and_vectors(vectors):
    assert vector_words(vectors) == {"good", "film", ". . ."}
    found = read_vectors(vectors, ["plot", "film", "good"], width=3)
    rows = dict(zip(found.index.tolist(), found.vectors.tolist(), strict=True))
    assert rows == {1: [2, -1, 0], 2: [0.5, 1, -2]}
    assert found.vectors.dtype == np.float32
    assert len(read_vectors(vectors, ["plot"], width=3)) == 0
    with pytest.raises(DataError, match="vectors have 3 numbers, the model's embeddings 5; set embedding = 3"):
        read_vectors(vectors, ["film"], width=5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("good 1 2\nfilm 1\n", r"v\.txt:2: not a word and its 2 numbers"),
        ("good one two\n", "the vector of 'good' has something else than numbers"),
        ("good 1 nan\n", "the vector of 'good' has a number that is not finite"),
        (b"\xff\xfe\n", "not UTF-8 text"),
    ],
)
def test_damaged_text(tmp_path, content, message):
    path = tmp_path / "v.txt"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=message):
        read_vectors(str(path), ["good"], width=2)


def test_damaged_npz(tmp_path):
    path = tmp_path / "v.npz"
    with pytest.raises(DataError, match="there is no such file"):
        vector_words(str(path))
    path.write_bytes(b"no zip")
    with pytest.raises(DataError, match=r"not an \.npz with the arrays"):
        vector_words(str(path))
    np.savez(path, words=np.array(["a", "b"]), vectors=np.ones((3, 2)))
    with pytest.raises(DataError, match="a row for each word"):
        vector_words(str(path))
    np.savez(path, words=np.array(["a"]), vectors=np.full((1, 2), np.inf))
    with pytest.raises(DataError, match="finite numbers"):
        vector_words(str(path))


def test_glove_of_the_data_directory(mirror):
    words = vector_words("glove")
    assert len(words) == 59_697
    assert {"good", "film", "n't"} <= words
    assert vectors_path("glove").is_relative_to(mirror)
    found = read_vectors("glove", ["<pad>", "good", "zzzyx"], width=100)
    assert found.index.tolist() == [1]
    assert 1 < np.linalg.norm(found.vectors) < 20


def test_npz_bombs(tmp_path):
    path = tmp_path / "v.npz"
    np.savez_compressed(path, words=np.array(["a"]), vectors=np.zeros((1, 1 << 24)))  # 128 MiB in some 130 kB
    with pytest.raises(DataError, match=r"v\.npz: [\d,]+ bytes unpack to more than 134,[\d,]+, as no text does"):
        vector_words(str(path))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 44, 1)})
    with ZipFile(path, "w") as packed:
        packed.writestr("words.npy", header.getvalue().replace(b"<f8", b"<U9"))
        packed.writestr("vectors.npy", header.getvalue())
    with pytest.raises(DataError, match=r"not an \.npz with the arrays"):
        vector_words(str(path))


def test_a_line_without_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "MAX_LINE", 1000)
    path = tmp_path / "v.txt"
    path.write_text("good 1 2\nfilm " + "1 " * 10_000)
    with pytest.raises(DataError, match=r"v\.txt:2: this line has more than 1,000 bytes"):
        vector_words(str(path))
