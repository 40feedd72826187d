"""The page: one self-contained HTML file of a finished run.

Words are laid into the template by jinja2, which escapes them; numbers are embedded (`payload`) and drawn by the
scripts in `templates/`, which write text with `textContent` alone. A Content-Security-Policy lets nothing else run
and nothing be fetched.
"""

import base64
import hashlib
import re
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from heedful import __version__
from heedful.audits.followed_run import FollowedRun
from heedful.files import write_text
from heedful.reports import following, summary
from heedful.reports.numbers import interval, percent
from heedful.reports.packing import json_for_html
from heedful.reports.payload import Payload, study_payload
from heedful.studies.run import Run

_BEFORE, _AFTER = ("data.js", "draw.js", "charts.js", "shades.js", "examples.js"), ("page.js",)
_TEXTS = (*_BEFORE, "texts.js", "tokens.js", *_AFTER)
_SCRIPTS = {  # each uses those before it
    "classification": _TEXTS,
    "following": _TEXTS,
    "translation": (*_BEFORE, "pairs.js", "matrices.js", "translations.js", *_AFTER),
}


def write_report(run: Path, *, out: Path | None = None) -> Path:
    """Write the page of a finished study or of a followed training, whole or not at all, and say where it is."""
    source, followed = Run(run), FollowedRun(run)
    target = out if out is not None else source.report_path
    write_text(target, render_following(followed) if followed.is_begun() else render_report(source))
    return target


def render_report(run: Run) -> str:
    """A study's page as text."""
    run.config()
    result = run.result()
    payload = study_payload(run, result)
    command, about_command = summary.rerun(run)
    return _laid_out(
        "page.html.j2",
        payload,
        result=result,
        decisions=result.data.get("decisions"),
        agreements=summary.agreement_lines(result),
        terms=summary.terms(result),
        alignment=summary.alignment_sentences(result),
        has_paper=bool(payload.content["paper"]),
        models=summary.model_lines(result),
        data_facts=summary.data_facts(result),
        training_facts=summary.training_facts(run, result),
        provenance=summary.provenance(run, result),
        command=command,
        about_command=about_command,
    )


def render_following(run: FollowedRun) -> str:
    """The page of a followed training as text."""
    probe, result = run.probe(), run.result()
    return _laid_out(
        "following.html.j2",
        following.following_payload(run),
        result=result,
        labelled=bool(probe.right),
        decisions=probe.decisions,
        agreements=following.agreement_lines(result),
        terms=summary.TERMS["classification"],
        alignment=[],
        has_paper=False,
        data_facts=following.data_facts(probe),
        training_facts=following.training_facts(result),
        provenance=following.provenance(run),
    )


def _laid_out(template: str, payload: Payload, **words: Any) -> str:
    """A template filled with its words, its numbers, and the scripts of its task."""
    style, script = asset("page.css"), "\n".join(asset(name) for name in _SCRIPTS[payload.content["task"]])
    laid = environment().get_template(template)
    page = laid.render(
        policy=_policy(style, script),
        style=Markup(style),
        script=Markup(script),
        payload=json_for_html(payload.content),
        arrays=payload.arrays.packed(),
        version=__version__,
        **words,
    )
    return page.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair in a text would not be writable


def environment() -> Environment:
    """Templates that escape whatever is put into them."""
    made = Environment(
        loader=PackageLoader("heedful.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "percent": percent,
        "interval": interval,
        "raised": raised,
        "plain_numbers": summary.plain_numbers,
    }
    return made


def raised(text: str) -> Markup:
    """`β^uf` with its second part as a superscript; everything else is escaped.

    >>> raised("A(α, β^uf) < 1")
    Markup('A(α, β<sup>uf</sup>) &lt; 1')
    """
    return Markup(re.sub(r"\^(\w+)", r"<sup>\1</sup>", str(escape(text))))


def _policy(style: str, script: str) -> str:
    """Nothing may be fetched, and only the one style and the one script of this page count."""
    return (
        f"default-src 'none'; script-src '{fingerprint(script)}'; style-src '{fingerprint(style)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def fingerprint(text: str) -> str:
    """What a Content-Security-Policy calls this script or style by."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode("ascii")


def asset(name: str) -> str:
    """A file of the page's templates, as text."""
    return (files("heedful.reports") / "templates" / name).read_text(encoding="utf-8")
