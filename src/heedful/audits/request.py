"""Audit requests: open the model and the data that a user names, and read the data into passages.

Models: a Hugging Face model, folder or Hub id; one of our own runs; a `Subject` made in Python. Data: anything that
`open_data` opens; an ERASER folder with its marked words; for a run, its own validation texts.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from heedful.attribution.interface import Passage, Subject
from heedful.attribution.modules import OpenNetwork, WordReader, classifier_network, translator_network
from heedful.attribution.network import Query
from heedful.audits.human_labels import Rationales, marked_words
from heedful.config import MODEL_TASKS, ModelTask
from heedful.data.catalog import CATALOG, data_directory, is_named
from heedful.data.corpora.eraser import MOVIES, is_eraser, read_marked
from heedful.data.corpus import PLAIN, Corpus, TokenRules
from heedful.data.loading import existing_file, open_data, task_of
from heedful.data.parallel import Alignment, ParallelCorpus
from heedful.data.rows import Rows, Text, read_rows, single_text
from heedful.data.subwords import EncodedPairs, Tokeniser
from heedful.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, tokenise
from heedful.errors import ConfigError, DataError, RunError
from heedful.models.transformer import build_translator
from heedful.storage.atomic_files import valid_path
from heedful.studies.run_directory import ModelSpec, RunDirectory
from heedful.studies.token_table import load_model, load_weights

SplitName = Literal["train", "validation", "test"]
Data = Corpus | ParallelCorpus | Path | Rows
Names = Mapping[str, str]
Pick = Callable[[Sequence[Any]], list[Any]]
TRUTH = {"false": "0", "true": "1"}
_NUMBERED = re.compile(r"LABEL_\d+")


@dataclass(frozen=True)
class AuditRequest:
    """The arguments of `run_audit`; rationales and links are None if the data have none."""

    subject: Subject
    passages: Sequence[Passage]
    rationales: Rationales | None = None
    links: Mapping[int, Alignment] | None = None


@dataclass(frozen=True)
class AuditTexts:
    """Texts by number, the name of each text's label if known, and for some texts the words that people marked."""

    texts: tuple[Text, ...]
    labels: tuple[Any, ...]
    names: tuple[str, ...] = ()
    marks: Mapping[int, Any] = field(default_factory=dict)
    words: tuple[tuple[str, ...], ...] = ()


@contextmanager
def open_request(
    model: Any,
    data: Any = None,
    *,
    tokenizer: Any = None,
    split: SplitName | None = None,
    labels: Names | None = None,
    output: str | None = None,
    max_new_tokens: int | None = None,
    query: Query | None = None,
    sample: int | None = None,
    seed: int = 0,
    device: str = "cpu",
    trust_remote_code: bool = False,
    **columns: Any,
) -> Iterator[AuditRequest]:
    """Open the model, read the data with its tokeniser, and close the model afterwards.

    split: which texts; by default the test set, or all of a file without splits. Such a file is split as a study would
    split it if a split is named, or if the model is of a study of that file. labels: the model's name for each label of
    the data, where they differ. output: of several labels or values that a model predicts together, the one to explain.
    max_new_tokens: how many pieces a language model writes for each prompt. sample: how many texts to read.
    trust_remote_code: run code that comes with a model. columns: `text`, `label`, `target` … as for `open_data`, `text`
    also two columns for pairs of texts; `task`, one of `config.MODEL_TASKS`, by default that of the model's
    architecture.
    """
    pick = _sampler(sample, seed)
    own_file = _is_run(model) and isinstance(data, str | Path) and RunDirectory(model).config().data == str(data)
    own_task = None if _is_run(model) or isinstance(model, Subject) else _task(model, columns.pop("task", None))
    corpus = None if data is None else _opened(data, columns, split, own_task, own_file=own_file)
    if _is_run(model):
        yield _of_run(model, corpus, split, labels, pick)
    elif corpus is None:
        raise ConfigError("an audit needs data: the name of a corpus, a file of your own, or an ERASER folder")
    elif isinstance(model, Subject):
        yield _classified(model, _texts(corpus, split), labels, pick)
    else:
        from heedful.attribution.task_passages import open_task

        with open_task(
            model,
            tokenizer,
            task=own_task,
            output=output,
            max_new_tokens=max_new_tokens,
            query=query,
            device=device,
            trust_remote_code=trust_remote_code,
        ) as opened:
            yield _of_task(opened, corpus, split, labels, pick)


