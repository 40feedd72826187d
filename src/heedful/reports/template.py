"""A template becomes a page: words that are escaped, numbers beside them, one style, one script, nothing fetched."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from heedful import __version__
from heedful.markup import plain_numbers, raised
from heedful.reports.equations import linked
from heedful.reports.numbers import interval, percent
from heedful.reports.packing import json_for_html

Filters = Mapping[str, Callable[..., Any]]
_FILTERS: Filters = {
    "percent": percent,
    "interval": interval,
    "raised": raised,
    "linked": linked,
    "plain_numbers": plain_numbers,
}


def filled(
    template: str, payload: Mapping[str, Any], *, style: str, script: str, filters: Filters | None = None, **words: Any
) -> str:
    """The page as text: the template's words, the payload for its script, and a policy that lets nothing else run."""
    made = Environment(
        loader=PackageLoader("heedful.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {**_FILTERS, **(filters or {})}
    page = made.get_template(template).render(
        policy=policy(style, script),
        style=Markup(style),
        script=Markup(script),
        payload=json_for_html(payload),
        version=__version__,
        **words,
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair in a text would not be writable


def assets(*names: str) -> str:
    """Files that lie beside the templates, one after the other."""
    return "\n".join((files("heedful.reports") / "templates" / name).read_text(encoding="utf-8") for name in names)


def policy(style: str, script: str) -> str:
    """Nothing may be fetched, and only the one style and the one script of this page count.

    >>> policy("p {}", "")[:52]
    "default-src 'none'; script-src 'sha256-47DEQpj8HBSa+"
    """
    return (
        f"default-src 'none'; script-src '{_fingerprint(script)}'; style-src '{_fingerprint(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _fingerprint(text: str) -> str:
    """What a Content-Security-Policy calls this script or style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")
