"""Loading Hugging Face models and tokenisers, and reading texts into passages with a tokeniser."""

import copy
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heedful.attribution.interface import Passage
from heedful.attribution.model_files import (
    CONFIG,
    INDEX,
    PICKLE,
    Tensors,
    check_built,
    check_config,
    check_files,
    check_folder,
    check_index,
    check_tokenizer,
    in_words,
    is_failure,
    time_limit,
)
from heedful.attribution.tasks import TASKS, PredictionTask, reads_no_text, refusal
from heedful.attribution.wrappers import is_adapter, unwrapped, with_adapter
from heedful.config import ModelTask
from heedful.data.rows import Text
from heedful.errors import ConfigError, DataError, HeedfulError, MissingExtraError
from heedful.storage.atomic_files import valid_path

EMPTY_VOCABULARY = 2  # pieces, besides the special ones, of a tokeniser whose files are missing
NOT_TRUSTED = (
    "it comes with its own code, which would run on this machine; read the code, and if you trust it pass "
    "--trust-remote-code (trust_remote_code=True in Python)"
)
NO_LIMIT = 2**31 - 1


def load(
    task: ModelTask,
    model: str | Path | nn.Module,
    tokenizer: Any,
    device: str | torch.device,
    *,
    trust_remote_code: bool = False,
) -> tuple[Any, Any]:
    """The model, and a copy of its tokeniser.

    A model object stays unchanged on its device. A loaded model goes to `device`, in single precision if it was saved
    in half precision. tokenizer: required with a model object; with a folder or Hub id, the place of another one. Code
    that comes with a model is run only if trusted. The files are checked before they are loaded (`model_files`).

    >>> load("classification", "no/such/folder", None, "cpu")
    Traceback (most recent call last):
    heedful.errors.DataError: no/such/folder: there is no such folder
    """
    transformers = _transformers()
    if not isinstance(model, str | Path):
        model, tokenizer = unwrapped(model, tokenizer)
        if not isinstance(model, transformers.PreTrainedModel):
            raise ConfigError(f"{type(model).__name__} is not a Hugging Face model (transformers.PreTrainedModel)")
        if tokenizer is None:
            raise ConfigError(f"{type(model).__name__} needs its tokeniser; pass it with the model")
        name = type(model).__name__
        if why := reads_no_text(name, (name,)) or refusal(name, (name,), task):
            raise DataError(why)
        return model, _tokenizer(transformers, tokenizer, trust_remote_code)
    if is_adapter(model):
        return _load_adapter(transformers, task, Path(model), tokenizer, device, trust_remote_code)
    place = _place(model)
    tensors = None
    if Path(place).is_dir():
        check_files(Path(place))
        if why := reads_no_text(place, check_config(Path(place) / CONFIG).get("architectures") or ()):
            raise DataError(why)
        tensors = check_folder(Path(place))
    else:
        _check_hub(transformers, place)
    with time_limit(place, 0 if tensors is None else tensors.bytes):
        with torch.random.fork_rng(devices=[]), _quietly(transformers):
            loaded, _ = _model(transformers, TASKS[task], place, trust_remote_code, tensors)
        opened = _tokenizer(transformers, place if tokenizer is None else tokenizer, trust_remote_code)
    with in_words(place, f"moving the model to the device {str(device)!r}"):
        return loaded.to(device), opened


def _load_adapter(
    transformers: Any, task: ModelTask, folder: Path, tokenizer: Any, device: str | torch.device, trust: bool
) -> tuple[Any, Any]:
    check_files(folder)
    bases: list[str] = []

    def load_base(base: str, labels: int | None) -> tuple[Any, list[str]]:
        place = _place(base)
        bases.append(place)
        tensors = check_folder(Path(place)) if Path(place).is_dir() else None
        if tensors is None:
            _check_hub(transformers, place)
        limit = time_limit(place, 0 if tensors is None else tensors.bytes)
        with limit, torch.random.fork_rng(devices=[]), _quietly(transformers):
            return _model(transformers, TASKS[task], place, trust, tensors, labels=labels, adapted=True)

    loaded = with_adapter(folder, load_base)
    has_own = (folder / "tokenizer_config.json").is_file() or (folder / "tokenizer.json").is_file()
    opened = _tokenizer(transformers, tokenizer or (str(folder) if has_own else bases[0]), trust)
    with in_words(str(folder), f"moving the model to the device {str(device)!r}"):
        return loaded.to(device), opened


