"""Texts become passages by a Hugging Face tokeniser: pieces belong to words, special ones are marked, cuts counted.

A fast tokeniser knows where in the text its pieces stand, and words are shown as they stand there. Of a slow one, and
of what a model has written, only the pieces are known; their marks (## ▁ Ġ </w> @@) say where words begin.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from heedful.audits.passage import Passage
from heedful.errors import DataError

MARKS = ("##", "▁", "Ġ", "</w>", "@@")


@dataclass(frozen=True)
class TokenReader:
    """A `Reader` of a Hugging Face tokeniser. longest: of how many pieces the model can make sense at once.

    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> from transformers import PreTrainedTokenizerFast
    >>> made = Tokenizer(models.WordPiece({"[UNK]": 0, "un": 1, "##do": 2, "it": 3}, unk_token="[UNK]"))
    >>> made.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> reader = TokenReader(PreTrainedTokenizerFast(tokenizer_object=made), ("no", "yes"), longest=4)
    >>> passage = reader.read(0, "undo it now and then")
    >>> passage.words, passage.word, passage.cut
    (('undo', 'it', 'now'), (0, 0, 1, 2), 2)
    """

    tokenizer: Any
    labels: tuple[str, ...]
    longest: int

    def read(self, number: int, text: str, label: str | None = None) -> Passage:
        """A text of the data, its words and pieces; long ones are cut, and the passage says by how much."""
        _refuse_blank(number, text)
        made = self._from_text(number, text) if self.tokenizer.is_fast else self._from_marks(number, text)
        if all(made.special):
            raise DataError(f"text {number}: the tokeniser finds no piece in {_short(text)!r}")
        return Passage(number, made.words, made.special, made.pieces, made.word, label=label, cut=made.cut)

    def read_output(self, number: int, text: str) -> Passage:
        """A translation as the tokeniser of the output side reads it; never cut."""
        _refuse_blank(number, text)
        if self.tokenizer.is_fast:
            return self._from_text(number, text, output=True)
        return self.written(number, self.tokenizer(text_target=text, verbose=False)["input_ids"])

    def written(self, number: int, pieces: Sequence[int]) -> Passage:
        """The pieces that a model wrote, as words."""
        special = set(self.tokenizer.all_special_ids) - {self.tokenizer.unk_token_id}
        names = self.tokenizer.convert_ids_to_tokens(list(pieces))
        return self._by_marks(number, names, list(pieces), [piece in special for piece in pieces])

    def encoded(self, text: str) -> Any:
        """What the tokeniser itself would hand to the model: tensors for one text."""
        return self.tokenizer(text, return_tensors="pt", truncation=True, max_length=self.longest)

    def _from_text(self, number: int, text: str, *, output: bool = False) -> Passage:
        side = {"text_target" if output else "text": text}
        want = {"return_offsets_mapping": True, "return_special_tokens_mask": True, "verbose": False}
        found = whole = self.tokenizer(**side, **want)
        if len(whole["input_ids"]) > self.longest and not output:
            found = self.tokenizer(**side, **want, truncation=True, max_length=self.longest)
        special = [bool(mark) for mark in found["special_tokens_mask"]]
        spans, names, unit = found["offset_mapping"], found.tokens(), found.word_ids()
        inked = [bool(text[start:end].strip()) for start, end in spans]

        def begins(i: int) -> bool:
            (_, end), (start, _) = spans[i - 1 : i + 1]
            return unit[i] != unit[i - 1] or any(map(str.isspace, text[end : start + 1]))

        def shown(part: Sequence[int]) -> str:
            seen = [spans[i] for i in part if inked[i]]
            return text[min(seen)[0] : max(end for _, end in seen)].strip() if seen else "".join(names[i] for i in part)

        word = _grouped(special, begins, inked)
        words = tuple(map(shown, _members(word)))
        cut = len(whole["input_ids"]) - len(found["input_ids"])
        return _passage(number, words, special, found["input_ids"], word, cut)

    def _from_marks(self, number: int, text: str) -> Passage:
        names = self.tokenizer.tokenize(text)
        cut = min(len(names), max(0, len(names) + self.tokenizer.num_special_tokens_to_add() - self.longest))
        kept = names[cut:] if self.tokenizer.truncation_side == "left" else names[: len(names) - cut]
        pieces = self.tokenizer.convert_tokens_to_ids(kept)
        whole = list(self.tokenizer.build_inputs_with_special_tokens(pieces))
        before = next(i for i in range(len(whole) + 1) if whole[i : i + len(pieces)] == pieces)
        after = len(whole) - before - len(pieces)
        added = self.tokenizer.convert_ids_to_tokens(whole[:before] + whole[len(whole) - after :])
        special = [True] * before + [False] * len(pieces) + [True] * after
        made = self._by_marks(number, [*added[:before], *kept, *added[before:]], whole, special)
        return _passage(number, made.words, special, whole, made.word, cut)

    def _by_marks(self, number: int, names: Sequence[str], pieces: Sequence[int], special: Sequence[bool]) -> Passage:
        def shown(part: Sequence[int]) -> str:
            said = [names[i] for i in part]
            written: str = "" if special[part[0]] else self.tokenizer.convert_tokens_to_string(said)
            return written.replace("▁", " ").strip() or "".join(said)

        inked = [name != self._mark for name in names]
        word = _grouped(special, lambda i: self._begins(names[i - 1], names[i]), inked)
        return _passage(number, tuple(map(shown, _members(word))), special, pieces, word, 0)

    def _begins(self, previous: str, piece: str) -> bool:
        match self._mark:
            case "##":
                return not piece.startswith("##")
            case "</w>":
                return previous.endswith("</w>")
            case "@@":
                return not previous.endswith("@@")
            case None:
                return True
            case mark:
                return piece.startswith(mark)

    @cached_property
    def _mark(self) -> str | None:
        """The mark that most pieces of the vocabulary bear; None if none does."""
        pieces = list(self.tokenizer.get_vocab())
        count = {mark: sum(piece.startswith(mark) or piece.endswith(mark) for piece in pieces) for mark in MARKS}
        most = max(MARKS, key=lambda mark: count[mark])
        return most if count[most] else None


def _grouped(special: Sequence[bool], begins: Callable[[int], bool], inked: Sequence[bool]) -> list[int]:
    """Of which word each piece is a part; a special one is alone.

    A piece without ink (a space) is part of the word after it, and where no word comes after it, of the one before it.
    """
    word: list[int] = []
    rest = _ink_to_come(special, inked)
    ink = False
    for i, alone in enumerate(special):
        if i == 0 or alone or special[i - 1] or (begins(i) and ink and rest[i]):
            word.append(word[-1] + 1 if word else 0)
            ink = inked[i]
        else:
            word.append(word[-1])
            ink = ink or inked[i]
    return word


def _ink_to_come(special: Sequence[bool], inked: Sequence[bool]) -> list[bool]:
    """Whether there is ink at or after each piece, before the next special one."""
    rest: list[bool] = []
    for alone, ink in zip(reversed(special), reversed(inked), strict=True):
        rest.append(not alone and (ink or bool(rest and rest[-1])))
    return rest[::-1]


def _members(word: Sequence[int]) -> list[list[int]]:
    members: list[list[int]] = [[] for _ in set(word)]
    for i, w in enumerate(word):
        members[w].append(i)
    return members


def _passage(
    number: int, words: tuple[str, ...], special: Sequence[bool], pieces: Sequence[int], word: Sequence[int], cut: int
) -> Passage:
    marked = tuple(special[part[0]] for part in _members(word))
    return Passage(number, words, marked, tuple(pieces), tuple(word), cut=cut)


def _refuse_blank(number: int, text: str) -> None:
    if not text.strip():
        raise DataError(f"text {number} is empty; leave it out, or say what should be read in its place")


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
