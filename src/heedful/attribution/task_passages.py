"""What a row of data becomes for each task: the passages that are explained.

A classifier explains one prediction of a row. A tagger explains the label of each word that is not labelled `O`, a
question-answering model its answer, a masked model each mask, and a language model each word that it writes.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import torch
from torch import nn

from heedful.attribution.huggingface import HuggingFaceModel, open_model, without_end
from heedful.attribution.huggingface_text import TokenReader
from heedful.attribution.huggingface_translator import MAX_PIECES, RULES, open_translator, output_passages
from heedful.attribution.interface import Passage, Reader
from heedful.attribution.network import Network, Query
from heedful.attribution.tasks import task_of_model
from heedful.config import ModelTask
from heedful.data.rows import Text, single_text
from heedful.errors import DataError

NEW_TOKENS = 8  # that a language model writes, unless told
LONGEST_ANSWER = 30  # pieces
OUTSIDE = "O"  # the label of words that are nothing in particular
TRUE = ("1", "true", "yes")


@dataclass(frozen=True)
class OpenedTask:
    """A model that is opened for a task. `passages(number, text, label, words)` are those of one row of data."""

    task: ModelTask
    network: Network
    reader: Reader
    passages: Callable[..., list[Passage]]


@contextmanager
def open_task(
    model: str | Path | nn.Module,
    tokenizer: Any = None,
    *,
    task: ModelTask | None = None,
    output: str | None = None,
    max_new_tokens: int | None = None,
    query: Query | None = None,
    device: str | torch.device = "cpu",
    trust_remote_code: bool = False,
) -> Iterator[OpenedTask]:
    """Open a Hugging Face model for a task: that of its architecture, unless one is named.

    output: as for `open_model`. max_new_tokens: how many pieces a language model writes for each prompt.
    """
    task = task or task_of_model(model)
    options: dict[str, Any] = {"device": device, "trust_remote_code": trust_remote_code}
    most = NEW_TOKENS if max_new_tokens is None else max_new_tokens
    if task == "translation":
        with open_translator(model, tokenizer, **options) as (translator, reader):

            def of_pair(number: int, text: Text, label: Any = None, words: Sequence[str] = ()) -> list[Passage]:
                longest = MAX_PIECES if label is not None or max_new_tokens is None else most
                return output_passages(translator, reader, number, single_text(number, text), label, max_pieces=longest)

            yield OpenedTask(task, translator, reader, of_pair)
        return
    with open_model(model, tokenizer, task=task, output=output, query=query, **options) as (network, reader):

        def of_row(number: int, text: Text, label: Any = None, words: Sequence[str] = ()) -> list[Passage]:
            match task:
                case "token-classification":
                    return word_passages(network, reader, number, single_text(number, text), words, label)
                case "question-answering":
                    return [answer_passage(network, reader, number, text, label)]
                case "fill-mask":
                    return mask_passages(network, reader, number, single_text(number, text), label)
                case "text-generation":
                    return continuation_passages(network, reader, number, single_text(number, text), label, most)
                case "regression":
                    return [replace(reader.read(number, text), target=1)]
                case "multi-label":
                    return [reader.read(number, text, _one_of_many(reader.labels, label))]
                case _:
                    return [reader.read(number, text, label)]

        yield OpenedTask(task, network, reader, of_row)


def with_values(network: Network, passages: Sequence[Passage]) -> tuple[Network, list[Passage]]:
    """A regression model that measures values by their mean and spread over these passages; each shows its value."""
    assert isinstance(network, HuggingFaceModel)
    at = network.focus.output
    values = [float(network.outputs(passage).logits[0, at]) for passage in passages]
    focus = replace(network.focus, mean=fmean(values), spread=pstdev(values) or 1.0)
    shown = [replace(passage, output=f"{value:.4g}") for passage, value in zip(passages, values, strict=True)]
    return replace(network, focus=focus), shown


def word_passages(
    network: HuggingFaceModel,
    reader: TokenReader,
    number: int,
    text: str,
    words: Sequence[str] = (),
    labels: Sequence[str] | None = None,
) -> list[Passage]:
    """One passage for each word that the model, or the data, gives another label than `O`; its first piece decides.

    words, labels: the text word by word, and the right label of each.
    """
    source = reader.read(number, text)
    if labels is not None and len(labels) != len(words):
        raise DataError(f"text {number}: {len(words)} words, but {len(labels)} labels")
    predicted = network.outputs(source).logits[0].argmax(-1).tolist()
    right = _by_letters(source, words, labels) if labels is not None else {}
    passages = []
    for word, special in enumerate(source.special):
        first = source.word.index(word)
        names = {reader.labels[predicted[first]], right.get(word, OUTSIDE)}
        if not special and (OUTSIDE not in reader.labels or names != {OUTSIDE}):
            passages.append(replace(_fixed(source, {word}), at=(first,), label=right.get(word)))
    return passages


def answer_passage(
    network: HuggingFaceModel, reader: TokenReader, number: int, text: Text, answer: str | None = None
) -> Passage:
    """The passage of an answer to a question about a context; by default the model's own.

    The words of the answer stay: what is explained is which other words point to it.
    """
    if isinstance(text, str):
        raise DataError(f"text {number} is a single text; question answering needs a question and a context")
    source, encoding, context = reader.read(number, text), reader.encoding(text), text[1]
    spans, side = encoding["offset_mapping"], encoding.sequence_ids()
    inside = [i for i, part in enumerate(side) if part == 1]
    if answer is None:
        start, end = _best_span(network.outputs(source), inside)
    else:
        place = context.find(answer)
        if place < 0:
            raise DataError(f"text {number}: the answer {answer[:40]!r} is not in its context")
        covered = [i for i in inside if spans[i][0] < place + len(answer) and spans[i][1] > place]
        if not covered:
            raise DataError(f"text {number}: the answer {answer[:40]!r} was cut off; the context is too long")
        start, end = covered[0], covered[-1]
    fixed = _fixed(source, {source.word[i] for i in range(start, end + 1)})
    return replace(fixed, at=(start, end), target=1, output=context[spans[start][0] : spans[end][1]])


def mask_passages(
    network: HuggingFaceModel, reader: TokenReader, number: int, text: str, word: str | None = None
) -> list[Passage]:
    """One passage for each mask in a text. word: what to explain in its place; by default the model's own."""
    source, mask = reader.read(number, text), reader.special_piece("mask")
    places = [i for i, piece in enumerate(source.pieces) if piece == mask]
    if not places:
        name = reader.tokenizer.mask_token
        raise DataError(
            f"text {number} has no {name}; this model fills masks, so write {name} where a word is to be predicted"
        )
    target = None if word is None else _single_piece(reader, number, word)
    passages = []
    for place in places:
        best = int(network.outputs(source).logits[0, place].argmax()) if target is None else target
        shown = word or reader.tokenizer.decode([best]).strip() or str(best)
        passages.append(replace(_fixed(source, {source.word[place]}), at=(place,), target=best, output=shown))
    return passages


