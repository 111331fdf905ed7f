"""`traincast measure`, from the command line to the exit code."""

import json

import pytest
import torch

from traincast.__main__ import run

torch.set_num_threads(1)
SMALL = ["mnist_cnn", "--batch", "2", "--steps", "3"]


def told(capsys, *arguments, code=0):
    assert run(["measure", *arguments]) == code
    return capsys.readouterr()


@pytest.fixture
def own_file(tmp_path):
    """A net whose forward does something at step 5."""

    def write(act):
        file = tmp_path / "mine.py"
        file.write_text(
            "import signal, torch\n"
            "class Net(torch.nn.Linear):\n"
            "    n = 0\n"
            "    def forward(self, x):\n"
            "        if not x.is_meta: self.n += 1\n"
            f"        if self.n == 9: {act}\n"
            "        return super().forward(x)\n"
            "def net(): return Net(4, 2), torch.zeros(2, 4)\n"
        )
        return f"{file}:net"

    return write


def test_a_step_is_shown_by_phase_beside_its_forecast(capsys):
    out = told(capsys, *SMALL).out
    assert out.startswith("mnist_cnn on ")
    assert ", batch 2\nfp32, sgd, 3 steps, " in out
    assert "forecast / measured" in out
    for phase in ("forward", "loss", "backward", "optimizer"):
        assert f"\n  {phase}  " in out
    out = " ".join(out.split())
    assert " samples/s (" in out
    assert "x what was measured; the measured median is " in out


def test_json_holds_the_measurement_its_environment_and_the_forecast(capsys):
    data = json.loads(told(capsys, *SMALL, "--json", "--optimizer", "adam", "--image-size", "24").out)
    assert (data["model"], data["optimizer"], data["n_steps"]) == ("mnist_cnn (image_size=24)", "adam", 3)
    assert data["step"]["p10"] <= data["step_s"] <= data["step"]["p90"]
    assert set(data["phases"]) == {"forward", "loss", "backward", "optimizer"}
    assert data["environment"]["versions"]["torch"] == str(torch.__version__)
    assert data["forecast"]["batch_size"] == 2
    assert data["forecast"]["step_s"] > 0


def test_an_epoch_shows_how_long_the_loop_waited_for_data(capsys):
    out = told(capsys, "mnist_cnn", "--batch", "2", "--epoch-samples", "12", "--workers", "1").out
    assert "6 batches of 12 samples" in out
    assert "1 loader worker," in out
    assert "\n  data  " in out
    assert "The loop waited for data in " in out


def test_two_processes_are_joined(capsys):
    data = json.loads(told(capsys, *SMALL, "--repeat", "2", "--json").out)
    assert (data["n_processes"], data["n_steps"]) == (2, 6)


def test_every_measurement_is_kept_in_the_store(capsys, tmp_path):
    from traincast.measurement.measured import Measurement
    from traincast.measurement.store import Store

    path = tmp_path / "runs.db"
    for _ in range(2):
        assert f"Kept in {path}" in told(capsys, *SMALL, "--store", str(path)).err
    with Store(path) as store:
        records = store.records("step")
    assert [record.task["model"] for record in records] == ["mnist_cnn", "mnist_cnn"]
    assert Measurement.from_dict(records[0].values).n_steps == 3


def test_a_page_with_the_chart_is_written(capsys, tmp_path):
    path = tmp_path / "step.html"
    told(capsys, *SMALL, "--html", str(path))
    assert "One step of mnist_cnn" in path.read_text()


def test_ctrl_c_shows_what_was_measured_and_leaves_with_130(capsys, own_file):
    model = own_file("signal.raise_signal(signal.SIGINT)")
    out = told(capsys, model, "--batch", "2", "--steps", "200", code=130).out
    assert "Warning: It was stopped after " in out


def test_a_module_that_fails_is_one_line_with_what_came_before(capsys, own_file):
    error = told(capsys, own_file("raise ValueError('nine')"), "--batch", "2", "--steps", "50", code=2).err
    assert error.startswith("Error: Step 9, in its forward, failed (ValueError: nine). The ")
    assert "before it took" in error
    assert error.count("\n") == 1


def test_stderr_is_silent_where_nobody_looks(capsys):
    assert told(capsys, *SMALL).err == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["resnet5", "--batch", "2"], "No model named 'resnet5'. Close names: resnet50"),
        (["mnist_cnn"], "The batch is missing"),
        (["mnist_cnn", "--batch", "0"], "A batch of 0 samples cannot be measured"),
        (["mnist_cnn", "--batch", "2", "--steps", "0"], "0 steps cannot be timed"),
        (["mnist_cnn", "--batch", "2", "--repeat", "0"], "in 0 processes"),
        (["mnist_cnn", "--batch", "2", "--precision", "fp8"], "precision 'fp8' is not known"),
        (["mnist_cnn", "--batch", "2", "--optimizer", "lion"], "optimizer 'lion' is not known"),
        (["mnist_cnn", "--batch", "2", "--device", "tpu"], "not on 'tpu'"),
        (["mnist_cnn", "--batch", "2", "--image-size", "3"], "image_size=3 is not possible"),
        (["mnist_cnn", "--batch", "2", "--workers", "1"], "give --epoch-samples too"),
        (["mnist_cnn", "--batch", "2", "--epoch-samples", "8", "--steps", "2"], "--steps is of a single step"),
        (["mnist_cnn", "--batch", "2", "--epoch-samples", "8", "--workers", "-1"], "-1 loader workers cannot be"),
        (["mnist_cnn", "--batch", "2", "--epoch-samples", "0"], "1 or more samples"),
        (["mnist_cnn", "--batch", "0", "--epoch-samples", "8"], "A batch of 0 samples"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_2(capsys, arguments, words):
    error = told(capsys, *arguments, code=2).err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_gpu_that_is_not_there_is_exit_2(capsys):
    assert "There is no CUDA device" in told(capsys, *SMALL, "--device", "cuda", code=2).err
