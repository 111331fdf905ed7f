"""`traincast train scratch`, from the command line to the exit code."""

import json
import os
import resource
import signal
import subprocess
import sys
import time

import pytest
import torch
from pages import read_page
from PIL import Image

from traincast.__main__ import run

torch.set_num_threads(1)
SMALL = ["scratch", "--image-side", "8", "--epochs", "1", "--batch", "512"]


@pytest.fixture(autouse=True)
def uncalibrated(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def told(capsys, *arguments, code=0):
    assert run(["train", *arguments]) == code
    return capsys.readouterr()


def test_the_forecast_comes_first_and_stands_beside_the_measurement_at_the_end(capsys, tmp_path):
    page = tmp_path / "page.html"
    out = told(capsys, *SMALL, "--html", str(page)).out
    assert out.index("forecast, before anything runs") < out.index("Predicted and measured")
    for words in (
        "scratch on generic-cpu",
        "not calibrated",
        "test accuracy",
        "predicted/measured",
        "checkpoints and log",
    ):
        assert words in out
    folder = tmp_path / "runs" / "scratch-cifar_resnet20-digits"
    assert f"'{folder.relative_to(tmp_path)}/log.csv'" in out
    assert sorted(path.name for path in folder.iterdir() if path.name[0] != ".") == [
        "checkpoint.pt", "log.csv", "result.json", "settings.json",
    ]  # fmt: skip
    assert "Accuracy of cifar_resnet20" in page.read_text()
    assert "Predicted and measured time" in page.read_text()
    assert "1 epoch of" in out
    again = json.loads(told(capsys, *SMALL, "--json").out)  # it had ended: nothing is trained
    assert again["result"]["n_steps"] == 3
    assert again["forecast"]["stages"][0]["n_steps"] == 3
    error = told(capsys, *SMALL, "--seed", "1", code=2).err
    assert error.startswith("Error: 'runs/scratch-cifar_resnet20-digits' has another run (its seed is 0, not 1)")


def test_the_page_of_a_run_has_what_its_forecast_warned_of_and_what_it_costs(capsys, tmp_path):
    told(capsys, *SMALL, "--price", "36000", "--html", "page.html")
    page = read_page(tmp_path / "page.html")
    notes = [note.removeprefix("generic-cpu: ") for note in page.notes]
    assert any(note.startswith("It costs $") for note in notes)
    assert any(note.startswith("Warning: This machine was not calibrated") for note in notes)
    assert "MiB" in page.tables[-1][0][-1]  # the forecast, with its memory


def test_a_forecast_for_elsewhere_stands_beside_that_for_here(capsys, tmp_path):
    page = tmp_path / "page.html"
    answer = json.loads(told(capsys, *SMALL, "--on", "T4", "--price", "0.5", "--json", "--html", str(page)).out)
    assert answer["forecast"]["on"] == "T4"
    assert answer["forecast"]["cost_usd"] == pytest.approx(0.5 * answer["forecast"]["total_s"] / 3600)
    assert answer["forecast_here"]["on"] == "generic-cpu"
    assert answer["forecast_here"]["has_input"]
    assert "Forecast for T4" in page.read_text()
    assert "T4: It costs" in page.read_text()


def test_only_the_forecast_trains_nothing(capsys, tmp_path):
    out = told(capsys, *SMALL, "--forecast-only", "--on", "T4", "--price", "0.5").out
    assert "scratch on T4" in out
    assert "It costs" in out
    assert "Reading and augmenting images is not included" in out
    answer = json.loads(told(capsys, *SMALL, "--forecast-only", "--json").out)
    assert set(answer) == {"forecast"}
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--model", "resnet21"], "There is no recipe for the model 'resnet21'"),
        (["--epochs", "0"], "--epochs cannot be 0: give a whole number of at least 1"),
        (["--device", "cuda:9"], "There is no CUDA device to train on"),
        (["--device", "gpu"], "Training is not possible on the device 'gpu'"),
        (["--checkpoint-every", "-1"], "--checkpoint-every cannot be -1.0"),
        (["--price=-1"], "--price cannot be -1.0: give a number above 0"),
        (["--learning-rate", "1e30"], "a learning rate of 1e+30"),
        (["--on", "nonsense"], "nonsense"),
        (["--data", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_is_one_sentence(capsys, arguments, words):
    if arguments[0] == "--device" and torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    told_to = told(capsys, *SMALL, *arguments, code=2)
    (line,) = [line for line in told_to.err.splitlines() if line.startswith("Error: ")]
    assert words in line


@pytest.mark.parametrize("recipe", ["scratch", "collect", "scaling", "transfer", "teacher-student", "weak"])
def test_images_of_an_absurd_size_are_refused_before_a_pixel_is_made(capsys, recipe):
    error = told(capsys, recipe, "--image-side", "20000", "--forecast-only", code=2).err
    assert error == "Error: The side of an image should be at most 8,192 pixels, not 20,000.\n"


def test_what_no_memory_holds_is_forecast_and_not_trained(capsys, tmp_path):
    large = ["scratch", "--image-side", "4096", "--batch", "512", "--epochs", "1"]
    (stage,) = json.loads(told(capsys, *large, "--forecast-only", "--json").out)["forecast"]["stages"]
    assert stage["peak_memory_bytes"] > 10 * 2**40
    told_to = told(capsys, *large, code=2)
    assert "scratch on generic-cpu" in told_to.out
    assert "needs 11.8 TiB of memory, and this machine has" in told_to.err
    assert not (tmp_path / "runs").exists()


def test_a_device_that_is_not_here_is_told_before_the_forecast(capsys):
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    assert told(capsys, *SMALL, "--device", "cuda", code=2).out == ""
    assert "scratch on T4" in told(capsys, *SMALL, "--device", "cuda", "--on", "T4", "--forecast-only").out


def test_settings_that_came_to_nothing_do_not_keep_the_folder(capsys):
    told(capsys, *SMALL, "--learning-rate", "1e30", code=2)
    assert "test accuracy" in told(capsys, *SMALL).out


def test_a_broken_image_is_one_sentence_and_mended_the_same_command_trains(capsys, tmp_path):
    for part, n_images in (("train", 4), ("val", 2)):
        for name, colour in (("dark", 40), ("light", 220)):
            place = tmp_path / "shades" / part / name
            place.mkdir(parents=True)
            for number in range(n_images):
                Image.new("RGB", (16, 16), (colour + number,) * 3).save(place / f"{number}.png")
    broken = tmp_path / "shades" / "train" / "light" / "2.png"
    whole = broken.read_bytes()
    broken.write_bytes(whole[:40])
    line = ["scratch", "--data", "shades", "--image-side", "16", "--epochs", "1", "--batch", "4"]
    error = told(capsys, *line, code=2).err
    assert error.splitlines() == [
        "Error: The image 'shades/train/light/2.png' cannot be decoded: it is damaged or not an image."
    ]
    broken.write_bytes(whole)
    assert "cifar_resnet20 on shades" in told(capsys, *line).out


def test_a_full_disk_is_one_sentence_and_with_room_the_same_command_trains(capsys, tmp_path):
    usual, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))  # a checkpoint has two million bytes
    try:
        error = told(capsys, *SMALL, "--out", "run", code=2).err
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual, hard))
    assert error.splitlines()[-1] == (
        "Error: The checkpoint 'run/checkpoint.pt' cannot be written: File too large; nothing was saved."
    )
    assert "Predicted and measured" in told(capsys, *SMALL, "--out", "run").out