def longest_input(model: Any, tokenizer: Any) -> int:
    """The longest input of model and tokeniser, in pieces; positions up to the padding's are not for text (RoBERTa)."""
    limits = [NO_LIMIT, tokenizer.model_max_length, getattr(model.config, "max_position_embeddings", None)]
    for name, part in model.named_modules():
        if "position" in name and isinstance(part, nn.Embedding) and part.padding_idx is not None:
            limits.append(part.num_embeddings - part.padding_idx - 1)
    return min(int(limit) for limit in limits if limit is not None and limit > 0)


def table_rows(model: Any) -> int:
    """How many pieces a model has embeddings for."""
    table = model.get_input_embeddings()
    return table.num_embeddings if isinstance(table, nn.Embedding) else NO_LIMIT


def _transformers() -> Any:
    try:
        import transformers
    except ImportError as missing:
        raise MissingExtraError("transformers", "hf", "opening a Hugging Face model") from missing
    return transformers


@contextmanager
def _quietly(transformers: Any) -> Iterator[None]:
    """Hide the progress bars and reports of transformers while a model is loaded; what matters becomes an error."""
    logging = transformers.utils.logging
    shown, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity(logging.CRITICAL)
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if shown:
            logging.enable_progress_bar()


def _place(model: str | Path) -> str:
    """The folder of a model, or a Hub id (a name, or two names separated by a slash)."""
    folder = Path(os.path.expanduser(model))
    if valid_path(folder, DataError).is_dir():
        if not (folder / "config.json").is_file():
            raise DataError(f"{model}: the folder has no config.json; one is written by model.save_pretrained(folder)")
        return str(folder)
    if folder.is_file():
        raise DataError(f"{model} is a file; a model is a folder with a config.json, or a Hub id")
    name = str(model)
    if isinstance(model, Path) or name.startswith((".", "/", "~")) or name.count("/") > 1 or "\\" in name:
        raise DataError(f"{model}: there is no such folder")
    return name


def _check_hub(transformers: Any, name: str) -> None:
    """Check the config and the index of a model of the Hub; its weights are fetched only afterwards."""
    for file, check in ((CONFIG, check_config), (INDEX, check_index)):
        try:
            path = transformers.utils.cached_file(name, file, _raise_exceptions_for_missing_entries=False)
        except (OSError, ValueError) as error:
            raise _load_error(name, error) from error
        if path is not None:
            check(Path(path))


