"""Layers timed alone and added up, against the whole model: the practicum's correction factor, for any model."""

import json

import pytest

from traincast.__main__ import run
from traincast.api.explaining import lone_layers
from traincast.errors import TraincastError

P100 = "P100-PCIe-16GB"


# Measured by the practicum on a P100, Adam: docs/layer_sums.md, "The ratio". Our mean error there is 0.09.
@pytest.mark.parametrize(
    ("model", "batch_size", "measured"),
    [("mnist_cnn_2conv", 8, 1.10), ("mnist_cnn_2conv", 32, 1.14), ("cifar10_cnn", 8, 1.54), ("cifar10_cnn", 64, 1.65)],
)
def test_the_ratio_is_near_the_measured_one(model, batch_size, measured):
    found = lone_layers(model, P100, batch_size, optimizer="adam")
    assert found.ratio == pytest.approx(measured, abs=0.2)


def test_causes_add_up_to_the_sum_and_parts_to_the_whole():
    found = lone_layers("cifar10_cnn", P100, 96, optimizer="adam")
    assert len(found.layers) == 7  # three convolutions, four dense layers
    assert sum(found.causes_s.values()) == pytest.approx(found.sum_s)
    assert sum(found.whole_parts_s.values()) == pytest.approx(found.whole_s)
    low, high = found.ratio_by_call
    assert low < found.ratio < high


def test_layers_that_the_benchmark_has_not_are_counted_by_why():
    found = lone_layers("mobilenet_v2", P100, 8)
    assert found.left_out == {"grouped, dilated or transposed": 17}  # its depthwise convolutions
    assert len(found.layers) == 52 - 17 + 1  # the other convolutions, and the classifier


def test_a_forward_pass_alone_has_no_loss_and_no_update():
    found = lone_layers("mnist_cnn_2conv", P100, 32, mode="inference")
    assert found.causes_s["a loss per layer"] == found.causes_s["updates of input and target"] == 0


def test_the_command_tells_sum_whole_and_ratio(capsys):
    arguments = ["explain", "mnist_cnn_2conv", "--on", P100, "--batch", "8", "--optimizer", "adam", "--layer-sum"]
    assert run(arguments) == 0
    out = capsys.readouterr().out
    assert "4 layers timed alone add up to" in out
    assert "Why the layers alone take so long" in out
    assert run([*arguments, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ratio"] == pytest.approx(found["sum_s"] / found["whole_s"])


@pytest.mark.parametrize(
    ("on", "options", "words"),
    [
        ("2xP100-PCIe-16GB", {}, "alone on one GPU"),
        (P100, {"precision": "amp-fp16"}, "ran in fp32"),
        (P100, {"optimizer": "nesterov"}, "No fused update is known for 'nesterov'"),
    ],
)
def test_what_such_benchmarks_never_ran_is_refused(on, options, words):
    with pytest.raises(TraincastError, match=words):
        lone_layers("mnist_cnn_2conv", on, 8, **options)
