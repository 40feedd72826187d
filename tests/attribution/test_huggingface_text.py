import warnings
from typing import Any

import pytest
import sentencepiece
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attribution.huggingface_text import TokenReader
from heedful.errors import DataError
from tests.audits import tiny
from tests.conftest import HOSTILE

MAKERS = {"words": tiny.word_pieces, "bytes": tiny.byte_pieces, "sentences": tiny.sentence_pieces}
fast = pytest.mark.parametrize("kind", MAKERS)


def reader_of(tokenizer: Any, longest: int = 10**6) -> TokenReader:
    return TokenReader(tokenizer, (), longest)


@fast
def test_words_as_they_stand_in_the_text(kind):
    passage = reader_of(MAKERS[kind]()).read(7, "It was  unwatchable, not GOOD ")
    own = [word for word, special in zip(passage.words, passage.special, strict=True) if not special]
    expected = ["It", "was", "unwatchable", ",", "not", "GOOD"]
    if kind == "sentences":
        expected[2:4] = ["unwatchable,"]
    assert own == expected
    assert passage.text == 7
    first = own.index(expected[2]) + passage.special[0]
    assert passage.word.count(first) >= 3
    assert list(passage.pieces) == MAKERS[kind]()("It was  unwatchable, not GOOD ")["input_ids"]


def test_special_pieces_are_marked():
    passage = reader_of(tiny.word_pieces()).read(0, "not [SEP] bad")
    assert passage.words[0] == "[CLS]"
    assert passage.special == (True, *[False] * (len(passage.words) - 2), True)
    assert reader_of(tiny.byte_pieces(template=False)).read(0, "not bad").special == (False, False)


@fast
@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.text(min_size=1, max_size=40))
def test_any_text(kind, text):
    reader = reader_of(MAKERS[kind](), longest=30)
    try:
        passage = reader.read(0, text)
    except DataError:
        assert not text.strip() or kind == "words"
        return
    assert sorted(set(passage.word)) == list(range(len(passage.words)))
    assert list(passage.word) == sorted(passage.word)
    assert all(passage.words)
    assert len(passage.pieces) <= 30
    whole = MAKERS[kind]()(text)["input_ids"]
    assert len(passage.pieces) + passage.cut == len(whole)
    for word, special in zip(passage.words, passage.special, strict=True):
        assert special or word in text or kind == "sentences"


@fast
@pytest.mark.parametrize("text", HOSTILE)
def test_texts_that_would_like_to_be_something_else(kind, text):
    passage = reader_of(MAKERS[kind](), longest=40).read(0, text)
    assert len(passage.pieces) <= 40
    shown = "".join(word for word, special in zip(passage.words, passage.special, strict=True) if not special)
    assert "".join(text.split()).startswith(shown)
    if not passage.cut:
        assert shown == "".join(text.split())


def test_emoji_of_several_bytes_is_one_word():
    passage = reader_of(tiny.byte_pieces()).read(0, "bad 🙂 film")
    assert passage.words == ("<s>", "bad", "🙂", "film", "</s>")
    assert passage.word.count(2) > 1


@pytest.mark.parametrize("text", ["", " ", "\n\t"])
def test_empty_text_is_named_by_its_number(text):
    with pytest.raises(DataError, match="text 12 is empty"):
        reader_of(tiny.word_pieces()).read(12, text)


def test_text_of_which_nothing_is_left():
    with pytest.raises(DataError, match="text 3: the tokeniser makes no piece of"):
        reader_of(tiny.word_pieces()).read(3, "\x00")


@fast
def test_cut_is_counted(kind):
    tokenizer = MAKERS[kind]()
    passage = reader_of(tokenizer, longest=5).read(0, "the film was very very good")
    assert len(passage.pieces) == 5
    assert passage.cut == len(tokenizer("the film was very very good")["input_ids"]) - 5
    assert passage.special[-1]


PIECES = {
    "##": ("un", "##watch", "##able", "it", "was"),
    "▁": ("▁un", "watch", "able", "▁it", "▁was"),
    "Ġ": ("Ġun", "watch", "able", "Ġit", "Ġwas"),
    "</w>": ("un", "watch", "able</w>", "it</w>", "was</w>"),
    "@@": ("un@@", "watch@@", "able", "it", "was"),
}
SPLIT = {"unwatchable": slice(0, 3), "it": slice(3, 4), "was": slice(4, 5)}