def test_killed_with_9_the_same_command_goes_on_bit_for_bit(capsys, tmp_path):
    line = ["train", "scratch", "--image-side", "8", "--epochs", "2", "--batch", "128", "--checkpoint-every", "0"]
    assert run([*line, "--out", "unbroken"]) == 0
    child = subprocess.Popen(
        [sys.executable, "-m", "traincast", *line, "--out", "killed"],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    checkpoint = tmp_path / "killed" / "checkpoint.pt"
    until_s = time.monotonic() + 90
    while not checkpoint.exists():
        assert child.poll() is None
        assert time.monotonic() < until_s
        time.sleep(0.002)
    child.send_signal(signal.SIGKILL)
    child.wait()
    assert not (tmp_path / "killed" / "result.json").exists(), "it was to be killed before its end"
    capsys.readouterr()
    assert run([*line, "--out", "killed"]) == 0
    assert "Resumed from step" in capsys.readouterr().out
    logs = [(tmp_path / name / "log.csv").read_text().splitlines() for name in ("unbroken", "killed")]
    clock = logs[0][0].split(",").index("seconds")
    without_clock = [[row.split(",")[:clock] + row.split(",")[clock + 1 :] for row in log] for log in logs]
    assert without_clock[0] == without_clock[1]


def test_ctrl_c_leaves_a_checkpoint_and_says_how_to_go_on(capsys, tmp_path):
    arguments = ["train", "scratch", "--image-side", "8", "--epochs", "9", "--batch", "16", "--out", "run"]
    child = subprocess.Popen(
        [sys.executable, "-m", "traincast", *arguments],
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    log = tmp_path / "run" / "log.csv"
    until_s = time.monotonic() + 90
    while (not log.exists() or log.read_text().count("\n") < 3) and child.poll() is None:
        assert time.monotonic() < until_s
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    out, error = child.communicate(timeout=90)
    assert child.returncode == 130, error
    assert error.splitlines()[-1] == "Stopped. The same command goes on from the checkpoint in 'run'."
    assert (tmp_path / "run" / "checkpoint.pt").exists()
    assert "Predicted and measured" not in out


def test_recipes_are_listed(capsys):
    out = told(capsys, "--help").out
    for name in ("scratch", "transfer", "teacher-student", "weak", "scaling", "collect"):
        assert name in out


@pytest.mark.parametrize("name", ["scratch", "transfer", "teacher-student", "weak"])
def test_options_that_all_recipes_share_are_the_same_everywhere(capsys, name):
    out = told(capsys, name, "--help").out.split("Options:")[1]
    assert out.index("--data") < out.index("--seed") < out.index("--checkpoint-every") < out.index("--json")


@pytest.mark.parametrize(
    ("command", "extra"), [(["train", "scratch"], "recipes"), (["schedule", "jobs.csv", "--out", "runs"], "ray")]
)
def test_without_torch_it_names_the_extra_that_brings_all_it_needs(capsys, monkeypatch, command, extra):
    monkeypatch.setitem(sys.modules, "torch", None)
    assert run(command) == 2
    assert f"Training needs the '{extra}' extra: pip install 'traincast[{extra}]'." in capsys.readouterr().err
