"""Time to accuracy against workers: predicted epochs, times steps an epoch, over Optimus' speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from traincast.errors import InputError

if TYPE_CHECKING:
    from traincast.convergence.transfer.transferred import Estimate
    from traincast.report.chart import Chart
    from traincast.scaling.optimus import SpeedModel

Floats = NDArray[np.float64]
_ENOUGH = 1.1  # times the least time: further workers are hardly worth their price


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class WorkersCurve:
    """Time over workers for one number of parameter servers; p10 and p90 are those of the epochs."""

    n_servers: int
    n_workers: Floats
    time_s: Floats
    low_s: Floats
    high_s: Floats

    @property
    def best_n_workers(self) -> int:
        """Of the numbers asked for, the fewest workers with the least time."""
        return int(self.n_workers[np.argmin(self.time_s)])

    @property
    def enough_n_workers(self) -> int:
        """The fewest workers within 10 % of the least time."""
        return int(self.n_workers[self.time_s <= _ENOUGH * self.time_s.min()].min())

    def to_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        return {**data, "best_n_workers": self.best_n_workers, "enough_n_workers": self.enough_n_workers}


def time_to_accuracy(
    epochs: Estimate,
    model: SpeedModel,
    *,
    steps_per_epoch: float,
    n_workers: ArrayLike,
    n_servers: Sequence[int] = (2, 4),
) -> tuple[WorkersCurve, ...]:
    """One curve for each number of servers: epochs x steps an epoch / steps a second.

    Steps are those that the speed model counts: of the global batch if synchronous, so that more workers leave the
    epochs as they are; of one worker's mini-batch if asynchronous, where the harm of old weights is not counted. The
    interval is that of the epochs; the speed has none.
    """
    from traincast.scaling.optimus import speed_curves

    if not 0 < steps_per_epoch < np.inf:
        raise InputError(f"An epoch has steps, above 0 and finite, not {steps_per_epoch}.")
    return tuple(
        WorkersCurve(
            n_servers=curve.n_servers,
            n_workers=curve.n_workers,
            time_s=epochs.value * steps_per_epoch / curve.steps_per_s,
            low_s=epochs.low * steps_per_epoch / curve.steps_per_s,
            high_s=epochs.high * steps_per_epoch / curve.steps_per_s,
        )
        for curve in speed_curves(model, n_workers, n_servers)
    )


def workers_chart(curves: Sequence[WorkersCurve], *, title: str = "Time to accuracy by workers") -> Chart:
    """All curves with their bands on one pair of axes."""
    from traincast.report.chart import Chart, Series

    series = tuple(
        Series(
            name=f"{curve.n_servers} servers, p10 to p90",
            x=curve.n_workers.tolist(),
            y=curve.time_s.tolist(),
            low=curve.low_s.tolist(),
            high=curve.high_s.tolist(),
        )
        for curve in curves
    )
    return Chart(
        title=title,
        kind="line",
        series=series,
        x_label="workers",
        y_label="time to accuracy",
        x_show="integer",
        y_show="duration",
        log_y=True,
    )
