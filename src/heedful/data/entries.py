"""All named corpora: every module of `data.corpora` that has entries brings them."""

import importlib
import pkgutil
from collections.abc import Iterator

from heedful.data import corpora
from heedful.data.corpora.entry import Entry


def _found() -> Iterator[Entry]:
    for module in pkgutil.iter_modules(corpora.__path__, f"{corpora.__name__}."):
        yield from getattr(importlib.import_module(module.name), "ENTRIES", ())


CATALOG: dict[str, Entry] = {entry.name: entry for entry in sorted(_found(), key=lambda entry: entry.name)}
