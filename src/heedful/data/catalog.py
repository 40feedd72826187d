"""The catalog of named corpora: what each is, where its files are, and whether their checksums are right."""

import csv
import difflib
import importlib
import importlib.util
import os
import pkgutil
from dataclasses import dataclass, replace
from lzma import LZMAError
from pathlib import Path
from typing import Any, Literal
from zlib import error as ZlibError

from heedful.config import TaskName
from heedful.data import corpora
from heedful.data.corpora.entry import CatalogEntry, File
from heedful.data.corpus import SPLITS, Corpus
from heedful.data.parallel import ParallelCorpus
from heedful.data.synthetic.doses import FAMILIES
from heedful.data.synthetic.tasks import TASKS, Task, find_task, generated_pairs, generated_texts
from heedful.errors import DataError, HeedfulError, MissingExtraError, RunError
from heedful.storage.atomic_files import sha256, valid_path
from heedful.storage.run_files import listed, member_name, read_bounded
from heedful.storage.serialization import content

CHECKSUMS = "SHA256SUMS"
MAX_LISTING = 1 << 20  # bytes of a list of checksums
_SIZE = "#size "
_MODULES = [
    importlib.import_module(found.name) for found in pkgutil.iter_modules(corpora.__path__, f"{corpora.__name__}.")
]
_ENTRIES: list[CatalogEntry] = [entry for module in _MODULES for entry in getattr(module, "ENTRIES", ())]
CATALOG: dict[str, CatalogEntry] = {entry.name: entry for entry in sorted(_ENTRIES, key=lambda entry: entry.name)}
# Every name that a command takes: corpora with files, and tasks that are generated.
NAMES: tuple[str, ...] = (*CATALOG, *TASKS)


@dataclass(frozen=True)
class FileStatus:
    """Whether one file of a corpus is as it should be."""

    path: str
    status: Literal["ok", "missing", "changed"]
    bytes: int


@dataclass(frozen=True)
class Check:
    """Whether the files of a corpus are here and unchanged; if not, `advice` is a sentence that says what to do."""

    name: str
    directory: Path
    files: tuple[FileStatus, ...]
    advice: str

    @property
    def ok(self) -> bool:
        """Every file is here and unchanged."""
        return all(file.status == "ok" for file in self.files)


def data_directory() -> Path:
    """The mirror: `$HEEDFUL_DATA`, else `heedful` in the user's data directory.

    >>> data_directory().name if "HEEDFUL_DATA" not in os.environ else "heedful"
    'heedful'
    """
    mirror = os.environ.get("HEEDFUL_DATA")
    if mirror:
        return valid_path(Path(os.path.expanduser(mirror)), DataError)
    base = os.environ.get("XDG_DATA_HOME")
    return valid_path((Path(base) if base else Path.home() / ".local" / "share") / "heedful", DataError)


def is_named(data: str) -> bool:
    """Whether this is the name of a corpus or of a generated task, with a direction or a dose where it has one.

    >>> is_named("sst"), is_named("multi30k:en-de"), is_named("keyword"), is_named("copy-dose:45"), is_named("a.csv")
    (True, True, True, True, False)
    """
    name, colon, _ = data.partition(":")
    directed = bool(colon) and name in CATALOG and CATALOG[name].languages is not None
    return data in NAMES or name in FAMILIES or directed


def task_of_name(name: str) -> TaskName:
    """What a named corpus or a generated task is for.

    >>> task_of_name("multi30k:en-de"), task_of_name("keyword")
    ('translation', 'classification')
    """
    return _find(name)[0].kind


def entry(name: str) -> CatalogEntry:
    """The catalog's entry of that name; an unknown name is an error that gives the nearest.

    >>> entry("sst").labels
    ('negative', 'positive')
    >>> entry("imbd")
    Traceback (most recent call last):
    heedful.errors.DataError: there is no corpus named 'imbd'; did you mean 'imdb'? ...
    """
    known, _ = _find(name)
    if isinstance(known, Task):
        raise DataError(f"{name} is generated: it has no files")
    return known


