"""Devices that work in step wait for the slowest of them.

If the seconds of equal devices spread normally by s around their mean, the slowest of n is expected at s times the mean
of the largest of n standard normal numbers: 0.56 for two, 1.42 for eight, 2.4 for 64. What differs from moment to
moment averages out over a long step: its spread falls with the square root of its length.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from traincast.trace.graph import Floats

# Spread between the devices of a job from step to step: clocks, temperature, who shares the host. Fitted on ResNet-50
# in NVIDIA's examples on 2 to 8 GPUs, whose communication is hidden (benchmarks/distributed.py --data DIR).
SPREAD = 0.054
_MEASURED_STEP_S = 0.3  # about the median of the steps that it was fitted on


_STEP = 0.01
_GRID = np.arange(-8.0, 8.0, _STEP) + _STEP / 2


@lru_cache(maxsize=1)
def _below() -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """How likely a standard normal number is below each point of the grid."""
    return np.array([0.5 + 0.5 * math.erf(x / math.sqrt(2.0)) for x in _GRID])


@lru_cache(maxsize=1024)
def expected_largest(n: int) -> float:
    """Of n standard normal numbers: the integral of x over the density of their maximum."""
    density = n * np.exp(-0.5 * _GRID**2) / math.sqrt(2.0 * math.pi) * _below() ** (n - 1)
    return float((_GRID * density).sum() * _STEP) if n > 1 else 0.0


def waiting_share(n: int, spread: float = SPREAD) -> float:
    """Of a device's own seconds, how long it waits on average for the slowest of n."""
    return spread * expected_largest(n)


def waiting_s(n: int, working_s: Floats, spread: float = SPREAD) -> Floats:
    """Seconds of waiting in a step in which each of n devices works so long."""
    averaged = np.sqrt(np.minimum(_MEASURED_STEP_S / np.maximum(working_s, _MEASURED_STEP_S), 1.0))
    return waiting_share(n, spread) * averaged * working_s
