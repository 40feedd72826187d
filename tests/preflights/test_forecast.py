from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError, RunError
from heedful.papers.heedful2026.calibration import calibration_of
from heedful.preflights import forecast as module
from heedful.preflights.forecast import (
    Calibration,
    MeasuredCheck,
    MeasuredCure,
    MeasuredTime,
    TimeCurve,
    fit_curve,
    forecast,
    held_out_times,
    packaged_calibration,
)


def point(statistic: float, time: float, family: str = "a") -> MeasuredTime:
    return MeasuredTime(family, f"{family}:{statistic}", statistic, time, False)


def test_a_falling_course_is_its_own_curve():
    points = [point(0.0, 160.0), point(0.01, 80.0), point(0.1, 40.0)]
    curve = fit_curve(points)
    np.testing.assert_allclose(curve.at([0.0, 0.01, 0.1]), [160, 80, 40])
    assert curve.at([10.0]) == pytest.approx(40)  # beyond the last knot, its time
    assert 80 < curve.at([0.002])[0] < 160


def test_times_of_equal_statistics_are_pooled_and_a_rise_is_levelled():
    assert fit_curve([point(0.0, 50.0), point(0.0, 200.0)]).time == (100.0,)
    assert fit_curve([point(0.1, 10.0), point(0.2, 40.0)]).time == (20.0, 20.0)


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(1, 1000)), min_size=1, max_size=17))
def test_the_curve_never_rises(pairs):
    curve = fit_curve([point(x, t) for x, t in pairs])
    assert np.all(np.diff(curve.at(np.linspace(0, 1, 101))) <= 1e-6)
    assert min(t for _, t in pairs) * 0.999 <= min(curve.time)
    assert max(curve.time) <= max(t for _, t in pairs) * 1.001


def test_a_family_is_forecast_by_the_others_alone():
    points = [point(0.1, 100.0, "a"), point(0.2, 50.0, "a"), point(0.1, 7.0, "b"), point(0.4, 3.0, "b")]
    changed = [*points[:2], point(0.1, 9.0, "b"), point(0.4, 9.0, "b")]
    assert held_out_times(points)[2:].tolist() == held_out_times(changed)[2:].tolist()
    np.testing.assert_allclose(held_out_times(points)[2:], [100, 50])
    assert np.isnan(held_out_times(points[:2])).all()


def test_nothing_measured_is_a_clear_error():
    with pytest.raises(DataError, match="needs one measured time or more"):
        fit_curve([])


def test_one_knot_is_a_constant():
    assert TimeCurve((0.0,), (30.0,)).at([0.0, 5.0]).tolist() == pytest.approx([30.0, 30.0])


CALIBRATED = Calibration(
    "copy-dose:60",
    50.0,
    tuple(
        MeasuredTime(family, f"{family}:{x}", x, time, time == 200.0)
        for family in ("copy-dose", "copy-sets")
        for x, time in ((0.02, 200.0), (0.5, 50.0), (0.8, 40.0))
    ),
    (
        MeasuredCure("8 heads", "copy-dose:40", 0.5, 0.4, 0.7),
        MeasuredCure("restarts", "copy-dose:40", 0.9, 0.7, 1.2),
        MeasuredCure("shorter sequences first", "copy-dose:40", 0.3, 0.2, 0.4),
    ),
    "heedful reproduce heedful2026 dose, 2026-01-01",
)


def test_a_slow_task_is_forecast_with_interval_origin_and_what_helped():
    slow = forecast(50.0, CALIBRATED)
    assert slow.ratio == pytest.approx(4.0)
    assert slow.low <= slow.ratio <= slow.high
    assert "about 4 times as many training steps as on an easy task" in slow.sentence
    assert "6 copying tasks (copy-dose, copy-sets), heedful reproduce heedful2026 dose, 2026-01-01." in slow.sentence
    assert [line.split(":")[0] for line in slow.advice] == ["shorter sequences first", "8 heads"]
    assert slow.advice[1] == "8 heads: 50% of the steps (40% to 70%) on copy-dose:40"


def test_an_easy_task_needs_no_advice_and_one_beyond_the_range_says_so():
    easy = forecast(2.0, CALIBRATED)
    assert (easy.ratio, easy.advice) == (pytest.approx(1.0), ())
    assert "about as many training steps as on an easy task" in easy.sentence
    assert "Your data are more informative than any of those tasks" in forecast(1.0, CALIBRATED).sentence


def test_how_far_off_it_was_on_real_sentences_is_said():
    checks = (MeasuredCheck("multi30k:de-en", 11.4), MeasuredCheck("toy-de-en", 9.1))
    sentence = forecast(2.0, replace(CALIBRATED, checks=checks)).sentence
    assert sentence.endswith("on multi30k:de-en, toy-de-en training took 9.1 to 11 times as long as forecast.")
    assert "Real sentences" not in forecast(2.0, CALIBRATED).sentence


def test_no_cure_that_worked_is_said_too():
    unsure = replace(CALIBRATED, cures=CALIBRATED.cures[1:2])
    assert forecast(50.0, unsure).advice == ("nothing that was tried clearly shortened learning",)


def test_without_a_calibration_or_with_labels_there_is_no_number(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "packaged_calibration", lambda: None)
    assert forecast(3.0).ratio is None
    assert "it is not calibrated" in forecast(3.0).sentence
    labels = forecast(None, CALIBRATED)
    assert (labels.ratio, "sentence pairs only" in labels.sentence) == (None, True)


def test_the_package_has_the_calibration_of_the_stored_results(tmp_path: Path):
    results = Path(__file__).resolve().parents[2] / "results"
    if not (results / "heedful2026" / "quick" / "dose.json").exists():
        assert packaged_calibration() is None
    else:
        assert packaged_calibration() == calibration_of(results)
    CALIBRATED.save(tmp_path / "c.json")
    assert Calibration.load(tmp_path / "c.json") == CALIBRATED
    with pytest.raises(RunError, match="heedful reproduce heedful2026 dose cures"):
        calibration_of(tmp_path)
