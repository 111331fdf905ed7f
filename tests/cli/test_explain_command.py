"""`traincast explain`, from the command line to the exit code."""

import json

import pytest

from traincast.__main__ import run

MODEL = ["mnist_cnn", "--batch", "8", "--on", "T4", "--method", "roofline"]


def told(capsys, *arguments):
    assert run(["explain", *arguments]) == 0
    return capsys.readouterr().out


def refused(capsys, *arguments):
    assert run(["explain", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(
        "model,batch_size,optimizer,device,step_ms,forward_ms,backward_ms,optimizer_ms\n"
        "MNIST-CNN,8,sgd,T4,4,1,2.5,0.5\nmnist_cnn,16,sgd,T4,6,,,\n"
    )
    return str(path)


@pytest.fixture
def trace(tmp_path):
    def event(category, name, start, duration):
        return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start, "dur": duration, "args": {}}

    events = [
        event("user_annotation", "ProfilerStep#1", 0, 10_000),
        event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 6_000),
        event("cpu_op", "aten::convolution", 6_000, 1_000),
        event("cpu_op", "autograd::engine::evaluate_function: ConvolutionBackward0", 7_000, 2_500),
        event("cpu_op", "aten::convolution_backward", 7_100, 2_400),
        event("user_annotation", "Optimizer.step#SGD.step", 9_500, 500),
        event("cpu_op", "aten::add_", 9_600, 300),
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}))
    return path


def test_without_a_measurement_the_prediction_is_explained(capsys):
    out = told(capsys, *MODEL)
    assert out.startswith("Why mnist_cnn takes its time on T4, batch 8\nfp32, sgd, method roofline, predicted only\n")
    assert "convolution backward" in out
    assert "Predicted to be bound by" in out


def test_a_trace_is_compared_by_phase_and_kind(capsys, trace):
    out = told(capsys, *MODEL, "--measured", str(trace))
    assert "forward and loss" in out
    assert "largest difference first" in out
    assert "The run was bound by the input (60 % of the step" in out
    assert "A trace does not name its model: it was taken for mnist_cnn at batch 8." in out
    assert "It was measured on a CPU and predicted for T4, a GPU." in out


def test_json_has_both_sides_in_seconds(capsys, trace):
    data = json.loads(told(capsys, *MODEL, "--measured", str(trace), "--json"))
    assert data["step"]["measured_s"] == pytest.approx(0.01)
    assert data["measured_bound_by"] == "input"
    kinds = {row["name"]: row for row in data["kinds"]}
    assert kinds["convolution"]["measured_s"] == pytest.approx(1e-3)
    assert kinds["input"]["measured_s"] == pytest.approx(6e-3)
    assert sum(row["measured_s"] for row in data["kinds"]) == pytest.approx(0.01)
    assert sum(row["predicted_s"] for row in data["kinds"]) == pytest.approx(data["step"]["predicted_s"])


def test_a_row_of_a_table_is_found_by_model_and_batch(capsys, rows):
    data = json.loads(told(capsys, *MODEL, "--measured", rows, "--json"))
    assert data["source"] == "line 2 of rows.csv"
    assert {row["name"]: row["measured_s"] for row in data["phases"]} == pytest.approx(
        {"forward and loss": 1e-3, "backward": 2.5e-3, "optimizer": 0.5e-3}
    )


def test_a_row_with_a_step_alone_still_compares_the_step(capsys, rows):
    out = told(capsys, "mnist_cnn", "--batch", "16", "--on", "T4", "--method", "roofline", "--measured", rows)
    (step,) = [line for line in out.splitlines() if line.startswith("step ")]
    assert "6.00 ms" in step
    assert "does not distinguish kinds of work" in out
    assert "does not show what bound the run" in out


def test_a_step_profiled_here_is_compared(capsys):
    data = json.loads(told(capsys, "mnist_cnn", "--batch", "2", "--measured", "here", "--json"))
    assert data["on"]
    assert data["source"] == "a profile of this machine"
    assert [row["name"] for row in data["phases"]] == ["forward", "loss", "backward", "optimizer"]
    assert all(row["measured_s"] is not None for row in data["kinds"])
    assert data["measured_bound_by"] in ("compute", "memory", "host")


def test_a_store_is_read(capsys, rows, tmp_path):
    from traincast.records.imports.read import read_measured
    from traincast.records.store import Store

    with Store(tmp_path / "runs.db") as store:
        store.add_all(read_measured(rows))
    data = json.loads(told(capsys, *MODEL, "--measured", str(tmp_path / "runs.db"), "--json"))
    assert data["step"]["measured_s"] == pytest.approx(4e-3)