def nearest(name: str) -> str:
    """A hint for a name that no corpus has.

    >>> nearest("rotten-tomatos")
    "did you mean 'rotten-tomatoes'? `heedful data list` shows all names"
    """
    near = difflib.get_close_matches(name, NAMES, 1)
    return (f"did you mean {near[0]!r}? " if near else "") + "`heedful data list` shows all names"


def _find(name: str) -> tuple[CatalogEntry | Task, str]:
    """The entry or task of that name, and the direction of a parallel corpus."""
    if task := find_task(name):
        return task, ""
    if not is_named(name):
        raise DataError(f"there is no corpus named {name!r}; {nearest(name)}")
    if name in CATALOG:
        return CATALOG[name], ""
    base, _, direction = name.partition(":")
    known = CATALOG[base]
    if direction and direction not in known.directions:
        raise DataError(f"{base} has the directions {' and '.join(known.directions)}, not {direction!r}")
    return known, direction


def describe(name: str) -> dict[str, Any]:
    """The facts of a named corpus or a generated task, without opening it.

    >>> describe("keyword")["task"], describe("multi30k")["languages"]
    ('classification', ['de', 'en'])
    """
    known, _ = _find(name)
    if isinstance(known, Task):
        return {
            "name": name,
            "title": f"generated: {known.description}",
            "task": known.kind,
            "labels": ["negative", "positive"] if known.kind == "classification" else [],
            "licence": "none needed: generated, seeded, any size",
            "source": "generated",
            "here": True,
        }
    facts = content(replace(known, name=name)) | {"here": is_here(name)}
    shown = ("name", "title", "task", "labels", "licence", "source", "here", "languages", "published_as")
    return {fact: facts[fact] for fact in (*shown, "rules", "hub", "files")}


def check(name: str) -> Check:
    """Compare the files of a corpus with their checksums: those that `fetch` wrote beside them, else the catalog's.

    >>> check("sst").name
    'sst'
    """
    wanted = entry(name)
    root = _root(wanted)
    files = tuple(_status(root / file.path, file) for file in _expected(wanted, root))
    bad = [file for file in files if file.status != "ok"]
    return Check(name, root, files, _advice(wanted, root, bad[0]) if bad else "")


def is_here(name: str) -> bool:
    """Whether a corpus's files exist, whatever they hold; quick, unlike `check`.

    >>> is_here("rotten-tomatoes")
    True
    """
    wanted = entry(name)
    try:
        root = _root(wanted)
        return all((root / file.path).is_file() for file in _expected(wanted, root))
    except HeedfulError:
        return False


def open_corpus(name: str, *, size: int | None = None, seed: int = 0) -> Corpus | ParallelCorpus:
    """A named corpus with its fixed splits, if its files are here and unchanged; or a generated task.

    `size` is the number of training examples of a generated task, `seed` its seed.

    >>> corpus = open_corpus("rotten-tomatoes")
    >>> corpus.labels, len(corpus.train), len(corpus.validation), len(corpus.test)
    (('negative', 'positive'), 6824, 853, 853)
    """
    wanted, direction = _find(name)
    if isinstance(wanted, Task):
        return (generated_pairs if wanted.kind == "translation" else generated_texts)(name, size=size, seed=seed)
    checked = check(name)
    if not checked.ok:
        raise DataError(checked.advice)
    try:
        parts = wanted.read(checked.directory)
    except (OSError, EOFError, LZMAError, ZlibError, csv.Error, LookupError, ValueError, TypeError) as error:
        raise DataError(f"{name}: the files in {checked.directory} are not laid out as expected: {error!r}") from error
    facts: dict[str, Any] = {
        "name": wanted.name,
        "licence": wanted.licence,
        "source": wanted.source,
        "decisions": _fetched(wanted, checked.directory) + parts.decisions,
        **{split: getattr(parts, split) for split in SPLITS},
    }
    if wanted.languages is None:
        return Corpus(**facts, labels=wanted.labels, rules=wanted.rules)
    corpus = ParallelCorpus(**facts, source_language=wanted.languages[0], target_language=wanted.languages[1])
    return corpus.reversed() if direction == wanted.directions[1] else corpus