def read_texts(
    data: Any, task: ModelTask, split: SplitName | None = None, **columns: Any
) -> tuple[tuple[Text, ...], list[Any] | None]:
    """Texts for a task, and their labels or outputs; None where not all texts have one. Options as `open_request`.

    >>> read_texts((["so good", "so dull"], ["yes", "no"]), "classification")
    (('so good', 'so dull'), ['yes', 'no'])
    """
    corpus = _opened(data, columns, split, task, own_file=False)
    if isinstance(corpus, ParallelCorpus):
        if task != "translation":
            raise DataError(f"{corpus.name} holds sentence pairs, for translation; {task} takes other data")
        part = _part(corpus, split)
        return tuple(part.sources), list(part.targets)
    texts = _texts(corpus, split)
    return tuple(texts.texts), None if None in texts.labels else list(texts.labels)


def _task(model: Any, named: ModelTask | None) -> ModelTask:
    """The task that was named, or that of the model's architecture."""
    from heedful.attribution.tasks import task_of_model
    from heedful.attribution.wrappers import unwrapped

    if named is not None:
        if named not in MODEL_TASKS:
            raise ConfigError(f"task {named!r} is not one of {', '.join(MODEL_TASKS)}")
        return named
    return task_of_model(model if isinstance(model, str | Path) else unwrapped(model, None)[0])


def _of_task(opened: Any, corpus: Data, split: SplitName | None, labels: Names | None, pick: Pick) -> AuditRequest:
    """The passages of an opened Hugging Face model."""
    from heedful.attribution.task_passages import with_values

    subject = Subject(opened.network, opened.reader)
    links = None
    if isinstance(corpus, ParallelCorpus):
        if opened.task != "translation":
            raise DataError(f"{corpus.name} holds sentence pairs, for translation; {opened.task} takes other data")
        part = _part(corpus, split)
        texts = AuditTexts(part.sources, part.targets)
        links = None if part.alignments is None else dict(enumerate(part.alignments))
    else:
        texts = _texts(corpus, split)
    if opened.task == "classification":
        return _classified(subject, texts, labels, pick)
    if opened.task in ("token-classification", "multi-label") and labels is not None:
        raise ConfigError(f"--labels maps the labels of classification; {opened.task} takes the model's own names")
    chosen = pick(range(len(texts.texts)))
    words = texts.words or ((),) * len(texts.texts)
    passages = [p for i in chosen for p in opened.passages(i, texts.texts[i], texts.labels[i], words[i])]
    if not passages:
        raise DataError("the model gives no word of these texts another label than O; there is nothing to explain")
    if opened.task == "regression":
        network, passages = with_values(opened.network, passages)
        subject = Subject(network, opened.reader)
    return AuditRequest(subject, passages, links=None if links is None else {i: links[i] for i in chosen})


def _of_run(model: Any, corpus: Data | None, split: SplitName | None, labels: Names | None, pick: Pick) -> AuditRequest:
    if RunDirectory(model).config().task == "translation":
        if corpus is not None:
            raise ConfigError(
                f"{model} is a study of translation; it is audited on its own validation pairs, so give no data"
            )
        translator, pieces, passages, links = open_translator_run(model)
        chosen = set(pick(sorted({passage.text for passage in passages})))
        return AuditRequest(Subject(translator, pieces), [p for p in passages if p.text in chosen], links=links)
    network, reader = open_run(model)
    subject = Subject(network, reader)
    if corpus is None:
        return AuditRequest(subject, pick(validation_passages(model, reader)))
    return _classified(subject, _texts(corpus, split), labels, pick)


def _is_run(model: Any) -> bool:
    """Whether it is the folder of a study, also where its config.toml is a link or a pipe, which is then refused."""
    return isinstance(model, str | Path) and os.path.lexists(valid_path(Path(model) / "config.toml", DataError))


def _opened(
    data: Any, columns: Mapping[str, Any], split: SplitName | None, task: ModelTask | None, *, own_file: bool
) -> Data:
    """A corpus; the folder of one with marked words; or rows, of data that need not be split."""
    if isinstance(data, str) and data == "eraser-movies":
        open_data(data)  # its checksums
        return data_directory() / "eraser_movies"
    if isinstance(data, str | Path) and is_eraser(Path(data)):
        return Path(data)
    given = {name: value for name, value in columns.items() if value is not None}
    has_splits = isinstance(getattr(data, "column_names", None), Mapping)
    is_corpus = isinstance(data, Corpus | ParallelCorpus) or (isinstance(data, str) and is_named(data))
    is_rows = not is_corpus and not own_file and (split is None or has_splits) and set(given) <= {"text", "label"}
    if is_rows and task_of(data) == "classification":
        source = existing_file(data) if isinstance(data, str | Path) else data
        asked = task or "classification"
        return read_rows(source, task=asked, text=given.get("text"), label=given.get("label"), split=split)
    if task not in (None, "classification", "translation"):
        named = ", ".join(f"--{name}" for name in ("split", *given) if name != "split" or split is not None)
        raise ConfigError(f"{task} takes a table of its own, which a named corpus or {named or '--split'} is not for")
    target = given.pop("target", None)
    if task == "translation" and not is_corpus:
        given["task"] = "translation"
    return open_data(data, target, all_as_test=split is None and not own_file, **given)


