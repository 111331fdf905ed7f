"""The practicum's three methods for MirroredStrategy and our forecast, side by side."""

import json

import pytest

import traincast as tc
from traincast.__main__ import run
from traincast.api.explaining import lone_layers, mirrored
from traincast.errors import TraincastError

TWO = "2xP100-PCIe-16GB"
ASKED = ("mnist_cnn_2conv", TWO, 16)
OPTIONS = {"optimizer": "adam", "strategy": "mirrored"}


def test_ours_is_the_forecast_with_keras_as_its_host():
    found = mirrored(*ASKED, **OPTIONS)
    assert found.methods[-1].step_s == tc.forecast(*ASKED, **OPTIONS, host="tf2-keras").step_s


def test_the_third_divides_all_but_the_last_layer_by_the_constant():
    steps = {one.name: one.step_s for one in mirrored(*ASKED, **OPTIONS).methods}
    alone = lone_layers("mnist_cnn_2conv", "P100-PCIe-16GB", 8, optimizer="adam").layers
    others_s = sum(layer.seconds for layer in alone[:-1])
    assert steps["method 2"] - steps["method 3"] == pytest.approx(others_s * (1 - 1 / 1.5))
    assert steps["method 1"] > steps["method 2"] > steps["method 3"]


def test_every_layer_under_the_strategy_pays_for_a_call_per_replica():
    found = mirrored(*ASKED, **OPTIONS)
    call_s = 2 * 1.48e-3  # a Keras step's, twice
    assert found.methods[0].step_s > found.n_layers * call_s


def test_a_measured_step_stands_beside(tmp_path, capsys):
    table = tmp_path / "runs.csv"
    table.write_text("model,batch_size,optimizer,n_devices,step_ms\nmnist_cnn_2conv,16,adam,2,3.88\n")
    arguments = ["explain", ASKED[0], "--on", TWO, "--batch", "16", "--optimizer", "adam", "--strategy", "mirrored"]
    arguments += ["--layer-sum", "--measured", str(table)]
    assert run(arguments) == 0
    assert "Measured: 3.88 ms; nearest is ours" in capsys.readouterr().out
    assert run([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["methods"][3]["error_fraction"] == pytest.approx(found["methods"][3]["step_s"] / 3.88e-3 - 1)


@pytest.mark.parametrize(
    ("on", "options", "words"),
    [
        ("P100-PCIe-16GB", OPTIONS, "on two GPUs or more"),
        (TWO, {**OPTIONS, "strategy": "ddp"}, "on two GPUs or more"),
        (TWO, {"strategy": "mirrored", "precision": "amp-fp16"}, "ran in fp32"),
    ],
)
def test_it_is_a_question_about_that_strategy_alone(on, options, words):
    with pytest.raises(TraincastError, match=words):
        mirrored("mnist_cnn_2conv", on, 16, **options)
