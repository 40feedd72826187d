"""Results in a terminal: all of them is said, and words of the data are words there too."""

from dataclasses import replace

import pytest

from heedful.data.corpus import Corpus, Split
from heedful.data.synthetic.tasks import generated_texts
from heedful.metrics.statistics import Estimate
from heedful.preflights.preflight import CountedAlignment, run_preflight
from heedful.reports.terminal import print_preflight

WORDS = ("[/b]", "[red]", ":smile:", "[link=x]")


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def test_labels_and_words_in_brackets_are_shown_as_they_are(capsys):
    texts = tuple(f"{WORDS[i % 4]} film {i % 3}" for i in range(40))
    labels = tuple(i % 2 for i in range(40))
    split = Split(texts, labels)
    result = run_preflight(Corpus("[/i]", ("[/down]", "[up]"), split, split, split), permutations=19)
    print_preflight(replace(result, decisions=("column [/b] was read",)))
    said = capsys.readouterr().out
    for word in ("[/down]", "[up]", "column [/b] was read", *(w.word for o in result.outputs for w in o.most)):
        assert word in said


def test_counts_alone_against_gold_alignments(capsys):
    counting, model_1, diagonal = (Estimate(value, 0.0, 1.0, 9) for value in (0.5, 0.25, 0.625))
    result = run_preflight(generated_texts("keyword", size=60), permutations=19)
    print_preflight(replace(result, alignment=CountedAlignment(counting, model_1, diagonal)))
    assert (
        "alignment error of counts alone: 50.0% (α^IBM), 25.0% (five iterations of Model 1), 62.5% (position alone)"
    ) in " ".join(capsys.readouterr().out.split())


def test_outputs_that_no_word_speaks_for_have_no_rows(capsys):
    result = run_preflight(generated_texts("keyword", size=60), permutations=19)
    first, *others = result.outputs
    mute = [replace(each, most=(), least=()) for each in others]
    print_preflight(replace(result, outputs=(first, *mute)))
    assert capsys.readouterr().out.count("│") == 4  # one row of three cells
    print_preflight(replace(result, outputs=tuple(mute)))
    assert "no word predicts an output better than chance" in capsys.readouterr().out
    print_preflight(replace(result, outputs=(), verdict="uninformative"))
    assert "no words are listed" in capsys.readouterr().out
