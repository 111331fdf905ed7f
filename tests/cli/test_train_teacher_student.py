"""`traincast train teacher-student` and `train weak`, from the command line to the page."""

import json

import numpy as np
import pytest
import torch
from PIL import Image

from traincast.__main__ import run
from traincast.errors import InputError
from traincast.options.typed import SHARE

torch.set_num_threads(1)
SMALL = ["--data", "pictures", "--image-side", "16", "--epochs", "1", "--batch", "16"]
TAUGHT = ["teacher-student", *SMALL, "--teacher", "cifar_resnet20", "--labeled", "20%", "--k", "5", "--p", "1"]
WEAK = ["weak", *SMALL, "--clean", "20%", "--noise", "50%", "--imbalance", "2"]


@pytest.fixture(autouse=True)
def uncalibrated(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def pictures(tmp_path):
    """A folder of images by class: grey levels with noise on them."""
    random = np.random.default_rng(0)
    for part, n_each in (("train", 20), ("val", 6)):
        for level, name in ((60, "dark"), (190, "light")):
            folder = tmp_path / "pictures" / part / name
            folder.mkdir(parents=True)
            for number in range(n_each):
                pixels = random.normal(level, 30, (16, 16, 3)).clip(0, 255).astype(np.uint8)
                Image.fromarray(pixels).save(folder / f"{number}.png")


def told(capsys, *arguments, code=0):
    assert run(["train", *arguments]) == code
    return capsys.readouterr()


@pytest.mark.usefixtures("pictures")
def test_a_teacher_and_its_student_from_forecast_to_comparison(capsys, tmp_path):
    page = tmp_path / "page.html"
    out = told(capsys, *TAUGHT, "--seeds", "2", "--html", str(page)).out
    assert out.index("forecast, before anything runs") < out.index("Predicted and measured")
    for words in ("8 labels (20.0 %)", "student alone", "Students, by P and K", "over the teacher", "over 2 seeds"):
        assert words in out
    assert "Test accuracy against images selected a class" in page.read_text()
    assert (tmp_path / "runs" / "teacher-student-cifar_resnet20-cifar_resnet20-pictures" / "seed-1" / "k5-p1").is_dir()
    answer = json.loads(told(capsys, *TAUGHT, "--seeds", "2", "--json").out)  # it had ended: nothing is trained
    assert [stage["name"] for stage in answer["forecast"]["stages"]] == list(answer["result"]["stage_seconds"])
    assert [len(seed["students"]) for seed in answer["result"]["seeds"]] == [1, 1]


@pytest.mark.usefixtures("pictures")
def test_noisy_tags_from_forecast_to_comparison(capsys, tmp_path):
    page = tmp_path / "page.html"
    answer = json.loads(told(capsys, *WEAK, "--seeds", "2", "--on", "T4", "--json", "--html", str(page)).out)
    assert (answer["forecast"]["on"], answer["forecast_here"]["on"]) == ("T4", "generic-cpu")
    assert [line["noise_fraction"] for line in answer["result"]["lines"]] == [0.5, 0.5]
    assert [stage["name"] for stage in answer["forecast"]["stages"]] == list(answer["result"]["stage_seconds"])
    shown = page.read_text()
    for words in (
        "8 clean labels",
        "clean labels alone",
        "linear probe",
        "What square-root resampling adds",
        "Predicted and measured",
        "Test accuracy against noise added to the tags",
        "With 50.0 % of the tags replaced, resampling adds",
        "Forecast for T4",
    ):
        assert words in shown
    assert "Without added noise" not in shown


def test_only_the_forecast_trains_nothing(capsys, tmp_path):
    out = told(capsys, "teacher-student", "--teacher", "cifar_resnet20", "--forecast-only", "--on", "T4").out
    for words in ("teacher-student on T4", "scoring", "pretraining", "fine-tuning"):
        assert words in out
    assert not (tmp_path / "runs").exists()


def test_a_probe_is_forecast_faster_than_fine_tuning(capsys, tmp_path):
    answer = json.loads(told(capsys, "weak", "--forecast-only", "--on", "T4", "--json").out)
    stages = {stage["name"]: stage for stage in answer["forecast"]["stages"]}
    assert stages["linear probe"]["n_steps"] == stages["fine-tuning"]["n_steps"]
    assert stages["linear probe"]["train_s"] < stages["fine-tuning"]["train_s"]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["teacher-student", "--labeled", "half"], "--labeled 'half' is not a share: write 5% or 0.05."),
        (["teacher-student", "--p", "11"], "P should be between 1 and the 10 classes of the data, not 11."),
        (["teacher-student", "--student", "resnet21"], "There is no recipe for the model 'resnet21'"),
        (["weak", "--noise", "120%"], "--noise '120%' is not a share"),
        (["weak", "--dropped", "1"], "at least 0 and below 1, not 1"),
        (["weak", "--imbalance", "nan"], "--imbalance cannot be nan: give a number."),
        (["teacher-student", "--seed", "2147483647", "--seeds", "2"], "seed 2147483648 is too large"),
    ],
)
def test_what_cannot_be_is_one_sentence(capsys, arguments, words):
    (line,) = [line for line in told(capsys, *arguments, code=2).err.splitlines() if line.startswith("Error: ")]
    assert words in line


@pytest.mark.parametrize(("text", "share"), [("5%", 0.05), ("0.05", 0.05), ("100 %", 1.0), ("0", 0.0)])
def test_shares_are_percentages_or_fractions(text, share):
    assert SHARE.of(text, "--labeled") == pytest.approx(share)


@pytest.mark.parametrize("text", ["", "%", "5%%", "nan", "-1%", "5"])
def test_what_is_no_share_is_said(text):
    with pytest.raises(InputError, match="is not a share"):
        SHARE.of(text, "--labeled")
