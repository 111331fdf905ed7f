"""The practicum's three ways to predict a step under MirroredStrategy from layers alone, beside our forecast of it.

Method 1 benchmarks every layer under the strategy and adds up: every layer then pays for what Keras does around a step,
once per replica. Method 2 benchmarks the last layer so and takes the others as on one GPU with the batch divided.
Method 3 divides these others by 1.5, the practicum's constant for "layer sum against whole model".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from traincast.errors import InputError
from traincast.forecasting.layer_sum import LoneLayer, check_benchmark, lone_layers_of, session_host
from traincast.forecasting.question import Question
from traincast.forecasting.sweep import forecast_step
from traincast.hardware.host import find_host
from traincast.kernels.fused_updates import check_fused_optimizer
from traincast.scaling.hierarchy import all_reduce
from traincast.scaling.strategy import network_of

PROJECT_CONSTANT = 1.5
_BYTES_EACH = 4  # fp32


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodStep:
    """One way to the step, and what it says."""

    name: str
    what: str
    step_s: float


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class MirroredMethods:
    """Three of the practicum and ours. `measured_s` is None where nobody gave a measured step."""

    model: str
    place: str
    batch_size: int
    batch_size_per_device: int
    optimizer: str
    n_layers: int
    methods: tuple[MethodStep, ...]
    ours_interval_s: tuple[float, float]
    measured_s: float | None = None

    def error_fraction(self, method: MethodStep) -> float | None:
        return None if self.measured_s is None else method.step_s / self.measured_s - 1

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        names = ("model", "place", "batch_size", "batch_size_per_device", "optimizer", "n_layers", "measured_s")
        methods = [
            {"method": one.name, "step_s": one.step_s, "error_fraction": self.error_fraction(one)}
            for one in self.methods
        ]
        return {
            **{name: getattr(self, name) for name in names},
            "methods": methods,
            "ours_interval_s": self.ours_interval_s,
        }


def mirrored_methods(question: Question) -> MirroredMethods:
    """Of a training step in fp32 on several GPUs of one node."""
    if question.strategy.kind != "mirrored" or question.n_devices < 2 or question.cluster is None:
        raise InputError("The three methods are about MirroredStrategy on two GPUs or more: ask for that strategy.")
    if question.is_inference:
        raise InputError("MirroredStrategy trains: leave the mode out.")
    check_benchmark(question)
    check_fused_optimizer(question.settings.optimizer)
    optimizer, keras = question.settings.optimizer, find_host("tf2-keras")
    mirrored = replace(keras, call_s=question.n_devices * keras.call_s)
    alone, _ = lone_layers_of(question, optimizer, session_host(question))
    together, _ = lone_layers_of(question, optimizer, mirrored)
    ours = forecast_step(replace(question, host=keras))
    last_s = together[-1].seconds + _reduce_s(question, together[-1])
    others_s = sum(layer.seconds for layer in alone[:-1])
    methods = (
        MethodStep(
            name="method 1",
            what="every layer under the strategy",
            step_s=sum(layer.seconds + _reduce_s(question, layer) for layer in together),
        ),
        MethodStep(name="method 2", what="the last layer so, the others alone", step_s=others_s + last_s),
        MethodStep(
            name="method 3",
            what=f"the same, the others over {PROJECT_CONSTANT}",
            step_s=others_s / PROJECT_CONSTANT + last_s,
        ),
        MethodStep(name="ours", what="the whole step, all gradients reduced", step_s=ours.step_s),
    )
    return MirroredMethods(
        model=question.trace.name,
        place=question.place,
        batch_size=question.batch_size,
        batch_size_per_device=question.micro_batch_size,
        optimizer=optimizer,
        n_layers=len(alone),
        methods=methods,
        ours_interval_s=ours.interval("step_s"),
    )


def _reduce_s(question: Question, layer: LoneLayer) -> float:
    """Its gradients between the devices."""
    import numpy as np

    assert question.cluster is not None  # checked: several devices
    sent = np.array([float(_BYTES_EACH * layer.n_parameters)])
    return float(all_reduce(sent, network_of(question.cluster), question.strategy.algorithm).seconds.sum())
