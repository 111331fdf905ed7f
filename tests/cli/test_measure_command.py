"""`traincast measure`, from the command line to the exit code."""

import json

import pytest
import torch
from pages import read_page

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


def test_the_steps_of_an_epoch_stand_beside_their_forecast(capsys, tmp_path):
    line = ["mnist_cnn", "--batch", "2", "--epoch-samples", "12", "--json", "--html", str(tmp_path / "page.html")]
    assert json.loads(told(capsys, *line).out)["forecast"]["batch_size"] == 2
    (figure,) = read_page(tmp_path / "page.html").figures.values()
    measured, forecast = figure["data"]
    assert measured["x"] == ["data", "copy", "forward", "loss", "backward", "optimizer"]
    assert [y is not None for y in forecast["y"]] == [False, False, True, True, True, True]


def test_an_epoch_is_loaded_from_a_data_set_of_the_users_own(capsys, tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\n"
        "def net(): return torch.nn.Linear(4, 2), torch.zeros(2, 4)\n"
        "def data(): return [(torch.full((4,), float(number)), number) for number in range(5)]\n"
    )
    epoch = ["--epoch-samples", "11", "--data", f"{file}:data", "--json"]
    data = json.loads(told(capsys, f"{file}:net", "--batch", "4", *epoch).out)
    assert (data["n_batches"], data["n_samples"], data["batch_size"]) == (3, 12, 4)  # whole batches
    assert (
        "has no factory 'gone'"
        in told(capsys, f"{file}:net", "--batch", "4", "--epoch-samples", "4", "--data", f"{file}:gone", code=2).err
    )


def test_what_a_users_file_prints_gets_neither_into_the_json_nor_between_processes(capsys, tmp_path):
    file = tmp_path / "loud.py"
    file.write_text(
        "import torch\n"
        "print('building')\n"
        "class Net(torch.nn.Linear):\n"
        "    def forward(self, x):\n"
        "        print('a step')\n"
        "        return super().forward(x)\n"
        "def net(): return Net(4, 2), torch.zeros(2, 4)\n"
    )
    asked = [f"{file}:net", "--batch", "2", "--steps", "1", "--json"]
    printed = told(capsys, *asked)
    assert json.loads(printed.out)["model"] == "loud:net"
    assert "building" in printed.err
    joined = json.loads(told(capsys, *asked, "--repeat", "2").out)
    assert (joined["n_repeats"], joined["n_steps"]) == (2, 2)


def test_every_measurement_is_kept_in_the_store(capsys, tmp_path):
    from traincast.measurement.measured import Measurement
    from traincast.records.store import Store

    path = tmp_path / "runs.db"
    for _ in range(2):
        assert f"Kept in {path}" in told(capsys, *SMALL, "--store", str(path)).err
    with Store(path) as store:
        records = store.records("step")
    assert [record.task["model"] for record in records] == ["mnist_cnn", "mnist_cnn"]
    assert Measurement.from_dict(records[0].values).n_steps == 3


@pytest.mark.parametrize("flag", ["--store", "--html", "--png"])
def test_where_the_answer_cannot_go_is_told_before_anything_is_measured(capsys, tmp_path, own_file, flag):
    model = own_file("raise AssertionError('it was run')").replace("9", "1")
    printed = told(capsys, model, "--batch", "2", flag, str(tmp_path / "gone" / "answer.png"), code=2)
    assert "gone' does not exist" in printed.err
    assert list(tmp_path.glob("answer*")) == []


def test_a_file_that_is_no_store_is_told_before_anything_is_measured_and_left_as_it_is(capsys, tmp_path, own_file):
    notes = tmp_path / "notes.txt"
    notes.write_text("not a database, but long enough to be read as one " * 50)
    before = notes.read_bytes()
    printed = told(capsys, own_file("pass"), "--batch", "2", "--store", str(notes), code=2)
    assert "is not a SQLite database" in printed.err
    assert printed.out == ""
    assert notes.read_bytes() == before


