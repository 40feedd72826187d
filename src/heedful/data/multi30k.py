"""Multi30k task 1 (Elliott et al. 2016): 29,000 image captions in German and English, and the usual splits."""

from pathlib import Path

from heedful.data.catalog import data_directory
from heedful.data.parallel import ParallelCorpus, ParallelSplit, pairs_of_files
from heedful.errors import DataError
from heedful.storage.atomic_files import sha256

DIRECTIONS = ("de-en", "en-de")
LICENCE = "derived from Flickr30k; non-commercial research and education"
SOURCE = "https://github.com/multi30k/dataset (data/task1/raw)"
FOLDER = "multi30k/raw"
SHA256 = {
    "train.de.gz": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
    "train.en.gz": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
    "val.de.gz": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
    "val.en.gz": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
    "test_2016_flickr.de.gz": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
    "test_2016_flickr.en.gz": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
}
PARTS = ("train", "val", "test_2016_flickr")


def is_here(root: Path | None = None) -> bool:
    """Whether the files exist, whatever they hold."""
    folder = (data_directory() if root is None else root) / FOLDER
    return all((folder / name).is_file() for name in SHA256)


def multi30k(direction: str = "de-en", root: Path | None = None) -> ParallelCorpus:
    """Multi30k in either direction; snell2021 calls its own En-De, its released code trains De→En.

    >>> multi30k("fr-en")
    Traceback (most recent call last):
    heedful.errors.DataError: multi30k has the directions de-en and en-de, not 'fr-en'
    """
    if direction not in DIRECTIONS:
        raise DataError(f"multi30k has the directions {' and '.join(DIRECTIONS)}, not {direction!r}")
    folder = (data_directory() if root is None else root) / FOLDER
    for name, digest in SHA256.items():
        if not (folder / name).is_file():
            raise DataError(
                f"multi30k: {name} is not in {folder}; get it from {SOURCE}, or point HEEDFUL_DATA at a mirror"
            )
        if sha256(folder / name) != digest:
            raise DataError(f"multi30k: {folder / name} has not the checksum it should have; get it anew from {SOURCE}")
    splits: list[ParallelSplit] = []
    decisions: list[str] = []
    for stem in PARTS:
        pairs = pairs_of_files(folder / f"{stem}.de.gz", folder / f"{stem}.en.gz", drop_numerical=False)
        splits.append(ParallelSplit(pairs.sources, pairs.targets))
        decisions += pairs.decisions
    corpus = ParallelCorpus(
        "multi30k",
        splits[0],
        splits[1],
        splits[2],
        source_language="de",
        target_language="en",
        licence=LICENCE,
        source=SOURCE,
        decisions=tuple(decisions),
    )
    return corpus if direction == "de-en" else corpus.reversed()
