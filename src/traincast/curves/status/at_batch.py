"""The same target at another batch size: what Pollux' law makes of an arrival."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from traincast.curves.batch_efficiency import epochs_at_batch
from traincast.curves.status.status import Status
from traincast.curves.usual_batch import shipped
from traincast.errors import InputError
from traincast.estimate import Estimate
from traincast.logs import argument_checks


@dataclass(frozen=True, slots=True, kw_only=True)
class AtBatch:
    """Steps and epochs to a target, counted from the start of a run that has the other batch size all along."""

    batch_size: float
    at_batch: float  # the run's own
    noise_scale: float | None  # None where nobody measured it: as runs of MLPerf have it, with a wide interval
    target: float
    steps: Estimate | None  # None where the log counts epochs only
    epochs: Estimate | None  # None where nobody knows how many steps an epoch has

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook
        from traincast.units import shown_or_never

        rows = [
            (name, *(shown_or_never(value, lambda count: f"{count:,.4g}") for value in (found.p50, *found.ends)))
            for name, found in (("steps", self.steps), ("epochs", self.epochs))
            if found is not None
        ]
        title = f"{self.target:g} at batch {self.batch_size:,.0f}, in a run at {self.at_batch:,.0f}"
        return to_notebook(title, rows, header=("", "p50", "p10", "p90"))


def at_batch(
    status: Status, batch_size: float, *, noise_scale: float | None = None, own_batch_size: float | None = None
) -> AtBatch:
    """When a run reaches its target at another batch size, with a learning rate that follows (see batch_efficiency)."""
    there, own = status.arrival, own_batch_size if own_batch_size is not None else status.log.batch_size
    argument_checks.number("A batch size", batch_size)
    if there is None:
        raise InputError("Another batch size changes when a target is reached: give a target.")
    if own is None:
        raise InputError(f"'{status.log.path}' does not give its batch size: add it.")
    if noise_scale is None:
        more = shipped().samples_needed(batch_size / own)
    else:
        factor = float(epochs_at_batch(1.0, batch_size, at_batch=own, noise_scale=noise_scale))
        more = Estimate(factor, factor, factor)
    return AtBatch(
        batch_size=batch_size,
        at_batch=own,
        noise_scale=noise_scale,
        target=there.target,
        steps=None if there.unit == "epoch" else _together(there.steps, more.times(own / batch_size)),
        epochs=None if there.epochs is None else _together(there.epochs, more),
    )


def _together(reached: Estimate, more: Estimate) -> Estimate:
    """A product of two that err apart: their logarithms' distances add as squares."""
    if not math.isfinite(reached.p50) or reached.p50 <= 0:
        return Estimate(reached.p10 * more.p50, reached.p50 * more.p50, reached.p90 * more.p50)
    middle = reached.p50 * more.p50
    low = math.hypot(math.log(reached.p50 / max(reached.p10, 1e-300)), math.log(more.p50 / more.p10))
    high = math.hypot(math.log(reached.p90 / reached.p50), math.log(more.p90 / more.p50))
    return Estimate(middle * math.exp(-low), middle, middle * math.exp(high))
