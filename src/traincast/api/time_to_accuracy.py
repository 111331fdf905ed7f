"""Time to accuracy against workers: predicted epochs, times steps an epoch, over Optimus' speed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from traincast.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from traincast.curves.size_transfer.transferred import Estimate
    from traincast.curves.size_transfer.workers_curve import WorkersCurve
    from traincast.scaling.optimus import SpeedCurve, SpeedModel


def time_to_accuracy(
    epochs: Estimate,
    model: SpeedModel,
    *,
    steps_per_epoch: float,
    n_workers: ArrayLike,
    n_servers: Sequence[int] = (2, 4),
) -> tuple[WorkersCurve, ...]:
    """One curve for each number of servers: epochs x steps an epoch / steps per second.

    Steps are those that the speed model counts: of the global batch if synchronous, so that more workers leave the
    epochs as they are; of one worker's mini-batch if asynchronous, where the harm of old weights is not counted. The
    interval is that of the epochs; the speed has none.
    """
    from traincast.scaling.optimus import speed_curves

    return times_at(epochs, speed_curves(model, n_workers, n_servers), steps_per_epoch=steps_per_epoch)


def times_at(epochs: Estimate, curves: Sequence[SpeedCurve], *, steps_per_epoch: float) -> tuple[WorkersCurve, ...]:
    """The same at speeds that are known already."""
    from math import inf

    from traincast.curves.size_transfer.workers_curve import WorkersCurve

    if not 0 < steps_per_epoch < inf:
        raise InputError(f"The steps per epoch should be finite and above 0, not {steps_per_epoch}.")
    return tuple(
        WorkersCurve(
            n_servers=curve.n_servers,
            n_workers=curve.n_workers,
            time_s=epochs.value * steps_per_epoch / curve.steps_per_s,
            low_s=epochs.low * steps_per_epoch / curve.steps_per_s,
            high_s=epochs.high * steps_per_epoch / curve.steps_per_s,
        )
        for curve in curves
    )
