"""Film reviews with the words that people marked (ERASER; DeYoung et al. 2020)."""

from heedful.data.corpora.entry import FILM_SENTIMENT, POLARITY, Entry, files
from heedful.data.eraser import eraser_movies

_ERASER = files(
    "eraser_movies",
    """
a916048fda96c39d67230bb467b7f793a1a70f5694d121a96b0f4eda956e3b64 3090345 docs.tar.gz
9977dd20059e3cc1a466d6c2026ed306e8e7b0fae5052169a019723b2a0e007c 489276 train.jsonl.gz
cb93dd4b3455fd26a20445405cff78005945ba01a36393165a405070aab919f1 45688 val.jsonl.gz
8e16d917835b61df8b64c962c2c2fc2c3158ba2bf110bf8d2334176912bef031 124524 test.jsonl.gz
""",
)

ENTRIES = (
    Entry(
        "eraser-movies",
        "ERASER film reviews with the words that people marked (Zaidan & Eisner 2008; DeYoung et al. 2020)",
        FILM_SENTIMENT,
        POLARITY,
        "Apache 2.0 (ERASER's code); none stated for the reviews",
        "https://www.eraserbenchmark.com",
        _ERASER,
        eraser_movies,
    ),
)
