"""Tables of measured steps, and any file of measurements by its content."""

import json

import pytest
import torch

from profiled_traces import gpu_events, write_json
from traincast.errors import FileFormatError, InputError
from traincast.records.imports.read import read_measured
from traincast.records.measured_step import step_of_record
from traincast.records.store import Store

torch.set_num_threads(1)

TABLE = """model,batch_size,optimizer,precision,device,step_ms,forward_ms,backward_s,n_gpus,loss_fraction
resnet50,32,sgd,fp32,T4,250,80,0.16,1,0.1
resnet50,64,sgd,fp32,T4,480,150,0.31,1,
"""


def write(tmp_path, text, name="rows.csv"):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_becomes_a_record_in_base_units(tmp_path):
    first, second = read_measured(write(tmp_path, TABLE))
    assert first.kind == "step"
    assert first.task["model"] == "resnet50"
    assert (first.task["batch_size"], second.task["batch_size"]) == (32, 64)
    assert first.values["step_s"] == pytest.approx(0.25)
    assert first.environment.device == "T4"
    step = step_of_record(first, source="")
    assert step.phases == {"forward": pytest.approx(0.08), "backward": pytest.approx(0.16)}
    assert step.source == "line 2 of rows.csv"


def test_other_columns_are_kept(tmp_path):
    first, second = read_measured(write(tmp_path, TABLE))
    assert first.task["n_gpus"] == 1
    assert first.values["loss_fraction"] == 0.1
    assert "loss_fraction" not in second.values


def test_a_rate_gives_the_step(tmp_path):
    (record,) = read_measured(write(tmp_path, "model,batch_size,samples_per_s\nbert-base,16,64\n"))
    assert record.values["step_s"] == pytest.approx(0.25)


def test_semicolons_spaces_and_a_byte_order_mark_are_read_alike(tmp_path):
    (record,) = read_measured(write(tmp_path, "\ufeffModel; batch_size; step_us\nlstm ; 8; 1500\n\n"))
    assert record.task["model"] == "lstm"
    assert record.values["step_s"] == pytest.approx(0.0015)


def test_the_same_run_twice_is_two_records(tmp_path):
    row = "model,batch_size,step_s\nvgg16,8,0.5\nvgg16,8,0.6\nvgg16,8,0.7\n"
    records = read_measured(write(tmp_path, row))
    assert len({record.key for record in records}) == 3
    with Store(tmp_path / "all.db") as store:
        assert store.add_all(records) == 3
        assert store.add_all(records) == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("model,step_s\nvgg16,1\n", "no column 'batch_size'"),
        ("modell,batch_size,step_s\nvgg16,1,1\n", r"no column 'model'\. Close names: modell"),
        ("model,batch_size,seconds\nvgg16,1,1\n", "no time of a step: name a column step_s"),
        ("model,batch_size,step_s\n", "no rows"),
        ("model,batch_size,step_s\nvgg16,8,0.5\nvgg16,8,fast\n", "line 3: step_s 'fast' is not a number"),
        ("model,batch_size,step_s\nvgg16,8,-1\n", "line 2: step_s '-1' is not a number of 0 or more"),
        ("model,batch_size,step_s\nvgg16,8,nan\n", "line 2: step_s 'nan'"),
        ("model,batch_size,step_s\nvgg16,8,0\n", "line 2: the row has no time of a step above 0"),
        ("model,batch_size,step_s,samples_per_s\nvgg16,8,,\n", "line 2: the row has no time"),
        ("model,batch_size,step_s\nvgg16,many,1\n", "line 2: batch_size 'many'"),
        ("model,batch_size,step_s\nvgg16,0,1\n", "line 2: batch_size '0'"),
        (
            f"model,batch_size,step_s\nvgg16,{'9' * 5000},1\n",
            r"batch_size '9{18}\.\.\.' is not a whole number from 1 to",
        ),
        ("model,batch_size,step_s\n,8,1\n", "line 2: model is empty"),
        ("model,batch_size,step_s\nvgg16,8\n", "line 2: 2 cells for the 3 columns"),
        ("model,batch_size,step_s,step_s\nvgg16,8,1,2\n", "two columns 'step_s'"),
        ('model,batch_size,step_s\n"vgg16,8,1\n', "is not CSV"),
        ("   \n", "is empty"),
        ('{"weights": 3}', "neither a trace of torch.profiler"),
    ],
)
def test_a_table_that_cannot_be_read_says_where_and_why(tmp_path, text, words):
    with pytest.raises(FileFormatError, match=words):
        read_measured(write(tmp_path, text))


def test_what_is_not_there_or_a_folder_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match="no file"):
        read_measured(tmp_path / "gone.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_measured(tmp_path)


def test_a_trace_is_one_record_with_its_breakdown(tmp_path):
    (record,) = read_measured(write_json(tmp_path / "run.csv", gpu_events()))  # by content, whatever it is called
    assert record.kind == "profile"
    step = step_of_record(record, source="")
    assert step.step_s == pytest.approx(1e-3)
    assert step.work["forward"] == {"convolution": pytest.approx(1e-4)}
    with Store(tmp_path / "all.db") as store:
        store.add(record)
    (again,) = read_measured(tmp_path / "all.db")
    assert step_of_record(again, source="") == step


def test_json_of_a_measurement_is_read(tmp_path):
    answer = {
        "model": "mnist_cnn",
        "batch_size": 8,
        "optimizer": "sgd",
        "step_s": 0.004,
        "phases": {"data": {"median": 0.001, "n": 5}, "forward": {"median": 0.003, "n": 5}},
    }
    (record,) = read_measured(write(tmp_path, json.dumps(answer), "one.json"))
    assert record.task["optimizer"] == "sgd"
    assert step_of_record(record, source="").phases == {"input": 0.001, "forward": 0.003}
    assert len(read_measured(write(tmp_path, json.dumps([answer, answer]), "two.json"))) == 2


def test_seconds_of_many_digits_are_none(tmp_path):
    phases = {"data": {"median": 0.001}, "forward": {"median": 10**400}}
    answer = {"model": "mnist_cnn", "batch_size": 8, "step_s": 0.004, "phases": phases}
    (record,) = read_measured(write(tmp_path, json.dumps(answer), "one.json"))
    assert step_of_record(record, source="").phases == {"input": 0.001}


def test_what_measure_measures_is_read_back(tmp_path):
    from traincast.measurement.measure import measure_step
    from traincast.measurement.runnable import Runnable

    runnable = Runnable(
        name="linear",
        module=torch.nn.Linear(4, 2),
        make_inputs=lambda batch_size: torch.zeros(batch_size, 4),
        forward=lambda module, inputs: module(inputs),
        loss=lambda output, inputs: output.sum(),
    )
    measured = measure_step(runnable, batch_size=2, n_steps=3)
    (record,) = read_measured(write(tmp_path, json.dumps(measured.to_dict()), "run.json"))
    assert record.environment == measured.environment
    step = step_of_record(record, source="")
    assert step.step_s == measured.step_s
    assert set(step.phases) == {"forward", "loss", "backward", "optimizer"}


def test_a_record_that_failed_is_no_step(tmp_path):
    (record,) = read_measured(write(tmp_path, "model,batch_size,step_s\nvgg16,8,1\n"))
    object.__setattr__(record, "values", {"error": "out of memory"})
    with pytest.raises(FileFormatError, match="not a measured step: out of memory"):
        step_of_record(record, source="")