def _texts(corpus: Data, split: SplitName | None) -> AuditTexts:
    if isinstance(corpus, ParallelCorpus):
        raise DataError(f"{corpus.name} holds sentence pairs; a classifier is audited on texts with labels")
    if isinstance(corpus, Rows):
        return AuditTexts(corpus.texts, corpus.labels, corpus.names, words=corpus.words)
    if isinstance(corpus, Path):
        marked = read_marked(corpus, {None: "test", "validation": "val"}.get(split) or str(split))
        names = MOVIES if set(marked.labels) <= set(MOVIES) else tuple(sorted(set(marked.labels)))
        return AuditTexts(marked.texts, marked.labels, names, {i: marked.mask(i) for i in range(len(marked))})
    part = _part(corpus, split)
    return AuditTexts(part.texts, tuple(corpus.labels[i] for i in part.labels), corpus.labels)


def _part(corpus: Any, split: SplitName | None) -> Any:
    """The texts of a split; by default the test set, or the validation set if that is empty."""
    chosen = getattr(corpus, split) if split else corpus.test if len(corpus.test) else corpus.validation
    if not len(chosen):
        raise DataError(f"{corpus.name} has no {split or 'test or validation'} texts; choose another --split")
    return chosen


def _classified(subject: Subject, data: AuditTexts, labels: Names | None, pick: Pick) -> AuditRequest:
    named, reader = match_labels(subject.labels, data.names, labels), subject.reader
    if reader is None:
        raise ConfigError("the subject has no reader, which an audit needs to read texts: Subject(network, reader)")
    right = [None if label is None else named[label] for label in data.labels]
    passages = [reader.read(i, data.texts[i], right[i]) for i in pick(range(len(data.texts)))]
    marks = {
        passage.text: marked_words(passage, str(data.texts[passage.text]).split(), data.marks[passage.text])
        for passage in passages
        if passage.text in data.marks
    }
    return AuditRequest(subject, passages, marks or None)


def _sampler(sample: int | None, seed: int) -> Pick:
    def pick(things: Sequence[Any]) -> list[Any]:
        drawn = np.random.default_rng(seed).permutation(len(things))[:sample]
        return [things[int(i)] for i in np.sort(drawn)]

    return pick


def match_labels(ours: Sequence[str], theirs: Sequence[str], given: Mapping[str, str] | None = None) -> dict[str, str]:
    """The model's name for each label of the data: as given, by name or its beginning (ignoring case), or by number.

    >>> match_labels(("NEGATIVE", "POSITIVE"), ("negative", "positive"))
    {'negative': 'NEGATIVE', 'positive': 'POSITIVE'}
    >>> match_labels(("NEGATIVE", "POSITIVE"), ("0", "1"))
    {'0': 'NEGATIVE', '1': 'POSITIVE'}
    >>> match_labels(("LABEL_0", "LABEL_1"), ("bad", "good"))
    {'bad': 'LABEL_0', 'good': 'LABEL_1'}
    """
    if given is not None:
        wrong = [name for name in given.values() if name not in ours] + [name for name in given if name not in theirs]
        if wrong or set(theirs) - set(given):
            raise ConfigError(f"labels must give each of {', '.join(theirs)} one of {', '.join(ours)}")
        return dict(given)
    matches = {name: [own for own in ours if _same_name(name, own)] for name in theirs}
    if all(len(names) == 1 for names in matches.values()):
        return {name: names[0] for name, names in matches.items()}
    numbers = [TRUTH.get(name.casefold(), name) for name in theirs]
    if all(number.isdecimal() and int(number) < len(ours) for number in numbers):
        return {name: ours[int(number)] for name, number in zip(theirs, numbers, strict=True)}
    if len(ours) == len(theirs) and all(_NUMBERED.fullmatch(name) for name in ours):
        return dict(zip(theirs, ours, strict=True))
    raise ConfigError(
        f"the model's labels are {', '.join(ours) or 'none'}, the data's {', '.join(theirs)}; "
        "map them with --labels data=model,…"
    )


def _same_name(a: str, b: str) -> bool:
    a, b = a.casefold(), b.casefold()
    return a.startswith(b) or b.startswith(a)


