"""Logs as real programs write them, from the file to the forecast: what is read, and that the forecast begins there."""

import json

import numpy as np
import pytest
from written_logs import event_file

import traincast as tc
from traincast.errors import InputError
from traincast.logs.follow import LogFollower


def falling(step):
    return 0.5 + 4.0 * (step + 10) ** -0.4


def goes_on(status):
    """The forecast at the last step is what is logged."""
    return status.curve.predict(status.curve.last_step) == pytest.approx(status.value, rel=0.05)


def test_lightning_writes_its_table_anew_when_a_metric_is_new(tmp_path):
    """Its CSVLogger keeps the file, rewrites it under a longer header, sorted by name, and appends."""
    file = tmp_path / "metrics.csv"
    train = [(step, step // 100, falling(step)) for step in range(9, 100, 10)]
    file.write_text("epoch,step,train_loss\n" + "".join(f"{epoch},{step},{loss:.5f}\n" for step, epoch, loss in train))
    follower = LogFollower(file)
    assert follower.poll().find("loss", "train").steps[-1] == 99
    more = [(step, 1, falling(step)) for step in range(109, 200, 10)]
    file.write_text(
        "epoch,step,train_loss,val_loss\n"
        + "".join(f"{epoch},{step},{loss:.5f},\n" for step, epoch, loss in train)
        + "0,99,,1.25\n"
        + "".join(f"{epoch},{step},{loss:.5f},\n" for step, epoch, loss in more)
    )
    log = follower.poll()
    assert log.find("loss", "train").steps.tolist() == [step for step, *_ in train + more]
    assert log.find("loss", "validation").values.tolist() == [1.25]
    assert log.restarts == ()
    assert not any("cut short" in remark for remark in log.remarks)
    with file.open("a") as out:
        out.write("2,209,1.0,\n")
    assert follower.poll().find("loss", "train").steps[-1] == 209


def test_a_file_that_was_rotated_and_has_grown_past_where_it_was_is_begun_anew(tmp_path):
    file = tmp_path / "log.csv"
    file.write_text("step,loss\n1,3\n2,2.5\n")
    follower = LogFollower(file)
    follower.poll()
    file.write_text("step,loss\n" + "".join(f"{step},{1 / step:.3f}\n" for step in range(3, 30)))
    assert follower.poll().find("loss").steps.tolist() == list(range(1, 30))


def test_a_copy_with_more_rows_is_the_same_log(tmp_path):
    """A writer that saves by replacing its file: nothing is read twice, and nothing was restarted."""
    file, lines = tmp_path / "log.csv", ["step,loss\n"]
    follower = LogFollower(file)
    for step in range(1, 50):
        lines.append(f"{step},{1 / step:.3f}\n")
        (tmp_path / "new").write_text("".join(lines))
        (tmp_path / "new").replace(file)
        log = follower.poll()
    assert log.find("loss").steps.tolist() == list(range(1, 50))
    assert (log.restarts, log.remarks) == ((), ())


TRAINER_CONSOLE = (
    "Map: 100%|##########| 50000/50000 [00:01<00:00, 9it/s]\n"
    "Loading checkpoint shards: 100%|##########| 2/2 [00:01<00:00]\n"
    "  0%|          | 0/1000 [00:00<?, ?it/s]\r"
)


def trainer_console(last, *, total=1000, n_epochs=3):
    lines = [TRAINER_CONSOLE]
    for step in range(100, last + 1, 100):
        epoch = n_epochs * step / total
        lines.append(f"\r {step // 10}%|#  | {step - 10}/{total} [00:10<01:30, 9.9it/s]")
        lines.append(f"\r {step // 10}%|#  | {step}/{total} [00:10<01:30, 9.9it/s]\n")
        lines.append(f"{{'loss': {falling(step):.4f}, 'learning_rate': 5e-05, 'epoch': {epoch:.2f}}}\n")
        if step % 500 == 0:
            lines.append("\r  0%|   | 0/20 [00:00<?, ?it/s]\r100%|###| 20/20 [00:01<00:00, 20it/s]\n")
            lines.append(f"{{'eval_loss': {falling(step) + 0.1:.4f}, 'eval_runtime': 1.0, 'epoch': {epoch:.2f}}}\n")
    return "".join(lines)


@pytest.mark.parametrize("last", [100, 500, 1000])
def test_the_console_of_the_trainer_with_its_bars(tmp_path, last):
    file = tmp_path / "train.out"
    file.write_text(trainer_console(last))
    log = tc.read_log(file)
    assert (log.format, log.total_steps) == ("text", 1000)
    assert log.find("loss", "train").steps.tolist() == list(range(100, last + 1, 100))
    if last >= 500:
        assert log.find("loss", "validation").steps.tolist() == list(range(500, last + 1, 500))
        status = tc.converge(file, metric="loss", split="train")
        assert (status.unit, status.step, status.is_over) == ("step", float(last), last == 1000)
        assert goes_on(status)


def test_bars_of_epochs_number_the_lines_between_them(tmp_path):
    file = tmp_path / "train.out"
    file.write_text(
        "".join(
            f"Epoch {epoch}\n  0%| | 0/391 [00:00<?]\r100%|#| 391/391 [00:09<00:00]\n"
            f"  0%| | 0/79 [00:00<?]\r100%|#| 79/79 [00:01<00:00]\ntrain loss: {falling(epoch):.4f}\n"
            for epoch in range(1, 6)
        )
    )
    log = tc.read_log(file)
    assert (log.steps_per_epoch, log.total_steps) == (391, None)
    assert log.find("loss").steps.tolist() == [391 * epoch for epoch in range(1, 6)]


def test_tensorboard_with_validation_by_epoch_beside_training_by_step(tmp_path):
    events = []
    for step in range(0, 3910, 10):
        events.append((1000.0 + step, step, "train/loss", falling(step)))
        if step % 391 == 380:
            events.append((1000.5 + step, step // 391, "val/acc", 0.1 + 0.05 * (step // 391)))
    event_file(tmp_path / "events.out.tfevents.1", events)
    log = tc.read_log(tmp_path)
    train, accuracy = log.find("loss", "train"), log.find("accuracy", "validation")
    assert train.steps.tolist() == list(range(0, 3910, 10))
    assert log.restarts == ()
    assert np.diff(accuracy.steps).tolist() == pytest.approx([391] * (len(accuracy) - 1), abs=12)
    assert any("'val/acc' counts something other than 'train/loss'" in remark for remark in log.remarks)
    assert goes_on(tc.converge(tmp_path, split="train", total_steps=8000))


def test_a_folder_of_tensorboard_runs_asks_which_one(tmp_path):
    for version, level in (("version_0", 1.0), ("version_1", 2.0)):
        events = [(1e9 * level + step, step, "train_loss", level + 1 / (1 + step)) for step in range(20)]
        event_file(tmp_path / version / "events.out.tfevents.1", events)
    with pytest.raises(InputError, match=r"has 2 runs: choose one\. It has version_0, version_1"):
        tc.read_log(tmp_path)
    log = tc.read_log(tmp_path, run="version_0")
    assert (len(log.find("loss")), log.find("loss").values[0], log.restarts) == (20, 2.0, ())


def test_the_table_of_a_chart_on_the_page_of_wandb(tmp_path):
    """One column a run, each with a band of its own; a run that is called test is no test."""
    file = tmp_path / "wandb_export.csv"
    runs = ("amber-12", "test-3")
    header = ['"Step"']
    for run in runs:
        header += [f'"{run} - train/loss"', f'"{run} - train/loss__MIN"', f'"{run} - train/loss__MAX"']
    rows = [
        f'"{step}","{falling(step):.5f}","{falling(step):.5f}","{falling(step):.5f}","","",""'
        for step in range(5, 50, 5)
    ]
    rows += ['"5","","","","2.5","2.5","2.5"', '"15","","","","2.25","2.25","2.25"']
    file.write_text("\n".join([",".join(header), *rows]) + "\n")
    with pytest.raises(InputError, match=r"has 2 runs: choose one\. It has amber-12, test-3"):
        tc.read_log(file)
    log = tc.read_log(file, run="test-3")
    assert [(one.metric, one.split, one.values.tolist()) for one in log.series] == [("loss", "train", [2.5, 2.25])]
    assert log.format == "wandb"
    assert goes_on(tc.converge(file, reading={"run": "amber-12"}, total_steps=100))


def test_mmengine_lines_tell_that_a_run_waits_for_data(tmp_path):
    file = tmp_path / "scalars.json"
    lines = [
        {"lr": 0.01, "data_time": 0.3, "loss": falling(step), "time": 0.5, "epoch": 1, "iter": step, "step": step}
        for step in range(10, 400, 10)
    ]
    for line in lines:
        line["seconds"] = 0.5 * line["step"]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    log = tc.read_log(file)
    assert log.data_wait.values.tolist() == [0.3] * len(lines)
    assert any(warning.startswith("Input-bound: 60") for warning in tc.converge(log).warnings)


@pytest.mark.parametrize("column", ["data_time", "train_data_wait_s", "train/data_time_ms", "dataloader_wait"])
def test_the_wait_for_data_has_many_names(tmp_path, column):
    scale = 1e3 if column.endswith("_ms") else 1.0
    file = tmp_path / "log.csv"
    rows = "".join(f"{step},{falling(step):.4f},{0.4 * scale:g},{step}\n" for step in range(1, 30))
    file.write_text(f"step,loss,{column},seconds\n{rows}")
    log = tc.read_log(file)
    assert log.data_wait.values.tolist() == pytest.approx([0.4] * 29)
    assert [one.name for one in log.series] == ["loss"]


def test_ultralytics_results_rise_and_are_not_diverging(tmp_path):
    file = tmp_path / "results.csv"
    rows = [f"{epoch},{3 / epoch + 1:.4f},{0.6 - 0.5 / epoch:.4f},{0.4 - 0.3 / epoch:.4f}" for epoch in range(1, 41)]
    file.write_text("epoch,train/box_loss,metrics/mAP50(B),metrics/mAP50-95(B)\n" + "\n".join(rows) + "\n")
    status = tc.converge(file, metric="metrics/mAP50(B)", n_epochs=100, target=0.95)
    assert status.curve.is_rising
    assert not any(warning.startswith("Diverging") for warning in status.warnings)
    assert status.arrival.probability < 0.5
    assert tc.converge(file, metric="metrics/mAP50(B)", n_epochs=100, target=0.55).arrival.probability > 0.9
    assert goes_on(status)
