"""What measured epochs on 1, 2, 4 ... devices say about compute, communication, host and input.

Two readings of one table. `analyse` splits each time as a course report did: compute is T1/N and all else is
communication. That is an assumption, not a measurement. `fit_data_parallel` explains all rows at once by what a step of
torch.nn.DataParallel waits for, and needs no such split.
Legend: N devices, T1 and TN seconds of an epoch on 1 and on N of them; the batch is global, as in strong scaling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from traincast.errors import InputError
from traincast.scaling.measured_file import MeasuredEpoch, check_iterations, compared_with_s, epoch_sum, one_device_s
from traincast.scaling.speedup import strong_scaling
from traincast.trace.graph import Floats

ASSUMPTIONS = (
    "compute divides evenly: it takes T1/N, and all of T1 was compute",
    "everything beyond T1/N is communication, and none of it overlaps with compute",
    "a ring sends 2(N-1)/N of the gradient from each device, once per step",
    "DataParallel does not use a ring: the first device sends the weights to the N-1 others and collects their "
    "gradients one after the other, so 2(N-1) copies of the model pass its link, and (N-1)/N of the input and "
    "output",
)
Bound = Literal["host", "compute", "input"]
_BOUNDS: tuple[Bound, ...] = ("host", "compute", "input")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingPoint:
    """One row under the assumptions; seconds and bytes are of an epoch. On one device nothing is communicated."""

    row: MeasuredEpoch
    speedup: float
    efficiency_fraction: float
    serial_fraction: float  # Karp and Flatt; NaN on one device
    compute_s: float
    ring_bytes: float  # sent by each process
    hub_bytes: float  # through the first device's link, both directions
    link_bytes_per_s: float | None

    @property
    def communication_s(self) -> float:
        """Below 0 where N devices were more than N times as fast."""
        return self.row.epoch_s - self.compute_s

    @property
    def ring_bytes_per_s(self) -> float | None:
        return self._rate(self.ring_bytes)

    @property
    def hub_bytes_per_s(self) -> float | None:
        return self._rate(self.hub_bytes)

    @property
    def ring_link_fraction(self) -> float | None:
        return self._share(self.ring_bytes_per_s)

    @property
    def hub_link_fraction(self) -> float | None:
        return self._share(self.hub_bytes_per_s)

    def _rate(self, volume_bytes: float) -> float | None:
        return volume_bytes / self.communication_s if volume_bytes and self.communication_s > 0 else None

    def _share(self, rate: float | None) -> float | None:
        return None if rate is None or self.link_bytes_per_s is None else rate / self.link_bytes_per_s


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredScaling:
    """A table, point by point."""

    points: tuple[ScalingPoint, ...]
    warnings: tuple[str, ...]
    assumptions: tuple[str, ...] = ASSUMPTIONS


def analyse(
    rows: Sequence[MeasuredEpoch],
    n_parameters: int,
    *,
    bytes_per_parameter: int = 4,
    sample_bytes: float = 0.0,
    link_bytes_per_s: float | None = None,
) -> MeasuredScaling:
    """Speedup, efficiency and the assumed split of every row; `sample_bytes` are input and output of one sample."""
    if not (n_parameters > 0 and (link_bytes_per_s is None or link_bytes_per_s > 0)):
        raise InputError(
            f"The number of parameters and the link's bytes/s should be above 0, not {n_parameters} and "
            f"{link_bytes_per_s}."
        )
    compared_s = compared_with_s(rows)
    counts, seconds = [row.n_devices for row in rows], [row.epoch_s for row in rows]
    scaling = strong_scaling(counts, seconds, one_device_s=compared_s)
    measures = zip(scaling.speedup, scaling.efficiency_fraction, scaling.serial_fraction, strict=True)
    model_bytes = n_parameters * bytes_per_parameter
    points = []
    for row, one_s, (speedup, efficiency, serial) in zip(rows, compared_s, measures, strict=True):
        others, others_fraction = row.n_devices - 1, 1 - 1 / row.n_devices
        moved_bytes = 2 * others * model_bytes + others_fraction * row.batch_size * sample_bytes
        points.append(
            ScalingPoint(
                row=row,
                speedup=float(speedup),
                efficiency_fraction=float(efficiency),
                serial_fraction=float(serial),
                compute_s=one_s / row.n_devices,
                ring_bytes=2 * others_fraction * model_bytes * row.n_iterations,
                hub_bytes=moved_bytes * row.n_iterations,
                link_bytes_per_s=link_bytes_per_s,
            )
        )
    return MeasuredScaling(points=tuple(points), warnings=scaling.warnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class DataParallelModel:
    """A step of torch.nn.DataParallel takes as long as the slowest of three timelines.

    The host prepares one replica and `replica_s` more for each further one: their threads share one Python process and
    its global lock, and weights and gradients pass the first device. The devices compute their share of the batch. The
    loader delivers the batch, whatever the devices do.
    """

    host_s: float
    replica_s: float
    compute_s_per_sample: float
    input_s_per_sample: float

    def parts_s(self, batch_size: ArrayLike, n_devices: ArrayLike) -> Floats:
        """Seconds of host, compute and input for one step, along the last axis."""
        batch, n = np.broadcast_arrays(np.asarray(batch_size, dtype=float), np.asarray(n_devices, dtype=float))
        host_s = self.host_s + self.replica_s * (n - 1)
        return np.stack([host_s, self.compute_s_per_sample * batch / n, self.input_s_per_sample * batch], axis=-1)

    def step_s(self, batch_size: ArrayLike, n_devices: ArrayLike) -> Floats:
        return self.parts_s(batch_size, n_devices).max(axis=-1)

    def bound_by(self, batch_size: int, n_devices: int) -> Bound:
        return _BOUNDS[int(self.parts_s(batch_size, n_devices).argmax())]

    def least_link_bytes_per_s(self, model_bytes: float) -> float:
        """What the link carries if `replica_s` is nothing but one copy of the weights out and one of gradients back."""
        return 2 * model_bytes / self.replica_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """A rule of thumb that is given each batch's time on one device, scored on the rows with more."""

    name: str
    n_fitted: int
    mean_error_fraction: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DataParallelFit:
    """A model, what it says about each row, and how far to trust it."""

    model: DataParallelModel
    rows: tuple[MeasuredEpoch, ...]
    predicted_s: tuple[float, ...]  # epochs
    left_out_s: tuple[float, ...]  # the same, each by a fit without its row; empty without a spare row
    bound_by: tuple[Bound, ...]
    baselines: tuple[Baseline, ...]
    noise_floor_fraction: float | None  # mean error of a perfect model, from the clock's resolution
    warnings: tuple[str, ...]
    n_parameters: int = 4

    @property
    def error_fractions(self) -> Floats:
        return _errors(self.predicted_s, self.rows)

    @property
    def mean_error_fraction(self) -> float:
        return float(self.error_fractions.mean())

    @property
    def leave_one_out_error_fraction(self) -> float | None:
        return float(_errors(self.left_out_s, self.rows).mean()) if self.left_out_s else None


