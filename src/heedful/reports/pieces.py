"""What stands at a position of a text: a word, a part of one, or a place that is none."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heedful.data.subwords import Subwords, Tokeniser
from heedful.data.tokens import BOS, EOS, PAD, UNK

_SPECIAL = {PAD: "pad", UNK: "unknown", BOS: "start", EOS: "end"}
_WORD_BEGINS = "\N{LOWER ONE EIGHTH BLOCK}"  # SentencePiece's sign for a space


def special(token: int) -> str:
    """How a token that is no word is to be shown; empty for all others.

    >>> special(3), special(4)
    ('end', '')
    """
    return _SPECIAL.get(token, "")


def spelling(tokeniser: Tokeniser, tokens: Sequence[int] | NDArray[np.integer]) -> dict[str, list[Any]]:
    """The text of each token; what it is if it is no word; and whether it goes on with the word before it.

    >>> from heedful.data.subwords import Words
    >>> from heedful.data.tokens import Vocabulary
    >>> spelling(Words(Vocabulary.build([["ein"]], min_count=1)), [2, 4])
    {'words': ['<bos>', 'ein'], 'special': ['start', ''], 'joined': [0, 0]}
    """
    found: dict[str, list[Any]] = {"words": [], "special": [], "joined": []}
    for token in map(int, tokens):
        piece = _piece(tokeniser, token)
        begins = not isinstance(tokeniser, Subwords) or piece.startswith(_WORD_BEGINS)
        found["words"].append(piece.removeprefix(_WORD_BEGINS) or piece if isinstance(tokeniser, Subwords) else piece)
        found["special"].append(special(token))
        found["joined"].append(int(not begins and not special(token)))
    return found


def _piece(tokeniser: Tokeniser, token: int) -> str:
    if isinstance(tokeniser, Subwords):
        return str(tokeniser.processor.id_to_piece(token))
    words: tuple[str, ...] = tokeniser.vocabulary.words  # type: ignore[attr-defined]
    return words[token]
