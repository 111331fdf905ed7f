"""Measured epochs on several numbers of GPUs: divided by assumption, and fitted where there are enough of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from traincast.scaling.measured import DataParallelFit, MeasuredScaling, analyse, fit_data_parallel
from traincast.scaling.measured_file import MeasuredEpoch, comparable, read_measured

FP32_BYTES = 4
MEASURES = ("speedup", "efficiency_fraction", "serial_fraction", "compute_s", "communication_s")
RING = ("ring_bytes", "ring_bytes_per_s", "ring_link_fraction")
HUB = ("hub_bytes", "hub_bytes_per_s", "hub_link_fraction")
_LEAST_TO_FIT = 4


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class MeasuredEpochs:
    """`fit` is None where there are too few rows for one."""

    source: str
    rows: tuple[MeasuredEpoch, ...]
    n_parameters: int
    link_bytes_per_s: float | None
    split: MeasuredScaling
    fit: DataParallelFit | None

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        split, fit = self.split, self.fit
        points = [
            {
                "batch_size": point.row.batch_size,
                "n_devices": point.row.n_devices,
                "epoch_s": point.row.epoch_s,
                "n_iterations": point.row.n_iterations,
                **{name: getattr(point, name) for name in (*MEASURES, *RING, *HUB)},
            }
            for point in split.points
        ]
        data: dict[str, Any] = {
            "n_parameters": self.n_parameters,
            "link_bytes_per_s": self.link_bytes_per_s,
            "points": points,
            "assumptions": split.assumptions,
            "warnings": split.warnings,
            "fit": None,
        }
        if fit is not None:
            data["fit"] = {
                "model": fit.model,
                "least_link_bytes_per_s": fit.model.least_link_bytes_per_s(self.n_parameters * FP32_BYTES),
                "epoch_s": fit.predicted_s,
                "bound_by": fit.bound_by,
                "mean_error_fraction": fit.mean_error_fraction,
                "leave_one_out_error_fraction": fit.leave_one_out_error_fraction,
                "baselines": fit.baselines,
                "warnings": fit.warnings,
            }
        return data


def epochs_of(path: Path, *, n_samples: int | None) -> tuple[tuple[MeasuredEpoch, ...], tuple[str, ...]]:
    """Rows that can be compared, and what is said of the others."""
    return comparable(read_measured(path, n_samples=n_samples))


def measured_epochs(
    path: Path,
    rows: tuple[MeasuredEpoch, ...],
    left_out: tuple[str, ...],
    *,
    n_parameters: int,
    n_samples: int | None,
    link_bytes_per_s: float | None,
) -> MeasuredEpochs:
    split = analyse(rows, n_parameters, bytes_per_parameter=FP32_BYTES, link_bytes_per_s=link_bytes_per_s)
    can_fit = len(rows) >= _LEAST_TO_FIT and len({row.n_devices for row in rows}) > 1
    return MeasuredEpochs(
        source=path.name,
        rows=rows,
        n_parameters=n_parameters,
        link_bytes_per_s=link_bytes_per_s,
        split=replace(split, warnings=(*left_out, *split.warnings)),
        fit=fit_data_parallel(rows, n_samples=n_samples) if can_fit else None,
    )
