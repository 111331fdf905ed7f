"""What of a number in a file is believed."""

import math

import numpy as np
import pytest

import traincast as tc
from traincast.logs import gate

SMALL = float(np.finfo(np.float32).smallest_subnormal)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2.5", 2.5),
        (b"-1e38", -1e38),
        ("1e39", math.inf),  # fp32 ends at 3.4e38
        ("-1e308", math.inf),
        (10**400, math.inf),
        ("9" * 100_000, math.inf),
        ("0." + "1" * 100_000, 1 / 9),
        (math.nan, math.inf),  # a number that was logged, and is not finite
        ("1e-300", 0.0),
        ("", math.nan),
        ("two", math.nan),
    ],
)
def test_a_number_is_believed_as_far_as_fp32_goes(written, read):
    assert gate.number(written) == pytest.approx(read, nan_ok=True)


def test_many_numbers_pass_as_each_of_them_does():
    values = np.array([2.5, -1e38, 1e39, -1e308, np.nan, np.inf, 1e-300, -SMALL])
    expected = [gate.number(value) if value == value else math.nan for value in values]
    assert gate.numbers(values).tolist() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("value", [0, -1, 1e16, math.nan, math.inf, 10**400, "5", True, None])
def test_what_can_be_no_number_of_steps_is_unknown(value):
    assert gate.amount(value) is None
    assert gate.whole(value) is None


def test_steps_are_counted_in_whole_ones():
    assert (gate.amount(2.5), gate.whole(2.5), gate.whole(0.5)) == (2.5, 2, None)


@pytest.mark.parametrize("n_values", [10**12, 10**30])
def test_more_values_than_memory_has_room_for_are_refused_at_once(n_values):
    with pytest.raises(ValueError, match=r"at most 100,000,000 values, not range\(0, 10+\)\."):
        tc.fit_curve(range(n_values), range(n_values))


def test_losses_beyond_fp32_are_left_out_of_a_curve():
    curve = tc.fit_curve(range(1, 51), [1 + 5 / step for step in range(1, 50)] + [1e308])
    assert "1 of 50 points is not finite and was left out." in curve.warnings


def test_losses_that_stay_far_below_0_are_continued():
    curve = tc.fit_curve(range(1, 51), [-1e37] * 50)
    assert curve.predict(100) == pytest.approx(-1e37)
