"""What a run has taken so far: which steps the clock of its log has counted, and which it has not."""

import numpy as np
import pytest

from traincast.curves.log_question import LogQuestion
from traincast.curves.status.pace import pace_of
from traincast.curves.status.spent import spent_so_far
from traincast.curves.status.status import status_of
from traincast.logs.log import Log, Series

STEP_S = 2.0


def run_of(steps, seconds, *more, epochs=None):
    steps = np.asarray(steps, float)
    values = 1.0 + 4.0 / np.sqrt(np.maximum(steps, 1.0))
    series = Series("loss", "loss", "train", steps, values, epochs=epochs, seconds=np.asarray(seconds, float))
    return Log(path="run.csv", format="csv", series=(series, *more))


def spent(log):
    return spent_so_far(log, pace_of(log), max(float(one.steps[-1]) for one in log.series))


def test_the_steps_before_the_first_row_take_time_too():
    """Rows every 200 of 1,000 steps, whose clock shows 0 at the first: a fifth of the run came before it."""
    steps = np.arange(200, 1001, 200)
    found = spent(run_of(steps, STEP_S * (steps - 200)))
    assert (found.total_s, found.before_s, found.n_steps) == pytest.approx((2000.0, 400.0, 1000.0))
    assert "counts the 200 steps up to there as 6.67 min" in found.remark


def test_a_clock_that_counts_from_the_start_is_taken_as_it_is():
    steps = np.arange(200, 1001, 200)
    found = spent(run_of(steps, STEP_S * steps))
    assert (found.total_s, found.before_s, found.remark) == (2000.0, 0.0, None)


def test_a_clock_that_began_long_before_the_first_row_is_told():
    """Of the machine, say: 10,000 s at step 200, which takes 400 s. A start of some minutes is nothing to tell."""
    steps = np.arange(200, 1001, 200)
    found = spent(run_of(steps, 9_600.0 + STEP_S * steps))
    assert found.total_s == 11_600.0
    assert "shows 2.78 h at its first row, step 200: all of it is counted" in found.remark
    assert spent(run_of(steps, 300.0 + STEP_S * steps)).remark is None


def test_nothing_comes_before_a_row_at_step_0():
    steps = np.arange(0, 1001, 200)
    found = spent(run_of(steps, STEP_S * steps))
    assert (found.total_s, found.before_s, found.remark) == (2000.0, 0.0, None)


@pytest.mark.parametrize("begins_at_s", [0.0, 30.0], ids=["with the first row", "with the process that resumed"])
def test_what_an_earlier_log_has_is_not_guessed(begins_at_s):
    steps = np.arange(50_000, 52_001, 200)
    found = spent(run_of(steps, begins_at_s + STEP_S * (steps - 50_000)))
    assert (found.total_s, found.before_s, found.n_steps) == (4000.0 + begins_at_s, 0.0, 2000.0)
    assert found.remark == ("The log begins at step 50,000: the time before that is not included.")


def test_a_resumed_log_whose_clock_knows_the_whole_run_counts_all_of_it():
    steps = np.arange(50_000, 52_001, 200)
    found = spent(run_of(steps, STEP_S * steps))
    assert (found.total_s, found.n_steps, found.remark) == (104_000.0, 52_000.0, None)


def test_the_first_row_of_any_series_tells_when_the_clock_began():
    """An evaluation of the model as it is before training: nothing came before that."""
    steps = np.arange(200, 1001, 200)
    at_start = Series("v", "loss", "validation", np.array([0.0]), np.array([5.0]), seconds=np.array([0.0]))
    found = spent(run_of(steps, STEP_S * steps, at_start))
    assert (found.total_s, found.before_s) == (2000.0, 0.0)


def test_the_first_epoch_counts_where_a_log_counts_epochs():
    epochs = np.arange(1.0, 6.0)
    found = spent(run_of(epochs, 60.0 * (epochs - 1), epochs=epochs))
    assert (found.total_s, found.before_s) == pytest.approx((300.0, 60.0))
    assert "counts the 1 epoch up to there" in found.remark


def test_without_a_clock_nobody_knows():
    assert spent(run_of([1, 2, 3, 4], [np.nan] * 4)) is None


def test_what_is_counted_is_in_the_answer_of_a_run():
    steps = np.arange(200, 1001, 200)
    status = status_of(run_of(steps, STEP_S * (steps - 200)), LogQuestion(usd_per_hour=36.0))
    data = status.to_dict()
    assert data["spent_usd"] == pytest.approx(20.0)
    assert (data["spent_s"], data["spent_before_first_row_s"], data["spent_steps"]) == pytest.approx((2000, 400, 1000))
    assert status.spent.remark in data["remarks"]
