"""Our predictor: sustained ceilings, fitted dimensionless utilisation by kind of work, and each kernel's launch."""

from __future__ import annotations

from dataclasses import dataclass, field

from traincast.errors import InputError
from traincast.hardware.device import Device
from traincast.kernels.ceilings import DeviceFigures, ceilings
from traincast.kernels.coefficients import ERROR_GROUP, LAYOUTS, Coefficients, shipped
from traincast.kernels.domain import outside, situation_of
from traincast.kernels.method import OpTimes
from traincast.kernels.seconds import Plan, kernel_seconds, plan_of
from traincast.kernels.table import KernelTable, kernel_table
from traincast.trace.graph import Graph, Ints
from traincast.trace.kept import Kept
from traincast.units import MIB

# Some six hundred: one takes about as much as a graph, and there are as many as graphs times devices.
PLANS: Kept[KernelTable, Plan] = Kept(64 * MIB, lambda plan: plan.n_bytes)


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
        if device.prices:
            from traincast.kernels.cpu.times import priced_times

            return priced_times(graph, device, batch_sizes, precision=precision)
        table = kernel_table(graph)
        plan = self._plan(table, device, tf32=precision != "fp32")
        times = kernel_seconds(plan, table.sizes(batch_sizes))
        group = ERROR_GROUP[table.kinds.work[table.op_kernels[:, 0]]]
        factor, warnings = outside(device)
        return OpTimes(
            seconds=table.by_op(times.seconds),
            compute_s=table.by_op(times.compute_s),
            log_sd=factor * shipped().step_log_sd[situation_of(device)][group],
            error_group=group,
            is_covered=table.is_covered,
            warnings=warnings,
        )

    def _plan(self, table: KernelTable, device: Device, *, tf32: bool) -> Plan:
        """Made once a graph and device: a sweep asks for many batch sizes, and so do people."""

        def make() -> Plan:
            limits = ceilings(DeviceFigures.of(device), self.coefficients)
            return plan_of(table.kinds, limits, self.coefficients, layout=self.layout, tf32=tf32)

        return PLANS.get(table, (device, self.layout, tf32, self.coefficients), make)
