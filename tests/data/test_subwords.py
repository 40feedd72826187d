import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.parallel import NO_PAIRS, ParallelCorpus, ParallelSplit
from heedful.data.subwords import (
    EncodedPairs,
    Subwords,
    Tokeniser,
    Words,
    encode_pairs,
    fit_tokeniser,
    load_tokeniser,
    train_subwords,
)
from heedful.data.synthetic.tasks import generated_pairs, stream_pairs
from heedful.data.vocabulary import BOS, EOS, UNK
from heedful.errors import DataError

PAIRS = list(itertools.islice(stream_pairs("toy-de-en", seed=11), 400))
TEXTS = [text for pair in PAIRS for text in pair[:2]]


@pytest.fixture(scope="module")
def model():
    return train_subwords(TEXTS, 500)[0]


def test_same_sentences_same_bytes(model):
    again, decisions = train_subwords(TEXTS, 500)
    assert again == model
    assert len(model) == 500
    assert decisions == ()


def test_specials_come_first(model):
    pieces = [model.processor.id_to_piece(i) for i in range(4)]
    assert pieces == ["<pad>", "<unk>", "<s>", "</s>"]


def test_word_by_word_is_the_same_as_whole_sentences(model):
    for text in TEXTS:
        ids, owners = model.encode(text)
        assert ids == model.processor.encode(text)
        starts = np.cumsum([model.processor.id_to_piece(i).startswith("▁") for i in ids]) - 1
        assert owners == starts.tolist()
        assert model.decode([BOS, *ids, EOS]) == text


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_encodes(text):
    model = train_small()
    ids, owners = model.encode(text)
    assert len(ids) == len(owners)
    assert all(0 <= i < len(model) for i in ids)
    assert owners == sorted(owners)
    assert not ids or owners[-1] < len(text.split())


_SMALL = []


def train_small():
    if not _SMALL:
        _SMALL.append(train_subwords(TEXTS[:50], 8000)[0])
    return _SMALL[0]


def test_a_small_corpus_gets_fewer_and_says_so():
    _, decisions = train_subwords(["ein Hund", "a dog"] * 5)
    assert "8,000 subwords were asked for; the training sentences have only" in decisions[0]
    with pytest.raises(DataError, match="at least one training sentence"):
        train_subwords(["", " "])
    with pytest.raises(DataError, match="cannot make 5 subwords"):
        train_subwords(TEXTS, 5)


def test_saved_and_loaded(model, tmp_path):
    model.save(tmp_path / "tokeniser.model")
    loaded = load_tokeniser(tmp_path / "tokeniser.model")
    assert loaded == model
    assert isinstance(loaded, Tokeniser)
    words, _ = fit_tokeniser(generated_pairs("copy-vocab", size=30))
    words.save(tmp_path / "tokeniser.json")
    assert load_tokeniser(tmp_path / "tokeniser.json") == words
    (tmp_path / "bad.model").write_bytes(b"not a model")
    with pytest.raises(DataError, match="not a SentencePiece model"):
        load_tokeniser(tmp_path / "bad.model")
    with pytest.raises(DataError, match=r"missing\.model: there is no such file; check"):
        load_tokeniser(tmp_path / "missing.model")
    with pytest.raises(DataError, match=r"missing\.json: there is no such file; check"):
        load_tokeniser(tmp_path / "missing.json")


def test_generated_tasks_are_encoded_by_words():
    corpus = generated_pairs("copy-vocab", size=60)
    tokeniser, _ = fit_tokeniser(corpus)
    assert isinstance(tokeniser, Words)
    assert len(tokeniser) == 4 + 60
    encoded = encode_pairs(corpus.validation, tokeniser)
    assert isinstance(encoded, EncodedPairs)
    assert set(encoded.source.lengths) == {42}
    assert np.array_equal(encoded.source.values, encoded.target.values)
    assert encoded.alignments == corpus.validation.alignments


def test_text_is_encoded_by_subwords_of_both_sides():
    train = ParallelSplit(tuple(TEXTS[0::2]), tuple(TEXTS[1::2]))
    tokeniser, _ = fit_tokeniser(ParallelCorpus("toy", train, NO_PAIRS, NO_PAIRS), 500)
    assert isinstance(tokeniser, Subwords)
    encoded = encode_pairs(train, tokeniser)
    assert UNK not in encoded.source.values
    assert np.all(encoded.source.values[encoded.source.offsets[:-1]] == BOS)
    assert np.all(encoded.source.values[encoded.source.offsets[1:] - 1] == EOS)
    for m in range(len(train)):
        words = encoded.target_words[m]
        assert sorted(set(words.tolist())) == [-1, *range(len(train.targets[m].split()))]
