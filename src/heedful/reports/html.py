"""Fill a template: escaped words, embedded numbers, one style, one script, and nothing that is fetched."""

import base64
import hashlib
import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from heedful import __version__
from heedful.html import answers, dots_and_whiskers, raised, reasons
from heedful.reports.equations import equations, linked
from heedful.reports.formatting import interval, percent

_TYPES = {
    "|u1": "Uint8Array",
    "|i1": "Int8Array",
    "<u2": "Uint16Array",
    "<i2": "Int16Array",
    "<u4": "Uint32Array",
    "<f4": "Float32Array",
}


class Arrays:
    """Named arrays, packed end to end; the page reads each as the JavaScript typed array of its kind.

    >>> import numpy as np
    >>> arrays = Arrays()
    >>> arrays.add("a", np.array([1, 2], dtype=np.uint16), unit="words")
    >>> arrays.directory
    {'a': {'type': 'Uint16Array', 'start': 0, 'bytes': 4, 'unit': 'words'}}
    """

    def __init__(self) -> None:
        self.directory: dict[str, dict[str, Any]] = {}
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, name: str, values: NDArray[Any], **notes: Any) -> None:
        """Append an array of one of the types that a page can read, little-endian, row by row."""
        little = values.astype(values.dtype.newbyteorder("<"))
        content = little.tobytes()
        kind = _TYPES[little.dtype.str]
        self.directory[name] = {"type": kind, "start": self._size, "bytes": len(content), **notes}
        self._parts.append(content)
        self._size += len(content)

    def packed(self) -> str:
        """All arrays as one text of letters, digits, `+`, `/` and `=`."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), 9)).decode("ascii")


@dataclass(frozen=True)
class Payload:
    """`content` becomes JSON; `arrays` become typed arrays."""

    content: dict[str, Any]
    arrays: Arrays


def json_for_html(content: Any) -> Markup:
    """JSON that can stand inside a `<script>` element whatever text it holds: no `<`, `>` or `&` is left in it.

    >>> json_for_html({"word": "</script>"})
    Markup('{"word":"\\\\u003c/script\\\\u003e"}')
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # json.dumps left nothing but ASCII, and no sign of markup is in it


Filters = Mapping[str, Callable[..., Any]]
_FILTERS: Filters = {
    "percent": percent,
    "interval": interval,
    "raised": raised,
    "linked": linked,
    "reasons": reasons,
}
_FIRST_SCRIPTS = ("data.js", "draw.js", "dots.js", "lines.js", "shades.js", "film.js", "examples.js")
_TEXT_SCRIPTS, _PAIR_SCRIPTS = ("strips.js", "texts.js", "tokens.js"), ("pairs.js", "matrices.js", "translations.js")


def fill_training_page(template: str, payload: Payload, **words: Any) -> str:
    """A page with a slider over training: its words, its numbers, and the scripts of its task."""
    content, task = payload.content, payload.content["task"]
    several = "runs" in content
    examples = _PAIR_SCRIPTS if task == "translation" else _TEXT_SCRIPTS
    charts = "comparison.js" if several else "charts.js"
    return fill(
        template,
        content,
        style=assets("page.css"),
        script=assets(*_FIRST_SCRIPTS, charts, *examples, "page.js"),
        task=task,
        equations=equations(task),
        dots=Markup() if several else dots_and_whiskers(content["agreements"], content["random"]),
        counted="lexicon/counting" in payload.arrays.directory,
        arrays=payload.arrays.packed(),
        **words,
    )


def fill(
    template: str, payload: Mapping[str, Any], *, style: str, script: str, filters: Filters | None = None, **words: Any
) -> str:
    """The page as text: the template's words, the payload for its script, and a policy that lets nothing else run."""
    environment = Environment(
        loader=PackageLoader("heedful.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {**_FILTERS, **(filters or {})}
    page = environment.get_template(template).render(
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        payload=json_for_html(payload),
        answers=answers,
        version=__version__,
        **words,
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair in a text would not be writable


def assets(*names: str) -> str:
    """Files of the templates' folder, one after the other."""
    return "\n".join((files("heedful.reports") / "templates" / name).read_text(encoding="utf-8") for name in names)


def policy(style: str, script: str) -> str:
    """A Content-Security-Policy: nothing may be fetched, only this style and this script may run.

    >>> policy("p {}", "")[:52]
    "default-src 'none'; script-src 'sha256-47DEQpj8HBSa+"
    """
    return (
        f"default-src 'none'; script-src '{_fingerprint(script)}'; style-src '{_fingerprint(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _fingerprint(text: str) -> str:
    """The hash by which a Content-Security-Policy names a script or a style."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