def _root(wanted: CatalogEntry) -> Path:
    if wanted.package is None:
        return data_directory()
    # The spec of a top-level package is found without running any of its code.
    spec = importlib.util.find_spec(wanted.package)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(wanted.package.replace("_", "-"), "demo", f"the corpus {wanted.name}")
    return Path(next(iter(spec.submodule_search_locations)))


def _expected(wanted: CatalogEntry, root: Path) -> tuple[File, ...]:
    sums = root / wanted.folder / CHECKSUMS
    if wanted.package is not None or not sums.is_file():
        return wanted.files
    try:
        listing = _listing(sums)
        lines = [line.split(maxsplit=1) for line in listing if not line.startswith("#")]
        sized = (line[len(_SIZE) :].split(maxsplit=1) for line in listing if line.startswith(_SIZE))
        sizes = {name: int(size) for size, name in sized}
        if not lines:
            raise ValueError("it names no file")
        for _, path in lines:
            member_name(path)
        folder = root / wanted.folder
        return tuple(
            File(f"{wanted.folder}/{path}", digest, sizes.get(path, _size(folder / path))) for digest, path in lines
        )
    except (OSError, ValueError, RunError) as error:
        raise DataError(
            f"{sums}: this is not a list of checksums and file names ({error}); fetch again with --force"
        ) from error


def write_checksums(folder: Path, origin: str) -> None:
    """List the files of a folder with their SHA-256, as `sha256sum -c` reads it, and in comments their sizes.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("")
    >>> write_checksums(folder, "somewhere"); (folder / CHECKSUMS).read_text().splitlines()[:2]
    ['# somewhere', '#size 0 a.txt']
    """
    files = [path for path in listed(folder, "*") if path.name != CHECKSUMS]
    sizes = [f"{_SIZE}{_size(path)} {path.name}" for path in files]
    sums = [f"{sha256(path)}  {path.name}" for path in files]
    (folder / CHECKSUMS).write_text("\n".join([f"# {origin}", *sizes, *sums, ""]), "utf-8")


def _fetched(wanted: CatalogEntry, root: Path) -> tuple[str, ...]:
    sums = root / wanted.folder / CHECKSUMS
    if wanted.package is not None or not sums.is_file():
        return ()
    comments = [line for line in _listing(sums) if line.startswith("#")]
    return tuple(f"fetched: {line[1:].strip()}" for line in comments if not line.startswith(_SIZE))


def _listing(sums: Path) -> list[str]:
    return read_bounded(sums, MAX_LISTING, follow=True).decode("utf-8").splitlines()


def _status(path: Path, known: File) -> FileStatus:
    if not path.is_file():
        return FileStatus(known.path, "missing", 0)
    size = _size(path)
    return FileStatus(known.path, "ok" if size == known.bytes and sha256(path) == known.sha256 else "changed", size)


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _advice(wanted: CatalogEntry, root: Path, bad: FileStatus) -> str:
    what = f"is not in {root}" if bad.status == "missing" else f"in {root} does not have the checksum it should have"
    if wanted.package:
        return f"{wanted.name}: {bad.path} {what}; reinstall it with: pip install --force-reinstall 'heedful[demo]'"
    get = (
        f"run `heedful data fetch {wanted.name}` where there is a network"
        if wanted.hub
        else f"get it from {wanted.source}"
    )
    return f"{wanted.name}: {bad.path} {what}; {get}, or point HEEDFUL_DATA at a folder that has it"