def continuation_passages(
    network: HuggingFaceModel,
    reader: TokenReader,
    number: int,
    prompt: str,
    continuation: str | None = None,
    max_new_tokens: int = NEW_TOKENS,
) -> list[Passage]:
    """One passage for each word after a prompt: it explains the word's first piece over the words of the prompt.

    continuation: the words to explain; by default the model's own (greedy). The words written so far stay.
    """
    source = without_end(reader, reader.read(number, prompt))
    room = reader.longest - len(source.pieces) + 1  # the last piece is predicted, not read
    if continuation is None:
        pieces = _continued(network, source, min(max_new_tokens, room))
    else:
        apart = "" if prompt[-1:].isspace() or continuation[:1].isspace() else " "
        pieces = reader.tokenizer(apart + continuation, add_special_tokens=False, verbose=False)["input_ids"]
    written = reader.written(number, pieces[:room])
    passages = []
    for word, special in enumerate(written.special):
        first = written.word.index(word)
        if special:
            continue
        so_far = [source.word[-1] + 1 + w for w in written.word[:first]]
        words = written.words[:word]
        passages.append(
            replace(
                source,
                words=source.words + words,
                special=source.special + (True,) * len(words),
                pieces=source.pieces + written.pieces[:first],
                word=source.word + tuple(so_far),
                target=written.pieces[first],
                output=written.words[word],
            )
        )
    return passages


@torch.no_grad()
def _continued(network: HuggingFaceModel, source: Passage, most: int) -> list[int]:
    """The model's own continuation (greedy), within its generation settings."""
    own = network.model.generation_config
    rules = {name: getattr(own, name, None) for name in RULES}
    greedy = type(own)(**rules, max_new_tokens=most, do_sample=False, num_beams=1, use_cache=False)
    pieces = torch.tensor([source.pieces], device=network.model.device)
    written = network.model.generate(pieces, attention_mask=torch.ones_like(pieces), generation_config=greedy)
    found: list[int] = written[0, len(source.pieces) :].tolist()
    return found


def _best_span(returned: Any, inside: Sequence[int]) -> tuple[int, int]:
    """The most probable answer of at most `LONGEST_ANSWER` pieces among these."""
    start, end = returned.start_logits[0].double(), returned.end_logits[0].double()
    pairs = [(i, j) for i in inside for j in inside if i <= j < i + LONGEST_ANSWER]
    return max(pairs, key=lambda pair: float(start[pair[0]] + end[pair[1]]))


def _fixed(passage: Passage, words: set[int]) -> Passage:
    """The passage in which these words stay, too, and are no part of the explanation."""
    return replace(passage, special=tuple(s or w in words for w, s in enumerate(passage.special)))


def _by_letters(passage: Passage, words: Sequence[str], labels: Sequence[str]) -> dict[int, str]:
    """The label of each word of a passage: that of the given word which its first letter belongs to."""
    letters = [(letter, i) for i, word in enumerate(words) for letter in word if not letter.isspace()]
    found, at = {}, 0
    for number, (word, special) in enumerate(zip(passage.words, passage.special, strict=True)):
        own = [letter for letter in word if not letter.isspace()]
        if special or not own:
            continue
        if at + len(own) > len(letters) or letters[at][0] != own[0]:
            raise DataError(f"text {passage.text}: the tokeniser's word {word!r} is not where the given words have it")
        found[number] = labels[letters[at][1]]
        at += len(own)
    return found


def _single_piece(reader: TokenReader, number: int, word: str) -> int:
    for written in (f" {word}", word):
        pieces = reader.tokenizer(written, add_special_tokens=False, verbose=False)["input_ids"]
        if len(pieces) == 1 and pieces[0] != reader.tokenizer.unk_token_id:
            return int(pieces[0])
    raise DataError(f"text {number}: {word[:40]!r} is not one piece of the model's, and a mask stands for one")


def _one_of_many(labels: Sequence[str], given: Sequence[str] | None) -> str | None:
    """Which of no and yes the labels of a row mean; a column of 0 and 1 says it itself."""
    if given is None:
        return None
    if len(given) == 1 and given[0].casefold() in (*TRUE, "0", "false", "no"):
        return labels[given[0].casefold() in TRUE]
    return labels[labels[1] in given]
