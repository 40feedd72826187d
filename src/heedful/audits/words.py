"""Words of an audit: a table of every word of every text with all explanations of it, `words.parquet`.

text, position   the number of the text; of a translation, how many output pieces come before the one explained
output, label    what is explained, and the right label where it is known; probability: of the output
number, word     the place of the word among those that explanations cover, and the word
<explanation>    its score, a share of the text's, one column for each map, importance and given explanation
marked           whether people marked it; null where nobody was asked
other map        under the most different attention found with the same prediction, if one was looked for
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from heedful.audits.result import AuditExample, AuditResult, Weights
from heedful.storage.atomic_files import write_atomically
from heedful.storage.manifest import MANIFEST
from heedful.storage.parquet_pages import read_numbers_and_texts
from heedful.storage.step_cache import StepRecord

WORDS = "words.parquet"
FACTS = ("text", "position", "output", "label", "probability", "number", "word")
OTHER = ("marked", "other map", "divergence", "other probability")


def write_words(folder: Path, examples: Iterable[AuditExample], headline: str) -> str:
    """Write the table into a folder; returns the name of the file."""
    table = words_table(examples, headline)
    write_atomically(folder / WORDS, lambda path: pq.write_table(table, path, compression="zstd"), size=table.nbytes)
    return WORDS


def words_table(examples: Iterable[AuditExample], headline: str) -> pa.Table:
    """One row for each word of each example."""
    columns: dict[str, list[Any]] = {name: [] for name in FACTS}
    scores: dict[str, list[float | None]] = {}
    rest: dict[str, list[Any]] = {name: [] for name in OTHER}
    for example in examples:
        n, before = len(example.words), len(columns["text"])
        facts = (example.text, example.position, example.output, example.label, example.probability)
        for name, value in zip(FACTS[:5], facts, strict=True):
            columns[name] += [value] * n
        columns["number"] += range(n)
        columns["word"] += example.words
        for weights in (Weights(headline, example.map), *example.explanations, *example.importances):
            scores.setdefault(weights.name, [None] * before).extend(weights.values)
        for values in scores.values():
            values += [None] * (before + n - len(values))
        rest["marked"] += example.rationale or [None] * n
        rest["other map"] += example.other or [None] * n
        rest["divergence"] += [example.divergence] * n
        rest["other probability"] += [example.other_probability] * n
    types = {name: pa.int64() for name in ("text", "position", "number")}
    types |= {"output": pa.string(), "label": pa.string(), "word": pa.string(), "marked": pa.bool_()}
    return pa.table(
        {
            name: pa.array(values, type=types.get(name, pa.float64()))
            for name, values in (*columns.items(), *scores.items(), *rest.items())
        }
    )


def read_words(result: AuditResult) -> pa.Table:
    """The table of an audit: that in its folder, vouched for by its manifest; without a folder, of its examples."""
    if result.folder is None:
        return words_table(result.examples, result.headline)
    path = StepRecord(result.folder / MANIFEST).verified(WORDS)
    return read_numbers_and_texts(path, pq.read_schema(path).names)


def read_example(result: AuditResult, text: int, position: int | None = None) -> AuditExample | None:
    """One passage of an audit with all its explanations; None where there is none of this number.

    position: of a text with several outputs, how many output pieces come before the one explained; the first if None.
    """
    table = read_words(result)
    table = table.filter(pc.equal(table["text"], text))
    places = sorted(set(table["position"].to_pylist()))
    if not places or position not in (None, *places):
        return None
    table = table.filter(pc.equal(table["position"], places[0] if position is None else position))
    column = {name: table[name].to_pylist() for name in table.column_names}
    shown = [explanation.name for explanation in result.explanations if explanation.name != result.headline]
    others = [name for name in column if name not in (*FACTS, *OTHER, *shown, result.headline)]

    def weights(names: Iterable[str]) -> tuple[Weights, ...]:
        known = (name for name in names if name in column and None not in column[name])
        return tuple(Weights(name, tuple(column[name])) for name in known)

    def where_known(name: str) -> tuple[Any, ...]:
        return () if None in column[name] else tuple(column[name])

    return AuditExample(
        text,
        tuple(column["word"]),
        column["output"][0],
        column["label"][0],
        column["probability"][0],
        tuple(column[result.headline]),
        weights(others),
        where_known("marked"),
        where_known("other map"),
        column["divergence"][0],
        column["other probability"][0],
        explanations=weights(shown),
        position=column["position"][0],
    )
