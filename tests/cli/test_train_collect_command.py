"""`traincast train collect`, from the command line to the exit code."""

import json

import pytest
import torch
from pages import read_page

from traincast.__main__ import run

torch.set_num_threads(1)
SMALL = ["train", "collect", "--image-side", "8", "--batch", "512", "--epochs", "2"]


@pytest.fixture(autouse=True)
def uncalibrated(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_runs_are_forecast_trained_and_fitted_and_not_trained_again(capsys, tmp_path):
    assert run(SMALL) == 0
    out = capsys.readouterr().out
    assert out.index("1 training run on generic-cpu") < out.index("1 of 1 training runs are in 'runs/collect-digits'")
    for words in ("cifar_resnet20-cpu-2epochs-seed0", "exponent", "predicted/took", "1 trained now, 0 before."):
        assert words in out
    assert (tmp_path / "runs/collect-digits/runs/cifar_resnet20-cpu-2epochs-seed0/log.csv").exists()
    assert run([*SMALL, "--json", "--html", "page.html"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert (answer["progress"]["n_now"], answer["progress"]["n_before"]) == (0, 1)
    assert answer["runs"][0]["n_steps"] == 6
    page = read_page(tmp_path / "page.html")
    assert any("not calibrated" in note for note in page.notes)
    assert any(title.startswith("Training loss") for title in page.figures)
    assert (
        run(["converge", "runs/collect-digits/runs/cifar_resnet20-cpu-2epochs-seed0/log.csv", "--metric", "loss"]) == 0
    )


def test_only_the_forecast_trains_nothing(capsys, tmp_path):
    line = [*SMALL, "--models", "cifar_resnet20,cifar_resnet32", "--seeds", "2", "--forecast-only"]
    assert run([*line, "--json"]) == 0
    stages = json.loads(capsys.readouterr().out)["forecast"]["stages"]
    assert [stage["name"] for stage in stages] == [
        f"cifar_resnet{depth}-cpu-2epochs-seed{seed}" for depth in (20, 32) for seed in (0, 1)
    ]
    assert not (tmp_path / "runs").exists()
    assert run([*line, "--html", "page.html"]) == 0
    assert read_page(tmp_path / "page.html").n_points("What the stages take on generic-cpu") == 12


def test_where_no_run_comes_to_its_end_it_is_said_and_the_exit_code_is_1(capsys):
    line = [*SMALL, "--learning-rate", "1e30"]
    assert run(line) == 1
    out = capsys.readouterr().out
    assert "0 of 1 training runs are in 'runs/collect-digits'" in out
    assert "None of the runs came to its end: --retry-failed tries them again" in out
    assert "1 tried now, 0 before." in out
    assert run([*line, "--json"]) == 1
    (failed,) = json.loads(capsys.readouterr().out)["runs"]
    assert failed["n_steps"] is None
    assert "try a smaller one" in failed["error"]


def test_a_device_that_is_not_here_stores_no_failures(capsys, tmp_path):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert run([*SMALL, "--on-devices", "cuda"]) == 2
    assert "There is no CUDA device to train on ('cuda')" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_forecast_for_elsewhere_has_its_cost(capsys):
    assert run([*SMALL, "--on", "T4", "--price", "0.5", "--forecast-only", "--json"]) == 0
    forecast = json.loads(capsys.readouterr().out)["forecast"]
    assert forecast["cost_usd"] == pytest.approx(0.5 * forecast["total_s"] / 3600)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--epochs", "0"], "--epochs '0' is not a list of whole numbers from 1"),
        (["--seeds", "0"], "--seeds cannot be 0: give a whole number of at least 1"),
        (["--models", "resnet"], "There is no recipe for the model 'resnet'."),
        (["--on-devices", "gpu"], "Training is not possible on the device 'gpu'"),
        (["--cpus-per-task", "1"], "apply to the CPUs of a Ray cluster only"),
        (["--on-ray", "127.0.0.1:1"], "Cannot use a Ray cluster at '127.0.0.1:1'"),
    ],
)
def test_mistakes_are_one_sentence(capsys, arguments, words):
    assert run([*SMALL, *arguments]) == 2
    assert words in capsys.readouterr().err
