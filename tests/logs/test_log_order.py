"""Restarts, repeats, shuffled rows, clocks and what is not finite."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_logs import table

import traincast as tc
from traincast.logs.clock import seconds_of
from traincast.logs.log import Divergence
from traincast.logs.ordering import order_of


def test_where_a_run_goes_back_the_later_rows_count(tmp_path):
    rows = [(step, 10 - step) for step in range(1, 8)] + [(step, 100 - step) for step in range(5, 10)]
    log = tc.read_log(table(tmp_path / "log.csv", "step,loss", rows))
    assert log.find("loss").steps.tolist() == list(range(1, 10))
    assert log.find("loss").values.tolist() == [9, 8, 7, 6, 95, 94, 93, 92, 91]
    assert log.restarts == (5,)
    assert any("went back once (to step 5): 3 rows" in remark for remark in log.remarks)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(2, 30)), min_size=1, max_size=3))
def test_after_any_restarts_steps_increase_and_the_last_rows_are_all_kept(segments):
    steps = np.concatenate([np.arange(start, start + length, dtype=float) for start, length in [(0, 100), *segments]])
    order = order_of(steps, None)
    kept = np.arange(len(steps)) if order.rows is None else order.rows
    assert (np.diff(steps[kept]) > 0).all()
    assert set(range(len(steps) - segments[-1][1], len(steps))) <= set(kept.tolist())


def test_one_row_that_goes_back_is_left_out_until_more_follow(tmp_path):
    rows = [(step, 1) for step in range(10)]
    log = tc.read_log(table(tmp_path / "log.csv", "step,loss", [*rows, (0, 5)]))
    assert len(log.find("loss")) == 10
    assert any("until more rows follow" in remark for remark in log.remarks)
    assert len(tc.read_log(table(tmp_path / "log.csv", "step,loss", [*rows, (0, 5), (1, 4)])).find("loss")) == 2


def test_the_header_again_marks_a_resumed_run(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n1,3\n2,2\nstep,loss\n3,1.5\n4,1\n")
    log = tc.read_log(path)
    assert log.find("loss").steps.tolist() == [1, 2, 3, 4]
    assert log.restarts == (3,)


def test_a_resumed_run_may_have_another_header(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n1,3\n2,2\n3,1.9\nstep,lr,loss\n3,0.1,1.5\n4,0.1,1\n")
    log = tc.read_log(path)
    assert log.find("loss").values.tolist() == [3, 2, 1.5, 1]
    assert log.restarts == (3,)
    assert log.learning_rate.steps.tolist() == [3, 4]


def test_rows_of_several_writers_are_sorted(tmp_path):
    rng = np.random.default_rng(0)
    rows = [(step, step / 10) for step in rng.permutation(100)]
    log = tc.read_log(table(tmp_path / "log.csv", "step,loss", rows))
    assert log.find("loss").steps.tolist() == list(range(100))
    assert log.find("loss").values.tolist() == [step / 10 for step in range(100)]
    assert log.restarts == ()
    assert any("sorted" in remark for remark in log.remarks)


def test_eight_validations_an_epoch_under_the_same_steps_become_their_mean(tmp_path):
    rows = [(epoch, step, epoch + turn) for epoch in range(3) for turn in range(8) for step in range(1, 6)]
    log = tc.read_log(table(tmp_path / "validation.csv", "epoch, step, loss", rows))
    loss = log.find("loss", "validation")
    assert loss.steps.tolist() == list(range(1, 16))
    assert loss.values == pytest.approx([3.5] * 5 + [4.5] * 5 + [5.5] * 5)
    assert any("up to 8 rows of one step" in remark for remark in log.remarks)
    assert log.restarts == ()


def test_values_that_are_not_finite_are_counted_and_left_out(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,loss,acc\n1,2,0.1\n2,nan,0.2\n3,inf,\n4,1,0.4\n")
    log = tc.read_log(path)
    loss = log.find("loss")
    assert loss.steps.tolist() == [1, 4]
    assert (loss.n_not_finite, loss.first_not_finite_step) == (2, 2)
    assert log.find("accuracy").n_not_finite == 0
    assert any("not finite in 2 rows, first at step 2" in remark for remark in log.remarks)


def test_one_value_that_is_not_finite_is_told_as_one(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n1000,2\n2000,nan\n3000,1\n")
    assert "'loss' is not finite in one row, at step 2,000: it is left out." in tc.read_log(path).remarks


def test_a_clock_that_begins_again_goes_on():
    seconds, remarks = seconds_of(np.array([10.0, 20, 30, 5, 15, np.nan]), "seconds")
    assert seconds[:5].tolist() == [10, 20, 30, 35, 45]
    assert np.isnan(seconds[5])
    assert "restarts once" in remarks[0]


def test_durations_of_rows_are_no_clock():
    durations = np.tile([1.2, 1.1, 1.3], 10)
    seconds, remarks = seconds_of(durations, "time")
    assert seconds is None
    assert "duration of each row" in remarks[0]


@pytest.mark.parametrize("scale", [1, 1e3, 1e6, 1e9])
def test_times_since_1970_are_counted_from_the_first_in_any_unit(scale):
    seconds, _ = seconds_of(np.array([1.7e9, 1.7e9 + 10, 1.7e9 + 3600]) * scale, "timestamp")
    assert seconds == pytest.approx([0, 10, 3600])


def test_pauses_stay_visible(tmp_path):
    rows = [(1, 2, 10), (2, 1.9, 11), (3, 1.8, 500), (4, 1.7, 501)]
    assert tc.read_log(table(tmp_path / "log.csv", "step,loss,seconds", rows)).find("loss").seconds.tolist() == [
        10,
        11,
        500,
        501,
    ]


def test_a_run_that_goes_back_to_an_earlier_epoch(tmp_path):
    rows = [(epoch, step, 1) for epoch in range(4) for step in range(10)]
    again = [(epoch, step, 0.5) for epoch in (2, 3, 4) for step in range(10)]
    log = tc.read_log(table(tmp_path / "log.csv", "epoch,step,loss", rows + again))
    assert log.restarts == (20,)
    assert log.find("loss").steps.tolist() == list(range(50))
    assert log.find("loss").values.tolist() == [1] * 20 + [0.5] * 30


def test_rows_at_the_end_that_are_not_finite_are_kept_apart(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("step,loss,seconds\n10,2.0,1\n20,nan,2\n30,1.8,3\n40,inf,4\n50,nan,5\n")
    loss = tc.read_log(file).find("loss")
    assert loss.first_not_finite_step == 20
    assert loss.divergence == Divergence(first_step=40.0, last_step=50.0, n_rows=2, last_s=5.0)
    file.write_text("step,loss\n10,2.0\n20,nan\n30,1.8\n")
    assert tc.read_log(file).find("loss").divergence is None


def test_steps_above_a_million_are_told_in_full(tmp_path):
    path = tmp_path / "log.csv"
    steps = [*range(1_234_500, 1_234_570), 1_234_567, *range(1_234_568, 1_234_600)]
    path.write_text("step,loss\n" + "".join(f"{step},2.5\n" for step in steps))
    told = "The run went back once (to step 1,234,567): 3 rows are superseded by later ones and left out."
    assert told in tc.read_log(path).remarks
