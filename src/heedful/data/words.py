"""Tokeniser: a text becomes words (snell2021, A.8)."""

import re
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

UNKNOWN = "<unk>"
LONGEST_CACHED = 40


@dataclass(frozen=True)
class TokenRules:
    """Options of `tokenise`; the last two are the rules for 20 Newsgroups and AG News (snell2021, A.8)."""

    lower: bool = True
    integers_to_unknown: bool = False
    split_underscores: bool = False


PLAIN = TokenRules()


def tokenise(text: str, rules: TokenRules = PLAIN) -> list[str]:
    """The words of a text, punctuation split off, contractions split as the Penn Treebank does.

    Text that is already tokenised comes through as it was. The time is linear in the length of the text.

    >>> tokenise("Don't miss it!<br />A re-imagining of Poe's tale...")
    ['do', "n't", 'miss', 'it', '!', 'a', 're-imagining', 'of', 'poe', "'s", 'tale', '...']
    >>> tokenise("they wo n't sit still -lrb- for it -rrb-")
    ['they', 'wo', "n't", 'sit', 'still', '-lrb-', 'for', 'it', '-rrb-']
    >>> tokenise("Won 4 of 12 at Fenway_Park", TokenRules(integers_to_unknown=True, split_underscores=True))
    ['won', '4', 'of', '<unk>', 'at', 'fenway', 'park']
    """
    tokens = normalise(text, rules).split()
    split = _split_cached if max(map(len, tokens), default=0) < LONGEST_CACHED else split_token
    words = list(chain.from_iterable(map(split, tokens)))
    if rules.integers_to_unknown:
        return [UNKNOWN if len(word) > 1 and _INTEGER.fullmatch(word) else word for word in words]
    return words


def normalise(text: str, rules: TokenRules = PLAIN) -> str:
    """The text, lower-cased and without line breaks of HTML, before it is split at spaces.

    >>> normalise("One<br />TWO")
    'one two'
    """
    if "<" in text:
        text = _BREAK.sub(" ", text)
    if rules.lower:
        text = text.lower()
    return text.replace("_", " ") if rules.split_underscores else text


def split_token(token: str) -> tuple[str, ...]:
    """The words of a token, which has no spaces.

    >>> split_token("don't")
    ('do', "n't")
    """
    if token.isascii() and token.isalpha():
        return (token,)
    if "'" in token or "’" in token:
        token = _CONTRACTION.sub(r" \1", token)
    return tuple(_WORD.findall(token))


# Tokens repeat, so most need to be matched only once.
_split_cached = lru_cache(maxsize=1 << 18)(split_token)

_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)
_INTEGER = re.compile(r"\d+(?:,\d\d\d)*")

# Everything is part of a word that is not a space, a control, punctuation, an emoji or an ideograph: `\w` would cut
# Hindi, Thai and Hebrew at their vowel signs.
_MARKS = (
    "!-/:-@\\[-\\^`{-~\u00a1-\u00a7\u00ab\u00b6\u00b7\u00bb\u00bf\u2010-\u2027\u2030-\u205e"
    "\u3001-\u3003\u3008-\u3020\uff01-\uff0f\uff1a-\uff20"
)
_EMOJI = "\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_IN_WORD = rf"[^\s\x00-\x1f\x7f-\x9f{_MARKS}{_EMOJI}{_IDEOGRAPH}]"
_ENDINGS = r"n['’]t|['’](?:s|re|ve|ll|d|m)"

_CONTRACTION = re.compile(rf"(?<={_IN_WORD})({_ENDINGS})(?!{_IN_WORD})", re.IGNORECASE)
_WORD = re.compile(
    "|".join(
        (
            rf"(?:{_ENDINGS}|['’](?:em|til|cause|tis|twas|n|\d\ds?))(?!{_IN_WORD})",
            r"-[lr][rsc]b-",
            r"\d+(?:(?:[.,:]|\\?/)\d+)+",
            rf"(?:[^\W\d_]\.){{2,}}(?!{_IN_WORD})",
            rf"(?:mr|mrs|ms|dr|jr|sr|st|vs)\.(?!{_IN_WORD})",
            rf"{_IN_WORD}+(?:(?:['’]|-|\\?/|&){_IN_WORD}+)*",
            r"\.+|-+|!+|\?+|'+|`+|\*+|=+|~+|#+|\++|\^+|<+|>+|/+|\\+|\|+",
            r"[\U0001f1e6-\U0001f1ff]{2}",
            rf"[{_EMOJI}][\ufe0f\U0001f3fb-\U0001f3ff]*(?:\u200d[{_EMOJI}][\ufe0f\U0001f3fb-\U0001f3ff]*)*",
            rf"[{_MARKS}{_EMOJI}{_IDEOGRAPH}]",
        )
    ),
    re.IGNORECASE,
)
