"""What several folders of tests share."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from heedful.budgets import study_preset
from heedful.data.corpus import Corpus, Split
from heedful.studies.study import run_study

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


@pytest.fixture(scope="session")
def smoke_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished study of `tiny_corpus`; copy it before changing anything in it."""
    corpus = tiny_corpus()
    out = tmp_path_factory.mktemp("runs") / "smoke"
    run_study(replace(study_preset(corpus.name, "smoke"), min_count=2), out, corpus=corpus, device="cpu")
    return out