def test_a_page_has_the_chart(capsys, trace, tmp_path):
    page = tmp_path / "gap.html"
    told(capsys, *MODEL, "--measured", str(trace), "--html", str(page))
    text = page.read_text(encoding="utf-8")
    assert '"measured"' in text
    assert "kind of work" in text


def test_bad_input_is_one_sentence(capsys, rows, trace, tmp_path):
    assert "no measured step of mnist_cnn at batch 9" in refused(
        capsys, "mnist_cnn", "--batch", "9", "--on", "T4", "--measured", rows
    )
    assert "no file" in refused(capsys, *MODEL, "--measured", str(tmp_path / "gone.json"))
    cut = tmp_path / "cut.json"
    cut.write_text(trace.read_text()[:400])
    assert "is cut short" in refused(capsys, *MODEL, "--measured", str(cut))
    assert "No model named" in refused(capsys, "mnist", "--batch", "8", "--measured", "here")
    assert "batch" in refused(capsys, "mnist_cnn", "--batch", "0")
    assert "one device" in refused(capsys, "mnist_cnn", "--batch", "8", "--on", "2xT4", "--measured", "here")


def measured_here(capsys, *arguments):
    assert run(["measure", *arguments]) == 0
    return capsys.readouterr().out


def test_what_measure_stores_is_found_again_by_what_was_run_and_not_by_what_was_typed(capsys, tmp_path):
    file, store = tmp_path / "mine.py", str(tmp_path / "runs.db")
    file.write_text("import torch\ndef net(): return torch.nn.Linear(4, 2), torch.zeros(2, 4)\n")
    measured_here(capsys, f"{file}:net", "--batch", "2", "--steps", "1", "--store", store)
    measured_here(capsys, "mnist_cnn", "--image-size", "24", "--batch", "2", "--steps", "1", "--store", store)
    data = json.loads(told(capsys, f"{file}:net", "--batch", "2", "--measured", store, "--json"))
    assert data["step"]["measured_s"] > 0
    told(capsys, "mnist_cnn", "--image-size", "24", "--batch", "2", "--measured", store)
    error = refused(capsys, "mnist_cnn", "--batch", "2", "--measured", store)
    assert "has no measured step of mnist_cnn at batch 2" in error
    assert "It has: mine:net, batch 2, precision fp32, optimizer sgd, devices 1; mnist_cnn (image_size=24)" in error
    assert "no measured step" in refused(capsys, f"{file}:net", "--batch", "2", "--compiled", "--measured", store)


@pytest.mark.parametrize("is_json", [True, False])
def test_an_epoch_of_ours_shows_that_it_waited_for_its_input(capsys, tmp_path, is_json):
    file, answer = tmp_path / "mine.py", tmp_path / "answer"
    file.write_text(
        "import time, torch\n"
        "def net(): return torch.nn.Linear(4, 2), torch.zeros(2, 4)\n"
        "class Slow(torch.utils.data.Dataset):\n"
        "    def __len__(self): return 8\n"
        "    def __getitem__(self, at):\n"
        "        time.sleep(0.02)\n"
        "        return torch.zeros(4)\n"
        "def data(): return Slow()\n"
    )
    asked = [f"{file}:net", "--batch", "2", "--epoch-samples", "12", "--data", f"{file}:data"]
    out = measured_here(capsys, *asked, *(["--json"] if is_json else ["--store", str(answer)]))
    if is_json:
        answer.write_text(out)
    data = json.loads(told(capsys, f"{file}:net", "--batch", "2", "--measured", str(answer), "--json"))
    assert data["measured_bound_by"] == "input"
    assert any("the mean batch of an epoch" in note for note in data["notes"])


def test_a_step_of_several_processes_is_not_taken_for_that_of_one(capsys, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("model,batch_size,optimizer,precision,n_gpus,step_ms\nmnist_cnn,8,SGD,FP32,2,4\n")
    error = refused(capsys, *MODEL, "--measured", str(table))
    assert "no measured step of mnist_cnn at batch 8" in error
    assert "devices 2" in error
    together = ["mnist_cnn", "--batch", "8", "--on", "2xT4", "--method", "roofline"]
    data = json.loads(told(capsys, *together, "--measured", str(table), "--json"))
    assert data["step"]["measured_s"] == pytest.approx(4e-3)
