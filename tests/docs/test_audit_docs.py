"""Audits on a page of the docs: numbers come from what was stored, texts of the data are not stored at all."""

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from docs.tools.audit_docs import AuditStory, StoredAudit, stored_audit, write_audit_docs

from heedful.audits.result import Contrast
from heedful.errors import DataError
from heedful.followed.result import FollowedStep, FollowedTraining, StepAgreement
from heedful.storage.atomic_files import write_json
from heedful.storage.manifest import RunClock
from heedful.studies.run_directory import RunDirectory
from tests.reports.audit_example import around, audit_example


def followed() -> FollowedTraining:
    agreements = tuple(
        StepAgreement(f"A({u},{v})", around(0.3), around(0.2), around(0.1), around(0.05), 0)
        for u, v in (("alpha", "beta"), ("alpha", "delta"), ("delta", "beta"))
    )
    steps = tuple(FollowedStep(step, 0.5 + step / 100, 0.7, around(0.9), 0.4, agreements) for step in (0, 10, 20))
    return FollowedTraining("mine", "Bert", 30, 0.05, steps)


@pytest.fixture
def folder(tmp_path):
    """What `heedful audit` and a followed training leave behind."""
    RunClock("audit", "heedful audit m d --sample 40").finish(tmp_path / "audit", audit_example())
    write_json(tmp_path / "training.json", {"command": "python train.py", "steps": 80, "cpu_seconds": 61.0})
    write_json(tmp_path / "followed" / "result.json", followed().to_dict())
    return tmp_path


def test_what_is_stored_is_all_but_the_texts(folder):
    stored = stored_audit(folder / "audit", training=folder / "training.json", following=folder / "followed")
    stored.save(folder / "stored.json")
    again = StoredAudit.load(folder / "stored.json")
    whole = audit_example()
    assert again.result.to_dict() == replace(whole, examples=(), verdict=again.result.verdict).to_dict()
    assert [q.question for q in again.result.verdict.questions] == [q.question for q in stored.result.verdict.questions]
    assert again.training["steps"] == 80
    assert again.following.to_dict() == followed().to_dict()
    assert again.provenance.command == "heedful audit m d --sample 40"
    assert audit_example().examples[0].words[0] not in (folder / "stored.json").read_text().split('"')


def test_a_page_with_pictures_from_what_was_stored(folder):
    stored = stored_audit(folder / "audit", training=folder / "training.json", following=folder / "followed")
    m1 = Contrast("tau", "hidden gradient", "gradient", around(0.123), 0.01, 0.02)
    stored = replace(stored, result=replace(stored.result, contrasts=(*stored.result.contrasts, m1)))
    stories = [AuditStory("mine", "My <model>", "Words of *ours*.", stored)]
    page = write_audit_docs(stories, folder / "docs" / "audit.md")
    text = page.read_text()
    assert "## My &lt;model&gt;" in text
    assert "Words of *ours*." in text
    assert "0.123 (0.073–0.173)" in text
    assert "CPU time of training | 1 min 1 s" in text
    assert "heedful audit m d --sample 40" in text
    assert stored.result.verdict.questions[0].question in text
    pictures = [part.split(")")[0] for part in text.split("](figures/audit/")[1:]]
    assert len(pictures) == 5
    for name in pictures:
        drawn = ElementTree.parse(page.parent / "figures" / "audit" / name).getroot()
        assert drawn.get("viewBox")
        assert len(list(drawn.iter())) > 10  # something is drawn
    before = page.read_bytes()
    assert write_audit_docs(stories, page).read_bytes() == before


def test_what_was_not_measured_is_not_drawn(folder):
    stored = stored_audit(folder / "audit")
    bare = replace(stored.result, scores=(), contrasts=(), rationale_percent=None)
    page = write_audit_docs(
        [AuditStory("bare", "Bare", "Words.", replace(stored, result=bare))], folder / "docs" / "audit.md"
    )
    text = page.read_text()
    assert "figures/audit" not in text
    assert "claim M1" not in text
    assert stored.result.verdict.sentence[:20] in text


def test_a_study_says_how_its_model_was_trained(folder, smoke_run):
    config = RunDirectory(smoke_run).config()
    assert stored_audit(folder / "audit", training=smoke_run).training == {
        "data": config.data,
        "steps": config.train.steps,
        "batch": config.train.batch_size,
        "rate": config.train.learning_rate,
        "longest": config.max_length,
        "encoder": "bilstm, 24 → 16 in each direction",
        "texts": RunDirectory(smoke_run).data_summary()["train"],
    }


def test_a_folder_that_is_no_audit(tmp_path):
    with pytest.raises(DataError, match="not the folder of a finished audit"):
        stored_audit(tmp_path)
