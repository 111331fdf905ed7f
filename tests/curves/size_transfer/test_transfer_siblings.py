"""One quantity of a model that has not run, from its siblings."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincast.curves.size_transfer.siblings import SCALES, Siblings

THIN = (20, 32, 44, 56)


def siblings(values, depths, families=None, **options):
    """One run of each model."""
    return Siblings(
        log_values=np.log(values),
        model_of=np.arange(len(values)),
        log_depths=np.log(depths),
        families=tuple(families or [""] * len(values)),
        **options,
    )


def quantiles(known, depth, family=""):
    drawn = known.draws(math.log(depth), family, n_draws=4000, seed=0)
    return np.exp(np.quantile(drawn, (0.1, 0.5, 0.9)))


def test_a_power_of_depth_that_four_models_share_is_continued():
    known = siblings([1e-4 * depth**0.5 for depth in THIN], THIN)
    low, middle, high = quantiles(known, 40)
    assert middle == pytest.approx(1e-4 * 40**0.5, rel=0.02)
    assert low < middle < high


def test_a_family_of_one_stays_near_its_own_model_rather_than_near_the_others():
    known = siblings([1.0, 1.0, 1.0, 1.0, 3.0], (*THIN, 30), ["thin"] * 4 + ["wide"])
    assert quantiles(known, 34, "wide")[1] == pytest.approx(3.0, rel=0.1)
    assert quantiles(known, 34, "thin")[1] == pytest.approx(1.0, rel=0.1)


def test_a_family_of_one_takes_part_of_the_slope_of_the_others_but_not_all():
    slope = 1.0
    depths = (*THIN, 34)
    known = siblings([depth**slope / 34 for depth in depths], depths, ["thin"] * 4 + ["wide"])
    taken = math.log(quantiles(known, 68, "wide")[1]) / math.log(2)
    assert 0.2 < taken < 0.9


def test_a_family_of_one_is_less_certain_than_a_family_of_four():
    known = siblings([depth**0.5 for depth in (*THIN, 34)], (*THIN, 34), ["thin"] * 4 + ["wide"])
    thin, wide = quantiles(known, 50, "thin"), quantiles(known, 50, "wide")
    assert wide[2] / wide[0] > 2 * thin[2] / thin[0]


def test_the_interval_widens_beyond_what_was_seen():
    known = siblings([depth**0.5 for depth in THIN], THIN)
    inside, outside = quantiles(known, 40), quantiles(known, 400)
    assert outside[2] / outside[0] > inside[2] / inside[0]


def test_runs_that_differ_make_the_next_run_uncertain():
    depths, noise = np.repeat(THIN, 3), np.tile([0.7, 1.0, 1.4], 4)
    known = Siblings(
        log_values=np.log(depths**0.5 * noise),
        model_of=np.repeat(np.arange(4), 3),
        log_depths=np.log(THIN),
        families=("",) * 4,
    )
    assert known.run_variance == pytest.approx(np.log([0.7, 1.0, 1.4]).var(ddof=1))
    low, _, high = quantiles(known, 40)
    assert high / low > 1.5


def test_p10_to_p90_holds_four_of_five_models_of_worlds_as_the_priors_describe_them():
    rng = np.random.default_rng(5)
    depths, families = np.array([18, 20, 32, 44, 56, 50]), np.array([1, 0, 0, 0, 0, 1])
    x = np.log(depths) - np.log(depths[:5]).mean()
    inside = []
    for _ in range(80):
        apart, common, own, model = np.abs(rng.normal(size=4)) * SCALES
        slopes = common * rng.normal() + own * rng.normal(size=2)
        logs = (apart * rng.normal(size=2))[families] + slopes[families] * x + model * rng.normal(size=6)
        known = siblings(np.exp(logs[:5]), depths[:5], [str(family) for family in families[:5]])
        low, _, high = quantiles(known, depths[5], "1")
        inside.append(low <= np.exp(logs[5]) <= high)
    assert 0.7 < np.mean(inside) < 0.9


def test_models_that_ran_once_have_no_spread_of_runs():
    assert siblings([1.0, 2.0], (10, 20)).run_variance == 0.0


def test_narrower_priors_give_narrower_intervals():
    wide = quantiles(siblings([1.0, 2.0], (10, 20)), 100)
    narrow = quantiles(siblings([1.0, 2.0], (10, 20), scales=(0.1, 0.1, 0.1, 0.03)), 100)
    assert narrow[2] / narrow[0] < wide[2] / wide[0]


@settings(max_examples=10, deadline=None)
@given(
    values=st.lists(st.floats(0.5, 2.0), min_size=3, max_size=4),
    factor=st.floats(1e-6, 1e6),
)
def test_another_unit_of_the_quantity_only_scales_the_answer(values, factor):
    depths = THIN[: len(values)]
    one = quantiles(siblings(values, depths), 50)
    other = quantiles(siblings([factor * value for value in values], depths), 50)
    assert other == pytest.approx(factor * one, rel=1e-6)


@settings(max_examples=10, deadline=None)
@given(factor=st.floats(0.1, 10.0), values=st.lists(st.floats(0.5, 2.0), min_size=4, max_size=4))
def test_another_unit_of_depth_changes_nothing(factor, values):
    one = quantiles(siblings(values, THIN), 50)
    other = quantiles(siblings(values, [factor * depth for depth in THIN]), factor * 50)
    assert other == pytest.approx(one, rel=1e-6)


@settings(max_examples=10, deadline=None)
@given(order=st.permutations(range(4)))
def test_the_order_of_the_models_does_not_matter(order):
    values, depths = np.array([1.0, 1.3, 1.1, 1.9]), np.array(THIN)
    one = quantiles(siblings(values, depths), 50)
    assert quantiles(siblings(values[list(order)], depths[list(order)]), 50) == pytest.approx(one, rel=1e-6)
