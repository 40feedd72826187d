import sys

import pytest

from heedful.audits.result import (
    AuditExample,
    AuditQuestion,
    AuditResult,
    AuditVerdict,
    LabelCount,
    Score,
    Weights,
    find,
    score_row,
)
from heedful.errors import ConfigError, MissingExtraError
from heedful.metrics.statistics import Estimate

NAN = float("nan")


def result():
    return AuditResult(
        settings={"seed": 0, "sample": None},
        fingerprint="abc",
        layers=1,
        heads=2,
        query="first",
        headline="layer 1",
        texts=3,
        passages=3,
        cut=0,
        cut_pieces=0,
        labels=(LabelCount("<b>", 1, 2),),
        accuracy=None,
        random_agreement=0.2,
        rationale_percent=None,
        scores=(
            Score("tau", "layer 1", "gradient", Estimate(0.5, 0.25, 0.75, 3)),
            Score("entropy", "layer 1", "", Estimate(NAN, NAN, NAN, 0, 3)),
        ),
        contrasts=(),
        verdict=AuditVerdict("It <may> be.", (AuditQuestion("Is & was?", "unclear", "not asked: <no>"),)),
        examples=(AuditExample(0, ("a", "<b>"), "yes", None, 0.9, (0.5, 0.5), (Weights("gradient", (0.1, 0.9)),)),),
    )


def test_saved_and_loaded_is_the_same(tmp_path):
    made = result()
    made.save(tmp_path / "result.json")
    loaded = AuditResult.load(tmp_path / "result.json")
    assert loaded.to_dict() == made.to_dict()
    assert loaded.examples == made.examples
    assert loaded.score("entropy", "layer 1").undefined == 3


def test_scores_by_name():
    assert result().score("tau", "layer 1", "gradient").value == 0.5
    assert find(result().scores, "tau", "layer 2", "gradient") is None
    with pytest.raises(KeyError, match="layer 1"):
        result().score("tau", "layer 2", "gradient")


def test_a_table_for_pandas():
    pytest.importorskip("pandas")
    table = result().to_pandas()
    assert list(table.columns) == list(score_row(result().scores[0]))
    assert table["value"].iloc[0] == 0.5


def test_without_pandas_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError, match="pandas"):
        result().to_pandas()


def test_shown_in_a_notebook_nothing_is_markup():
    page = result()._repr_html_()
    assert "It &lt;may&gt; be." in page
    assert "&lt;no&gt;" in page
    assert "<no>" not in page


def test_a_file_of_another_kind_is_an_error(tmp_path):
    (tmp_path / "other.json").write_text('{"tasks": 3}')
    with pytest.raises(ConfigError, match="unknown setting 'tasks'"):
        AuditResult.load(tmp_path / "other.json")
