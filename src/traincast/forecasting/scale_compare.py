"""Measured runs beside their forecasts: a file with the number of GPUs and what each run took."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from traincast.errors import FileFormatError, InputError
from traincast.forecasting.scale import Scaling, ScalingCurve, ScalingPoint
from traincast.scaling.number_table import Row, read_rows

_TIMES = ("step_s", "epoch_s", "total_s", "samples_per_s")
_ALIASES = {
    "gpus": ("n_gpus", "num_gpus", "devices", "n_devices", "num_devices", "gpu_count", "workers"),
    "batch": ("batch_size", "global_batch", "global_batch_size"),
    "step_s": ("step", "step_time", "step_time_s", "step_seconds", "seconds_per_step"),
    "epoch_s": ("epoch", "epoch_time", "epoch_time_s", "epoch_seconds", "seconds_per_epoch"),
    "total_s": ("total", "total_time", "total_time_s", "runtime", "runtime_s", "total_seconds", "seconds"),
    "samples_per_s": ("throughput", "images_per_s", "samples_s", "images_s", "samples_per_second"),
}


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class MeasuredPoint:
    """A run that took place, and the point that forecasts it."""

    point: ScalingPoint
    step_s: float

    @property
    def error_fraction(self) -> float:
        """Forecast over measurement, minus 1: above 0 where the forecast is too slow."""
        return self.point.forecast.step_s / self.step_s - 1

    @property
    def throughput_error_fraction(self) -> float:
        """Predicted over measured samples per second, minus 1: above 0 where the forecast is too fast.

        It is not the error of the runtime with its sign turned: half the runtime is -50 %, twice the throughput +100 %.
        """
        return self.step_s / self.point.forecast.step_s - 1

    @property
    def samples_per_s(self) -> float:
        return self.point.forecast.batch_size / self.step_s

    @property
    def total_s(self) -> float | None:
        return self._scaled(self.point.forecast.total_s)

    @property
    def cost_usd(self) -> float | None:
        return self._scaled(self.point.forecast.cost_usd)

    def _scaled(self, predicted: float | None) -> float | None:
        """Steps, epochs and prices are the same: what grows with the step grows alike."""
        return None if predicted is None else predicted * self.step_s / self.point.forecast.step_s

    def to_dict(self) -> dict[str, object]:
        names = ("step_s", "samples_per_s", "total_s", "cost_usd", "error_fraction", "throughput_error_fraction")
        first = {"n_devices": self.point.n_devices, "batch_size": self.point.forecast.batch_size}
        return first | {name: getattr(self, name) for name in names}


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class CurveComparison:
    """Measured runs of one curve."""

    curve: ScalingCurve
    by_count: dict[int, MeasuredPoint]

    @property
    def mean_error_fraction(self) -> float:
        """Of absolute errors."""
        return sum(abs(each.error_fraction) for each in self.by_count.values()) / len(self.by_count)

    @property
    def mean_throughput_error_fraction(self) -> float:
        """Of absolute errors."""
        errors = [abs(each.throughput_error_fraction) for each in self.by_count.values()]
        return sum(errors) / len(errors)

    def to_dict(self) -> dict[str, object]:
        points = [each.to_dict() for each in self.by_count.values()]
        return {
            "scaling": self.curve.kind,
            "mean_error_fraction": self.mean_error_fraction,
            "mean_throughput_error_fraction": self.mean_throughput_error_fraction,
            "points": points,
        }


def compare(scaling: Scaling, path: str | Path, *, is_weak: bool) -> CurveComparison:
    """The runs of a file. A batch column says which scaling they are of; without it `is_weak` decides."""
    rows = list(read_rows(path, _ALIASES))
    if not rows:
        raise FileFormatError(f"'{path}' holds no measured runs.")
    if "batch" in rows[0]:
        strong = {(each.n_devices, each.forecast.batch_size) for each in scaling.strong.points}
        is_weak = not all("gpus" in row and (row.number("gpus"), row.number("batch")) in strong for row in rows)
    curve = scaling.weak if is_weak else scaling.strong
    found: dict[int, MeasuredPoint] = {}
    for row in rows:
        one = _measured(row, curve)
        if one.point.n_devices in found:
            raise FileFormatError(f"{row.where}: {one.point.n_devices} GPUs were there before.")
        found[one.point.n_devices] = one
    return CurveComparison(curve=curve, by_count=found)


def _measured(row: Row, curve: ScalingCurve) -> MeasuredPoint:
    row.one_of("gpus")
    kind, n = row.one_of(*_TIMES), row.whole("gpus")
    point = next((each for each in curve.points if each.n_devices == n), None)
    if point is None:
        raise InputError(
            f"{row.where}: a run on {n} GPUs is not among those asked about: add {n} to the numbers of GPUs."
        )
    forecast = point.forecast
    if "batch" in row and row.number("batch") != forecast.batch_size:
        raise InputError(
            f"{row.where}: a batch of {row.number('batch'):g} on {n} GPUs is in neither scaling; {curve.kind} scaling "
            f"has {forecast.batch_size} there. Give the batch of all GPUs together."
        )
    predicted, measured = getattr(forecast, kind), row.number(kind)
    if predicted is None:
        raise InputError(f"{row.where}: {kind} needs the number of samples of an epoch to compare with.")
    faster = measured / predicted if kind == "samples_per_s" else predicted / measured
    return MeasuredPoint(point=point, step_s=forecast.step_s / faster)
