"""Small models that really run, and measurements whose numbers can be checked in one's head."""

import time

from torch import nn

from traincast.measurement.measured import Measurement
from traincast.measurement.runnable import Runnable
from traincast.measurement.statistics import Summary
from traincast.records.environment import Environment

ENVIRONMENT = Environment(
    device="a CPU", device_kind="cpu", host="here", n_threads=1, n_cores=2, versions={"torch": "2"}, clocks={}
)


def all_alike(seconds, n=5, spread=0.0):
    low, high = seconds * (1 - spread), seconds * (1 + spread)
    return Summary(n=n, median=seconds, minimum=low, p10=low, p90=high, mean=seconds)


def measured(step_s, *, batch_size=8, spread=0.01, update_s=0.0, optimizer="sgd"):
    phases = {"forward": step_s / 3, "loss": 0.0, "backward": 2 * step_s / 3 - update_s, "optimizer": update_s}
    return Measurement(
        model="m",
        batch_size=batch_size,
        optimizer=optimizer,
        precision="fp32",
        device="cpu",
        phases={name: all_alike(seconds) for name, seconds in phases.items()},
        step=all_alike(step_s, spread=spread),
        environment=ENVIRONMENT,
    )


def runnable(module, make_inputs, name="m"):
    return Runnable(
        name=name,
        module=module,
        make_inputs=make_inputs,
        forward=lambda module, inputs: module(*inputs),
        loss=lambda output, inputs: output.float().mean(),
    )


class SlowLinear(nn.Linear):
    """A step of known length: it sleeps, which no other process disturbs much."""

    def __init__(self, step_s):
        super().__init__(4, 2)
        self.step_s = step_s

    def forward(self, x):
        time.sleep(self.step_s)
        return super().forward(x)
