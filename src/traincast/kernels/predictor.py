"""Our predictor: sustained ceilings, fitted dimensionless utilisation by kind of work, and each kernel's launch."""

from __future__ import annotations

from dataclasses import dataclass, field

from traincast.errors import InputError
from traincast.hardware.device import Device
from traincast.kernels.attention import KERNELS, attention_seconds
from traincast.kernels.ceilings import DeviceFigures, ceilings
from traincast.kernels.coefficients import ERROR_GROUP, LAYOUTS, Coefficients, shipped
from traincast.kernels.domain import outside, situation_of
from traincast.kernels.method import OpTimes
from traincast.kernels.seconds import Plan, kernel_seconds, plan_of
from traincast.kernels.table import KernelTable, kernel_table
from traincast.trace.graph import Floats, Graph, Ints
from traincast.trace.kept import Kept
from traincast.units import MIB

# Some six hundred: one takes about as much as a graph, and there are as many as graphs times devices.
PLANS: Kept[KernelTable, Plan] = Kept(64 * MIB, lambda plan: plan.n_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Traincast:
    """The default method. `layout` is how images lie in memory; `coefficients` default to those of the package.

    `attention` says whose kernels run it: "eager", as in the training runs of 2023 and 2024 that were measured, or
    "tuned", the vendor's for each generation.
    """

    layout: str = "nchw"
    attention: str = "eager"
    coefficients: Coefficients = field(default_factory=lambda: shipped().coefficients)
    name: str = "traincast"

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS:
            raise InputError(f"Unknown layout {self.layout!r}; known are {', '.join(LAYOUTS)}.")
        if self.attention not in KERNELS:
            raise InputError(f"Unknown attention {self.attention!r}; known are {', '.join(KERNELS)}.")

    def op_times(self, graph: Graph, device: Device, batch_sizes: Ints, *, precision: str) -> OpTimes:
        if device.prices:
            from traincast.kernels.cpu.times import priced_times

            return priced_times(graph, device, batch_sizes, precision=precision)
        table = kernel_table(graph)
        plan = self._plan(table, device, tf32=precision != "fp32")
        sizes = table.sizes(batch_sizes)
        times = kernel_seconds(plan, sizes)
        group = ERROR_GROUP[table.kinds.work[table.op_kernels[:, 0]]]
        factor, warnings = outside(device)
        return OpTimes(
            seconds=table.by_op(times.seconds),
            compute_s=table.by_op(times.compute_s),
            log_sd=factor * shipped().step_log_sd[situation_of(device)][group],
            error_group=group,
            is_covered=table.is_covered,
            warnings=(*warnings, *_older_attention(plan, table, sizes[-1], times.seconds[-1])),
        )

    def _plan(self, table: KernelTable, device: Device, *, tf32: bool) -> Plan:
        """Made once a graph and device: a sweep asks for many batch sizes, and so do people."""

        def make() -> Plan:
            limits = ceilings(DeviceFigures.of(device), self.coefficients)
            how = {"layout": self.layout, "attention": self.attention}
            return plan_of(table.kinds, limits, self.coefficients, tf32=tf32, **how)

        return PLANS.get(table, (device, self.layout, self.attention, tf32, self.coefficients), make)


_FASTER = 0.8  # less of a difference is within what kernels differ by anyway
_MUCH_ATTENTION = 0.15  # of the device's time: from here on other kernels would change a decision


def _older_attention(plan: Plan, table: KernelTable, sizes: Floats, seconds: Floats) -> tuple[str, ...]:
    """A sentence where much of the step is attention that today's kernels do in less time."""
    attention = plan.attention.chosen
    if not len(attention) or plan.attention is plan.tuned_attention:
        return ()
    runs = table.n_runs
    older_s = float(seconds[attention] @ runs[attention])
    newer_s = float((attention_seconds(plan.tuned_attention, sizes).seconds + plan.launch_s) @ runs[attention])
    share = older_s / float(seconds @ runs)
    if share < _MUCH_ATTENTION or newer_s > _FASTER * older_s:
        return ()
    return (
        f"Attention takes {100 * share:.0f} % of the device's time, as training runs of 2023 and 2024 measured it. "
        f"Kernels tuned for this GPU, which newer PyTorch takes on Hopper and FlashAttention brings, need about "
        f"{100 * newer_s / older_s:.0f} % of that.",
    )
