"""News Commentary (Tiedemann 2012): commentaries in several languages; three pairs of languages of snell2021."""

from collections.abc import Callable
from pathlib import Path

from heedful.data.corpora.entry import SEED, CatalogEntry, HubSource, Parts, fetched_files
from heedful.data.corpus import divide, sizes_of
from heedful.data.parallel import ParallelSplit, pairs_of_files

PAIRS = ("en-nl", "en-pt", "it-pt")


def news_commentary(pair: str) -> Callable[[Path], Parts[ParallelSplit]]:
    """A reader of one pair of languages: pairs of numbers alone dropped, 90 % train and 10 % validate (A.5, A.8)."""
    source, target = pair.split("-")

    def read(root: Path) -> Parts[ParallelSplit]:
        folder = root / f"news_commentary.{pair}"
        found = pairs_of_files(folder / f"pairs.{source}.gz", folder / f"pairs.{target}.gz")
        train, validation = divide(found.pairs, [len(found.pairs) * 9 // 10], SEED)
        decision = f"{len(found.pairs):,} pairs split {sizes_of(train, validation)}, seed {SEED}; there is no test set"
        return Parts(train, validation, ParallelSplit((), ()), (*found.decisions, decision))

    return read


def _entry(pair: str) -> CatalogEntry:
    source, target = pair.split("-")
    return CatalogEntry(
        f"news-commentary:{pair}",
        f"News Commentary, {source} to {target} (the Hub has version 11, snell2021 used 14)",
        "translation",
        (),
        "none stated; asks for citation",
        "https://opus.nlpl.eu/News-Commentary.php",
        fetched_files(f"news_commentary.{pair}", f"pairs.{source}.gz", f"pairs.{target}.gz"),
        news_commentary(pair),
        hub=HubSource("Helsinki-NLP/news_commentary", "main", pair),
        languages=(source, target),
    )


ENTRIES = tuple(_entry(pair) for pair in PAIRS)