def fit_data_parallel(
    rows: Sequence[MeasuredEpoch], *, n_samples: int | None = None, resolution_s: float | None = None
) -> DataParallelFit:
    """The four parameters with the least squared error of logarithms.

    With `n_samples` the last batch of an epoch has its true size. `resolution_s`: an epoch is the difference of two
    clock readings, both rounded down to it, so its error is triangular and a third of it on average.
    """
    if len(rows) < 4 or len({row.n_devices for row in rows}) < 2:
        raise InputError(
            "Fitting four parameters needs at least four rows with two different numbers of devices; these "
            f"{len(rows)} rows are not enough."
        )
    for row in rows:
        check_iterations(row, n_samples)
    model = _fit(rows, n_samples)
    left_out = [
        float(epoch_sum(rows[i : i + 1], n_samples)(_fit([*rows[:i], *rows[i + 1 :]], n_samples).step_s)[0])
        for i in range(len(rows) if len(rows) > 4 else 0)
    ]
    measured_s = np.array([row.epoch_s for row in rows])
    return DataParallelFit(
        model=model,
        rows=tuple(rows),
        predicted_s=tuple(epoch_sum(rows, n_samples)(model.step_s).tolist()),
        left_out_s=tuple(left_out),
        bound_by=tuple(model.bound_by(row.batch_size, row.n_devices) for row in rows),
        baselines=_baselines(rows),
        noise_floor_fraction=None if resolution_s is None else float((resolution_s / 3 / measured_s).mean()),
        warnings=_unseen(model, rows),
    )


