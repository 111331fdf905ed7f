"""A curve is an ensemble: its answers to different questions come from the same members."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.curves.curve import Curve, weighted_quantiles
from traincast.curves.status.arrival import Speed, arrival
from traincast.errors import InputError


class Lines:
    """Members that fall by a constant a step."""

    def __init__(self, starts, slopes):
        self.starts, self.slopes = np.array(starts, float), np.array(slopes, float)

    def values(self, steps):
        return self.starts[:, None] - self.slopes[:, None] * steps[None, :]


def lines(slopes, *, total_steps=None, weights=None):
    n = len(slopes)
    return Curve(
        family="lines",
        members=Lines([10.0] * n, slopes),
        weights=np.full(n, 1 / n) if weights is None else np.array(weights),
        first_step=1.0,
        last_step=10.0,
        total_steps=total_steps,
    )


def test_the_median_member_predicts_and_others_make_the_interval():
    curve = lines([0.1, 0.2, 0.3])
    assert curve.predict(10) == pytest.approx(8.0)
    low, high = curve.interval(10)
    assert 7.0 <= low < 8.0 < high <= 9.0


def test_several_steps_are_answered_at_once():
    curve = lines([0.1, 0.2, 0.3])
    assert curve.predict([0, 10, 20]) == pytest.approx([10.0, 8.0, 6.0])
    low, high = curve.interval([0, 10])
    assert (low <= high).all()


def test_a_target_is_reached_where_the_line_crosses_it():
    curve = lines([0.2], total_steps=100)
    assert curve.steps_to(6.0) == pytest.approx(20.0, rel=1e-3)


def test_members_that_never_get_there_make_the_answer_infinite_and_the_probability_small():
    curve = lines([0.0, 0.0, 0.0, 0.2], total_steps=100)
    assert curve.steps_to(6.0) == np.inf
    assert curve.interval_to(6.0)[1] == np.inf
    assert curve.probability_of(6.0) == pytest.approx(0.25)
    assert curve.probability_of(6.0, by_step=10) == 0.0


def test_an_accuracy_reaches_its_target_from_below():
    curve = Curve(
        family="lines",
        members=Lines([0.0], [-0.01]),
        weights=np.ones(1),
        first_step=1.0,
        last_step=10.0,
        total_steps=100,
        is_rising=True,
    )
    assert curve.steps_to(0.5) == pytest.approx(50.0, rel=1e-2)


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=30))
def test_equal_weights_give_quantiles_between_the_lowest_and_the_highest(values):
    column = np.array(values)[:, None]
    found = weighted_quantiles(column, np.full(len(values), 1 / len(values)), (0.1, 0.5, 0.9))[:, 0]
    assert min(values) - 1e-12 <= found[0] <= found[1] <= found[2] <= max(values) + 1e-12


@pytest.mark.parametrize("step", [-1, np.nan, np.inf])
def test_a_step_that_is_none_is_refused(step):
    with pytest.raises(InputError, match="finite number of at least 0"):
        lines([0.1]).predict(step)


def test_a_target_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="A target should be a finite number"):
        lines([0.1]).steps_to(np.nan)


def test_an_arrival_asks_every_member_once_and_says_what_the_curve_says():
    curve, asked = lines([0.1, 0.2, 0.3], total_steps=60.0), []

    class Counted(Lines):
        def values(self, steps):
            asked.append(len(steps))
            return super().values(steps)

    counted = replace(curve, members=Counted([10.0] * 3, [0.1, 0.2, 0.3]))
    found = arrival(counted, 4.0, speed=Speed(step_s=2.0, log_sd=0.0, source="told"))
    assert len(asked) == 1
    assert found.steps.p50 == curve.steps_to(4.0)
    assert (found.steps.p10, found.steps.p90) == curve.interval_to(4.0)
    assert found.probability == curve.probability_of(4.0)
    assert found.from_now_s.p50 == pytest.approx(2.0 * (found.steps.p50 - 10.0))