def _model(
    transformers: Any,
    task: PredictionTask,
    place: str,
    trust: bool,
    tensors: Tensors | None,
    *,
    labels: int | None = None,
    adapted: bool = False,
) -> tuple[Any, list[str]]:
    """The model, and the parameters that its files lack: none unless an adapter brings them."""
    try:
        config = transformers.AutoConfig.from_pretrained(
            place, trust_remote_code=trust, **({} if labels is None else {"num_labels": labels})
        )
    except Exception as error:  # whatever a config can break
        raise error if isinstance(error, HeedfulError) else _load_error(place, error) from error
    architectures = config.architectures or ()
    if why := reads_no_text(place, architectures):
        raise DataError(why)
    has_code = task.opens in (getattr(config, "auto_map", None) or {})
    if type(config) not in getattr(transformers, task.known) and not (trust and has_code):
        if has_code:
            raise DataError(f"{place}: {NOT_TRUSTED}")
        raise DataError(f"{place}: the architecture {config.model_type!r} has no {task.head}, and {task.data} need one")
    if not adapted and (why := refusal(place, architectures, task.name)):
        raise DataError(why)
    opens = getattr(transformers, task.opens)
    if tensors is not None and not (trust and has_code):
        with in_words(place, "building the model from its config"), torch.device("meta"):
            sketch = opens.from_config(copy.deepcopy(config), attn_implementation="eager")
        held = [*sketch.parameters(), *sketch.buffers()]
        check_built(place, sum(tensor.numel() * tensor.element_size() for tensor in held), tensors)
    try:
        model, info = opens.from_pretrained(
            place,
            config=config,
            attn_implementation="eager",
            output_loading_info=True,
            trust_remote_code=trust,
            use_safetensors=True,  # the other format is a pickle
        )
    except Exception as error:  # damaged files raise errors of many kinds
        raise error if isinstance(error, HeedfulError) else _load_error(place, error) from error
    missing = sorted(set(info["missing_keys"]) & {name for name, _ in model.named_parameters()})
    if missing and not adapted:
        raise DataError(
            f"{place}: some parameters are missing and so were never trained ({', '.join(missing[:3])}); "
            f"train its {task.head} first"
        )
    half = model.dtype in (torch.float16, torch.bfloat16) and getattr(model, "hf_quantizer", None) is None
    return (model.float() if half else model), missing


def _load_error(place: str, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:300] or type(error).__name__
    if "ignore_mismatched_sizes" in reason:
        reason = "its weights have other shapes than its config says"
    if "trust_remote_code" in str(error):
        return DataError(f"{place}: {NOT_TRUSTED}")
    if "safetensors" in str(error) and not Path(place).is_dir():
        return DataError(f"{place}: there is no model.safetensors, and {PICKLE}")
    if Path(place).is_dir():
        return DataError(f"{place}: the folder cannot be loaded as a model: {reason}")
    return DataError(
        f"{place} is not a folder, and as a Hub id it could not be fetched ({reason}); "
        "check the name and the network, or give a folder written by model.save_pretrained(folder)"
    )


def _tokenizer(transformers: Any, given: Any, trust: bool) -> Any:
    """A tokeniser object is copied, since using it changes its settings."""
    if not isinstance(given, str | Path):
        return copy.deepcopy(given)
    advice = "save one there with tokenizer.save_pretrained(folder), or pass one"
    if Path(given).is_dir():
        check_tokenizer(Path(given))
    try:
        opened = transformers.AutoTokenizer.from_pretrained(given, trust_remote_code=trust)
    except BaseException as error:  # missing files raise errors of many kinds
        if not is_failure(error) or isinstance(error, HeedfulError):
            raise
        if "trust_remote_code" in str(error):
            raise DataError(f"{given}: {NOT_TRUSTED}") from error
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(f"{given}: no tokeniser could be loaded ({reason}); {advice}") from error
    if len(opened) - len(opened.all_special_ids) <= EMPTY_VOCABULARY:
        raise DataError(f"{given}: there is no tokeniser, or one without a vocabulary; {advice}")
    return opened


def sides(text: Text) -> tuple[str, ...]:
    """One text, or the two of a pair.

    >>> sides("so good"), sides(("a cat", "a dog"))
    (('so good',), ('a cat', 'a dog'))
    """
    return (text,) if isinstance(text, str) else tuple(text)


MARKS = ("##", "▁", "Ġ", "</w>", "@@")


