"""Where our predictor was fitted. Outside it still answers, says so, and is less sure."""

from __future__ import annotations

from functools import cache

from traincast.hardware.catalog import find_device
from traincast.hardware.device import Device
from traincast.kernels.coefficients import shipped

# No row tells how much worse it gets; an error as large again is the least that honesty asks for.
_NEW_ARCHITECTURE = 1.5
_NEW_PRECISION = 1.3
_CPU = 3.0
_ACCELERATOR = 3.0  # a compiler of its own and other units: as far from what was measured as a CPU
_MEASURED_PRECISIONS = ("fp32", "tf32", "amp-fp16")


def is_fitted(device: Device) -> bool:
    """Whether some fitted row ran on this very device."""
    return device.name in shipped().provenance["devices"]


@cache
def fitted_architectures() -> frozenset[str]:
    """The chip generations that some fitted row ran on."""
    return frozenset(find_device(name).arch for name in shipped().provenance["devices"])


def outside(device: Device, precision: str) -> tuple[float, tuple[str, ...]]:
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
    elif device.arch not in fitted_architectures():
        factor *= _NEW_ARCHITECTURE
        generation = f"the generation {device.arch}" if device.arch else "its generation"
        reasons.append(f"No GPU like {device.name} was measured ({generation}): the interval is wider.")
    if precision not in _MEASURED_PRECISIONS:
        factor *= _NEW_PRECISION
        reasons.append(f"{precision} was never measured and is taken to run like amp-fp16: the interval is wider.")
    return factor, tuple(reasons)
