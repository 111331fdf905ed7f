"""Many timings in a few numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.measurement.statistics import Summary, are_outliers, summarise

durations = st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=60)


def test_numbers_that_can_be_checked_in_ones_head():
    summary = summarise([1.0, 2.0, 3.0, 4.0, 5.0])
    assert (summary.n, summary.median, summary.minimum, summary.mean, summary.total) == (5, 3.0, 1.0, 3.0, 15.0)
    assert (summary.p10, summary.p90) == (pytest.approx(1.4), pytest.approx(4.6))


def test_a_step_that_lost_its_core_is_counted_but_moves_neither_median_nor_interval():
    quiet = [0.100, 0.101, 0.102, 0.103, 0.104, 0.105, 0.106]
    noisy = summarise([*quiet, 9.0])
    assert noisy.n_outliers == 1
    assert noisy.n == 8
    assert (noisy.median, noisy.p10, noisy.p90) == pytest.approx(
        (summarise(quiet).median, summarise(quiet).p10, summarise(quiet).p90)
    )
    assert noisy.total == pytest.approx(sum(quiet) + 9.0)  # but the time was really spent


def test_steps_that_repeat_to_the_digit_forgive_a_tenth_but_not_a_half():
    assert are_outliers([1.0] * 9 + [1.1]).sum() == 0
    assert are_outliers([1.0] * 9 + [1.5]).sum() == 1


def test_four_steps_are_too_few_to_call_one_of_them_wrong():
    assert summarise([1.0, 1.0, 1.0, 50.0]).n_outliers == 0


@given(durations)
def test_the_numbers_of_a_summary_are_in_order(values):
    summary = summarise(values)
    slack = 1e-12 * max(values)
    assert min(values) == summary.minimum <= summary.p10 + slack
    assert summary.p10 <= summary.median + slack
    assert summary.median <= summary.p90 + slack
    assert summary.p90 <= max(values) + slack
    assert 0 <= summary.n_outliers < summary.n == len(values)


@given(durations, st.floats(0.01, 100.0))
def test_in_another_unit_it_is_the_same_summary(values, factor):
    one, other = summarise(values), summarise([factor * value for value in values])
    assert other.n_outliers == one.n_outliers
    assert other.median == pytest.approx(factor * one.median)
    assert other.p90 == pytest.approx(factor * one.p90)
    assert other.spread_fraction == pytest.approx(one.spread_fraction, abs=1e-9)


@given(durations)
def test_the_order_of_the_steps_does_not_matter(values):
    assert summarise(values[::-1]).median == summarise(values).median
    assert summarise(values[::-1]).n_outliers == summarise(values).n_outliers


@given(st.lists(st.floats(0.9, 1.1), min_size=9, max_size=60))
def test_one_endless_step_never_moves_the_interval_beyond_the_others(values):
    assert summarise([*values, 1e6]).p90 <= max(values)


def test_the_spread_of_normal_noise_is_its_standard_deviation():
    values = np.random.default_rng(0).normal(1.0, 0.05, size=4000)
    assert summarise(values).spread_fraction == pytest.approx(0.05, rel=0.1)


def test_a_summary_goes_through_json_and_back():
    summary = summarise([1.0, 2.0, 4.0])
    assert Summary.from_dict(summary.to_dict()) == summary


@pytest.mark.parametrize("values", [[], [float("nan")], [1.0, float("inf")]])
def test_nothing_and_what_is_no_number_have_no_summary(values):
    with pytest.raises(ValueError, match="finite numbers"):
        summarise(values)
