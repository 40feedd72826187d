import pytest

from heedful.errors import DataError
from heedful.metrics.translation_quality import bleu_gain, corpus_bleu


@pytest.mark.parametrize(("translations", "references"), [(["a dog"], []), ([], []), ([], ["a dog"])])
def test_every_translation_has_its_reference(translations, references):
    with pytest.raises(DataError, match=f"{len(translations)} translations for {len(references)} references"):
        corpus_bleu(translations, references)
    with pytest.raises(DataError, match=f"{len(translations)} translations for {len(references)} references"):
        bleu_gain(translations, references)


def test_gain_is_zero_for_a_model_that_ignores_its_source():
    references = [
        f"{a} man {b} in the {c} today" for a in ("a", "one") for b in ("runs", "sits") for c in ("sun", "rain")
    ]
    blind = bleu_gain(["a man runs in the sun today"] * 8, references)
    assert blind.bleu == pytest.approx(corpus_bleu(["a man runs in the sun today"] * 8, references).score)
    assert blind.gain == pytest.approx(0)
    assert blind.bleu > 20
    seeing = bleu_gain(references, references)
    assert (seeing.bleu, seeing.gain > 30) == (pytest.approx(100), True)
    assert bleu_gain(references, references) == seeing  # the same seed


def test_sentences_of_fewer_than_four_words_are_counted_as_corpus_bleu_counts_them_and_warn_of_nothing(caplog):
    translations = ["a dog", "two men run in the sun", "rain", "a cat sleeps", ""]
    references = ["a dog", "two men walk in the sun", "snow", "the cat sleeps", "nothing"]
    assert bleu_gain(translations, references).bleu == pytest.approx(corpus_bleu(translations, references).score)
    assert not caplog.records
