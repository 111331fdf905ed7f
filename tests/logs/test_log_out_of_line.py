"""One row that cannot be where it says leaves the rows around it alone."""

import json

import numpy as np
import pytest
from written_logs import event_file, table

import traincast as tc
from traincast.logs.slips import out_of_line

STEPS = list(range(10, 410, 10))
ROWS = [(step, 1 + 5 / step) for step in STEPS]
BAD_STEPS = ["5", "-5", "1e12", "1e18", "nan", "inf", "9" * 400]


def with_row(path, step, at=20):
    lines = [f"{step},{loss}" for step, loss in ROWS]
    lines[at] = f"{step},{ROWS[at][1]}"
    path.write_text("\n".join(["step,loss", *lines]) + "\n")
    return path


@pytest.mark.parametrize("step", BAD_STEPS)
@pytest.mark.parametrize("at", [20, -1])
def test_a_row_with_a_step_that_cannot_be_is_left_out_alone(tmp_path, step, at):
    log = tc.read_log(with_row(tmp_path / "log.csv", step, at))
    assert log.find("loss").steps.tolist() == [one for one in STEPS if one != STEPS[at]]
    assert log.restarts == ()
    assert sum("left out" in remark for remark in log.remarks) == 1


@pytest.mark.parametrize("step", BAD_STEPS)
def test_the_same_in_json_lines(tmp_path, step):
    number = {"nan": "NaN", "inf": "Infinity"}.get(step, step)
    path = tmp_path / "log.jsonl"
    path.write_text(
        "".join(f'{{"step": {number if at == 20 else step}, "loss": {loss}}}\n' for at, (step, loss) in enumerate(ROWS))
    )
    assert tc.read_log(path).find("loss").steps.tolist() == [one for one in STEPS if one != STEPS[20]]


@pytest.mark.parametrize("epoch", [0, 50, -3, 10**9])
def test_an_epoch_out_of_line_leaves_its_row_out(tmp_path, epoch):
    state = [{"step": step, "epoch": 10 + step // 100, "loss": loss} for step, loss in ROWS]
    state[20]["epoch"] = epoch
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps({"log_history": state}))
    log = tc.read_log(path)
    assert set(STEPS) - set(log.find("loss").steps.tolist()) <= {STEPS[20]}
    assert log.restarts == ()


def test_a_step_within_an_epoch_that_is_out_of_line_does_not_stretch_all_epochs(tmp_path):
    rows = [(epoch, step, 1 + 1 / (20 * epoch + step)) for epoch in range(5) for step in range(1, 21)]
    rows[50] = (2, 999_999, rows[50][2])
    log = tc.read_log(table(tmp_path / "log.csv", "epoch,step,loss", rows))
    assert log.steps_per_epoch == 20
    assert log.find("loss").steps.tolist() == [step for step in range(1, 101) if step != 51]


def test_a_clock_that_slips_in_one_row_is_no_pause(tmp_path):
    rows = [(step, loss, step * 0.5 if step != 200 else 1e9) for step, loss in ROWS]
    status = tc.converge(table(tmp_path / "log.csv", "step,loss,seconds", rows))
    assert status.pace.step_s == pytest.approx(0.5)
    assert status.pace.downtime_s == 0


def test_an_event_with_an_odd_time_is_counted_as_damaged(tmp_path):
    events = [(1.7e9 + step, step, "train/loss", loss) for step, loss in ROWS]
    events[20] = (float("nan"), *events[20][1:])
    events += [(1.7e9 + step, step // 100, "val/loss", 2.0) for step in STEPS[9::10]]
    log = tc.read_log(event_file(tmp_path / "events.out.tfevents.1", events))
    assert any("Left out: 1 record of 'events.out.tfevents.1' with damaged data." in remark for remark in log.remarks)


@pytest.mark.parametrize(
    "steps",
    [
        [10, 20, 30, 40, 50, 30, 40, 50, 60],  # a run that was resumed
        [10, 20, 30, 40, 30, 40, 50],
        [10, 20, 30, 40, 40, 50],
        [1, 2, 3, 1, 2, 3, 1, 2, 3],  # steps within epochs
        [50, 100, 50, 100, 50, 100],
        [1, 10, 100, 1000, 10_000],
    ],
)
def test_rows_that_go_on_from_where_they_are_stay_in_line(steps):
    assert out_of_line(np.array(steps, float)).size == 0


@pytest.mark.parametrize("value", ["-1e308", "1e308", "1e39"])
@pytest.mark.parametrize("n_rows", [1, 40])
@pytest.mark.filterwarnings("error")
def test_losses_beyond_fp32_are_not_finite(tmp_path, value, n_rows):
    path = tmp_path / "log.csv"
    path.write_text("step,loss\n" + "".join(f"{step},{loss}\n" for step, loss in ROWS) + f"410,{value}\n" * n_rows)
    status = tc.converge(path, total_steps=1000)
    assert status.divergence.n_rows == n_rows
    assert "Diverged: 'loss' is not finite since step 410." in status.warnings


@pytest.mark.parametrize("name", ["max_steps", "num_train_epochs", "train_batch_size"])
@pytest.mark.parametrize("value", [-1, 1e300, 10**400])
def test_a_length_that_cannot_be_is_unknown(tmp_path, name, value):
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps({name: value, "log_history": [{"step": step, "loss": loss} for step, loss in ROWS]}))
    log = tc.read_log(path)
    assert (log.total_steps, log.n_epochs, log.batch_size) == (None, None, None)
