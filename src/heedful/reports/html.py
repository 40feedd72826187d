"""Pages from templates: escaped words, embedded numbers, one style, one script; and numbers as people read them."""

import base64
import hashlib
import json
import math
import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any
from unicodedata import category

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray

from heedful import __version__
from heedful.html import answers, between, dots_and_whiskers, raised, reasons
from heedful.metrics.statistics import Estimate
from heedful.reports.equations import equations, linked
from heedful.storage.atomic_files import without_nan

NONE = "–"
FORMAT = 1  # of what a page's script reads
_SPACE = "\N{NO-BREAK SPACE}"
_FINE = 0.03  # an interval narrower than this would vanish in whole percents


def percent(share: float | None) -> str:
    """A share as a percentage with one decimal; a dash where there is none.

    >>> percent(0.5432), percent(float("nan"))
    ('54.3\\xa0%', '–')
    """
    return NONE if share is None or math.isnan(share) else f"{written(100 * share, 1)}{_SPACE}%"


def interval(estimate: Estimate) -> str:
    """The ends of an interval in percent, whole unless it is narrow; a dash where there is none.

    >>> interval(Estimate(0.54, 0.51, 0.57, 90)), interval(Estimate(0.54, 0.531, 0.549, 9000))
    ('51–57', '53.1–54.9')
    >>> interval(Estimate(0.05, -0.06, 0.21, 2))
    '−6 to 21'
    """
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return NONE
    digits = 1 if estimate.high - estimate.low < _FINE else 0
    return between(written(100 * estimate.low, digits), written(100 * estimate.high, digits))


def with_interval(estimate: Estimate) -> str:
    """A share in percent, and its interval in parentheses where it has one.

    >>> with_interval(Estimate(0.54, 0.51, 0.57, 90))
    '54.0\\xa0% (51–57)'
    """
    value, ends = percent(estimate.value), interval(estimate)
    return value if ends == NONE else f"{value} ({ends})"


def duration(seconds: float | int) -> str:
    """Seconds in hours, minutes and seconds.

    >>> duration(4.5), duration(312), duration(4321)
    ('5 s', '5 min 12 s', '1 h 12 min')
    """
    total = math.ceil(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60} s"
    return f"{total // 3600} h {total % 3600 // 60} min"


def written(value: float | None, digits: int = 3) -> str:
    """A number with a true minus sign and no minus before zero; a dash where there is none.

    >>> written(-0.04, 1), written(-12345.678, 1), written(float("nan")), written(None), written(float("-inf"))
    ('0.0', '−12,345.7', '–', '–', '−∞')
    """
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:,.{digits}f}"
    return text.lstrip("-") if round(value, digits) == 0 else text.replace("-", "−")


MODEL_TITLES = {
    "standard": "standard model",
    "uniform": "uniform twin",
    "attention-only": "frozen twin",
    "proxy": "bag-of-words proxy",
    "logistic": "logistic regression",
    "lexicon": "IBM Model 1",
}

TERMS = {
    "classification": {"example": "text", "examples": "texts", "accuracy": "accuracy", "answer": "label"},
    "translation": {
        "example": "sentence pair",
        "examples": "pairs",
        "accuracy": "token accuracy",
        "answer": "output word",
    },
}


def quantity_name(quantity: str) -> str:
    """The usual name of a quantity or of a comparison.

    >>> quantity_name("auprc"), quantity_name("tau with gradient"), quantity_name("sufficiency")
    ('AUPRC', 'τ with gradient', 'sufficiency')
    """
    known = {"tau": "τ", "token f1": "token F1", "iou f1": "IOU F1", "auprc": "AUPRC", "aer": "alignment error rate"}
    first, between, rest = quantity.partition(" with ")
    return known.get(first, first) + between + rest


def ends(estimate: Estimate | None, digits: int = 3) -> str:
    """The interval alone.

    >>> ends(Estimate(0.31, 0.25, 0.372, 40)), ends(Estimate(0.31, -0.1, 0.372, 40), 2), ends(None)
    ('0.250–0.372', '−0.10 to 0.37', '–')
    """
    if estimate is None or math.isnan(estimate.value):
        return NONE
    return between(written(estimate.low, digits), written(estimate.high, digits))


