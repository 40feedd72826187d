import json
import re

import pytest
from jinja2 import UndefinedError

from heedful.reports.html import assets, fill
from tests.reports.elements import Elements, admits_one_style_and_one_script

STYLE, SCRIPT = "p { margin: 0 }", "document.title = '</p>'"
HOSTILE = "</title></script><script>alert(1)</script>{{7*7}} & \udc80"


def a_sweep(**words):
    nothing = {"axes": (), "finished": (), "failed": (), "first": (), "second": (), "columns": (), "rows": ()}
    words = {"name": HOSTILE, "title": HOSTILE, "scope": HOSTILE, "steps": range(3), "unlearned": 0, **nothing, **words}
    return fill("sweep.html.j2", {"name": HOSTILE}, style=STYLE, script=SCRIPT, **words)


def test_words_and_numbers_are_never_markup_and_can_be_written():
    page = a_sweep()
    seen = Elements(page)
    assert "alert(1)</script>" not in page
    assert HOSTILE.replace("\udc80", "?") in "".join(seen.text)
    assert "49" not in "".join(seen.text)
    assert page.encode("utf-8")
    payload = re.search(r'<script type="application/json" id="payload">(.*?)</script>', page, re.DOTALL)[1]
    assert json.loads(payload)["name"].startswith("</title></script><script>")


def test_only_its_own_style_and_script_count():
    admits_one_style_and_one_script(a_sweep())


def test_a_word_that_is_not_given_is_an_error():
    with pytest.raises(UndefinedError, match="'failed' is undefined"):
        fill("sweep.html.j2", {}, style="", script="", name="", title="")


def test_assets_follow_one_another():
    assert assets("page.css", "audit.css") == f"{assets('page.css')}\n{assets('audit.css')}"
