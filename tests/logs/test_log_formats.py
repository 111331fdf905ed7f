"""JSON lines, Trainer state, W&B, MLPerf and TensorBoard: each as its program writes it."""

import json

import pytest
from written_logs import event_file

import traincast as tc
from traincast.errors import FileFormatError


def lines(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_json_lines_with_metrics_inside_metrics(tmp_path):
    rows = [{"step": step, "train": {"loss": 3 - step}, "lr": 0.1} for step in range(3)]
    rows.insert(2, {"step": 1, "val": {"acc": 0.5}, "note": "x", "ok": True})
    log = tc.read_log(lines(tmp_path / "log.jsonl", rows))
    assert log.format == "jsonl"
    assert log.find("loss", "train").values.tolist() == [3, 2, 1]
    assert log.find("accuracy", "validation").steps.tolist() == [1]
    assert log.find("train/loss").metric == "loss"
    assert log.learning_rate.values.tolist() == [0.1] * 3


def test_lines_that_are_not_json_are_counted(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1, "loss": 2}\nTraceback\n[1]\n{"step": 2, "loss": NaN}\n{"step": 3, "loss": 1}\n')
    log = tc.read_log(path)
    assert log.find("loss").steps.tolist() == [1, 3]
    assert log.find("loss").n_not_finite == 1
    assert any("2 lines are not JSON" in remark for remark in log.remarks)


def test_json_keys_are_named_by_the_user(tmp_path):
    path = lines(tmp_path / "log.jsonl", [{"n": 1, "x": 2.0}, {"n": 2, "x": 1.0}])
    assert tc.read_log(path, columns={"step": "n", "loss": "x"}).find("loss").steps.tolist() == [1, 2]


def test_the_history_of_wandb_prefers_the_trainers_own_step(tmp_path):
    rows = [
        {"_step": at, "_runtime": 2.5 * at, "_timestamp": 1.7e9 + at, "train/loss": 1.0, "train/global_step": 100 * at}
        for at in range(4)
    ]
    rows[3]["train/loss"] = "NaN"
    log = tc.read_log(lines(tmp_path / "history.jsonl", rows))
    loss = log.find("loss")
    assert log.format == "wandb"
    assert loss.steps.tolist() == [0, 100, 200]
    assert loss.seconds.tolist() == [0, 2.5, 5]
    assert loss.n_not_finite == 1


def test_the_table_that_wandb_exports(tmp_path):
    path = tmp_path / "history.csv"
    path.write_text('"_step","_runtime","train/loss","val/acc"\n0,1.5,2.5,\n1,3,2,0.5\n')
    log = tc.read_log(path)
    assert (log.format, log.find("accuracy").split) == ("wandb", "validation")
    assert log.find("loss").seconds.tolist() == [1.5, 3]


STATE = {
    "global_step": 20,
    "max_steps": 60,
    "num_train_epochs": 3,
    "train_batch_size": 8,
    "log_history": [
        {"epoch": 0.5, "grad_norm": 1.5, "learning_rate": 5e-05, "loss": 2.5, "step": 10},
        {"epoch": 1.0, "learning_rate": 4e-05, "loss": 2.0, "step": 20},
        {"epoch": 1.0, "eval_accuracy": 0.5, "eval_loss": 2.1, "eval_runtime": 1.5, "step": 20},
        {"epoch": 1.0, "step": 20, "total_flos": 1e15, "train_loss": 2.25, "train_runtime": 30.0},
    ],
}


def test_the_state_of_a_trainer(tmp_path):
    path = tmp_path / "trainer_state.json"
    path.write_text(json.dumps(STATE, indent=2))
    log = tc.read_log(path)
    assert log.format == "trainer_state"
    assert (log.total_steps, log.n_epochs, log.batch_size, log.steps_per_epoch) == (60, 3, 8, 20)
    assert log.find("loss", "train").values.tolist() == [2.5, 2]
    assert log.find("loss", "train").epochs.tolist() == [0.5, 1]
    assert log.find("loss", "validation").values.tolist() == [2.1]
    assert {one.name for one in log.series} == {"loss", "eval_loss", "eval_accuracy"}
    assert any("mean of the whole run" in remark for remark in log.remarks)


def test_mlperf_lines_of_version_0_6(tmp_path):
    path = tmp_path / "result_0.txt"
    path.write_text(
        "Beginning trial 1 of 1\n"
        ':::MLL 1556733699.710 global_batch_size: {"value": 256, "metadata": {"lineno": 7, "file": "main.py"}}\n'
        ':::MLL 1556733699.710 train_samples: {"value": 2560, "metadata": {"lineno": 8, "file": "main.py"}}\n'
        ':::MLL 1556733700.000 run_start: {"value": null, "metadata": {"lineno": 77, "file": "main.py"}}\n'
        ':::MLL 1556733720.000 eval_accuracy: {"value": 0.25, "metadata": {"epoch_num": 4, "lineno": 9}}\n'
        ':::MLL 1556733740.000 eval_accuracy: {"value": 0.5, "metadata": {"epoch_num": 8, "lineno": 9}}\n'
    )
    log = tc.read_log(path)
    accuracy = log.find("accuracy", "validation")
    assert (log.format, log.batch_size, log.steps_per_epoch) == ("mlperf", 256, 10)
    assert accuracy.steps.tolist() == [40, 80]
    assert accuracy.seconds.tolist() == [20, 40]


def test_mlperf_lines_of_version_0_5(tmp_path):
    path = tmp_path / "log"
    path.write_text(
        ":::MLPv0.5.0 resnet 1541710400.000000000 (train.py:10) run_start\n"
        ":::MLPv0.5.0 resnet 1541710400.500000000 (train.py:11) input_batch_size: 208\n"
        ':::MLPv0.5.0 resnet 1541710410.000000000 (train.py:12) eval_target: {"value": 0.749}\n'
        ':::MLPv0.5.0 resnet 1541710410.000000000 (train.py:12) eval_accuracy: {"epoch": 4, "value": 0.125}\n'
        ':::MLPv0.5.0 resnet 1541710420.000000000 (train.py:12) eval_accuracy: {"epoch": 8, "value": 0.25}\n'
    )
    log = tc.read_log(path)
    assert [one.name for one in log.series] == ["eval_accuracy"]
    assert log.find("accuracy").epochs.tolist() == [4, 8]
    assert log.batch_size == 208


def test_mlperf_lines_of_today_count_samples(tmp_path):
    def line(key, value, time_ms, **metadata):
        event = {"namespace": "", "time_ms": time_ms, "event_type": "POINT_IN_TIME", "key": key, "value": value}
        return f"0: :::MLLOG {json.dumps({**event, 'metadata': metadata})}\n"

    path = tmp_path / "log"
    path.write_text(
        line("global_batch_size", 32, 1_000)
        + line("train_loss", 11.5, 2_000, samples_count=320, lr=1e-4)
        + line("train_loss", 10.5, 3_000, samples_count=640, lr=2e-4)
    )
    log = tc.read_log(path)
    assert log.find("loss", "train").steps.tolist() == [10, 20]
    assert log.learning_rate.values.tolist() == [1e-4, 2e-4]


@pytest.mark.parametrize("as_tensor", [False, True])
def test_an_event_file_of_tensorboard(tmp_path, as_tensor):
    events = [(1e9 + step, 100 * step, "train/loss", 2.0 - step) for step in range(3)]
    events += [(1e9 + 5, 200, "val/accuracy", 0.5), (1e9 + 6, 200, "lr", 0.25)]
    path = event_file(tmp_path / "events.out.tfevents.1.host", events, as_tensor=as_tensor)
    log = tc.read_log(path)
    assert log.format == "tensorboard"
    assert log.find("loss", "train").steps.tolist() == [0, 100, 200]
    assert log.find("loss", "train").values.tolist() == [2, 1, 0]
    assert log.find("accuracy", "validation").seconds.tolist() == [5]
    assert log.learning_rate.values.tolist() == [0.25]


def test_an_epoch_with_a_tag_of_its_own_is_that_of_its_step(tmp_path):
    """As the Trainer writes it: 'train/epoch' beside 'train/loss', each at its step."""
    events = [
        (1e9 + step, step, tag, value)
        for step in (10, 20, 30)
        for tag, value in (("train/loss", 3.0), ("train/epoch", step / 40))
    ]
    log = tc.read_log(event_file(tmp_path / "events.out.tfevents.1", events))
    assert log.steps_per_epoch == 40
    assert log.find("loss").epochs.tolist() == [0.25, 0.5, 0.75]


def test_a_folder_of_event_files_is_one_log(tmp_path):
    """Keras writes two folders, and counts epochs from 0."""
    for split, worse in (("train", 0.0), ("validation", 0.5)):
        events = [(1000.0 + 10 * epoch, epoch, "epoch_loss", 3.0 - epoch + worse) for epoch in range(3)]
        event_file(tmp_path / "run" / split / "events.out.tfevents.1", events)
    log = tc.read_log(tmp_path / "run", steps_per_epoch=100)
    assert log.find("loss", "train").values.tolist() == [3, 2, 1]
    assert log.find("loss", "validation").values.tolist() == [3.5, 2.5, 1.5]
    assert log.find("loss", "validation").steps.tolist() == [100, 200, 300]
    assert log.restarts == ()


def test_a_resumed_run_has_a_second_event_file(tmp_path):
    event_file(tmp_path / "events.out.tfevents.1", [(1000.0 + step, step, "loss", 10.0 - step) for step in range(6)])
    event_file(tmp_path / "events.out.tfevents.2", [(2000.0 + step, step, "loss", 5.0 - step) for step in (4, 5, 6)])
    log = tc.read_log(tmp_path)
    assert log.find("loss").values.tolist() == [10, 9, 8, 7, 1, 0, -1]
    assert log.restarts == (4,)


def test_a_record_that_is_still_being_written_is_not_read_yet(tmp_path):
    path = event_file(tmp_path / "events.out.tfevents.1", [(1.0, step, "loss", 1.0) for step in range(3)])
    path.write_bytes(path.read_bytes()[:-7])
    assert len(tc.read_log(path).find("loss")) == 2


def test_a_damaged_event_file_is_read_up_to_the_damage(tmp_path):
    path = event_file(tmp_path / "events.out.tfevents.1", [(1.0, step, "loss", 1.0) for step in range(3)])
    data = path.read_bytes()
    path.write_bytes(data + b"garbage" * 10)
    log = tc.read_log(path)
    assert len(log.find("loss")) == 3
    assert any("damaged after" in remark for remark in log.remarks)
    path.write_bytes(b"garbage" + data)
    with pytest.raises(FileFormatError):
        tc.read_log(path)


@pytest.mark.parametrize("indent", [None, 2])
def test_the_history_of_keras_as_one_document(tmp_path, indent):
    path = tmp_path / "history.json"
    path.write_text(json.dumps({"loss": [2.5, 2.0, 1.5], "val_loss": [2.6, 2.2, 1.9]}, indent=indent))
    log = tc.read_log(path)
    assert (log.format, log.unit) == ("json", "epoch")
    assert log.find("loss", "train").values.tolist() == [2.5, 2.0, 1.5]
    assert log.find("loss", "validation").steps.tolist() == [1, 2, 3]


@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_of_objects_as_one_document(tmp_path, indent):
    path = tmp_path / "log_history.json"
    path.write_text(json.dumps([{"step": step, "loss": 3 / step} for step in (1, 2, 3)], indent=indent))
    log = tc.read_log(path)
    assert (log.format, log.find("loss").values.tolist()) == ("json", [3, 1.5, 1])
    path.write_text(path.read_text()[:-3])
    with pytest.raises(FileFormatError, match="not a complete JSON file"):
        tc.read_log(path)


def test_lists_of_different_lengths_are_no_history(tmp_path):
    path = tmp_path / "history.json"
    path.write_text('{"loss": [2.5, 2.0], "val_loss": [2.6]}')
    with pytest.raises(FileFormatError, match="neither a list of JSON objects nor lists of numbers by name"):
        tc.read_log(path)
