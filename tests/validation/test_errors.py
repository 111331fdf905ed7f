"""Errors in a few figures, on numbers that can be checked in one's head."""

import numpy as np
import pytest

from traincast.validation.errors import groups_of, is_coverage_right, summarise


def test_median_mean_and_bias_of_three_rows():
    found = summarise(np.array([1.1, 1.0, 1.6]), np.array([1.0, 1.25, 2.0]))
    assert found.n == 3
    assert found.median_absolute_fraction == pytest.approx(0.2)  # of 0.1, 0.2, 0.2
    assert found.mean_absolute_fraction == pytest.approx(0.5 / 3)
    assert found.bias_fraction == pytest.approx(-0.2)  # too fast
    assert found.coverage_fraction is None
    assert found.is_coverage_right is None


def test_rows_without_an_answer_are_counted_and_not_scored():
    found = summarise(np.array([np.nan, 2.0]), np.array([1.0, 1.0]))
    assert (found.n, found.n_unanswered, found.mean_absolute_fraction) == (1, 1, 1.0)


def test_no_answer_at_all_has_no_figures():
    found = summarise(np.array([np.nan]), np.array([1.0]), np.array([0.1]))
    assert found.n == 0
    assert np.isnan(found.median_absolute_fraction)
    assert found.coverage_fraction is None


def test_coverage_counts_rows_between_p10_and_p90():
    # A deviation of 0.1 reaches from a factor of exp(-0.128) = 0.88 to exp(0.128) = 1.137.
    found = summarise(np.array([1.13, 1.14, 0.89, 0.87]), np.ones(4), np.full(4, 0.1))
    assert found.n_inside == 2
    assert found.coverage_fraction == 0.5


@pytest.mark.parametrize(
    ("n_inside", "n", "is_right"),
    [
        (150, 200, True),  # 75 %
        (149, 200, False),
        (170, 200, True),
        (171, 200, False),
        (146, 199, False),  # 73.4 % of few rows: chance would explain it less than once in twenty times
        (149, 199, True),
        (3, 3, True),  # all of three is what 80 % gives every other time
        (0, 3, False),
        (34, 34, False),  # all of 34: too wide
        (27, 34, True),
    ],
)
def test_coverage_is_judged_by_share_or_by_chance(n_inside, n, is_right):
    assert is_coverage_right(n_inside, n) is is_right


def test_groups_are_rows_that_agree_in_all_tags():
    tags = {"device": np.array(["T4", "A10", "T4"]), "op": np.array(["add", "add", "mul"])}
    by_device = groups_of(tags, ["device"])
    assert list(by_device) == [("A10",), ("T4",)]
    assert by_device[("T4",)].tolist() == [True, False, True]
    both = groups_of(tags, ["device", "op"])
    assert list(both) == [("A10", "add"), ("T4", "add"), ("T4", "mul")]
