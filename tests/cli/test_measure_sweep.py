"""`traincast measure --sweep`, from the command line to the exit code."""

import json

import pytest
import torch

import traincast as tc
from traincast.__main__ import run
from traincast.errors import StoreError
from traincast.measurement.measured import Measurement
from traincast.measurement.statistics import Summary
from traincast.measurement.sweeps.batch import BatchRow, BatchSweep
from traincast.records.environment import Environment
from traincast.records.store import Store
from traincast.views.sweep import batch_document

torch.set_num_threads(1)

FILE = """
import torch

def make():
    net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.BatchNorm1d(4))
    return net, lambda n: (torch.randn(n, 6),), lambda output, inputs: output.mean()

def plain():
    return torch.nn.Linear(6, 4), lambda n: (torch.randn(n, 6),), lambda output, inputs: output.mean()

def single():
    def inputs(n):
        if n == 1:
            raise ValueError("never one")
        return (torch.randn(n, 6),)
    return torch.nn.Linear(6, 4), inputs

def by_value():
    class Picky(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x) if x.sum() > -1e9 else x
    return Picky(6, 4), lambda n: (torch.randn(n, 6),)

def dataset():
    return [(torch.zeros(6), 1)] * 16

def empty():
    return []
"""


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    path = tmp_path / "net.py"
    path.write_text(FILE)
    return path


def told(capsys, *arguments, code=0):
    assert run(["measure", *map(str, arguments)]) == code
    return capsys.readouterr().out


def test_precisions_are_a_row_each_with_a_verdict(capsys, file):
    out = told(capsys, f"{file}:make", "--batch", 8, "--steps", 2, "--sweep", "precision")
    assert out.startswith("net:make by precision, batch 8\n")
    rows = [line.split()[0] for line in out.splitlines() if line.startswith(("fp", "tf", "amp", "bf"))]
    assert rows == ["fp32", "tf32", "amp-fp16", "amp-bf16", "bf16"]
    assert "- tf32: tf32 is a mode of NVIDIA's matrix units." in out


@pytest.mark.parametrize("what", ["precision", "optimizers"])
def test_steps_stand_beside_their_forecasts(capsys, tmp_path, what):
    """Every row that was measured, in the table, the chart and JSON."""
    arguments = ["mnist_cnn", "--batch", 4, "--steps", 1, "--sweep", what, "--html", tmp_path / "page.html"]
    assert "forecast / measured" in told(capsys, *arguments)
    assert "A step of mnist_cnn: measured and forecast" in (tmp_path / "page.html").read_text()
    found = json.loads(told(capsys, *arguments[:-2], "--json"))
    measured = [row for row in found["rows"] if row["step_s"] is not None]
    assert len(measured) >= 2
    key = "optimizer" if what == "optimizers" else "precision"
    names = [row.get("optimizer" if what == "optimizers" else "label") for row in measured]
    assert [one[key] for one in found["forecasts"]] == names


def test_batch_norm_in_json_with_a_record_for_every_row(capsys, file, tmp_path):
    store = tmp_path / "rows.db"
    arguments = [f"{file}:make", "--batch", 8, "--steps", 1, "--sweep", "norm", "--store", store, "--json"]
    data = json.loads(told(capsys, *arguments))
    assert [row["label"] for row in data["rows"]] == ["with batch norm", "without"]
    assert data["rows"][0]["speedup"] == 1.0
    told(capsys, *arguments)
    with Store(store) as kept:
        records = kept.records("sweep")
    assert len(records) == 4  # a second run is kept beside the first
    assert records[0].task["sweep"] == "norm"
    assert records[0].values["step_s"] == data["rows"][0]["step_s"]


def test_workers_load_the_data_set_of_the_models_own_file(capsys, file):
    out = told(capsys, f"{file}:make", "--batch", 4, "--steps", 4, "--sweep", "workers")
    assert f"{file}:dataset; " in out
    assert "Loading a sample costs" in out


def test_workers_load_made_up_samples_of_known_cost(capsys, file):
    cost = ["--sample-ms", 2, "--sample-waits"]
    data = json.loads(told(capsys, f"{file}:plain", "--batch", 4, "--steps", 4, "--sweep", "workers", *cost, "--json"))
    assert data["data"] == "synthetic samples of 2 ms waiting each"
    assert data["load_sample_s"] > 0.0019
    assert data["rows"][0]["data_fraction"] > 0.5


def test_optimizers_have_their_losses_and_charts_on_a_page(capsys, file, tmp_path):
    page = tmp_path / "page.html"
    learns = ["--sweep", "optimizers", "--epochs", 1]
    out = told(capsys, f"{file}:plain", "--batch", 256, "--steps", 1, *learns, "--html", page)
    assert "a small CNN learns" in out
    assert "last loss" in out
    text = page.read_text()
    for title in ("Training loss by epoch and optimizer", "Test accuracy by epoch", "A step of net:plain by optimizer"):
        assert title in text


@pytest.mark.skipif(torch.cuda.is_available(), reason="here is a GPU")
def test_devices_show_forecasts_beside_where_there_is_only_a_cpu(capsys):
    out = told(capsys, "mnist_cnn", "--batch", 2, "--steps", 1, "--sweep", "device")
    assert "there is no GPU that this torch can use, so only the CPU was measured." in out
    assert "\nT4 " in out
    assert "\nA100-SXM4-40GB " in out


@pytest.mark.skipif(torch.cuda.is_available(), reason="here is a GPU")
def test_a_model_that_runs_but_cannot_be_captured_is_measured_without_forecasts(capsys, file):
    out = told(capsys, f"{file}:by_value", "--batch", 2, "--steps", 1, "--sweep", "device")
    assert "\ncpu " in out
    assert "No forecast beside it: " in out


