import gzip
import json

import numpy as np
import pytest

from heedful.data.corpora.newsgroups import body, newsgroups, sklearn_body, with_quotations
from heedful.data.loading import open_data
from heedful.data.vocabulary import tokenise
from heedful.errors import DataError

HEADER = "From: ann@example.org\nSubject: bats\nLines: 3\n\n"


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("Ash is best.\n", "Ash is best."),
        ("Ash is best.\nAlways.\n\n-- \nAnn\n", "Ash is best.\nAlways."),
        ("Ash is best.\n-----\nAnn, of Ann Arbor\n", "Ash is best."),
        ("> What wood?\nAsh.\n", "Ash."),
        ("AB> What wood?\n| And why?\nAsh.\n", "Ash."),
        ("bob@example.org writes:\nAsh.\n", "Ash."),
        ("In article <1@example.org> bob@example.org (Bob) writes:\n>What wood?\n\nAsh.\n", "Ash."),
        ("Bob wrote in the book: ash.\n", "Bob wrote in the book: ash."),
        ("> only a quotation\n", ""),
        ("", ""),
    ],
)
def test_only_what_the_author_wrote_is_left(message, left):
    assert body(HEADER + message) == left
    assert body((HEADER + message).replace("\n", "\r\n")) == left


def test_quotations_can_be_kept():
    message = "bob@example.org writes:\n> What wood?\nAsh.\n\n-- \nAnn\n"
    assert body(HEADER + message, quoted=True) == "bob@example.org writes:\n> What wood?\nAsh."
    assert body(HEADER + message) == "Ash."


def test_texts_with_quotations_are_as_long_as_the_papers(mirror):
    """snell2021's Table 9 has medians of 183 and 207 words; 91 and 113 are left where quotations are dropped."""
    corpus = open_data("20news-sport-quoted")
    medians = [
        np.median([len(tokenise(text, corpus.rules)) for text in split.texts])
        for split in (corpus.train, corpus.validation)
    ]
    assert medians == [181, 208]


def test_a_copy_without_quotations_is_refused(tmp_path):
    folder = tmp_path / "20newsgroups"
    folder.mkdir()
    row = {"group": "rec.sport.hockey", "text": "Nice goal.", "stripped": True}
    (folder / "bydate_train.jsonl.gz").write_bytes(gzip.compress(json.dumps(row).encode()))
    with pytest.raises(DataError, match="lost the quotations"):
        newsgroups("rec.sport.hockey", strip=with_quotations, name="20news-sport-quoted")(tmp_path)


def test_a_long_last_paragraph_is_no_footer():
    paragraph = "\n".join(f"line {i}" for i in range(9))
    assert body(f"{HEADER}First.\n\n{paragraph}\n") == f"First.\n\n{paragraph}"


def test_a_message_without_a_body():
    assert body("From: ann@example.org\nSubject: nothing") == ""


@pytest.mark.parametrize(
    ("message", "left"),
    [
        ("Ash is best.\n", "Ash is best."),
        ("Ash is best.\n\nOr oak.\nOr elm.\n", "Ash is best."),
        ("Ash is best.\n---\nAnn\n", "Ash is best."),
        ("bob@example.org writes:\n> What wood?\n\nAsh.\n", ""),
        ("Bob says: ash.\nAB> What wood?\n\nAnn\n", "AB> What wood?"),
    ],
)
def test_sklearn_takes_the_last_paragraph_for_a_footer(message, left):
    assert sklearn_body(HEADER + message).strip() == left


def test_sklearns_stripping_leaves_as_many_texts_as_sunlu2020_has(mirror):
    """Table 1: 975/958 messages of hockey and baseball; 969/960/885 of the three groups, where we have one more."""
    for name, sizes in (("20news-sport-sklearn", [958, 975]), ("20news-three-sklearn", [969, 960, 886])):
        corpus = open_data(name)
        assert np.bincount(corpus.train.labels + corpus.validation.labels).tolist() == sizes
