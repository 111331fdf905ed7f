"""The front and the recommended plans against brute force."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.planning.pareto import Limits, cheapest, fastest, front, nearest

POINTS = st.lists(
    st.tuples(st.integers(1, 8), st.integers(1, 8), st.floats(0, 1)).map(lambda one: tuple(map(float, one))),
    min_size=1,
    max_size=25,
)


@given(POINTS)
def test_the_front_is_what_nothing_else_beats(points):
    times, costs, _ = (np.array(column) for column in zip(*points, strict=True))
    expected = {(t, c) for t, c, _ in points if not any((a <= t and b <= c) and (a < t or b < c) for a, b, _ in points)}
    found = front(times, costs)
    assert {(times[n], costs[n]) for n in found} == expected
    assert len(found) == len(expected)  # of equal ones one
    assert (np.diff(times[found]) > 0).all()
    assert (np.diff(costs[found]) < 0).all()


def test_what_cannot_finish_is_not_on_the_front():
    assert front(np.array([np.inf, 2.0]), np.array([1.0, 5.0])).tolist() == [1]


@given(POINTS, st.floats(0, 1))
def test_cheapest_and_fastest_are_those_of_a_plain_search(points, confidence):
    times, costs, chances = (np.array(column) for column in zip(*points, strict=True))
    kept = [one for one in points if one[2] >= confidence]
    best = cheapest(times, costs, chances >= confidence)
    quick = fastest(times, costs, chances >= confidence)
    if not kept:
        assert best is None
        assert quick is None
    else:
        assert (costs[best], times[best]) == min((c, t) for t, c, _ in kept)
        assert (times[quick], costs[quick]) == min((t, c) for t, c, _ in kept)


def test_the_nearest_is_the_likeliest_and_then_the_least_beyond():
    times, limit = np.array([30.0, 20.0, 25.0, np.inf]), np.full(4, 10.0)
    assert nearest(times, limit, np.array([0.1, 0.0, 0.3, 0.9])) == 2
    assert nearest(times, limit, np.zeros(4)) == 1


def test_a_budget_is_a_deadline_at_a_price():
    limits = Limits(deadline_s=7_200.0, budget_usd=10.0)
    assert limits.time_s(np.array([1.0, 5.0, 20.0])).tolist() == [7_200, 7_200, 1_800]


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        ({"deadline_s": -1.0}, "A deadline should be above 0, not -1 seconds."),
        ({"budget_usd": 0.0}, "A budget should be above 0, not 0 US dollars."),
        ({"confidence": 0.4}, "A confidence should be at least 0.5 and below 1, not 0.4."),
    ],
)
def test_limits_that_cannot_be_meant_are_refused(limits, words):
    with pytest.raises(InputError) as caught:
        Limits(**limits)
    assert str(caught.value) == words