def test_a_store_that_fails_in_the_middle_is_told_after_the_table(capsys, file, tmp_path, monkeypatch):
    """The disk fills after the first row."""
    store = tmp_path / "rows.db"
    real, n_added = Store.add, []

    def full(self, record, **options):
        n_added.append(record)
        if len(n_added) > 1:
            raise StoreError("The disk is full.")
        return real(self, record, **options)

    monkeypatch.setattr(Store, "add", full)
    assert (
        run(["measure", f"{file}:make", "--batch", "8", "--steps", "1", "--sweep", "norm", "--store", str(store)]) == 2
    )
    printed = capsys.readouterr()
    assert "without" in printed.out
    assert f"Kept 1 of 2 rows in {store}" in printed.err
    assert printed.err.endswith("Error: The disk is full.\n")


def test_a_file_in_an_encoding_of_its_own_is_searched_for_its_data(capsys, tmp_path):
    path = tmp_path / "latin.py"
    path.write_bytes(b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + FILE.encode())
    out = told(capsys, f"{path}:plain", "--batch", 4, "--steps", 4, "--sweep", "workers")
    assert f"{path}:dataset; " in out


def test_batch_sizes_stand_beside_their_forecasts():
    here = Environment(device="a CPU", device_kind="cpu", host="", n_threads=1, n_cores=2, versions={}, clocks={})
    how = {"model": "mnist_cnn", "optimizer": "sgd", "precision": "fp32", "device": "cpu", "environment": here}
    times = Summary(n=5, median=0.5, minimum=0.5, p10=0.5, p90=0.5, mean=0.5)
    rows = tuple(
        BatchRow(batch_size=n, status="measured", measurement=Measurement(**how, batch_size=n, phases={}, step=times))
        for n in (1, 4)
    )
    forecasts = {1: tc.forecast("mnist_cnn", on="T4", batch_size=1)}
    document = batch_document(BatchSweep(model="mnist_cnn", rows=rows, max_step_s=20.0), forecasts)
    measured, forecast = document.charts[0].series
    assert (list(measured.y), forecast.x, forecast.y) == ([2.0, 8.0], [1], [forecasts[1].samples_per_s])
    first, second = document.tables[0].rows
    assert first[-3:-1] == (forecasts[1].step_s, forecasts[1].step_s / 0.5)
    assert second[-3:-1] == (None, None)


def test_a_batch_size_whose_step_is_too_long_is_the_last(capsys, file, tmp_path):
    page = tmp_path / "page.html"
    data = json.loads(
        told(capsys, f"{file}:plain", "--sweep", "batch", "--max-step-s", "1e-9", "--json", "--html", page)
    )
    assert [(row["batch_size"], row["status"]) for row in data["rows"]] == [(1, "too slow")]
    assert data["rows"][0]["peak_memory_bytes"] > 0
    assert data["recommended_batch_size"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["{}:plain", "--batch", "8", "--sweep", "norm"], "has no batch norm to remove"),
        (["{}:plain", "--batch", "8", "--sweep", "wrokers"], "--sweep 'wrokers' is not known. Close names: workers."),
        (["{}:plain", "--sweep", "norm"], "The batch size is missing: a sweep of norm needs"),
        (["{}:plain", "--batch", "0", "--sweep", "compile"], "--batch cannot be 0: give a whole number of at least 1"),
        (
            ["{}:plain", "--batch", "8", "--sweep", "compile", "--epochs", "2"],
            "--epochs cannot be 2: only a sweep of optimizers or norm uses it, not one of compile",
        ),
        (["{}:plain", "--batch", "8", "--epochs", "2"], "--epochs does not go with a single step: it is for --sweep"),
        (
            ["{}:plain", "--batch", "8", "--sweep", "norm", "--compiled"],
            "--compiled does not go with --sweep: it is for a single step",
        ),
        (
            ["{}:plain", "--batch", "8", "--sweep", "workers", "--sample-waits"],
            "--sample-waits cannot be True: also give the cost of a sample",
        ),
        (
            ["{}:plain", "--batch", "8", "--sweep", "workers", "--sample-ms", "-1"],
            "--sample-ms cannot be -0.001: give a number of at least 0",
        ),
        (["{}:plain", "--batch", "8", "--sweep", "workers", "--steps", "-1"], "--steps cannot be -1"),
        (["{}:plain", "--batch", "8", "--sweep", "workers", "--steps", "0"], "--steps cannot be 0"),
        (["{}:plain", "--batch", "8", "--sweep", "norm", "--store", "{}/a.db"], "cannot be"),
        (["{}:single", "--batch", "8", "--sweep", "workers"], "An example batch of 1 sample failed (ValueError"),
        (["{}:plain", "--batch", "8", "--sweep", "workers", "--data", "{}:empty"], "has no samples"),
        (["{}:plain", "--batch", "8", "--sweep", "workers", "--data", "{}:none"], "has no factory 'none'"),
        (
            ["{}:plain", "--batch", "8", "--sweep", "precision", "--precision", "bf16"],
            "--precision cannot be 'bf16': the sweep changes it, so leave it out",
        ),
        (["{}:plain", "--batch", "8", "--sweep", "optimizers", "--epochs", "-1"], "--epochs cannot be -1"),
        (["{}:nothing", "--sweep", "batch"], "has no factory 'nothing'"),
        (["{}:plain", "--sweep", "batch", "--max-step-s", "0"], "--max-step-s cannot be 0.0: give a number above 0"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(capsys, file, arguments, words):
    assert run(["measure", *(argument.format(file) for argument in arguments)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Error: ")
    assert words in err
    assert err.count("\n") == 1
