"""Timing one layer alone: forward, loss, backward and update of a network that consists of it.

The gradient of the input is computed too, as inside a network. The loss is the mean of the squares of the output, so
backward begins with one product of that size. Tensors stay on the device; the caches are warm.
"""

from __future__ import annotations

import statistics
from typing import Any

import torch
from torch import nn

from traincast.errors import InputError
from traincast.measurement.failures import failure
from traincast.measurement.runnable import Runnable
from traincast.measurement.stopwatch import stopwatch_for
from traincast.measurement.training import PHASES, Training
from traincast.microbenchmarks.layer_tasks import padding_of, work_of
from traincast.microbenchmarks.repeat import N_WARM_UP, repeats
from traincast.records.record import Settings

_ACTIVATIONS = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid}
SUMMED = ("forward_s", "loss_s", "backward_s", "optimizer_s", "step_s")


def run_layer(settings: Settings) -> dict[str, Any]:
    """Seconds of each phase and of the step (median, least, most, standard deviation), flop and bytes of forward."""
    device = str(settings.get("device", "cpu"))
    try:
        times = _time(settings, device)
    except (RuntimeError, MemoryError) as error:  # one layer that a backend cannot do must not stop thousands
        raise failure(f"A {settings['layer']} layer on '{device}'", error) from error
    flop, moved_bytes = work_of(settings)
    values: dict[str, Any] = {"flop": flop, "bytes": moved_bytes, "n_steps": len(times)}
    for name, column in zip(SUMMED, [*zip(*times, strict=True), [sum(phases) for phases in times]], strict=True):
        values |= {
            name: statistics.median(column),
            f"min_{name}": min(column),
            f"max_{name}": max(column),
            f"std_{name}": statistics.stdev(column),
        }
    return values


def _time(settings: Settings, device: str) -> list[tuple[float, ...]]:
    """Seconds of the four phases, one row a step."""
    training = Training(layer_of(settings), optimizer=str(settings["optimizer"]), device=device)
    inputs, stopwatch = training.inputs(int(settings["batch"] or 0)), stopwatch_for(device)
    for _ in range(N_WARM_UP):
        training.step(inputs, stopwatch)
        stopwatch.read()
    times = []
    for _ in repeats():
        training.step(inputs, stopwatch)
        times.append(tuple(stopwatch.read()))
    assert all(len(row) == len(PHASES) for row in times)
    return times


def layer_of(settings: Settings) -> Runnable:
    """The layer, with inputs of its size."""
    kind = str(settings["layer"])
    if kind not in _MAKERS:
        raise InputError(f"There is no layer '{kind}' to time. Choose from: {', '.join(_MAKERS)}.")
    module, shape = _MAKERS[kind](settings)
    activation = _ACTIVATIONS.get(str(settings.get("activation")))
    return Runnable(
        name=kind,
        module=module if activation is None else nn.Sequential(module, activation()),
        make_inputs=lambda batch_size: torch.randn(batch_size, *shape),
        # A new leaf every step: its gradient is computed, as in a network, and never added to that of the step before.
        forward=lambda layer, inputs: layer(inputs.detach().requires_grad_()),
        loss=lambda output, _: (output[0] if isinstance(output, tuple) else output).square().mean(),
    )


def _dense(settings: Any) -> tuple[Any, tuple[int, ...]]:
    return nn.Linear(settings["dim_in"], settings["dim_out"]), (settings["dim_in"],)


def _conv(settings: Any) -> tuple[Any, tuple[int, ...]]:
    module = nn.Conv2d(
        settings["channels_in"],
        settings["channels_out"],
        settings["kernel"],
        stride=settings["stride"],
        padding=padding_of(settings),
        bias=bool(settings["bias"]),
    )
    return module, _image(settings)


def _pool(settings: Any) -> tuple[Any, tuple[int, ...]]:
    pool = {"max": nn.MaxPool2d, "average": nn.AvgPool2d}[settings["pooling"]]
    return pool(settings["kernel"], stride=settings["stride"], padding=padding_of(settings)), _image(settings)


def _lstm(settings: Any) -> tuple[Any, tuple[int, ...]]:
    module = nn.LSTM(settings["dim_in"], settings["dim_out"], batch_first=True)
    return module, (settings["seqlen"], settings["dim_in"])


def _image(settings: Any) -> tuple[int, ...]:
    return (settings["channels_in"], settings["input_size"], settings["input_size"])


_MAKERS = {"dense": _dense, "conv": _conv, "pool": _pool, "lstm": _lstm}