def test_an_answer_that_cannot_be_kept_is_shown_all_the_same(capsys, tmp_path, own_file):
    """The disk fills while the model trains: here a folder takes the place of the store."""
    path = tmp_path / "runs.db"
    printed = told(
        capsys,
        own_file(f"__import__('os').makedirs({str(path)!r}, exist_ok=True)"),
        *("--batch", "2", "--steps", "20", "--store", str(path)),
        code=2,
    )
    assert "mine:net on " in printed.out
    assert "is a folder" in printed.err


def test_a_damaged_profile_of_this_machine_costs_the_forecast_and_not_the_measurement(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path))
    (tmp_path / "this-machine.toml").write_text("not = [ TOML")
    out = told(capsys, *SMALL).out
    assert out.startswith("mnist_cnn on ")
    assert "No forecast beside it: " in out


def test_a_page_with_the_chart_is_written(capsys, tmp_path):
    path = tmp_path / "step.html"
    told(capsys, *SMALL, "--html", str(path))
    assert "One step of mnist_cnn" in path.read_text()


def test_ctrl_c_shows_what_was_measured_and_leaves_with_130(capsys, own_file):
    model = own_file("signal.raise_signal(signal.SIGINT)")
    out = told(capsys, model, "--batch", "2", "--steps", "200", code=130).out
    assert "Warning: Stopped after " in out


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
        (["mnist_cnn", "--batch", "0"], "--batch cannot be 0: give a whole number of at least 1"),
        (["mnist_cnn", "--batch", "2", "--steps", "0"], "--steps cannot be 0: give a whole number of at least 1"),
        (["mnist_cnn", "--batch", "2", "--repeat", "0"], "--repeat cannot be 0: give a whole number of at least 1"),
        (["mnist_cnn", "--batch", "2", "--precision", "fp8"], "precision 'fp8' is not known"),
        (["mnist_cnn", "--batch", "2", "--optimizer", "lion"], "optimizer 'lion' is not known"),
        (["mnist_cnn", "--batch", "2", "--device", "tpu"], "not on 'tpu'"),
        (["mnist_cnn", "--batch", "2", "--device", "cpu:0"], "not on 'cpu:0'"),
        (
            ["mnist_cnn", "--batch", "2", "--epoch-samples", "8", "--default-malloc"],
            "--default-malloc does not go with --epoch-samples: it is for a single step",
        ),
        (
            ["mnist_cnn", "--batch", "2", "--data", "a.py:data"],
            "--data does not go with a single step: it is for --sweep or --epoch-samples",
        ),
        (["mnist_cnn", "--batch", "2", "--image-size", "3"], "image_size=3 is not possible"),
        (
            ["mnist_cnn", "--batch", "2", "--workers", "1"],
            "--workers does not go with a single step: it is for --epoch-samples",
        ),
        (
            ["mnist_cnn", "--batch", "2", "--epoch-samples", "8", "--steps", "2"],
            "--steps does not go with --epoch-samples: it is for --processes or --sweep or a single step",
        ),
        (
            ["mnist_cnn", "--batch", "2", "--epoch-samples", "8", "--workers", "-1"],
            "--workers cannot be -1: give a whole number of at least 0",
        ),
        (
            ["mnist_cnn", "--batch", "2", "--epoch-samples", "0"],
            "--epoch-samples cannot be 0: give a whole number of at least 1",
        ),
        (["mnist_cnn", "--batch", "0", "--epoch-samples", "8"], "--batch cannot be 0"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_2(capsys, arguments, words):
    error = told(capsys, *arguments, code=2).err
    assert words in error
    assert error.count("\n") == 1


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is one")
def test_a_gpu_that_is_not_there_is_exit_2(capsys):
    assert "There is no CUDA device" in told(capsys, *SMALL, "--device", "cuda", code=2).err
