"""Real steps of models that calibration never saw, one process a model:  python benchmarks/calibrated_runs.py MODEL

Prints one JSON line a batch size and optimizer; with --layers, one for every layer alone. `calibration.py` starts it.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch

import traincast as tc
from traincast.api.runnables import runnable_of
from traincast.calibration.layers import Scaled, mean_loss
from traincast.measurement.measure import measure_step
from traincast.measurement.runnable import Runnable

FIVE = "benchmarks/five_models.py"  # as seen from the project's folder
# Three batch sizes each, the largest sixteen times the smallest.
SMALLEST = {
    f"{FIVE}:cnn": 8,
    f"{FIVE}:mlp": 16,
    f"{FIVE}:transformer": 4,
    f"{FIVE}:lstm": 8,
    f"{FIVE}:mixed": 8,
    "mnist_cnn": 8,
    "mnist_cnn_2conv": 8,
    "cifar10_cnn": 8,
    "cifar_resnet20": 8,
    "cifar_resnet32": 8,
    "cifar_resnet44": 8,
    "cifar_resnet56": 8,
    "cifar_resnet110": 2,
    "cifar_resnet18": 2,
    "mobilenet_v2": 1,
    "efficientnet_b0": 1,
    "lstm_lm": 2,
}
FACTORS = {1: 30, 4: 15, 16: 7}  # of the smallest batch, and how many steps to time
OPTIMIZERS = ("sgd", "adam")
# Models whose layers each take one tensor, so that a layer can be run alone.
LAYERED = {
    f"{FIVE}:cnn": 32,
    f"{FIVE}:mlp": 64,
    "mnist_cnn": 32,
    "cifar10_cnn": 32,
    "cifar_resnet20": 16,
    "mobilenet_v2": 2,
}
_STEPS = 15


def run_steps(model: str) -> None:
    for factor, n_steps in FACTORS.items():
        for optimizer in OPTIMIZERS:
            batch_size = factor * SMALLEST[model]
            found = measure_step(runnable_of(model), batch_size=batch_size, optimizer=optimizer, n_steps=n_steps)
            row = {"model": model, "batch_size": batch_size, "optimizer": optimizer, "step_s": found.step_s}
            row |= {"minimum_s": found.step.minimum, "phases": {n: s.median for n, s in found.phases.items()}}
            print(json.dumps(row), flush=True)


def run_layers(model: str) -> None:
    """The whole model and each of its layers alone, measured and forecast: the experiment behind 'factor 1.5'."""
    batch_size = LAYERED[model]
    runnable = runnable_of(model)
    whole = measure_step(runnable, batch_size=batch_size, n_steps=_STEPS)
    expected = tc.forecast(model, "this-machine", batch_size)
    print(
        json.dumps({"model": model, "layer": "", "measured_s": whole.step_s, "forecast_s": expected.step_s}), flush=True
    )
    for name, layer, shape in _layers(runnable, batch_size):
        alone = Scaled(copy.deepcopy(layer))
        example = _example(shape)
        expected = tc.forecast(tc.capture(alone, example, loss=mean_loss), "this-machine", batch_size)
        found = tc.measure(alone, example, batch_size=batch_size, loss=mean_loss, n_steps=_STEPS)
        row = {"model": model, "layer": name, "measured_s": found.step_s, "forecast_s": expected.step_s}
        print(json.dumps(row), flush=True)


def _example(shape: Sequence[int]) -> Callable[[int], Any]:
    return lambda batch_size: torch.randn(batch_size, *shape)


def _layers(runnable: Runnable, batch_size: int) -> list[tuple[str, Any, Any]]:
    """Every layer without parts, with the shape of what it reads."""
    seen: list[tuple[str, Any, Any]] = []
    hooks = [
        layer.register_forward_hook(
            lambda module, inputs, output, name=name: seen.append((name, module, inputs[0].shape[1:]))
        )
        for name, layer in runnable.module.named_modules()
        if not list(layer.children())
    ]
    runnable.forward(runnable.module, runnable.make_inputs(batch_size))
    for hook in hooks:
        hook.remove()
    return seen


if __name__ == "__main__":
    torch.manual_seed(0)
    if "--layers" in sys.argv:
        run_layers(sys.argv[1])
    else:
        run_steps(sys.argv[1])
