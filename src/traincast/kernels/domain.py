"""Where our predictor was fitted. Outside it still answers, says so, and is less sure."""

from __future__ import annotations

from functools import cache

from traincast.hardware.catalog import find_device
from traincast.hardware.device import Device
from traincast.kernels.coefficients import NEW_GENERATION, SAME_GENERATION, SAME_GPU, shipped

# No row tells how much worse it gets; an error three times as large is the least that honesty asks for.
_CPU = 3.0
_ACCELERATOR = 3.0  # a compiler of its own and other units: as far from what was measured as a CPU


def situation_of(device: Device) -> str:
    """How near the fitted rows came to this device."""
    if device.name in shipped().provenance["devices"]:
        return SAME_GPU
    return SAME_GENERATION if device.arch in fitted_architectures() else NEW_GENERATION


@cache
def fitted_architectures() -> frozenset[str]:
    """The chip generations that some fitted row ran on."""
    return frozenset(find_device(name).arch for name in shipped().provenance["devices"])


def outside(device: Device) -> tuple[float, tuple[str, ...]]:
    """By what factor errors are expected to be larger than held-out ones, and why."""
    factor, reasons = 1.0, []
    if device.kind == "cpu":
        factor *= _CPU
        reasons.append(
            f"{device.name} is a CPU and the method was fitted on GPUs: take the time as an order of magnitude."
        )
    elif device.kind == "accelerator":
        factor *= _ACCELERATOR
        reasons.append(
            f"{device.name} is no GPU that CUDA or ROCm runs on, and nothing like it was measured: this is a guess "
            "from the ceilings of its datasheet, good for an order of magnitude."
        )
    elif situation_of(device) == NEW_GENERATION:
        generation = f"of the generation {device.arch}" if device.arch else "of its generation"
        reasons.append(
            f"No GPU {generation} was measured: the interval is that of generations that a fit had not seen."
        )
    return factor, tuple(reasons)
