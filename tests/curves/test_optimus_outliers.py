"""Points far from their neighbours are left out; the curve itself never is."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traincast.curves.optimus_outliers import far_from_neighbours


def noisy(n_points: int, seed: int = 0) -> np.ndarray:
    steps = np.arange(1.0, n_points + 1)
    return (1 / (0.02 * steps + 0.4) + 0.1) * np.random.default_rng(seed).normal(1.0, 0.02, n_points)


@pytest.mark.parametrize("n_points", [12, 100, 129, 1000, 10_001])
@pytest.mark.parametrize("factor", [3.0, 0.2])
def test_a_single_spike_and_a_single_dip_are_found(n_points, factor):
    losses = noisy(n_points)
    place = n_points // 2
    losses[place] *= factor
    assert np.flatnonzero(far_from_neighbours(losses)).tolist() == [place]


def test_two_spikes_in_a_row_are_found():
    losses = noisy(200)
    losses[[90, 91]] += 5.0
    assert np.flatnonzero(far_from_neighbours(losses)).tolist() == [90, 91]


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300))
def test_a_curve_that_only_falls_has_no_outliers(losses):
    assert not far_from_neighbours(np.sort(losses)[::-1]).any()


@settings(deadline=None)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300))
def test_at_most_a_tenth_is_left_out(losses):
    assert far_from_neighbours(np.array(losses)).mean() <= 0.1


@pytest.mark.parametrize("seed", range(5))
def test_ordinary_noise_has_nearly_no_outliers(seed):
    assert far_from_neighbours(noisy(10_000, seed)).sum() <= 1


def test_a_drop_of_the_learning_rate_is_no_outlier():
    losses = noisy(1000)
    losses[500:] *= 0.3
    assert not far_from_neighbours(losses).any()
