"""What a measurement is of: told from others, found again, and never taken for another."""

import json

import pytest
import torch
from torch import nn

from sweep_samples import ENVIRONMENT, measured
from traincast.errors import FileFormatError
from traincast.measurement.epoch import measure_epoch
from traincast.measurement.runnable import Runnable
from traincast.records.identity import fits, kind_of, measurements_among, settings_of, task_of
from traincast.records.imports.read import read_measured
from traincast.records.measured_step import step_of_record
from traincast.records.record import Record
from traincast.records.store import Store

torch.set_num_threads(1)
STEP = measured(0.03).to_dict()  # forward 10 ms, backward 20 ms
PROCESSES = {
    **{name: STEP[name] for name in ("model", "batch_size", "optimizer", "precision", "device", "phases", "step_s")},
    "n_processes": 2,
    "bucket_bytes": [4],
    "exposed_s": 0.005,
    "warnings": ["It rained."],
}


def record(kind, task, values):
    return Record(kind=kind, task=task, values=values, environment=ENVIRONMENT, created_s=1.0)


def epoch():
    runnable = Runnable(
        name="net",
        module=nn.Linear(4, 2),
        make_inputs=lambda batch_size: torch.zeros(batch_size, 4),
        forward=lambda module, inputs: module(inputs),
        loss=lambda output, inputs: output.sum(),
    )
    return measure_epoch(runnable, [torch.zeros(3, 4)] * 6).to_dict()


def write(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_steps_epochs_and_processes_are_told_apart_and_say_on_how_many_devices_they_ran():
    assert [kind_of(each) for each in (STEP, epoch(), PROCESSES)] == ["step", "epoch", "processes"]
    assert [task_of(each)["n_devices"] for each in (STEP, epoch(), PROCESSES)] == [1, 1, 2]
    assert kind_of({"n_processes": 2, "all_reduces": []}) is None


def test_repeats_one_after_the_other_are_not_devices_side_by_side():
    assert task_of({**STEP, "n_repeats": 5, "n_processes": 5})["n_devices"] == 1


def test_a_measurement_of_ours_knows_best_what_it_is_of_whatever_it_was_stored_under():
    stored = record("step", {"model": "my.py:net", "batch_size": 8}, {**STEP, "model": "my:net", "compiled": True})
    assert settings_of(stored)["model"] == "my:net"
    assert not fits(stored, {"compiled": False})


@pytest.mark.parametrize(
    ("written", "wanted", "is_same"),
    [
        ({"model": "ResNet-50"}, {"model": "resnet50"}, True),
        ({"optimizer": "SGD"}, {"optimizer": "sgd"}, True),
        ({"precision": "AMP_FP16"}, {"precision": "amp-fp16"}, True),
        ({"compiled": False}, {"compiled": False}, True),
        ({"compiled": True}, {"compiled": False}, False),
        ({"n_gpus": 8}, {"n_devices": 1}, False),
        ({"n_gpus": 8}, {"n_devices": 8}, True),
        ({"n_processes": 2}, {"n_devices": 1}, False),
        ({}, {"n_devices": 4}, True),  # what is not said is taken to be right
        ({"batch_size": 8}, {"batch_size": 16}, False),
    ],
)
def test_names_are_read_as_people_write_them_and_numbers_as_they_are(written, wanted, is_same):
    assert fits(record("step", written, {"step_s": 1.0}), wanted) == is_same


def test_yes_and_no_of_a_table_are_not_words(tmp_path):
    table = "model,batch_size,optimizer,compiled,step_s\nnet,8,Adam,False,1\n"
    (row,) = read_measured(write(tmp_path / "rows.csv", table))
    assert fits(row, {"optimizer": "adam", "compiled": False})


def test_a_step_of_several_processes_shows_its_communication():
    step = step_of_record(record("processes", {}, PROCESSES), source="")
    assert step.phases == pytest.approx(
        {"forward": 0.01, "loss": 0, "backward": 0.015, "optimizer": 0, "communication": 0.005}
    )
    assert step.notes == ("It rained.",)


def test_an_epoch_is_its_mean_batch_with_the_wait_for_data():
    values = epoch()
    step = step_of_record(record("epoch", {}, values), source="")
    assert step.step_s == values["batch"]["mean"]
    assert step.phases["input"] == values["phases"]["data"]["mean"]
    assert "including the time spent waiting for data" in step.notes[0]


def test_what_a_measurement_was_warned_of_goes_with_it():
    warned = {**STEP, "is_partial": True, "warnings": ["Stopped after 3 steps."]}
    assert step_of_record(record("step", {}, warned), source="").notes == ("Stopped after 3 steps.",)


def test_rows_of_a_sweep_are_measurements_too(tmp_path):
    sweep = {
        "sweep": "norm",
        "model": "m",
        "batch_size": 8,
        "step_s": 9.0,
        "rows": [{"measured": STEP}, {"measured": None}],
    }
    (row,) = read_measured(write(tmp_path / "sweep.json", sweep))
    assert row.values["step_s"] == 0.03
    stored = [record("sweep", {"sweep": "norm"}, each) for each in sweep["rows"]]
    (again,) = measurements_among(stored)
    assert (again.kind, again.task["model"]) == ("step", "m")


def test_the_same_file_is_imported_once_and_a_new_result_under_its_name_is_another(tmp_path):
    path = tmp_path / "run.json"
    with Store(tmp_path / "a.db") as store:
        monday = read_measured(write(path, STEP))
        assert [store.add_all(monday, campaign=path.name) for _ in range(2)] == [1, 0]
        tuesday = read_measured(write(path, [{**STEP, "step_s": 0.04}, {**STEP, "step_s": 0.05}]))
        assert store.add_all(tuesday, campaign=path.name) == 2


def test_a_corrected_row_of_a_table_is_another_and_the_others_stay(tmp_path):
    path, table = tmp_path / "rows.csv", "model,batch_size,step_s\nnet,8,1\nnet,16,2\n"
    with Store(tmp_path / "a.db") as store:
        assert store.add_all(read_measured(write(path, table))) == 2
        assert store.add_all(read_measured(write(path, table.replace("16,2", "16,3")))) == 1


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"notes": 5}, "its 'notes' is not a list of sentences"),
        ({"work_s": 5}, "its 'work_s' is not a table of seconds"),
        ({"work_s": {"forward": {"linear": "slow"}}}, "its 'work_s' is not a table of seconds"),
    ],
)
def test_a_file_written_by_hand_with_something_else_in_it_is_one_sentence(changed, words):
    with pytest.raises(FileFormatError, match=words):
        step_of_record(record("step", {}, {**STEP, **changed}), source="")
