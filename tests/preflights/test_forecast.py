import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import DataError
from heedful.preflights.forecast import MeasuredTime, TimeCurve, fit_curve, held_out_times


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
