"""Steps per second over workers and parameter servers: by Optimus' model, by measured points, or by our forecast."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from traincast.errors import InputError

if TYPE_CHECKING:
    from traincast.scaling.optimus import SpeedCurve


def worker_speeds(
    speeds: str, batch_size: int | None, n_workers: Sequence[int], n_servers: Sequence[int]
) -> tuple[tuple[SpeedCurve, ...], str]:
    """Curves and where they are from, in words. `speeds` is a preset, a CSV file, or MODEL@DEVICE for our forecast."""
    from traincast.scaling.optimus import speed_curves
    from traincast.scaling.optimus_times import speed_model
    from traincast.units import show_percent

    if "@" in speeds and not Path(speeds).exists():
        return _forecast(speeds, batch_size, n_workers, n_servers)
    model, fit = speed_model(speeds, batch_size)
    curves = speed_curves(model, list(n_workers), list(n_servers))
    if fit is None:
        return curves, f"the coefficients of Optimus' paper for ResNet-50 ({speeds}), without its machines"
    error = show_percent(fit.mean_error_fraction)
    return curves, f"Optimus' model fitted to the {fit.n_points} measured points of {speeds}, mean error {error}"


def _forecast(
    speeds: str, batch_size: int | None, n_workers: Sequence[int], n_servers: Sequence[int]
) -> tuple[tuple[SpeedCurve, ...], str]:
    """Synchronous workers of one device each: what `traincast forecast --strategy ps:P` says of every number."""
    from traincast.api.forecasts import forecast
    from traincast.scaling.optimus import SpeedCurve

    model, _, rest = speeds.partition("@")
    if batch_size is None:
        raise InputError(f"The forecast of {speeds} is of synchronous workers: give their global batch (--batch).")
    device, _, network = rest.partition("@")
    link = network or _USUAL_NETWORK
    curves = []
    for p in n_servers:
        found = [forecast(model, f"{n}x1x{device}@{link}", batch_size, strategy=f"ps:{p}").step_s for n in n_workers]
        curves.append(SpeedCurve(n_servers=p, n_workers=np.array(n_workers, float), steps_per_s=1 / np.array(found)))
    told = f"our forecast of {model} on machines with one {device} each and {link} between them, batch {batch_size:,}"
    return tuple(curves), told


_USUAL_NETWORK = "10Gb/s"