class Slow(transformers.PreTrainedTokenizer):
    """A tokeniser written in Python, that marks its pieces in one of five ways."""

    def __init__(self, mark: str, **settings: Any) -> None:
        self.mark = mark
        self.vocabulary = {piece: i for i, piece in enumerate(("[UNK]", "[CLS]", "[SEP]", *PIECES[mark]))}
        names = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
        super().__init__(**names, special_tokens_pattern="cls_sep", **settings)

    @property
    def vocab_size(self) -> int:
        return len(self.vocabulary)

    def get_vocab(self) -> dict[str, int]:
        return dict(self.vocabulary)

    def _tokenize(self, text: str, **_: Any) -> list[str]:
        return [piece for word in text.split() for piece in PIECES[self.mark][SPLIT[word]]]

    def _convert_token_to_id(self, token: str) -> int:
        return self.vocabulary[token]

    def _convert_id_to_token(self, index: int) -> str:
        return list(self.vocabulary)[index]

    def convert_tokens_to_string(self, tokens: list[str]) -> str:
        return "".join(tokens).replace(self.mark, "")


@pytest.mark.parametrize("mark", PIECES)
def test_slow_tokenisers_by_their_marks(mark):
    tokenizer = Slow(mark)
    passage = reader_of(tokenizer).read(0, "it was unwatchable it")
    assert passage.words == ("[CLS]", "it", "was", "unwatchable", "it", "[SEP]")
    assert passage.special == (True, False, False, False, False, True)
    assert passage.word == (0, 1, 2, 3, 3, 3, 4, 5)
    assert list(passage.pieces) == tokenizer("it was unwatchable it")["input_ids"]


@pytest.mark.parametrize(
    ("side", "words"), [("right", ("[CLS]", "it", "was", "[SEP]")), ("left", ("[CLS]", "able", "it", "[SEP]"))]
)
def test_slow_tokenisers_cut_at_their_side(side, words):
    passage = reader_of(Slow("▁", truncation_side=side), longest=4).read(0, "it was unwatchable it")
    assert passage.words == words
    assert passage.cut == 4


def test_pieces_without_any_mark_are_words():
    tokenizer = Slow("▁")
    tokenizer.vocabulary = {piece.strip("▁"): i for piece, i in tokenizer.vocabulary.items()}
    assert reader_of(tokenizer).written(0, [3, 4, 5]).words == ("un", "watch", "able")


def marian(folder: Any, **settings: Any) -> Any:
    """The tokeniser that Marian models really have: two sentence-piece models and a vocabulary."""
    text = folder / "text"
    text.write_text("\n".join([*tiny.TEXTS, *(" ".join(pair) for pair in tiny.PAIRS)] * 3))
    for side in ("source", "target"):
        sentencepiece.SentencePieceTrainer.train(
            input=str(text), model_prefix=str(folder / side), vocab_size=50, minloglevel=2, hard_vocab_limit=False
        )
        (folder / f"{side}.model").rename(folder / f"{side}.spm")
    model = sentencepiece.SentencePieceProcessor(str(folder / "source.spm"))
    pieces = [model.id_to_piece(i) for i in range(len(model))]
    vocabulary = dict.fromkeys(["</s>", "<unk>", *pieces, "<pad>"])
    (folder / "vocab.json").write_text(str({piece: i for i, piece in enumerate(vocabulary)}).replace("'", '"'))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Recommended: pip install sacremoses")
        return transformers.MarianTokenizer(
            str(folder / "source.spm"), str(folder / "target.spm"), str(folder / "vocab.json"), **settings
        )


def test_marian(tmp_path):
    tokenizer = marian(tmp_path)
    assert not tokenizer.is_fast
    reader = reader_of(tokenizer)
    passage = reader.read(0, "the plot was not good, it was unsingable! Ω")
    assert passage.words == ("the", "plot", "was", "not", "good,", "it", "was", "unsingable!", "Ω", "</s>")
    assert passage.special == (*[False] * 9, True)
    assert list(passage.pieces) == tokenizer("the plot was not good, it was unsingable! Ω")["input_ids"]
    output = reader.read_output(0, "eine schlechte handlung")
    assert output.words == ("eine", "schlechte", "handlung", "</s>")
    assert output.special == (False, False, False, True)
    assert list(output.pieces) == tokenizer(text_target="eine schlechte handlung")["input_ids"]


@fast
def test_what_a_model_wrote_is_read_by_its_marks(kind):
    tokenizer = MAKERS[kind]()
    passage = reader_of(tokenizer).written(0, tokenizer("the film was unwatchable")["input_ids"])
    own = [word for word, special in zip(passage.words, passage.special, strict=True) if not special]
    assert own == ["the", "film", "was", "unwatchable"]
    assert passage.special[-1]
