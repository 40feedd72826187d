"""Multi30k task 1 (Elliott et al. 2016): image captions in German and English, and their usual splits."""

from pathlib import Path

from heedful.data.corpora.entry import CatalogEntry, Parts, files
from heedful.data.parallel import ParallelSplit, pairs_of_files

_MULTI30K = files(
    "multi30k/raw",
    """
726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6 637044 train.de.gz
d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f 568929 train.en.gz
f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a 24681 val.de.gz
14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28 21650 val.en.gz
9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8 22890 test_2016_flickr.de.gz
611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9 21077 test_2016_flickr.en.gz
""",
)


def multi30k(root: Path) -> Parts[ParallelSplit]:
    """German to English; snell2021 calls its own direction En-De, its released code trains De→En."""
    folder = root / "multi30k" / "raw"
    train, validation, test = (
        pairs_of_files(folder / f"{part}.de.gz", folder / f"{part}.en.gz", drop_numerical=False)
        for part in ("train", "val", "test_2016_flickr")
    )
    decisions = train.decisions + validation.decisions + test.decisions
    return Parts(train.pairs, validation.pairs, test.pairs, decisions)


ENTRIES = (
    CatalogEntry(
        "multi30k",
        "Multi30k image captions, German to English (multi30k:en-de for the other direction)",
        "translation",
        (),
        "derived from Flickr30k; non-commercial research and education",
        "https://github.com/multi30k/dataset (data/task1/raw)",
        _MULTI30K,
        multi30k,
        languages=("de", "en"),
    ),
)
