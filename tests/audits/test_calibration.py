"""The calibration of audits in short: one trained model, one network of each architecture, and the page's tables."""

import pytest

from calibration import audits
from heedful.audits.verdict import QUESTIONS
from tests.audits import zoo_trained


@pytest.mark.parametrize("name", list(zoo_trained.UNTRAINED))
def test_nothing_is_said_in_favour_of_a_network_that_never_learned(name):
    found = audits.run_unit(("untrained", name, 30, 11))
    assert found["grade"] == "do not show"
    assert [answer == good for answer, good in zip(found["answers"], audits.REASSURING, strict=True)] == [False] * 6


def test_sparsemax_that_decides_is_seen_to(tmp_path):
    unit = ("trained", audits.TRAINED[0], 60, 0)
    found = audits.stored_unit(str(tmp_path), unit)
    assert found["marked"] > 0.9
    assert found["answers"][:2] == ["yes", "yes"]
    assert found["answers"][3] == "yes"
    assert audits.stored_unit(str(tmp_path), unit) == found


def test_the_page_counts_what_was_measured():
    made = {"answers": ["yes"] * 6, "values": [0.1] * 6, "excess": 0.2, "grade": "show", "sentence": ""}
    made["without position rule"] = ["no"] * 6
    made["maps"] = {"norm": {"answers": ["yes", "yes", "no", "unclear", "no", "yes"], "grade": "show"}}
    known = made | {"right": ["yes"] * 5 + ["no"], "right grade": ["show"]}
    power = {unit: made for unit in audits.units() if unit[0] == "power"}
    measured = {
        "texts": audits.TEXTS,
        "drawn": audits.HELD_OUT,
        "zoo": audits._right({("zoo", "one", 60, seed): known for seed in range(3)}),
        "untrained": audits._false({("untrained", "BERT", 60, 0): made}),
        "position": audits._position({("untrained", "BERT", 60, seed): made for seed in range(3)}),
        "power": audits._power(power),
    }
    text = audits.rows(measured)
    assert f"| {QUESTIONS[0]} | 3 of 3 | 29.2%–100.0% | 0 | 3 |" in text
    assert f"| {QUESTIONS[5]} | 0 of 3 | 0.0%–70.8% | 0 | 3 |" in text
    assert "| any grade but *do not show* | 1 of 1 |" in text
    assert "| norm | 1 of 1 | 0 of 1 | 0 of 1 | 1 of 1 | 100.0% |" in text
    assert "| raw |" not in text  # no network allowed it
    assert "| untrained networks | 3 | 3 / 0 / 0 | 0 / 3 / 0 |" in text
    assert text.count("| 10 / 0 | 10 / 0 | 10 / 0 |") == sum(map(len, audits.POWER.values()))
    assert text.count("| 10 / 0 | 10 / 0 | 10 / 0 | 10 / 0 |") == len(audits.POWER["agrees"])
