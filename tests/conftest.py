"""What several folders of tests share."""

import fcntl
import os
import random
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
import torch
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from heedful.config import study_preset
from heedful.data.corpus import Corpus, Split
from heedful.data.parallel import Alignment, ParallelCorpus, ParallelSplit
from heedful.data.synthetic.tasks import stream_pairs
from heedful.storage.atomic_files import sha256, write_checksummed_text
from heedful.storage.manifest import Manifest
from heedful.studies.run_directory import RunDirectory
from heedful.studies.study import run_study

# The first example of a test pays for imports; on a busy machine that passes any deadline.
settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")

# Tests that share a costly fixture, or one cluster, run in one process. xdist's own mark for this does nothing under
# pytest 9.2, whose items cannot be renamed.
TOGETHER = {
    "tests/papers/test_reproduction.py": "snell2021",
    "tests/papers/test_snell2021.py": "snell2021",
    "tests/papers/test_meister2021.py": "meister2021",
    "tests/papers/test_sunlu2020.py": "sunlu2020",
    "tests/papers/test_heedful2026.py": "heedful2026",
    "tests/faults/test_damage.py": "damage",
    "tests/studies/test_tracking.py": "tracking",
    "tests/studies/test_translation_study.py": "translation",
    "tests/sweeps/test_places.py": "ray",
    "tests/execution/test_parallel_map.py": "ray",
}


class Together(LoadScopeScheduling):
    """Each test goes wherever there is room, but those of `TOGETHER` to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return TOGETHER.get(nodeid.split("::")[0], nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    return Together(config, log)


torch.set_num_threads(1)  # idle threads that spin cost more than they bring when tests run side by side

HOSTILE = (
    "<script>alert(1)</script> is a good film",
    "</script><!-- <b>bold</b> & \"quotes\" 'n' `ticks`",
    "{{7*7}} {% raw %} ${7*7} good",
    "long " + "w" * 10_000 + " word",
    "فيلم جيد جدا سرט טוב",
    "a bad one 🙂 👩‍👩‍👧 🇸🇪",
    "=HYPERLINK(1) -bad +good @bad",
)


def tiny_corpus() -> Corpus:
    """Sixty texts in which one word gives the label away, and some that would like to be markup."""
    draw = random.Random(0)
    filler = ["the", "a", "film", "plot", "with", "some", "actors", "of", "it", "was", "very", "long", "and", "then"]

    def split(n: int) -> Split:
        labels = [i % 2 for i in range(n)]
        texts = [
            " ".join([*draw.choices(filler, k=draw.randint(3, 12)), ("bad", "good")[y], *draw.choices(filler, k=3)])
            for y in labels
        ]
        hostile = [text for text in HOSTILE for _ in range(2)]
        return Split((*texts, *hostile), (*labels, *(i % 2 for i in range(len(hostile)))))

    labels = ("<b>bad</b>", 'good "&"')
    return Corpus("tiny <i>corpus</i>", labels, split(60), split(16), split(4), licence="none & <u>all</u>")


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that the first of pytest's processes to need it makes, while the others wait."""
    place = factory.getbasetemp()
    place = place.parent if "PYTEST_XDIST_WORKER" in os.environ else place
    with (place / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / f"{name}.made").exists():
            make(place / name)
            (place / f"{name}.made").touch()
    return place / name


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished study of `tiny_corpus`; copy it before changing anything in it."""
    corpus = tiny_corpus()
    config = replace(study_preset(corpus.name, "smoke"), min_count=2)
    return made_once(tmp_path_factory, "smoke", lambda out: run_study(config, out, corpus=corpus, device="cpu"))


def vouch(root: Path) -> None:
    """Make the manifest of a run vouch for its files as they are now, and for `result.json` in any case."""
    manifest = Manifest.read(root)
    names = {"result.json", *manifest.files}
    replace(manifest, files={name: sha256(root / name) for name in sorted(names)}).write(root)


def restamp(root: Path) -> RunDirectory:
    """A run whose files a test has changed, with checksums that fit them again."""
    run = RunDirectory(root)
    lines = run.config_path.read_text(encoding="utf-8").splitlines(keepends=True)
    write_checksummed_text(run.config_path, "".join(lines[lines[0].startswith("# sha256") :]))
    for record in run.records():
        if record.is_done():
            content = dict(record.load())
            there = [name for name in content.pop("files") if (record.root / name).exists()]
            record.save(content, {name: sha256(record.root / name) for name in there})
    return RunDirectory(root)


HOSTILE_PAIRS = (
    ("<script>alert(1)</script> Hund", "</script> <img/src=x/onerror=alert(2)> dog"),
    ("{{7*7}} {%raw%} ${7*7} gut", "good & \"quoted\" 'n' `ticked`"),
    ("lang " + "w" * 10_000 + " Wort", "long " + "v" * 10_000 + " word"),
    ("فيلم جيد جدا", "סרט טוב"),
    ("ein Hund 🙂 👩‍👩‍👧 🇸🇪", "a dog 🙂 👩‍👩‍👧"),
    ("=HYPERLINK(1) -x +y @z", "__proto__ constructor toString"),
    ("<!-- <b>fett</b>", "-->"),
)


def tiny_pairs() -> ParallelCorpus:
    """Some sentences of the toy grammar with their gold alignments, and some that would like to be markup."""
    made = list(islice(stream_pairs("toy-de-en"), 95))
    hostile = [(s, t, Alignment.of([(0, 0)], [(1, 0)])) for s, t in HOSTILE_PAIRS]

    def split(*pairs: tuple[str, str, Alignment]) -> ParallelSplit:
        sources, targets, gold = zip(*pairs, strict=True)
        return ParallelSplit(sources, targets, gold)

    train, validation, test = split(*made[:80], *hostile), split(*made[80:85], *hostile), split(*made[85:])
    return ParallelCorpus(
        "tiny <i>pairs</i>", train, validation, test, "d<b>e", "e&n", licence="none & <u>all</u>", in_words=True
    )


@pytest.fixture(scope="session")
def smoke_translation_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished study of `tiny_pairs`; copy it before changing anything in it."""
    corpus = tiny_pairs()
    config = study_preset(corpus.name, "smoke", "translation")
    return made_once(
        tmp_path_factory, "smoke-translation", lambda out: run_study(config, out, corpus=corpus, jobs=1, device="cpu")
    )


BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture
def mirror(monkeypatch):
    """The mirror of the corpora: HEEDFUL_DATA, else the folder beside this repository, else the test is skipped."""
    folder = Path(os.environ.get("HEEDFUL_DATA", BESIDE))
    if not folder.is_dir():
        pytest.skip("there is no mirror of the corpora; point HEEDFUL_DATA at one")
    monkeypatch.setenv("HEEDFUL_DATA", str(folder))
    return folder


@pytest.fixture
def empty_mirror(monkeypatch, tmp_path):
    """A data directory with nothing in it."""
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path / "mirror"))
    return tmp_path / "mirror"
