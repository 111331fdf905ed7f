"""What reducing gradients adds to a step of several processes, from real steps with and without it.

An all-reduce measured by itself tells too little: inside a step its messages find the other process still at work and
the cores taken. So three prices are fitted to whole steps: of waiting for each other, a share of the step; of a
message; of a byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.optimize import nnls

from traincast.errors import MeasurementError
from traincast.measurement.processes.link_fit import ring_bytes

_LEAST_SHARE = 1e-6  # of a step: what rounding leaves of bytes that cost nothing


class ReducedStep(Protocol):
    """A step with its gradients reduced, and the same passes of as many processes that do not meet."""

    @property
    def crowded_s(self) -> float: ...
    @property
    def step_s(self) -> float: ...
    @property
    def bucket_bytes(self) -> tuple[int, ...]: ...
    @property
    def has_buffers(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class DdpFit:
    """`waiting_fraction` is of a process's own seconds."""

    waiting_fraction: float
    latency_s: float
    bytes_per_s: float


def n_latencies(n_processes: int, n_buckets: int, *, has_buffers: bool) -> int:
    """A ring of n takes 2(n-1) a bucket. Buffers go out in two messages, one a type, each down a tree."""
    return 2 * (n_processes - 1) * n_buckets + (2 * (n_processes - 1).bit_length() if has_buffers else 0)


def fit_ddp(n_processes: int, steps: Sequence[ReducedStep]) -> DdpFit:
    """Least squares of errors relative to the step, none of the prices below zero."""
    step_s = np.array([step.step_s for step in steps])
    extra_s = step_s - np.array([step.crowded_s for step in steps])
    amounts = np.array(
        [
            (
                step.crowded_s,
                1e-3 * n_latencies(n_processes, len(step.bucket_bytes), has_buffers=step.has_buffers),
                1e-9 * ring_bytes(sum(step.bucket_bytes), n_processes),
            )
            for step in steps
        ]
    )
    (waiting, milliseconds, nanoseconds), _ = nnls(amounts / step_s[:, None], extra_s / step_s)
    if not (nanoseconds * amounts[:, 2] / step_s).max() > _LEAST_SHARE:
        raise MeasurementError(
            "Steps did not take longer with more bytes to reduce, so no bandwidth can be determined: other jobs "
            "probably interfered; calibrate again on a quiet machine."
        )
    return DdpFit(float(waiting), float(milliseconds) * 1e-3, float(1e9 / nanoseconds))