@dataclass(frozen=True)
class TokenReader:
    """A `Reader` by a Hugging Face tokeniser. longest: how many pieces the model accepts.

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
    rows: int = NO_LIMIT  # of the model's table of pieces

    def read(self, number: int, text: Text, label: str | None = None) -> Passage:
        """The passage of a text or of a pair; long texts are cut, and `Passage.cut` counts the lost pieces."""
        for part in sides(text):
            _refuse_blank(number, part)
        if self.tokenizer.is_fast:
            made = self._from_text(number, text)
        elif isinstance(text, str):
            made = self._from_marks(number, text)
        else:
            raise DataError(
                f"text {number} is a pair, which needs a fast tokeniser; {type(self.tokenizer).__name__} is not"
            )
        self._check_pieces(number, made.pieces)
        if all(made.special):
            raise DataError(f"text {number}: the tokeniser makes no piece of {_short(str(text))!r}")
        return replace(made, label=label)

    def _check_pieces(self, number: int, pieces: Sequence[int]) -> None:
        beyond = next((piece for piece in pieces if not 0 <= piece < self.rows), None)
        if beyond is not None:
            name = self.tokenizer.convert_ids_to_tokens(beyond)
            raise DataError(
                f"text {number}: the tokeniser makes piece {beyond} of {_short(str(name))!r}, but the model knows "
                f"{self.rows:,} pieces; they do not belong together"
            )

    def read_output(self, number: int, text: str) -> Passage:
        """A translation, read by the tokeniser of the output side; never cut."""
        _refuse_blank(number, text)
        if self.tokenizer.is_fast:
            made = self._from_text(number, text, output=True)
        else:
            made = self.written(number, self.tokenizer(text_target=text, verbose=False)["input_ids"])
        self._check_pieces(number, made.pieces)
        return made

    def written(self, number: int, pieces: Sequence[int]) -> Passage:
        """The words of pieces that a model generated."""
        special = set(self.tokenizer.all_special_ids) - {self.tokenizer.unk_token_id}
        names = self.tokenizer.convert_ids_to_tokens(list(pieces))
        return self._by_marks(number, names, list(pieces), [piece in special for piece in pieces])

    def special_piece(self, name: str) -> int | None:
        """The tokeniser's `pad` or `mask` piece; None if it has none."""
        piece: int | None = getattr(self.tokenizer, f"{name}_token_id", None)
        return piece

    def encoded(self, text: Text) -> Any:
        """The tokeniser's own input tensors for one text or pair."""
        return self.tokenizer(*sides(text), return_tensors="pt", truncation=True, max_length=self.longest)

    def encoding(self, text: Text) -> Any:
        """The pieces of a text or pair as the tokeniser describes them, cut to what the model accepts."""
        options = {"return_offsets_mapping": True, "return_special_tokens_mask": True, "verbose": False}
        full = self.tokenizer(*sides(text), **options)
        if len(full["input_ids"]) <= self.longest:
            return full
        return self.tokenizer(*sides(text), **options, truncation=True, max_length=self.longest)

    def _from_text(self, number: int, text: Text, *, output: bool = False) -> Passage:
        if output:
            options = {"return_offsets_mapping": True, "return_special_tokens_mask": True, "verbose": False}
            used = self.tokenizer(text_target=text, **options)
            length = len(used["input_ids"])
        else:
            used = self.encoding(text)
            length = len(self.tokenizer(*sides(text), verbose=False)["input_ids"])
        special = [bool(mark) for mark in used["special_tokens_mask"]]
        spans, names, unit, side = used["offset_mapping"], used.tokens(), used.word_ids(), used.sequence_ids()
        of = [sides(text)[part or 0] for part in side]  # the text that each piece is of
        visible = [bool(of[i][start:end].strip()) for i, (start, end) in enumerate(spans)]

        def begins(i: int) -> bool:
            (_, end), (start, _) = spans[i - 1 : i + 1]
            apart = unit[i] != unit[i - 1] or side[i] != side[i - 1]
            return apart or any(map(str.isspace, of[i][end : start + 1]))

        def shown(part: Sequence[int]) -> str:
            own, whole = [spans[i] for i in part if visible[i]], of[part[0]]
            return whole[min(own)[0] : max(end for _, end in own)].strip() if own else "".join(names[i] for i in part)

        cut = length - len(used["input_ids"])
        made = _passage(number, shown, special, used["input_ids"], _grouped(special, begins, visible), cut)
        is_pair = not isinstance(text, str) and "token_type_ids" in used
        return replace(made, segments=tuple(used["token_type_ids"])) if is_pair else made

    def _from_marks(self, number: int, text: str) -> Passage:
        names = self.tokenizer.tokenize(text)
        cut = min(len(names), max(0, len(names) + self.tokenizer.num_special_tokens_to_add() - self.longest))
        kept = names[cut:] if self.tokenizer.truncation_side == "left" else names[: len(names) - cut]
        pieces = self.tokenizer.convert_tokens_to_ids(kept)
        every = list(self.tokenizer.build_inputs_with_special_tokens(pieces))
        before = next(i for i in range(len(every) + 1) if every[i : i + len(pieces)] == pieces)
        after = len(every) - before - len(pieces)
        added = self.tokenizer.convert_ids_to_tokens(every[:before] + every[len(every) - after :])
        special = [True] * before + [False] * len(pieces) + [True] * after
        return self._by_marks(number, [*added[:before], *kept, *added[before:]], every, special, cut)

    def _by_marks(
        self, number: int, names: Sequence[str], pieces: Sequence[int], special: Sequence[bool], cut: int = 0
    ) -> Passage:
        def shown(part: Sequence[int]) -> str:
            tokens = [names[i] for i in part]
            written: str = "" if special[part[0]] else self.tokenizer.convert_tokens_to_string(tokens)
            return written.replace("▁", " ").strip() or "".join(tokens)

        visible = [name != self._mark for name in names]
        word = _grouped(special, lambda i: self._begins(names[i - 1], names[i]), visible)
        return _passage(number, shown, special, pieces, word, cut)

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
        """The most frequent mark of pieces in the vocabulary; None if there is none."""
        pieces = list(self.tokenizer.get_vocab())
        count = {mark: sum(piece.startswith(mark) or piece.endswith(mark) for piece in pieces) for mark in MARKS}
        most = max(MARKS, key=lambda mark: count[mark])
        return most if count[most] else None


