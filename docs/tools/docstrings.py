"""Docstrings that are written to be read become reStructuredText.

Paragraphs stay paragraphs, with `names` as code; sentences that begin with a parameter's name and a colon become a
list; indented blocks (equations, lists of names) are set as they stand; examples stay examples.
"""

import dataclasses
import inspect
import re

from numpy.typing import ArrayLike
from sphinx.util.typing import stringify_annotation

SPELLED_OUT = [stringify_annotation(ArrayLike, mode) for mode in ("smart", "fully-qualified")]


def with_short_names(app, what, name, obj, options, signature, returned):
    """Sphinx's event: `ArrayLike` under its name, not as the union it stands for."""
    for spelled in SPELLED_OUT:
        signature = signature and signature.replace(spelled, "ArrayLike")
        returned = returned and returned.replace(spelled, "ArrayLike")
    return signature, returned


def as_rst(app, what, name, obj, options, lines):
    """Sphinx's event: replace the lines of a docstring."""
    lines[:] = rst(lines, _parameters(obj))


def _parameters(obj):
    """The names of an object's parameters or fields, and `settings`, by which others are passed on."""
    if dataclasses.is_dataclass(obj):
        return {field.name for field in dataclasses.fields(obj)}
    try:
        return set(inspect.signature(obj).parameters)
    except (TypeError, ValueError):
        return set()


def rst(lines, parameters=frozenset()):
    """The same docstring in reStructuredText; parameters: names whose descriptions become a list.

    >>> rst(["Entropy of `alpha`.", "", "    H = |x|*", "", "In [0, ln L]."])
    ['Entropy of ``alpha``.', '', '::', '', '    H = |x|*', '', 'In [0, ln L].', '']
    """
    made = []
    for block in _blocks(lines):
        if described := _described(block, parameters):
            before, items = described
            made += [_paragraph(before), ""] if before else []
            made += [f"* **{name}**: {_paragraph(words)}" for name, words in items]
        elif block[0].startswith(">>>"):
            made += block
        elif any(line.startswith(" ") for line in block):
            lead = [line for line in block if not line.startswith(" ")]
            if lead and not block[0].startswith(" "):
                first = next(i for i, line in enumerate(block) if line.startswith(" "))
                made += [_paragraph(line) for line in block[:first]] + [""]
                block = block[first:]
            made += ["::", "", *(f"    {line}" if not line.startswith("    ") else line for line in block)]
        elif all(re.match(r"\S.*? {3,}\S", line) for line in block):
            made += ["::", "", *(f"    {line}" for line in block)]
        else:
            made += [_paragraph(line) for line in block]
        made.append("")
    return made


def _described(block, parameters):
    """A paragraph as what stands before its parameters, and each of them with its words; None where it has none.

    >>> _described(["Write it. out: a file. seed: of", "the draw."], {"out", "seed"})
    ('Write it.', [('out', 'a file.'), ('seed', 'of the draw.')])
    """
    if not parameters or block[0].startswith(">>>") or any(line.startswith(" ") for line in block):
        return None
    text, name = " ".join(block), "|".join(sorted(map(re.escape, parameters), key=len, reverse=True))
    parts = re.split(rf"(?:^|(?<=[.;)] ))((?:{name})(?:(?:, | and )(?:{name}))*): ", text)
    if len(parts) < 3:
        return None
    return parts[0].strip(), [(key, words.strip()) for key, words in zip(parts[1::2], parts[2::2], strict=True)]


def _blocks(lines):
    block = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line.rstrip())
        elif block:
            yield block
            block = []


def _paragraph(line):
    parts = re.split(r"(`[^`]+`)", line)
    return "".join(f"`{part}`" if part.startswith("`") else re.sub(r"([\\*|_`])", r"\\\1", part) for part in parts)
