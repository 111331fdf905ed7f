"""Our predictor: sustained ceilings, fitted dimensionless utilisation by kind of work, and each kernel's launch."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from traincast.errors import InputError
from traincast.hardware.device import Device
from traincast.kernels.ceilings import DeviceFigures, ceilings
from traincast.kernels.coefficients import ERROR_GROUP, LAYOUTS, Coefficients, shipped
from traincast.kernels.domain import outside
from traincast.kernels.method import OpTimes
from traincast.kernels.seconds import Kernels, kernel_seconds
from traincast.kernels.table import kernel_table
from traincast.trace.graph import Floats, Graph, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Traincast:
    """The default method. `layout` is how images lie in memory; `coefficients` default to those of the package."""

    layout: str = "nchw"
    coefficients: Coefficients = field(default_factory=lambda: shipped().coefficients)
    name: str = "traincast"

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise InputError(f"Unknown layout {self.layout!r}; known are {', '.join(LAYOUTS)}.")

    def op_times(self, graph: Graph, device: Device, batch_sizes: Ints, *, precision: str) -> OpTimes:
        table = kernel_table(graph)
        kernels = Kernels(
            work=table.work,
            item=table.item,
            is_bf16=table.is_bf16,
            is_winograd=table.is_winograd,
            is_unaligned=table.is_unaligned,
            sizes=table.sizes(batch_sizes),
        )
        limits = ceilings(DeviceFigures.of(device), self.coefficients)
        times = kernel_seconds(kernels, limits, self.coefficients, layout=self.layout, tf32=precision != "fp32")
        group = ERROR_GROUP[table.work[table.op_kernels[:, 0]]]
        factor, warnings = outside(device, precision)
        return OpTimes(
            seconds=_by_op(times.seconds, table.op_kernels),
            compute_s=_by_op(times.compute_s, table.op_kernels),
            log_sd=factor * shipped().step_log_sd[group],
            error_group=group,
            is_covered=table.is_covered,
            warnings=warnings,
        )


def _by_op(by_kernel: Floats, op_kernels: Ints) -> Floats:
    """Sums the kernels of each op; -1 (no kernel) reads the appended zero."""
    padded = np.concatenate([by_kernel, np.zeros((len(by_kernel), 1))], axis=1)
    total: Floats = padded[:, op_kernels[:, 0]]
    for place in range(1, op_kernels.shape[1]):
        total = total + padded[:, op_kernels[:, place]]
    return total
