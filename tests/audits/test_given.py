"""Explanations that were computed elsewhere: their forms, their alignment with words, and their rank."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from heedful.attribution.interface import Passage
from heedful.audits.audit import run_audit
from heedful.audits.given import GivenExplanation, given_explanations, read_explanations
from heedful.audits.result import AuditResult
from heedful.errors import ConfigError, DataError
from tests.audits.zoo import SETTINGS, decides, passages

PASSAGE = Passage(3, ("<s>", "unsung", "hero", "!"), (True, False, False, False), (1, 5, 6, 7, 8), (0, 1, 1, 2, 3), 1)
QUICK = replace(SETTINGS, measures=("tau", "erasure", "maps"), random_models=0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([1.0, -2.0, 3.0], [0, 1, -2, 3]),  # words
        ([9.0, 1.0, -2.0, 3.0], [9, 1, -2, 3]),  # words, special ones too
        ([9.0, 0.5, 0.5, -2.0, 3.0], [9, 1, -2, 3]),  # pieces
        ((["un", "##sung", "Ġhero", "!"], [0.5, 0.5, -2.0, 3.0]), [0, 1, -2, 3]),  # tokens of another tokeniser
        ({"words": ["<s>", "unsung ", "hero!"], "scores": [9.0, 1.0, 5.0]}, [9, 1, 4, 1]),  # shared by letters
        (np.array([[0.0, 1.0], [0.0, -2.0], [7.0, 3.0]]), [0, 1, -2, 3]),  # one column for each label
    ],
    ids=["words", "all words", "pieces", "tokens", "letters", "labels"],
)
def test_scores_of_any_tokens_become_scores_of_words(given, expected):
    np.testing.assert_allclose(GivenExplanation("shap", {3: given}).row(PASSAGE), expected)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({}, "there are no scores"),
        ({3: [1.0]}, "1 scores, but 3 words in 5 pieces"),
        ({3: [1.0, float("nan"), 2.0]}, "finite"),
        ({3: ["a", "b", "c"]}, "not numbers"),
        ({3: (["other", "words"], [1.0, 2.0])}, "the text continues with 'unsung'"),
        ({3: (["unsung"], [1.0, 2.0])}, "1 words, but 2 scores"),
    ],
)
def test_scores_that_do_not_fit_are_refused(rows, message):
    with pytest.raises(DataError, match=message):
        GivenExplanation("shap", rows).row(PASSAGE)


def test_every_form_of_explanations_is_read(tmp_path):
    path = tmp_path / "shap.jsonl"
    lines = [{"explainer": "shap", "text": 3, "scores": [1, 2, 3], "seconds": 0.5, "words": ["unsung", "hero", "!"]}]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert read_explanations(path)["shap"].seconds == 0.5
    object_of_shap = SimpleNamespace(values=[None] * 3 + [[1, 2, 3]], data=[[""]] * 3 + [["unsung", "hero", "!"]])
    for given in (path, {"shap": {3: [1, 2, 3]}}, {"shap": object_of_shap}, {"shap": lambda texts: [[1, 2, 3]]}):
        read = given_explanations(given, [PASSAGE], {})
        np.testing.assert_allclose(read["shap"].row(PASSAGE), [0, 1, 2, 3])
    assert read["shap"].seconds >= 0
    with pytest.raises(DataError, match="returned 2 rows for 1 texts"):
        given_explanations({"shap": lambda texts: [1, 2]}, [PASSAGE], {})
    with pytest.raises(ConfigError, match="by name"):
        given_explanations([[1, 2, 3]], [PASSAGE], {})
    path.write_text('{"explainer": "shap"}')
    with pytest.raises(DataError, match=r"shap\.jsonl:1: there is no 'text'"):
        read_explanations(path)


def test_a_good_explanation_is_shown_and_a_wrong_one_is_not(tmp_path):
    def of_key(texts):
        return [[float(word in ("dull", "fine")) for word in words] for words in texts]

    def of_others(texts):
        return [[float(word not in ("dull", "fine")) - 0.01 * i for i, word in enumerate(words)] for words in texts]

    given = {"key": of_key, "others": of_others}
    result = run_audit(decides(), passages(60), out=tmp_path, settings=QUICK, explanations=given)
    grades = {e.name: e.verdict.grade for e in result.explanations}
    assert (grades["key"], grades["others"]) == ("show", "do not show")
    assert [e.name for e in result.explanations][-1] == "others"
    answers = {e.name: [q.answer for q in e.verdict.questions] for e in result.explanations}
    assert answers["key"] == ["unclear", "yes", "unclear", "yes", "unclear", "unclear"]
    assert result.seconds()["key"] >= 0
    stored = AuditResult.load(tmp_path / "result.json")
    assert stored.ranking() == result.ranking()
    assert len(stored.to_pandas("words")) == sum(int(p.explained().sum()) for p in passages(60))
    example = stored.explain(41)  # beyond those that the result itself holds
    assert [w.name for w in example.explanations if w.name == "key"] == ["key"]
    assert example.map == pytest.approx(result.explain(41).map)
    with pytest.raises(DataError, match="no text 60"):
        stored.explain(60)
    with pytest.raises(ConfigError, match="no table 'rows'"):
        stored.to_pandas("rows")
