"""Epoch and step as one global step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from written_logs import table

import traincast as tc
from traincast.errors import InputError
from traincast.logs.placing import place


@given(
    n_epochs=st.integers(2, 8),
    n_steps=st.integers(2, 40),
    epoch_base=st.integers(0, 1),
    step_base=st.integers(0, 1),
    runs_through=st.booleans(),
)
def test_however_a_log_counts_the_global_steps_are_the_same(n_epochs, n_steps, epoch_base, step_base, runs_through):
    through = np.arange(n_epochs * n_steps, dtype=float)
    step = (through if runs_through else through % n_steps) + step_base
    placed = place(step, through // n_steps + epoch_base, n_rows=len(step))
    assert placed.steps_per_epoch == n_steps
    np.testing.assert_array_equal(placed.steps, through + step_base)
    np.testing.assert_allclose(placed.epochs, (through + step_base) / n_steps)


@given(st.integers(2, 6), st.integers(20, 400), st.integers(2, 10))
def test_a_thinned_log_that_runs_through_still_tells_the_epoch(n_epochs, n_steps, stride):
    through = np.arange(0.0, n_epochs * n_steps, stride)
    placed = place(through, through // n_steps, n_rows=len(through))
    if placed.steps_per_epoch is not None:
        assert abs(placed.steps_per_epoch - n_steps) <= stride


def test_a_thinned_log_that_begins_again_says_what_it_cannot_know(tmp_path):
    rows = [(epoch, step, 1) for epoch in range(3) for step in range(0, 391, 50)]
    path = table(tmp_path / "log.csv", "epoch,step,loss", rows)
    log = tc.read_log(path)
    assert log.steps_per_epoch == 351
    assert any("every 50th step" in remark and "up to 400" in remark for remark in log.remarks)
    exact = tc.read_log(path, steps_per_epoch=391)
    assert exact.find("loss").steps[8] == 391
    assert not exact.remarks


def test_rows_after_a_whole_epoch_are_at_its_end():
    step = np.array([1.0, 2, np.nan, 1, 2, np.nan])
    epoch = np.array([1.0, 1, 1, 2, 2, 2])
    assert place(step, epoch, n_rows=6).steps.tolist() == [1, 2, 2, 3, 4, 4]


@pytest.mark.parametrize(
    ("epochs", "completed"), [([0, 1, 2], [1, 2, 3]), ([1, 2, 3], [1, 2, 3]), ([0.5, 1, 1.5], [0.5, 1, 1.5])]
)
def test_a_log_of_epochs_alone(epochs, completed):
    placed = place(None, np.array(epochs, float), n_rows=3)
    assert placed.epochs.tolist() == completed
    assert placed.steps.tolist() == completed
    assert any("epochs are used as steps" in remark for remark in placed.remarks)
    assert place(None, np.array(epochs, float), n_rows=3, steps_per_epoch=100).steps.tolist() == [
        100 * e for e in completed
    ]


def test_a_row_at_step_zero_is_before_the_first_epoch():
    placed = place(np.array([0.0, 391, 782]), np.array([0.0, 1, 2]), n_rows=3)
    assert placed.epochs.tolist() == [0, 1, 2]


def test_an_epoch_counted_from_zero_with_its_last_step_is_complete():
    placed = place(np.array([391.0, 782, 1173]), np.array([0.0, 1, 2]), n_rows=3)
    assert placed.epochs.tolist() == [1, 2, 3]


def test_epochs_with_a_fraction_tell_how_many_steps_they_have():
    placed = place(np.array([100.0, 200, 300]), np.array([0.25, 0.5, 0.75]), n_rows=3)
    assert placed.steps_per_epoch == 400
    assert placed.steps.tolist() == [100, 200, 300]


def test_epochs_of_unequal_length_are_said():
    placed = place(np.array([172.0, 307, 419]), np.array([1.0, 2, 3]), n_rows=3)
    assert placed.steps.tolist() == [172, 307, 419]
    assert "from 112 to 135 steps" in placed.remarks[0]


def every_nth_and_the_last(n_epochs, n_steps, nth):
    """Steps as Lightning counts them, from 0: every nth, and the last of each epoch, at which it validates."""
    step = np.arange(n_epochs * n_steps)
    return step[((step + 1) % nth == 0) | ((step + 1) % n_steps == 0)].astype(float)


@given(st.integers(2, 8), st.integers(200, 500), st.sampled_from([5, 10, 50]), st.booleans())
def test_rows_of_every_nth_step_and_validations_tell_the_steps_of_an_epoch(n_epochs, n_steps, nth, counts_from_one):
    step = every_nth_and_the_last(n_epochs, n_steps, nth)
    placed = place(step + counts_from_one, step // n_steps, n_rows=len(step))
    assert placed.steps_per_epoch in (None, n_steps) or "By the rows" in placed.remarks[0]
    if n_steps % nth:
        assert placed.steps_per_epoch == n_steps


def test_a_log_of_a_resumed_run_tells_the_steps_of_its_epochs():
    step = every_nth_and_the_last(6, 32, 5)
    step = step[step >= 96]
    assert place(step, step // 32, n_rows=len(step)).steps_per_epoch == 32


def test_what_rows_leave_open_of_the_steps_of_an_epoch_is_told():
    step = np.arange(49.0, 3 * 391, 50)
    placed = place(step, step // 391, n_rows=len(step))
    assert 384 <= placed.steps_per_epoch <= 399
    assert "epochs have 384 to 399 steps" in placed.remarks[0]


def test_too_few_rows_around_the_turn_of_an_epoch_tell_nothing():
    assert place(np.array([25.0, 38, 3090, 3097]), np.array([0.0, 0, 1, 1]), n_rows=4).steps_per_epoch is None


def test_steps_that_begin_again_without_an_epoch_are_epochs_when_they_get_equally_far():
    placed = place(np.array([1.0, 2, 3] * 4), None, n_rows=12)
    assert placed.steps.tolist() == list(range(1, 13))
    assert "read as a new epoch" in placed.remarks[0]


def test_rows_of_an_epoch_without_a_step_are_counted(tmp_path):
    log = tc.read_log(table(tmp_path / "log.csv", "epoch,loss", [(epoch, 1) for epoch in (1, 2, 3) for _ in range(5)]))
    assert log.find("loss").steps.tolist() == list(range(1, 16))
    assert log.steps_per_epoch == 5


def test_without_step_and_epoch_rows_are_counted(tmp_path):
    log = tc.read_log(table(tmp_path / "log.csv", "loss,acc", [(3, 0.1), (2, 0.2)]))
    assert log.find("loss").steps.tolist() == [1, 2]
    assert "neither steps nor epochs" in log.remarks[0]


def test_a_given_epoch_that_is_too_short_is_refused(tmp_path):
    path = table(tmp_path / "log.csv", "epoch,step,loss", [(e, s, 1) for e in (0, 1) for s in range(10)])
    with pytest.raises(InputError, match=r"epoch of 5 steps cannot be right: the log has step 9 within one"):
        tc.read_log(path, steps_per_epoch=5)


def test_one_row_says_nothing_about_the_length_of_an_epoch():
    placed = place(np.array([100.0]), np.array([0.0]), n_rows=1)
    assert (placed.steps.tolist(), placed.epochs) == ([100], None)


def test_of_two_counters_the_one_that_most_rows_have_is_taken(tmp_path):
    rows = [(at, 10 * at if at == 3 else None, 1) for at in range(6)]
    assert len(tc.read_log(table(tmp_path / "log.csv", "_step,global_step,loss", rows)).find("loss")) == 6


def test_rows_of_steps_and_rows_of_epochs_that_never_meet(tmp_path):
    """Nothing says how many steps an epoch has: what only knows its epoch cannot be placed."""
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 10, "loss": 2}\n{"step": 20, "loss": 1}\n{"epoch": 0.5, "val_loss": 3}\n')
    log = tc.read_log(path)
    assert log.find("loss", "train").steps.tolist() == [10, 20]
    assert "1 rows without a step are left out." in log.remarks


def test_a_run_that_is_resumed_for_longer_is_as_long_as_its_last_row_says(tmp_path):
    rows = [(step, 3 - step / 20, 20) for step in range(1, 21)] + [(step, 2 - step / 40, 40) for step in (21, 22)]
    assert tc.read_log(table(tmp_path / "run.csv", "step,train_loss,total_steps", rows)).total_steps == 40


def test_a_column_of_total_steps_that_counts_is_no_length(tmp_path):
    rows = [(step, 3 - step / 20, 64 * step) for step in range(1, 21)]
    assert tc.read_log(table(tmp_path / "run.csv", "step,train_loss,total_steps", rows)).total_steps is None
