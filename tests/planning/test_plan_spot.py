"""Checkpoints and interruptions: Young, Daly, and a simulation of the same process."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.planning.spot import can_finish, daly_interval_s, spot_time, young_interval_s

MINUTE, HOUR = 60.0, 3600.0


def test_youngs_interval_is_the_root_of_twice_the_cost_times_the_mean_time():
    assert young_interval_s(5 * MINUTE, 24 * HOUR) == pytest.approx(120 * MINUTE)


@pytest.mark.parametrize(("between_h", "minutes"), [(24, 117), (6, 57), (0.25, 9.1)])
def test_dalys_intervals_are_those_of_his_figures_3_to_5(between_h, minutes):
    assert daly_interval_s(5 * MINUTE, between_h * HOUR) / MINUTE == pytest.approx(minutes, abs=0.5)


def test_a_checkpoint_that_outlasts_two_interruptions_is_taken_once_an_interruption():
    assert daly_interval_s(3 * HOUR, HOUR) == pytest.approx(HOUR)


@given(cost=st.floats(1, 600), between=st.floats(2_000, 1e6))
def test_no_other_interval_is_expected_to_be_much_faster_than_dalys(cost, between):
    def expected(interval):
        return np.expm1((interval + cost) / between) / interval

    tried = np.geomspace(cost / 10, 10 * between, 2_000)
    assert expected(float(daly_interval_s(cost, between))) <= 1.002 * expected(tried).min()


def test_without_interruptions_a_run_takes_its_work_and_one_checkpoint():
    found = spot_time([7_200.0], checkpoint_s=60.0, restart_s=300.0, between_s=[np.inf])
    assert found.mean_s == pytest.approx([7_260], rel=1e-6)
    assert found.n_interruptions == pytest.approx([0], abs=1e-6)


@pytest.mark.parametrize("between_h", [0.5, 3, 24])
def test_mean_and_variance_are_those_of_a_simulation(between_h):
    work, cost, restart, between = 20 * HOUR, 120.0, 400.0, between_h * HOUR
    found = spot_time([work], checkpoint_s=cost, restart_s=restart, between_s=[between])
    interval = float(found.interval_s[0])
    n_segments = max(1, round(work / interval))
    simulated = _simulate(n_segments, interval + cost, restart, between, n_runs=3_000)
    scale = work / interval / n_segments  # the formula has parts of a segment, a run has not
    assert found.mean_s[0] == pytest.approx(scale * simulated.mean(), rel=0.02)
    assert np.sqrt(found.variance_s2[0]) == pytest.approx(np.sqrt(scale) * simulated.std(), rel=0.06)


def _simulate(n_segments, segment_s, restart_s, between_s, *, n_runs):
    """Every run until its last segment is through; an interruption of a restart begins it anew."""
    draw = np.random.default_rng(7)
    totals = np.zeros(n_runs)
    for _ in range(n_segments):
        is_open = np.ones(n_runs, dtype=bool)
        is_down = np.zeros(n_runs, dtype=bool)
        while is_open.any():
            length = np.where(is_down, restart_s, segment_s)
            until = draw.exponential(between_s, n_runs)
            is_through = until >= length
            totals += np.where(is_open, np.minimum(until, length), 0.0)
            is_open &= ~(is_through & ~is_down)
            is_down = ~is_through
    return totals


@given(between=st.floats(700, 1e6), longer=st.floats(1.01, 10))
def test_rarer_interruptions_never_make_a_run_longer(between, longer):
    often, rarely = spot_time(
        [50_000.0], checkpoint_s=60.0, restart_s=300.0, between_s=[between, longer * between]
    ).mean_s
    assert rarely <= often * (1 + 1e-3)


def test_a_run_that_is_interrupted_before_it_restarts_cannot_finish():
    assert not can_finish(60.0, 300.0, 359.0)
    assert can_finish(60.0, 300.0, 361.0)
    hopeless = spot_time([1e6], checkpoint_s=1e5, restart_s=1e5, between_s=[1.0])
    assert hopeless.mean_s[0] == np.inf
