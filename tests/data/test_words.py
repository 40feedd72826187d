import random
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.data.words import TokenRules, tokenise


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I can't, won't; don't!", ["i", "ca", "n't", ",", "wo", "n't", ";", "do", "n't", "!"]),
        ("It’s Poe's, they're 'odd'", ["it", "’s", "poe", "'s", ",", "they", "'re", "'", "odd", "'"]),
        ("Good.<br /><br />The end...", ["good", ".", "the", "end", "..."]),
        ("a re-imagining -- of (the) U.S.", ["a", "re-imagining", "--", "of", "(", "the", ")", "u.s."]),
        ("$1,000.50 on 9/11 at 10:30", ["$", "1,000.50", "on", "9/11", "at", "10:30"]),
        ("good.The rest", ["good", ".", "the", "rest"]),
        ("great👍👍 👨‍👩‍👧 🇩🇪", ["great", "👍", "👍", "👨‍👩‍👧", "🇩🇪"]),
        ("שָׁלוֹם, עולם!", ["שָׁלוֹם", ",", "עולם", "!"]),
        ("हिन्दी naïve", ["हिन्दी", "naïve"]),
        ("好电影。", ["好", "电", "影", "。"]),
        ("a\0b\u2028c", ["a", "b", "c"]),
        ("", []),
    ],
)
def test_known_words(text, words):
    assert tokenise(text) == words


def test_rules_of_the_paper():
    both = TokenRules(integers_to_unknown=True, split_underscores=True)
    assert tokenise("7 of 12 in 1,993 at 3.5 x_y 2nd", both) == [
        *("7", "of", "<unk>", "in", "<unk>", "at", "3.5", "x", "y", "2nd"),
    ]
    assert tokenise("12 x_y") == ["12", "x_y"]
    assert tokenise("Oscar's", TokenRules(lower=False)) == ["Oscar", "'s"]


def test_treebank_text_comes_through_unchanged(mirror):
    lines = (mirror / "sst" / "stsa.binary.train").read_text("utf-8").splitlines()
    sentences = [line.split(" ", 1)[1] for line in lines]
    same = sum(tokenise(sentence) == sentence.split() for sentence in sentences)
    assert same / len(sentences) > 0.99


@given(st.text())
def test_words_keep_every_visible_character(text):
    words = tokenise(text, TokenRules(lower=False))
    kept = "".join(text.replace("<br />", "").replace("<br>", "").replace("<br/>", "").split())
    if (
        not any(ord(character) < 0xA0 and not character.isprintable() for character in kept)
        and "<br" not in text.lower()
    ):
        assert "".join(words) == kept
    assert all(words)
    assert not any(character.isspace() for word in words for character in word)


@given(st.text())
def test_words_are_stable(text):
    words = tokenise(text)
    assert tokenise(" ".join(words)) == words


@pytest.mark.parametrize(
    "unit", ["a", "'", "-", "a-", "a.", "a'", "1,", "n't", "\u200d", "<br", "👍\u200d", "_", "&", "a\\/"]
)
def test_time_is_linear(unit):
    def seconds(size):
        text = unit * (size // len(unit))
        start = time.perf_counter()
        tokenise(text)
        return time.perf_counter() - start

    small = min(seconds(20_000) for _ in range(3))
    assert seconds(200_000) < 60 * small + 0.05


def test_the_memory_of_words_changes_nothing():
    draw = random.Random(0)
    chunks = ["".join(draw.choices(string.ascii_letters + string.punctuation, k=9)) for _ in range(500)]
    alone = [word for chunk in chunks for word in tokenise(chunk)]
    assert tokenise(" ".join(chunks)) == alone
    long = "x" * 100
    assert tokenise(" ".join([*chunks, long])) == [*alone, long]
