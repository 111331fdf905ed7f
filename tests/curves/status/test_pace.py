"""How fast a run goes, by the clock in its log."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.curves.status.pace import find_pace, pace_of
from traincast.logs.log import Log, Series

ROWS = np.arange(0.0, 1001.0, 10.0)  # every tenth step of 1,000
SECOND = 1.0


def clock(*pauses, step_s=SECOND):
    """Seconds at each row; a pause is (the step after which it comes, its seconds)."""
    return ROWS * step_s + sum((length_s * (step < ROWS) for step, length_s in pauses), np.zeros(len(ROWS)))


def test_a_steady_run_takes_what_its_steps_take():
    pace = find_pace(ROWS, clock(step_s=0.25))
    assert pace.step_s == pytest.approx(0.25)
    assert (pace.downtime_s, pace.n_pauses, pace.row_s) == (0.0, 0, 2.5)
    assert pace.at_step == 1000.0


def test_evaluations_that_come_again_belong_to_the_pace():
    every_100 = [(step, 60.0) for step in range(95, 1000, 100)]
    pace = find_pace(ROWS, clock(*every_100))
    assert pace.step_s == pytest.approx(1.6)
    assert pace.downtime_s == 0.0


def test_a_pause_that_came_twice_at_equal_distances_comes_again():
    assert find_pace(ROWS, clock((405, 100.0), (805, 100.0))).step_s == pytest.approx(1.2)


def test_a_machine_that_was_away_once_is_no_pace():
    pace = find_pace(ROWS, clock((505, 3600.0)))
    assert pace.step_s == pytest.approx(SECOND)
    assert pace.downtime_s == pytest.approx(3600.0)
    assert pace.n_pauses == 1


def test_a_pause_in_which_the_log_shows_an_evaluation_comes_again():
    once = clock((495, 100.0))
    assert find_pace(ROWS, once).step_s == pytest.approx(1.0)
    assert find_pace(ROWS, once, evaluations=np.array([500.0])).step_s == pytest.approx(1.1)


def test_compiling_in_the_first_steps_is_left_out():
    pace = find_pace(ROWS, clock((5, 8.0)))
    assert pace.step_s == pytest.approx(SECOND)
    assert pace.downtime_s == pytest.approx(8.0)


def test_the_interval_of_a_restart_is_left_out_however_short_it_was():
    # Ten steps were lost and done again: the log has step 500, then 510, and 20 s more between them.
    seconds = clock((505, 20.0))
    assert find_pace(ROWS, seconds, [510.0]).step_s == pytest.approx(SECOND)
    assert find_pace(ROWS, seconds, [510.0]).downtime_s == pytest.approx(20.0)


def test_a_run_that_became_slower_is_forecast_at_its_later_pace():
    seconds = np.where(ROWS <= 500, ROWS, 500 + 2 * (ROWS - 500))
    assert 1.6 < find_pace(ROWS, seconds).step_s <= 2.0


def test_a_clock_of_whole_seconds_still_tells_the_pace():
    steps = np.arange(0.0, 2000.0)
    assert find_pace(steps, np.floor(0.03 * steps)).step_s == pytest.approx(0.03, rel=0.05)


@pytest.mark.parametrize(
    ("steps", "seconds"),
    [([], []), ([1.0, 2.0], [1.0, 2.0]), ([1.0, 2.0], [np.nan, np.nan]), ([1.0, 2.0, 3.0], [5.0, 5.0, 5.0])],
    ids=["no row", "one interval", "no time", "a clock that stands"],
)
def test_without_a_clock_there_is_no_pace(steps, seconds):
    assert find_pace(np.array(steps), np.array(seconds)) is None


def test_two_intervals_of_which_one_has_a_pause_tell_a_pace_that_is_not_sure():
    pace = find_pace(np.array([10.0, 20.0, 30.0]), np.array([0.0, 5.0, 900.0]))
    assert pace.step_s == 0.5
    assert pace.log_sd > 0.2


def test_a_long_time_away_twice_is_no_evaluation():
    assert find_pace(ROWS, clock((405, 900.0), (805, 900.0))).step_s == pytest.approx(SECOND)


def test_a_long_pause_beside_an_evaluation_is_none():
    evaluations = np.arange(100.0, 1001.0, 100.0)
    pauses = [(step - 5, 5.0) for step in evaluations]
    pace = find_pace(ROWS, clock(*pauses, (695, 5000.0)), evaluations=evaluations)
    assert pace.step_s == pytest.approx(1.05, rel=0.01)
    assert pace.downtime_s == pytest.approx(5000.0, rel=0.01)


def test_rows_without_a_time_do_not_matter():
    seconds = clock()
    seconds[::3] = np.nan
    assert find_pace(ROWS, seconds).step_s == pytest.approx(SECOND)


@given(
    step_s=st.floats(1e-4, 1e4),
    away=st.integers(20, 90),
    length=st.floats(50.0, 1e4),
)
def test_one_long_pause_anywhere_changes_no_forecast(step_s, away, length):
    pace = find_pace(ROWS, clock((10.0 * away + 5, length * 10 * step_s), step_s=step_s))
    assert pace.step_s == pytest.approx(step_s, rel=1e-6)


@given(noise=st.lists(st.floats(0.5, 2.0), min_size=4, max_size=200), scale=st.floats(1e-3, 1e3))
def test_a_clock_in_another_unit_gives_the_same_pace_in_that_unit(noise, scale):
    steps, seconds = np.arange(float(len(noise) + 1)), np.r_[0.0, np.cumsum(noise)]
    plain, scaled = find_pace(steps, seconds), find_pace(steps, scale * seconds)
    assert scaled.step_s == pytest.approx(scale * plain.step_s)
    assert scaled.log_sd == pytest.approx(plain.log_sd)


def series(split, steps, seconds):
    return Series(name="loss", metric="loss", split=split, steps=steps, values=np.ones(len(steps)), seconds=seconds)


def test_the_pace_of_a_log_is_by_its_longest_series_and_knows_its_evaluations():
    seconds = clock((495, 100.0))
    few = np.array([500.0])
    log = Log(path="", format="csv", series=(series("validation", few, few), series("train", ROWS, seconds)))
    assert pace_of(log).step_s == pytest.approx(1.1)


def test_a_log_without_a_clock_has_no_pace():
    log = Log(path="", format="csv", series=(series("train", ROWS, None),))
    assert pace_of(log) is None