def _grouped(special: Sequence[bool], begins: Callable[[int], bool], visible: Sequence[bool]) -> list[int]:
    """The word that each piece belongs to; a special piece is a word of its own.

    An invisible piece (a space) belongs to the word after it, or to the one before it if no word follows.
    """
    word: list[int] = []
    rest = _visible_ahead(special, visible)
    seen = False
    for i, alone in enumerate(special):
        if i == 0 or alone or special[i - 1] or (begins(i) and seen and rest[i]):
            word.append(word[-1] + 1 if word else 0)
            seen = visible[i]
        else:
            word.append(word[-1])
            seen = seen or visible[i]
    return word


def _visible_ahead(special: Sequence[bool], visible: Sequence[bool]) -> list[bool]:
    """Whether there is a visible piece at or after each piece, before the next special one."""
    rest: list[bool] = []
    for alone, seen in zip(reversed(special), reversed(visible), strict=True):
        rest.append(not alone and (seen or bool(rest and rest[-1])))
    return rest[::-1]


def _passage(
    number: int,
    shown: Callable[[Sequence[int]], str],
    special: Sequence[bool],
    pieces: Sequence[int],
    word: Sequence[int],
    cut: int,
) -> Passage:
    """shown: a word as a reader sees it, from the numbers of its pieces."""
    members: list[list[int]] = [[] for _ in set(word)]
    for i, w in enumerate(word):
        members[w].append(i)
    marked = tuple(special[part[0]] for part in members)
    return Passage(number, tuple(map(shown, members)), marked, tuple(pieces), tuple(word), cut=cut)


def _refuse_blank(number: int, text: str) -> None:
    if not text.strip():
        raise DataError(f"text {number} is empty; leave it out, or give a placeholder")


def _short(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:40]}…"
