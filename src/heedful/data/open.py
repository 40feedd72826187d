"""Whatever a user calls data: a corpus of texts with labels, or of sentence pairs."""

from pathlib import Path
from typing import Any

from heedful.config import TaskName
from heedful.data import multi30k
from heedful.data.corpus import Corpus
from heedful.data.load import load
from heedful.data.parallel import ParallelCorpus, load_parallel
from heedful.data.synthetic import TASKS, generated_texts


def open_data(
    data: Any,
    target: str | Path | None = None,
    *,
    task: TaskName | None = None,
    text: str | None = None,
    label: str | None = None,
    validation: str | Path | None = None,
    test: str | Path | None = None,
    lower: bool | None = None,
    seed: int = 0,
) -> Corpus | ParallelCorpus:
    """The corpus of that name, in that file (or pair of files), or in that `datasets.Dataset`.

    `text` and `label` name columns; obvious ones are found. In a file of sentence pairs they are the columns of the
    source and of the target. `task` says which of the two a single file holds: texts unless it says otherwise.

    >>> open_data("copy-vocab").in_words, open_data("keyword").labels
    (True, ('negative', 'positive'))
    """
    if isinstance(data, Corpus | ParallelCorpus):
        return data
    if (task or task_of(data, target)) == "translation":
        return load_parallel(
            data, target, source_column=text, target_column=label, validation=validation, test=test, seed=seed
        )
    if isinstance(data, str) and data in TASKS:
        return generated_texts(data, seed=seed)
    return load(data, text=text, label=label, validation=validation, test=test, lower=lower, seed=seed)


def describe(name: str) -> dict[str, Any] | None:
    """What a parallel corpus or a generated task of that name is; nothing for any other name.

    >>> describe("keyword")["task"], describe("sst")
    ('classification', None)
    """
    if name in TASKS:
        task = TASKS[name]
        return {
            "name": name,
            "title": f"generated: {task.description}",
            "task": task.kind,
            "labels": ["negative", "positive"] if task.kind == "classification" else [],
            "licence": "none needed: generated, seeded, any size",
            "source": "generated",
            "here": True,
        }
    if name.partition(":")[0] != "multi30k":
        return None
    return {
        "name": name,
        "title": "Multi30k image captions, German to English (multi30k:en-de for the other direction)",
        "task": "translation",
        "labels": [],
        "licence": multi30k.LICENCE,
        "source": multi30k.SOURCE,
        "here": multi30k.is_here(),
    }


def task_of(data: Any, target: str | Path | None = None) -> TaskName:
    """What kind of study data ask for, from their name or shape alone.

    >>> task_of("multi30k:en-de"), task_of("sst"), task_of("a.de", "a.en")
    ('translation', 'classification', 'translation')
    """
    if target is not None or isinstance(data, ParallelCorpus):
        return "translation"
    if isinstance(data, str):
        if data in TASKS:
            return TASKS[data].kind
        return "translation" if data.partition(":")[0] == "multi30k" else "classification"
    columns = getattr(data, "column_names", ())
    names = next(iter(columns.values()), ()) if isinstance(columns, dict) else columns
    return "translation" if "translation" in names else "classification"
