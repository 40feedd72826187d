import json

import pytest

from heedful.data.corpus import Corpus, Split
from heedful.data.loading import open_data
from heedful.data.parallel import NO_PAIRS, ParallelCorpus, ParallelSplit
from heedful.data.synthetic.tasks import generated_pairs
from heedful.errors import DataError
from heedful.preflights.preflight import run_preflight


@pytest.mark.parametrize(
    ("task", "verdict"),
    [
        ("copy-permutation", "uninformative"),
        ("copy-mixture", "uninformative"),
        ("copy-vocab", "learnable"),
        ("toy-de-en", "learnable"),
    ],
)
def test_verdicts_before_training(task, verdict):
    result = run_preflight(generated_pairs(task, size=1000))
    assert result.verdict == verdict
    plain = result.to_dict()
    assert plain["statistic"] == result.statistics.contrast.value
    assert (plain["null"]["p"] <= 0.01) == (verdict == "learnable")
    json.dumps(plain, allow_nan=False)


def test_permutations_have_a_constant_table_and_mixtures_constant_blocks():
    constant = run_preflight(generated_pairs("copy-permutation", size=500)).table
    assert constant.smallest == pytest.approx(constant.largest) == 500 / 40
    blocks = run_preflight(generated_pairs("copy-mixture", size=500)).table
    assert blocks.entries == 2 * 40 * 40


def test_counts_align_the_toy_language_far_better_than_position():
    alignment = run_preflight(generated_pairs("toy-de-en", size=1500)).alignment
    assert alignment is not None
    assert alignment.model_1.value < alignment.counting.value < alignment.diagonal.value


def tiny(labels) -> Corpus:
    texts = tuple(f"{'good' if i % 2 else 'bad'} film {i % 5} of many" for i in range(60))
    split = Split(texts, tuple(labels))
    return Corpus("tiny", ("no", "yes"), split, split, Split((), ()))


def test_telling_words_of_a_classification():
    result = run_preflight(tiny(i % 2 for i in range(60)))
    assert result.verdict == "learnable"
    yes = next(each for each in result.outputs if each.output == "yes")
    assert (yes.most[0].word, yes.least[0].word) == ("good", "bad")
    assert yes.most[0].together == yes.most[0].count == 30
    assert yes.most[0].trans == 1.0


def test_labels_that_words_do_not_tell_have_no_telling_words():
    result = run_preflight(tiny((i // 2) % 2 for i in range(60)))
    assert (result.verdict, result.outputs) == ("uninformative", ())


def test_one_pair_is_too_few():
    one = ParallelSplit(("ein Hund",), ("a dog",))
    with pytest.raises(DataError, match="two or more"):
        run_preflight(ParallelCorpus("one", one, one, NO_PAIRS))


def test_the_generated_texts_work_too():
    assert run_preflight(open_data("keyword")).outputs[1].most[0].word == "1"


@pytest.mark.parametrize(
    ("labels", "outputs"), [(2, ("no", "yes")), (1, ())], ids=["two labels", "one of two in training texts"]
)
def test_saved_as_json(tmp_path, labels, outputs):
    result = run_preflight(tiny([i % labels for i in range(60)]))
    assert tuple(each.output for each in result.outputs) == outputs
    result.save(tmp_path / "preflight.json")
    assert json.loads((tmp_path / "preflight.json").read_text()) == json.loads(json.dumps(result.to_dict()))
    assert result.to_dict()["null"]["permutations"] == result.statistics.contrast.permutations


def test_targets_without_words():
    silent = ParallelSplit(("ein Hund", "zwei Hunde"), ("\x01", "\x02"))
    with pytest.raises(DataError, match="0 pairs with an output"):
        run_preflight(ParallelCorpus("silent", silent, silent, NO_PAIRS))
