"""Measured parts of an audit: one per text, cached in a folder, from which an interrupted audit resumes."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from heedful.attribution.interface import Numbers, Passage
from heedful.audits.result import AuditExample
from heedful.execution.pool import Event, OnEvent
from heedful.storage.atomic_files import without_nan
from heedful.storage.serialization import digest, from_mapping
from heedful.storage.step_cache import StepCache

FORMAT = 8  # of the cached parts


@dataclass(frozen=True)
class MeasuredPart:
    """Measurements of some passages: numbers by name (`tau/layer 2/gradient`), each with one value per passage.

    important: see `Orders`. outputs: the names of the targets; predicted: the model's own predictions; examples: the
    words and weights of every passage.
    """

    numbers: dict[str, Numbers]
    important: dict[str, list[list[int]]]
    outputs: list[str]
    predicted: list[str]
    examples: list[AuditExample]


Text = Sequence[Passage]  # the passages of one text


def measured(
    folder: Path,
    texts: Sequence[Text],
    measure: Callable[[Text], MeasuredPart],
    *,
    key: str,
    name: str = "audit",
    more: Collection[int] = (),
    chunk: int = 32,
    on_progress: OnEvent = lambda line: None,
) -> list[MeasuredPart]:
    """`measure` of every text, in chunks; each text is cached in `folder` by itself, and read if it is there.

    key: everything besides a text that its result depends on; with the text it names the file. name: what is measured.
    more: the numbers of texts of which more is kept, which the names of their files depend on. The first text is
    measured alone, so that an audit that is interrupted soon after has something to go on from. chunk: how many
    passages are measured together. Progress counts passages: `{"model": "audit", "step": 32, "steps": 200}`.
    """
    cache = StepCache(folder, lambda notice: on_progress({"model": name, "notice": notice}))
    names = [digest([FORMAT, key, text, text[0].text in more])[:32] for text in texts]
    parts = {i: _part(stored) for i, file in enumerate(names) if (stored := cache.get(file)) is not None}
    total, done = sum(map(len, texts)), sum(len(texts[i]) for i in parts)
    begun: Event = {"model": name, "step": done, "steps": total}
    on_progress({**begun, "resumed": True} if parts else begun)
    for group in _chunks(texts, chunk):
        missing = [i for i in group if i not in parts]
        if not missing:
            continue
        # The whole chunk, so that an audit that was interrupted rounds as one that was not.
        part = measure([passage for i in group for passage in texts[i]])
        split = dict(zip(group, _split(part, [texts[i] for i in group]), strict=True))
        for i in missing:
            cache.put(names[i], _plain_part(split[i]))
            parts[i] = split[i]
            done += len(texts[i])
        on_progress({"model": name, "step": done, "steps": total})
    on_progress({"model": name, "done": True})
    return [parts[i] for i in range(len(texts))]


def _chunks(texts: Sequence[Text], most: int) -> Iterator[list[int]]:
    """The numbers of texts that are measured together: the first alone, then as many as `most` passages."""
    yield from ([i] for i in range(len(texts))[:1])
    group: list[int] = []
    for i in range(1, len(texts)):
        if group and sum(len(texts[j]) for j in (*group, i)) > most:
            yield group
            group = []
        group.append(i)
    if group:
        yield group


def _split(part: MeasuredPart, texts: Sequence[Text]) -> list[MeasuredPart]:
    """The measurements of each text."""
    ends = np.cumsum([len(text) for text in texts]).tolist()
    return [
        MeasuredPart(
            {name: values[start:end] for name, values in part.numbers.items()},
            {name: rows[start:end] for name, rows in part.important.items()},
            part.outputs[start:end],
            part.predicted[start:end],
            [example for example in part.examples if example.text == text[0].text],
        )
        for text, start, end in zip(texts, [0, *ends[:-1]], ends, strict=True)
    ]


def _plain_part(part: MeasuredPart) -> dict[str, Any]:
    numbers = {name: values.tolist() for name, values in part.numbers.items()}
    plain: dict[str, Any] = without_nan(asdict(replace(part, numbers={})) | {"numbers": numbers})
    return plain


def _part(plain: Mapping[str, Any]) -> MeasuredPart:
    return MeasuredPart(
        {name: np.array(values, dtype=np.float64) for name, values in plain["numbers"].items()},
        plain["important"],
        plain["outputs"],
        plain["predicted"],
        [from_mapping(AuditExample, example, where="example") for example in plain["examples"]],
    )