def least_log_squares(predict_s: Callable[[Floats], Floats], measured_s: Floats, start: Floats) -> Floats:
    """Parameters above 0 with the least squared error of logarithms, from a start and a few fixed others around it.

    A maximum of terms has corners and several valleys, so one start is not enough.
    """
    from scipy.optimize import least_squares

    def residuals(logs: Floats) -> Floats:
        return np.log(predict_s(np.exp(logs)) / measured_s)

    around = np.random.default_rng(0).normal(0.0, 0.3, (8, len(start)))
    around[0] = 0.0
    found = [least_squares(residuals, np.log(start) + offset, max_nfev=40) for offset in around]
    return np.exp(found[int(np.argmin([each.cost for each in found]))].x)


def _fit(rows: Sequence[MeasuredEpoch], n_samples: int | None) -> DataParallelModel:
    def model(values: Floats) -> DataParallelModel:
        return DataParallelModel(**dict(zip(DataParallelModel.__slots__, values.tolist(), strict=True)))

    sum_s, measured_s = epoch_sum(rows, n_samples), np.array([row.epoch_s for row in rows])
    return model(least_log_squares(lambda values: sum_s(model(values).step_s), measured_s, _envelope(rows)))


def _unseen(model: DataParallelModel, rows: Sequence[MeasuredEpoch]) -> tuple[str, ...]:
    """What these rows leave open: a timeline that is nowhere clearly the slowest could as well be faster."""
    batch, n_devices = np.array([(row.batch_size, row.n_devices) for row in rows]).T
    parts_s = model.parts_s(batch, n_devices)
    binds = parts_s > 1.01 * np.sort(parts_s, axis=1)[:, 1:2]
    found = [
        f"No row is clearly limited by {bound}: only an upper bound of its seconds is known."
        for bound, seen in zip(_BOUNDS, binds.T, strict=True)
        if not seen.any()
    ]
    if len(set(n_devices[binds[:, 0]])) == 1:
        found.append(
            "All rows limited by the host have the same number of devices, so its two parameters cannot be separated."
        )
    return tuple(found)


def _envelope(rows: Sequence[MeasuredEpoch]) -> Floats:
    """A start: the most that each timeline may take without exceeding a measured step."""
    steps = [(row.n_devices, row.batch_size, row.epoch_s / row.n_iterations) for row in rows]
    fastest = {n: min(step for other, _, step in steps if other == n) for n, _, _ in steps}
    few, many = min(fastest), max(fastest)
    replica_s = max(
        (fastest[many] - fastest[few]) / max(many - few, 1), fastest[few] / 10
    )  # a row left out: few is many
    host_s = max(fastest[few] - (few - 1) * replica_s, fastest[few] / 10)
    compute_s = min(n * step / batch for n, batch, step in steps)
    return np.array([host_s, replica_s, compute_s, min(step / batch for _, batch, step in steps)])


def _baselines(rows: Sequence[MeasuredEpoch]) -> tuple[Baseline, ...]:
    one_s = one_device_s(rows)
    scored = [row for row in rows if row.n_devices > 1 and row.batch_size in one_s]
    if not scored:
        return ()
    measured_s = np.array([row.epoch_s for row in scored])
    alone_s = np.array([one_s[row.batch_size] for row in scored])
    n_devices = np.array([row.n_devices for row in scored], dtype=float)
    iterations = np.array([row.n_iterations for row in scored], dtype=float)

    def baseline(name: str, predicted_s: Floats, n_fitted: int = 0) -> Baseline:
        return Baseline(name=name, n_fitted=n_fitted, mean_error_fraction=float(_errors(predicted_s, scored).mean()))

    def with_extra(name: str, extra: Floats) -> Baseline:
        """The best such rule there is: the mean error is smallest where one of the rows is met."""
        candidates = [alone_s / n_devices + value * extra for value in (measured_s - alone_s / n_devices) / extra]
        return min((baseline(name, each, 1) for each in candidates), key=lambda each: each.mean_error_fraction)

    return (
        baseline("T1", alone_s),
        baseline("T1/N", alone_s / n_devices),
        with_extra("T1/N + seconds per epoch", np.ones_like(measured_s)),
        with_extra("T1/N + seconds per step and additional device", iterations * (n_devices - 1)),
    )


def _errors(predicted_s: ArrayLike, rows: Sequence[MeasuredEpoch]) -> Floats:
    return np.abs(np.asarray(predicted_s) / np.array([row.epoch_s for row in rows]) - 1)