def with_ends(estimate: Estimate | None, digits: int = 3) -> str:
    """A mean and its interval in parentheses; a dash where nothing was measured.

    >>> with_ends(Estimate(0.31, 0.25, 0.372, 40)), with_ends(None)
    ('0.310 (0.250–0.372)', '–')
    """
    between = ends(estimate, digits)
    return NONE if estimate is None or between == NONE else f"{written(estimate.value, digits)} ({between})"


def p_value(p: float) -> str:
    """A p-value; below 0.001 only that.

    >>> p_value(0.03456), p_value(0.00004)
    ('0.035', '<\\xa00.001')
    """
    return f"<{_SPACE}0.001" if p < 0.001 else written(p)


def one_line(text: str) -> str:
    r"""Words without line breaks, control characters and halves of letters; a no-break space stays.

    >>> one_line(" a\n b\x00c \ud83d\N{NO-BREAK SPACE}%")
    'a b c \xa0%'
    """
    plain = (letter if letter.isprintable() or letter == _SPACE or category(letter) == "Cf" else " " for letter in text)
    return re.sub(" +", " ", "".join(plain)).strip()


def estimate_text(estimate: Estimate | None) -> str:
    """A number with its interval in three significant digits; an exact number has none.

    >>> estimate_text(Estimate(0.123456, 0.1, 0.2, 5)), estimate_text(Estimate(0.0, 0.0, 0.0, 1)), estimate_text(None)
    ('0.123 [0.1, 0.2]', '0', '–')
    """
    if estimate is None or estimate.value != estimate.value:
        return NONE
    if estimate.low == estimate.high:
        return f"{estimate.value:.3g}"
    return f"{estimate.value:.3g} [{estimate.low:.3g}, {estimate.high:.3g}]"


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

    @classmethod
    def of(cls, content: Mapping[str, Any], arrays: Arrays) -> "Payload":
        """The content with null for NaN, with the format's number and the directory of the arrays."""
        return cls(without_nan({"format": FORMAT, **content}) | {"arrays": arrays.directory}, arrays)


def json_for_html(content: Any) -> Markup:
    """JSON that can stand inside a `<script>` element whatever text it holds: no `<`, `>` or `&` is left in it.

    >>> json_for_html({"word": "</script>"})
    Markup('{"word":"\\\\u003c/script\\\\u003e"}')
    """
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # json.dumps left nothing but ASCII, and no sign of markup is in it


_FILTERS = {
    "percent": percent,
    "interval": interval,
    "with_ends": with_ends,
    "decimal": written,
    "p_value": p_value,
    "quantity": quantity_name,
    "raised": raised,
    "linked": linked,
    "reasons": reasons,
}
_FIRST_SCRIPTS = (
    *("data.js", "draw.js", "tips.js", "dots.js", "lines.js", "shades.js"),
    *("stage.js", "scatter.js", "examples.js"),
)
_TEXT_SCRIPTS = ("strips.js", "texts.js", "tokens.js")
_PAIR_SCRIPTS = ("pairs.js", "translations.js")
_MATRIX_SCRIPTS = ("matrices.js", "links.js")
_HEAD_SCRIPTS = ("grid.js", "heads.js")


def fill_training_page(template: str, payload: Payload, **words: Any) -> str:
    """A page with a slider over training: its words, its numbers, and the scripts of its task."""
    content, task = payload.content, payload.content["task"]
    several = "runs" in content
    translating, heads = task == "translation", "heads" in content
    matrices = _MATRIX_SCRIPTS if translating or heads else ()
    examples = (*matrices, *(_HEAD_SCRIPTS if heads else ()), *(_PAIR_SCRIPTS if translating else _TEXT_SCRIPTS))
    charts = "comparison.js" if several else "charts.js"
    return fill(
        template,
        content,
        style=assets("page.css", *(("grid.css",) if heads else ())),
        script=assets(*_FIRST_SCRIPTS, charts, *examples, "page.js"),
        task=task,
        terms=TERMS.get(task, TERMS["classification"]),
        equations=equations(task),
        dots=Markup() if several else dots_and_whiskers(content["agreements"], content["random"]),
        heads=content.get("heads"),
        counted="lexicon/counting" in payload.arrays.directory,
        arrays=payload.arrays.packed(),
        **{"alignment": [], "has_paper": False, "stage": False} | words,
    )


def fill(template: str, payload: Mapping[str, Any], *, style: str, script: str, **words: Any) -> str:
    """The page as text: the template's words, the payload for its script, and a policy that lets nothing else run."""
    environment = Environment(
        loader=PackageLoader("heedful.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= _FILTERS
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
