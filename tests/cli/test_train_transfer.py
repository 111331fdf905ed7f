"""`traincast train transfer`, from the command line to the page."""

import json

import pytest
import torch
from PIL import Image

from traincast.__main__ import run
from traincast.recipes.models import build_model

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def uncalibrated(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def flowers(tmp_path):
    """Visual Decathlon's layout, two classes."""
    for part, n_images in (("train", 6), ("val", 2)):
        for name, colour in (("rose", (200, 30, 40)), ("violet", (90, 40, 180))):
            place = tmp_path / "flowers" / part / name
            place.mkdir(parents=True)
            for image in range(n_images):
                Image.new("RGB", (16, 16), (colour[0] + image, *colour[1:])).save(place / f"{image}.png")
    return "flowers"


@pytest.fixture
def weights(tmp_path):
    torch.save(build_model("cifar_resnet20", 10, seed=3).state_dict(), tmp_path / "source.pt")
    return "source.pt"


def told(capsys, *arguments, code=0):
    assert run(["train", "transfer", "--image-side", "16", "--epochs", "1", *arguments]) == code
    return capsys.readouterr()


def test_accuracy_by_approach_and_rate_with_times_beside_the_forecast(capsys, tmp_path, flowers, weights):
    asked = ["--data", flowers, "--weights", weights, "--seeds", "2", "--rate", "0.1"]
    found = told(capsys, *asked, "--html", "page.html", "--picture", "samples.png")
    out = found.out
    assert out.index("forecast, before anything runs") < out.index("Accuracy on the test images")
    for words in ("cifar_resnet20 carried over to flowers", "Winner: ", "n=2", "its backward", "predicted/measured"):
        assert words in out
    assert out.index("Images per class of flowers") < out.index("Accuracy on the test images")
    total = out.split("Predicted and measured")[1]
    assert [line.split()[0] for line in total.splitlines()[2:7]] == ["fine-tune", "frozen", "features", "cached", "all"]
    assert "Wrote samples.png" in found.err
    with Image.open(tmp_path / "samples.png") as picture:
        assert picture.width > 100
    assert "Final accuracy of cifar_resnet20 on flowers" in (tmp_path / "page.html").read_text()
    answer = json.loads(told(capsys, *asked, "--json").out)  # all runs have ended: nothing is trained
    cells = {(each["approach"], each["learning_rate"]): each for each in answer["result"]["outcomes"]}
    assert set(cells) == {("fine-tune", 0.1), ("frozen", 0.1), ("cached", 0.1)}
    assert all(len(each["accuracies"]) == 2 for each in cells.values())
    assert answer["result"]["stage_runs"] == {"features": 1, "fine-tune": 2, "frozen": 2, "cached": 2}
    assert [stage["name"] for stage in answer["forecast"]["stages"]] == ["fine-tune", "frozen", "features", "cached"]


def test_without_weights_half_of_the_digits_are_learned_first(capsys, tmp_path):
    line = ["train", "transfer", "--image-side", "8", "--epochs", "1", "--source-epochs", "1", "--batch", "256"]
    assert run([*line, "--seeds", "1", "--approach", "frozen", "--approach", "cached", "--rate", "0.1"]) == 0
    out = capsys.readouterr().out
    for words in ("carried over to digits, classes 5 to 9", "The source task was digits, classes 0 to 4", "Winner: "):
        assert words in out
    folder = tmp_path / "runs" / "transfer-cifar_resnet20-digits"
    assert (folder / "source" / "result.json").exists()
    assert (folder / "frozen" / "rate-0.1" / "seed-0" / "log.csv").exists()


def test_a_total_is_not_compared_where_a_run_diverged(capsys, flowers, weights):
    asked = ["--data", flowers, "--weights", weights, "--seeds", "1", "--rate", "0.1", "--rate", "1e30"]
    out = told(capsys, *asked, "--approach", "fine-tune", "--approach", "frozen", "--epochs", "2").out
    total = out.split("Predicted and measured")[1].split("\n\n")[0]
    assert "all" not in total


def test_weights_of_another_model_are_told_before_anything_else(capsys, flowers, weights):
    found = told(capsys, "--data", flowers, "--weights", weights, "--model", "cifar_resnet32", code=2)
    assert found.err.startswith("Error: The weights of 'source.pt' do not fit cifar_resnet32: layer1.3.conv1.weight")
    assert "look like those of cifar_resnet20" in found.err
    assert found.out == ""


def test_an_approach_that_nobody_knows_is_told(capsys, flowers, weights):
    assert "approach" in told(capsys, "--data", flowers, "--weights", weights, "--approach", "thaw", code=2).err


def test_one_seed_has_no_interval_and_a_forecast_alone_trains_nothing(capsys, tmp_path, flowers, weights):
    asked = ["--data", flowers, "--weights", weights, "--approach", "frozen", "--rate", "0.1", "--seeds", "1"]
    assert "frozen" in told(capsys, *asked, "--forecast-only", "--on", "T4").out
    assert not (tmp_path / "runs").exists()
    assert "1 seed, no interval" in told(capsys, *asked).out
