"""What a measured step was bound by, from how it spent its time."""

from __future__ import annotations

from dataclasses import dataclass

from traincast.planning.gap import COMMUNICATION, HOST, INPUT, Gap, GapRow
from traincast.records.measured_step import MeasuredStep
from traincast.trace.kinds import OpKind

# Waiting for input or for others is lost whole, and a third of a step is felt. Dispatch is part of every step, so the
# host binds only where the device waits longer than it works.
_WAITS = {INPUT: 0.3, COMMUNICATION: 0.3, HOST: 0.5}
_PRODUCTS = {
    kind.value
    for kind in (
        OpKind.GEMM,
        OpKind.BATCHED_GEMM,
        OpKind.CONVOLUTION,
        OpKind.CONVOLUTION_BACKWARD,
        OpKind.ATTENTION,
        OpKind.RECURRENT,
    )
}


@dataclass(frozen=True, slots=True)
class Bound:
    """By what, and the share of the step that says so."""

    by: str  # "compute" | "memory" | "host" | "input" | "communication"
    fraction: float


def measured_bound(gap: Gap) -> Bound | None:
    """None where the measurement is too coarse to tell."""
    measured = gap.measured
    if measured is None or not measured.step_s:
        return None
    shares = _waits(measured)
    over = {name: share for name, share in shares.items() if share >= _WAITS[name]}
    if over:
        worst = max(over, key=lambda name: over[name])
        return Bound(worst, over[worst])
    if measured.work is None:
        return None
    rows = [row for row in gap.kinds if row.work is not None and row.measured_s]
    work_s = sum(row.measured_s or 0.0 for row in rows)
    compute_s = sum((row.measured_s or 0.0) * _compute_fraction(row) for row in rows)
    by, seconds = ("compute", compute_s) if compute_s > work_s / 2 else ("memory", work_s - compute_s)
    return Bound(by, seconds / measured.step_s)


def _waits(measured: MeasuredStep) -> dict[str, float]:
    host_s = measured.host_s
    return {
        INPUT: measured.phase_s("input") / measured.step_s,
        COMMUNICATION: measured.phase_s("communication") / measured.step_s,
        HOST: 0.0 if host_s is None else host_s / measured.step_s,
    }


def _compute_fraction(row: GapRow) -> float:
    """What the forecast says of these ops; of those that it does not know, whether they are made of products."""
    if row.work is not None and row.work.seconds:
        return row.work.compute_s / row.work.seconds
    return float(row.name in _PRODUCTS)


def products_flop_per_s(gap: Gap) -> float | None:
    """What matrix products and convolutions reached in the run."""
    rows = [row for row in gap.kinds if row.name in _PRODUCTS and row.measured_s and row.work is not None]
    seconds = sum(row.measured_s or 0.0 for row in rows)
    flop = sum(row.work.n_flop for row in rows if row.work is not None)
    return flop / seconds if seconds and flop else None
