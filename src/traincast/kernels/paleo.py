"""Paleo (Qi, Sparks, Talwalkar, ICLR 2017): flop and bytes at a fraction of the datasheet's peaks, added up.

One number, the platform percent of peak (PPP), stands for all that keeps a device from its peaks. It is fitted to
measured steps or taken from others: the authors used 0.21 to 0.62.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from traincast.errors import InputError
from traincast.hardware.device import Device
from traincast.kernels.method import OpTimes
from traincast.kernels.paleo_costs import op_costs
from traincast.trace.graph import Graph, Ints, Phase
from traincast.units import GIB, GIGA

# The tool divides bytes by 2**30 and then by the GB/s of the datasheet: it takes them for GiB/s.
_GIB_FOR_GB = GIB / GIGA
_FEWEST = 3  # steps for an interval
_N_DRAWN = 2000


@dataclass(frozen=True, slots=True)
class Paleo:
    """The published tool's arithmetic on our graph: every op takes compute plus read plus write.

    As in the tool, PPP slows compute and memory alike but not the update of the weights, and ops that it does not
    count (bias, activation, normalisation, softmax, addition, concatenation) take no time. Those carry no flop by our
    count, and are covered; products that it has no formula for (attention, recurrent layers) are not.
    The tool's PPP for networks belongs to communication, which is not an op's affair.
    """

    ppp: float = 1.0
    name: str = field(default="paleo", init=False)

    def __post_init__(self) -> None:
        if not 0 < self.ppp <= 1:
            raise InputError(f"PPP is the fraction of the peaks that is reached: above 0, at most 1, not {self.ppp}.")

    def op_times(self, graph: Graph, device: Device, batch_sizes: Ints, *, precision: str) -> OpTimes:
        if precision == "fp8":
            raise InputError("Method 'paleo' knows no fp8: choose precision bf16, or the method traincast.")
        costs = op_costs(graph, batch_sizes)
        reached = np.where(graph.op_phase == Phase.OPTIMIZER, 1.0, self.ppp)
        compute_s = costs.flop / device.peak_flop_per_s(precision) / reached
        memory_s = costs.moved_bytes / (device.memory_bytes_per_s * _GIB_FOR_GB) / reached
        return OpTimes(
            seconds=compute_s + memory_s,
            compute_s=compute_s,
            log_sd=np.full(graph.n_ops, 0.5),  # the tool gives none; as wide as the roofline's
            error_group=np.zeros(graph.n_ops, dtype=np.int64),
            is_covered=costs.is_covered,
        )


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class MeasuredStep:
    """What one training step of a lowered graph took on a device."""

    graph: Graph
    device: Device
    batch_size: int
    precision: str
    step_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedPpp:
    """A PPP and how well it describes the steps that it was fitted to."""

    ppp: float
    mean_absolute_log_error: float  # of step times, natural logarithm
    is_clipped: bool  # the steps were faster than the peaks allow by Paleo's count; 1 is the nearest PPP
    own: tuple[float, ...]  # of every step alone
    predicted_s: tuple[float, ...]  # every step at the fitted PPP

    @property
    def interval(self) -> tuple[float, float] | None:
        """p10 and p90 of the median over redrawn steps; None for fewer than three, of which none can be told."""
        if len(self.own) < _FEWEST:
            return None
        rng = np.random.default_rng(0)
        drawn = rng.choice(np.log(self.own), size=(_N_DRAWN, len(self.own)))
        low, high = np.exp(np.quantile(np.median(drawn, axis=1), (0.1, 0.9)))
        return min(float(low), 1.0), min(float(high), 1.0)


def fit_ppp(steps: Sequence[MeasuredStep]) -> FittedPpp:
    """The PPP with the least mean absolute log error of the time that it scales, the step without the update.

    That time is inversely proportional to PPP, so each step alone gives a PPP and the median of their logarithms is
    the best for all.
    """
    if not steps:
        raise InputError("PPP needs at least one measured step.")
    full_s, update_s = np.array([_at_full_peak_s(step) for step in steps]).T
    measured_s = np.array([step.step_s for step in steps])
    for seconds, least_s in zip(measured_s.tolist(), update_s.tolist(), strict=True):
        if not least_s < seconds < np.inf:
            raise InputError(f"A step cannot take {seconds} s: its update alone takes {least_s:.3g} s at the peaks.")
    if not full_s.all():
        raise InputError("PPP needs steps with convolutions or matrix products; one of these has none.")
    own = full_s / (measured_s - update_s)
    unclipped = float(np.exp(np.median(np.log(own))))
    ppp = min(unclipped, 1.0)
    predicted_s = full_s / ppp + update_s
    error = float(np.abs(np.log(predicted_s / measured_s)).mean())
    return FittedPpp(
        ppp=ppp,
        mean_absolute_log_error=error,
        is_clipped=unclipped > 1,
        own=tuple(own.tolist()),
        predicted_s=tuple(predicted_s.tolist()),
    )


def _at_full_peak_s(step: MeasuredStep) -> tuple[float, float]:
    """Seconds that PPP scales, and seconds of the update."""
    batch_sizes = np.array([step.batch_size])
    seconds = Paleo(1.0).op_times(step.graph, step.device, batch_sizes, precision=step.precision).seconds[0]
    is_update = step.graph.op_phase == Phase.OPTIMIZER
    return float(seconds[~is_update].sum()), float(seconds[is_update].sum())