def open_run(
    run: RunDirectory | Path | str, seed: int | None = None, *, rules: TokenRules | None = None
) -> tuple[OpenNetwork, WordReader]:
    """The standard model of a finished classification study (of the first seed by default), and its reader.

    rules: how texts become words, where the study's data had other rules than the corpus of that name.

    >>> network, reader = open_run("runs/demo")         # doctest: +SKIP
    """
    run = run if isinstance(run, RunDirectory) else RunDirectory(run)
    config = run.config()
    if config.task != "classification":
        raise RunError(f"{run.root} is a study of translation; open it with open_translator_run")
    model = load_model(run, seed)
    words = run.vocabulary().words
    token_rules = rules or _rules(config.data, config.lower)
    reader = WordReader(
        {word: i for i, word in enumerate(words) if i >= len(SPECIALS)},
        tuple(run.data_summary()["labels"]),
        unknown=UNK,
        split=lambda text: tokenise(text, token_rules),
        first=(SPECIALS[BOS], BOS),
        last=(SPECIALS[EOS], EOS),
        longest=config.max_length,
        special={"pad": PAD},
    )
    return classifier_network(model), reader


def validation_passages(run: RunDirectory | Path | str, reader: WordReader) -> list[Passage]:
    """The validation texts of a study with their labels, as its models were given them."""
    run = run if isinstance(run, RunDirectory) else RunDirectory(run)
    labels = run.split("validation").labels
    as_written = replace(reader, split=str.split)
    return [
        as_written.read(i, " ".join(words), reader.labels[int(label)])
        for i, (words, label) in enumerate(zip(run.words(), labels, strict=True))
    ]


def open_translator_run(
    run: RunDirectory | Path | str, seed: int | None = None
) -> tuple[OpenNetwork, "PieceReader", list[Passage], Mapping[int, Alignment] | None]:
    """The standard model of a finished translation study, its reader, its validation pairs, and their gold links.

    >>> network, reader, passages, links = open_translator_run("runs/toy-de-en")         # doctest: +SKIP
    """
    run = run if isinstance(run, RunDirectory) else RunDirectory(run)
    config, tokeniser = run.config(), run.tokeniser()
    seed = config.seeds[0] if seed is None else seed
    weights = run.model(ModelSpec("standard", seed)).checkpoint_folder(config.train.steps) / "model.safetensors"
    if not weights.exists():
        raise RunError(f"{weights}: no such file; the run is not finished, or has no model of seed {seed}")
    run.model(ModelSpec("standard", seed)).verified(weights)
    model = load_weights(lambda: build_translator(config.translator, len(tokeniser)), weights)
    pairs, reader = run.pairs("validation"), PieceReader(tokeniser)
    links = None if pairs.alignments is None else dict(enumerate(pairs.alignments))
    return translator_network(model.eval()), reader, pair_passages(pairs, reader), links


def pair_passages(pairs: EncodedPairs, reader: "PieceReader") -> list[Passage]:
    """One passage for each word of each target: it explains the word's first piece, given the pieces before it."""
    passages = []
    for m in range(len(pairs)):
        source = reader.passage(m, pairs.source[m].tolist(), pairs.source_words[m].tolist())
        pieces, word = pairs.target[m].tolist(), pairs.target_words[m]
        for w in range(int(word.max()) + 1):
            own = np.flatnonzero(word == w)
            if len(own):  # a word that was cut has none
                at = int(own[0])
                output = reader.tokeniser.decode([pieces[i] for i in own]) or str(pieces[at])
                passages.append(replace(source, target=pieces[at], output=output, before=tuple(pieces[:at])))
    return passages


@dataclass(frozen=True)
class PieceReader:
    """A reader with the tokeniser of a translation study; there are no labels."""

    tokeniser: Tokeniser
    labels: tuple[str, ...] = ()

    def read(self, number: int, text: Text, label: str | None = None) -> Passage:
        """A source sentence between its start and end symbols."""
        pieces, words = self.tokeniser.encode(single_text(number, text))
        return self.passage(number, [BOS, *pieces, EOS], [-1, *words, -1])

    def passage(self, number: int, pieces: list[int], words: list[int]) -> Passage:
        """The passage of these pieces; words: the word of each piece, -1 for start and end symbols."""
        starts = [i for i, word in enumerate(words) if i == 0 or word == -1 or word != words[i - 1]]
        groups = [pieces[a:b] for a, b in zip(starts, [*starts[1:], len(pieces)], strict=True)]
        special = tuple(words[start] == -1 for start in starts)
        shown = (
            SPECIALS[group[0]] if is_special else self.tokeniser.decode(group) or str(group[0])
            for group, is_special in zip(groups, special, strict=True)
        )
        word = tuple(np.repeat(np.arange(len(groups)), [len(group) for group in groups]).tolist())
        return Passage(number, tuple(shown), special, tuple(pieces), word)


def _rules(data: str, lower: bool | None) -> TokenRules:
    rules = CATALOG[data].rules if data in CATALOG else PLAIN
    return rules if lower is None else replace(rules, lower=lower)
