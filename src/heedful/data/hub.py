"""A dataset of the Hugging Face hub at one commit: every file is checked by its size and checksum before it is read."""

import hashlib
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from heedful.data.corpora.entry import HubSource
from heedful.errors import DataError, MissingExtraError
from heedful.files import sha256

# What `datasets.load_dataset` gives: a dataset with columns for every split.
Splits = Mapping[str, Any]


def resolved(source: HubSource) -> HubSource:
    """The commit that a branch or tag stands for now.

    >>> resolved(HubSource("someone/texts", "0" * 40)).revision == "0" * 40
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
    return HubSource(source.repository, str(commit))


def downloaded(source: HubSource) -> Splits:
    """The dataset's splits, read from files that are those of the commit."""
    try:
        from datasets import load_dataset
        from huggingface_hub import HfApi, snapshot_download
    except ImportError as error:
        raise MissingExtraError("datasets", "hf", f"fetching {source.repository}") from error
    try:
        info = HfApi().dataset_info(source.repository, revision=source.revision, files_metadata=True)
        folder = Path(snapshot_download(source.repository, repo_type="dataset", revision=source.revision))
    except Exception as error:  # the hub's client raises errors of many libraries
        raise _unreachable(source, error) from error
    check_files(folder, info.siblings or (), f"{source.repository} at {source.revision}")
    try:
        splits: Splits = load_dataset(str(folder))
    except Exception as error:  # so does this one
        raise _unreachable(source, error) from error
    return splits


def check_files(folder: Path, listed: Iterable[Any], what: str) -> None:
    """Refuse a download in which a file is missing, or has not the size and the checksum that the hub lists.

    A large file is listed with its SHA-256, a small one as git knows it: the SHA-1 of its length and content.
    """
    for file in listed:
        path = folder / file.rfilename
        if not path.is_file():
            raise DataError(f"{what}: {file.rfilename} did not arrive; fetch again")
        size = path.stat().st_size
        if size != file.size:
            raise DataError(f"{what}: {file.rfilename} has {size:,} bytes, not {file.size:,}; {_AGAIN}")
        large = getattr(file, "lfs", None)
        if (sha256(path) != large.sha256) if large else (git_checksum(path.read_bytes()) != file.blob_id):
            raise DataError(f"{what}: {file.rfilename} has not the checksum that the hub lists; {_AGAIN}")


_AGAIN = "delete it from the cache of the hub's client and fetch again"


def git_checksum(content: bytes) -> str:
    """The name that git has for a file of this content.

    >>> git_checksum(b"what is up, doc?")
    'bd9dbf5aae1a3862dd1526723246b20206e5fc37'
    """
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _unreachable(source: HubSource, error: Exception) -> DataError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    return DataError(
        f"{source.repository} at {source.revision} could not be fetched ({reason}); "
        "fetch it where there is a network, or point HEEDFUL_DATA at a folder that has it"
    )
