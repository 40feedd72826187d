"""axe-core finds nothing serious on any kind of page."""

import shutil
from pathlib import Path

import pytest

from heedful.reports.audit_page import write_audit_page
from heedful.reports.pages import write_page, write_report
from heedful.reports.paper_page import write_paper_report
from heedful.storage.manifest import RunClock
from tests.browser.chromium import in_a_browser, leaves_nothing_and_complains_of_nothing, serious_faults, settle, visit
from tests.reports.audit_example import audit_example
from tests.reports.test_comparison import beside
from tests.reports.test_followed_page import RIGHT, follow
from tests.reports.test_paper_page import CLAIM, RESULTS

pytestmark = in_a_browser
FEW = """
const find = document.getElementById('find');
if (find) { find.value = arguments[0]; find.dispatchEvent(new Event('input', { bubbles: true })); }
for (const details of document.querySelectorAll('details')) details.open = true;
"""


@pytest.fixture(params=["study", "translation", "comparison", "audit", "audits", "following", "followed", "paper"])
def page(request, smoke_run, smoke_translation_run, tmp_path):
    out = tmp_path / "page.html"
    if request.param == "study":
        return write_report(smoke_run, out=out)
    if request.param == "translation":
        return write_report(smoke_translation_run, out=out)
    if request.param == "comparison":
        return write_page([smoke_run, beside(smoke_run, tmp_path)], out=out)
    if request.param == "audit":
        return write_audit_page(audit_example(), out, "heedful audit")
    if request.param == "audits":
        return write_page([audit_folder(tmp_path / name) for name in ("one", "two")], out=out)
    if request.param == "followed":
        one = follow(tmp_path / "one", labels=RIGHT).root
        return write_page([one, Path(shutil.copytree(one, tmp_path / "two"))], out=out)
    if request.param == "following":
        return write_report(follow(tmp_path / "run", labels=RIGHT).root, out=out)
    return write_paper_report(RESULTS, [CLAIM], out)


def audit_folder(folder):
    folder.mkdir()
    RunClock("audit").finish(folder, audit_example())
    return folder


def test_nothing_serious(browser, page):
    visit(browser, page)
    leaves_nothing_and_complains_of_nothing(browser)
    browser.execute_script(FEW, "good" if "Pair" not in browser.page_source else "Hund")
    settle(browser)
    assert serious_faults(browser) == []
