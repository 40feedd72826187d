"""What readers of named corpora have in common: whole files, repeated and empty texts, seeded splits."""

import gzip
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from heedful.data.corpora.entry import Parts
from heedful.data.corpus import Split, divide

SEED = 0
LabelledTexts = list[tuple[str, int]]


def read_whole(path: Path) -> str:
    """The whole of a file, unpacked; its checksum has been seen to be right."""
    content = path.read_bytes()
    if path.suffix == ".gz":
        content = gzip.decompress(content)
    elif path.suffix == ".xz":
        content = lzma.decompress(content)
    return content.decode("utf-8")


def read_lines(path: Path) -> list[str]:
    """The lines of a file, whether or not the last has an end."""
    return read_whole(path).removesuffix("\n").split("\n")


def read_jsonl(path: Path) -> Iterator[dict[str, Any]]:
    """One object a line."""
    for line in read_lines(path):
        yield json.loads(line)


def distinct(pairs: LabelledTexts, decisions: list[str]) -> LabelledTexts:
    """Each text once, with its first label; how many repeat is said in `decisions`."""
    found = dict[str, int]()
    for text, label in pairs:
        found.setdefault(text, label)
    if len(found) < len(pairs):
        decisions.append(f"{len(pairs) - len(found):,} texts that repeat an earlier one dropped")
    return list(found.items())


def not_empty(pairs: LabelledTexts, part: str, decisions: list[str]) -> LabelledTexts:
    """The texts that have anything in them; how many have not is said in `decisions`."""
    kept = [(text, label) for text, label in pairs if text.strip()]
    if len(kept) < len(pairs):
        decisions.append(f"{part}: {len(pairs) - len(kept):,} texts with nothing left dropped")
    return kept


def as_split(pairs: LabelledTexts) -> Split:
    """Texts with labels as a split."""
    return Split(tuple(text for text, _ in pairs), tuple(label for _, label in pairs))


def eighty_ten_ten(whole: Split, decisions: list[str]) -> Parts:
    """A corpus that comes in one piece, divided under a seed."""
    train, validation, test = divide(whole, [len(whole) * 8 // 10, len(whole) // 10], SEED)
    return Parts(train, validation, test, (*decisions, parted(train, validation, test)))


def parted(*parts: Split) -> str:
    """How a corpus was divided, in words."""
    sizes = " / ".join(f"{len(part):,}" for part in parts)
    return f"{sum(map(len, parts)):,} texts split {sizes}, stratified, seed {SEED}"
