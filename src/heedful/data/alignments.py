"""Gold word alignments, and the file formats they come in."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from heedful.data.files.text_files import read_lines
from heedful.errors import DataError

MAX_SENTENCES = 1_000_000
Link = tuple[int, int]  # source position, target position, both from 0


@dataclass(frozen=True)
class Alignment:
    """The links of one sentence pair: those an annotator was sure of, and all that are acceptable.

    >>> Alignment.of([(0, 0)], [(1, 0)]).possible == {(0, 0), (1, 0)}
    True
    """

    sure: frozenset[Link]
    possible: frozenset[Link]

    def __post_init__(self) -> None:
        if not self.sure <= self.possible:
            raise DataError(f"sure links must be possible links too; {sorted(self.sure - self.possible)} are not")

    @classmethod
    def of(cls, sure: Iterable[Link], possible: Iterable[Link] = ()) -> "Alignment":
        """From links; sure ones need not be repeated among the possible."""
        firm = frozenset(sure)
        return cls(firm, firm | frozenset(possible))

    def reversed(self) -> "Alignment":
        """The same links, target to source.

        >>> Alignment.of([(0, 1)]).reversed().sure
        frozenset({(1, 0)})
        """
        return Alignment(frozenset((t, s) for s, t in self.sure), frozenset((t, s) for s, t in self.possible))

    def __str__(self) -> str:
        return " ".join(f"{s}{'-' if (s, t) in self.sure else 'p'}{t}" for s, t in sorted(self.possible))


def parse_links(line: str, *, first: int = 0, where: str = "") -> Alignment:
    """One line of `i-j` (sure) and `ipj` (possible) links (the Pharaoh format); positions count from `first`.

    >>> str(parse_links("1-1 2p3", first=1))
    '0-0 1p2'
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    for item in line.split():
        match = _LINK.fullmatch(item)
        if match is None:
            raise DataError(
                f"{where or 'alignment'}: {item[:40]!r} is not a link; links are i-j (sure) or ipj (possible)"
            )
        link = int(match[1]) - first, int(match[3]) - first
        if min(link) < 0:
            raise DataError(f"{where or 'alignment'}: {item!r} counts from 0; pass first=0")
        (sure if match[2] == "-" else possible).add(link)
    return Alignment.of(sure, possible)


def read_alignments(path: str | Path, *, first: int | None = None, count: int | None = None) -> tuple[Alignment, ...]:
    """A file of gold alignments, one sentence pair a line, or in the NAACL form `sentence source target [S|P]`.

    `first` is what positions count from: 0 or 1; left out, it is 0 where a 0 occurs, else 1 in the NAACL form and in
    files without any 0. `count` is how many sentence pairs there must be.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "gold.wa"
    ...     _ = file.write_text("1-1 2p1\\n2-2\\n")
    ...     [str(alignment) for alignment in read_alignments(file)]
    ['0-0 1p0', '1-1']
    """
    path = Path(path)
    lines = read_lines(path)
    if lines and all(_NAACL.fullmatch(line.strip()) for line in lines if line.strip()) and any(map(str.strip, lines)):
        alignments = _naacl(path, lines, first)
    else:
        base = _base(re.findall(r"\d+", " ".join(lines))) if first is None else first
        alignments = tuple(parse_links(line, first=base, where=f"{path}:{n}") for n, line in enumerate(lines, start=1))
    if count is not None and len(alignments) != count:
        raise DataError(f"{path}: {len(alignments)} alignments for {count} sentence pairs; write a line for each pair")
    return alignments


_LINK = re.compile(r"(\d{1,9})([-p])(\d{1,9})")
_NAACL = re.compile(r"(\d{1,9})\s+(\d{1,9})\s+(\d{1,9})(?:\s+([SP]))?(?:\s+[\d.]+)?")


def _naacl(path: Path, lines: list[str], first: int | None) -> tuple[Alignment, ...]:
    """Sentences count from 1; sentences without a line have no links."""
    rows = []
    for n, line in enumerate(lines, start=1):
        match = _NAACL.fullmatch(line.strip())
        if match is not None:
            if not 1 <= int(match[1]) <= MAX_SENTENCES:
                raise DataError(f"{path}:{n}: sentence {match[1]}; sentences count from 1 to {MAX_SENTENCES:,} at most")
            rows.append((n, int(match[1]), int(match[2]), int(match[3]), match[4] or "S"))
    base = _base([str(position) for row in rows for position in row[2:4]]) if first is None else first
    links: list[tuple[set[Link], set[Link]]] = [(set(), set()) for _ in range(max(row[1] for row in rows))]
    for n, sentence, source, target, sureness in rows:
        if min(source, target) < base:
            raise DataError(f"{path}:{n}: position 0, but positions count from {base}; pass first=0")
        links[sentence - 1][sureness == "P"].add((source - base, target - base))
    return tuple(Alignment.of(*pair) for pair in links)


def _base(numbers: Iterable[str]) -> int:
    return 0 if "0" in set(numbers) else 1
