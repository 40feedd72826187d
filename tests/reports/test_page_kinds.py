import re
import shutil
from pathlib import Path

import pytest

import heedful
from heedful.errors import RunError
from heedful.papers.reproduction import write_folder_manifest
from heedful.reports.pages import write_page
from heedful.storage.manifest import RunClock, run_kind
from tests.reports.audit_example import audit_example
from tests.reports.test_comparison import beside
from tests.reports.test_followed_page import follow

STORED = Path(__file__).resolve().parents[2] / "results" / "snell2021" / "quick" / "table9.json"


@pytest.fixture
def audit(tmp_path):
    folder = tmp_path / "audit"
    RunClock("audit").finish(folder, audit_example())
    return folder


@pytest.fixture
def paper(tmp_path):
    folder = tmp_path / "results" / "snell2021" / "quick"
    folder.mkdir(parents=True)
    shutil.copy(STORED, folder)
    write_folder_manifest(folder, "snell2021", "quick")
    return folder


def test_a_study(smoke_run, tmp_path):
    assert run_kind(smoke_run) == "study"
    assert "study of" in write_page([smoke_run], out=tmp_path / "page.html").read_text(encoding="utf-8")


def test_an_audit(audit):
    assert run_kind(audit) == "audit"
    assert write_page([audit]) == audit / "report.html"


def test_a_followed_training(tmp_path):
    run = follow(tmp_path / "run", labels=None).root
    assert run_kind(run) == "followed"
    assert write_page([run]) == run / "report.html"


def test_a_paper_by_its_results_or_by_its_work(paper, tmp_path):
    assert run_kind(paper) == "paper"
    page = write_page([paper], out=tmp_path / "page.html").read_text(encoding="utf-8")
    assert "reproduction of snell2021" in page
    assert "were not run" in page
    work = tmp_path / "work" / "snell2021" / "quick"
    write_folder_manifest(work, "snell2021", "quick")
    again = write_page([work], results=tmp_path / "results").read_text(encoding="utf-8")
    assert "table9-quick" in again
    with pytest.raises(RunError, match="heedful reproduce snell2021 all"):
        write_page([work], results=tmp_path / "nothing")


def test_reproduce_writes_the_page_that_the_command_writes(paper, tmp_path):
    folders = {name: tmp_path / name for name in ("results", "work", "docs")}
    (table9,) = heedful.reproduce("snell2021", "table9", **folders, progress=False)
    assert table9.experiment == "table9"
    page = folders["work"] / "snell2021" / "quick" / "report.html"
    assert page.read_bytes() == write_page([paper], out=tmp_path / "page.html").read_bytes()
    assert table9.title in (folders["docs"] / "papers" / "snell2021.md").read_text(encoding="utf-8")


def test_several_studies(smoke_run, tmp_path):
    page = write_page([smoke_run, beside(smoke_run, tmp_path)], out=tmp_path / "page.html")
    assert "studies side by side" in page.read_text(encoding="utf-8")


def test_several_audits(audit, tmp_path):
    other = Path(shutil.copytree(audit, tmp_path / "again"))
    page = write_page([audit, other], out=tmp_path / "page.html").read_text(encoding="utf-8")
    assert "2 audits side by side" in page
    assert "audit and again are not shown to differ in any of" in page
    assert re.search(r'class="badge (yes|no) (reassuring|worrying)"', page)  # looks as on the audit's own page
    assert ">unclear<" not in page


def test_several_followed_trainings(tmp_path):
    run = follow(tmp_path / "run", labels=None).root
    other = Path(shutil.copytree(run, tmp_path / "again"))
    page = write_page([run, other], out=tmp_path / "page.html").read_text(encoding="utf-8")
    assert "2 followed trainings side by side" in page
    assert "run and again are not shown to differ in any of 3 agreements" in page


def test_what_has_no_page(smoke_run, audit, tmp_path):
    with pytest.raises(RunError, match="no such folder"):
        run_kind(tmp_path / "nothing")
    with pytest.raises(RunError, match="not a run of heedful"):
        run_kind(tmp_path)
    with pytest.raises(RunError, match="audit is an audit"):
        write_page([smoke_run, audit], out=tmp_path / "page.html")
    with pytest.raises(RunError, match="no run was named"):
        write_page([])
