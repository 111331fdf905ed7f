"""The three tables of the experiment, in both definitions: speedup, compute and communication, bandwidth.

Legend: N devices, T1 and TN seconds of an epoch on 1 and on N of them. Each comparison divides TN twice. By assumption,
as one does who has nothing but epochs: compute is T1/N and all else is communication. And by measurement: steps with
and without reducing. With the batch of a device fixed (weak), T1/N is made of the very steps that N devices run, so
the assumption only misses what N processes do to each other. With the batch of all fixed (strong), T1/N also takes
small batches to be as fast per sample as large ones, and counts what they are not as communication.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traincast.recipes.scaling_experiment.result import CellRun
from traincast.recipes.scaling_experiment.settings import ScalingSettings
from traincast.scaling.measured import ScalingPoint, analyse
from traincast.scaling.measured_file import MeasuredEpoch, comparable
from traincast.scaling.speedup import Kind, gustafson_fraction

KINDS: tuple[Kind, ...] = ("weak", "strong")
_GRADIENT_BYTES = {"bf16": 2}  # of a parameter; under autocast weights and gradients stay fp32


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One run against the one-device run of its definition; seconds and bytes are of an epoch."""

    kind: Kind
    run: CellRun
    point: ScalingPoint  # speedup, and the split by assumption
    serial_fraction: float  # Gustafson's in weak scaling, Karp and Flatt's in strong
    link_bytes_per_s: float | None

    @property
    def batch_size(self) -> int:
        """What stays the same: of a device in weak scaling, of all in strong scaling."""
        return self.point.row.batch_size

    @property
    def assumed_bytes_per_s(self) -> float | None:
        """Of what each device sends, over the assumed communication."""
        return self.point.ring_bytes_per_s

    @property
    def exposed_bytes_per_s(self) -> float | None:
        """Of what each device sends, over the communication that shows. Above the link's where backward hides some."""
        return self.run.bytes_sent / self.run.communication_s if self.run.communication_s > 0 else None

    @property
    def reduced_bytes_per_s(self) -> float | None:
        """Of the gradients reduced by themselves."""
        split = self.run.split
        return None if split is None else self.run.bytes_sent / self.run.n_steps / split.all_reduce_s

    def of_link(self, bytes_per_s: float | None) -> float | None:
        link = self.link_bytes_per_s
        return None if bytes_per_s is None or link is None else bytes_per_s / link


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedupComparison:
    """All runs of one definition that have a run on one device to be compared with."""

    kind: Kind
    rows: tuple[Compared, ...]
    warnings: tuple[str, ...]


def compare(
    settings: ScalingSettings, runs: Sequence[CellRun], kind: Kind, *, link_bytes_per_s: float | None = None
) -> SpeedupComparison:
    """`link_bytes_per_s` is what the link should give; None: what one large message reached in the same run."""
    own = [run for run in runs if _fixed_batch(run, kind) in settings.batch_sizes]
    if not any(run.cell.n_devices == 1 for run in own):
        return SpeedupComparison(
            kind=kind, rows=(), warnings=("There is no finished run on one device to compare with.",)
        )
    rows, left_out = comparable([_epoch(run, kind) for run in own])
    kept = [run for run in own if _epoch(run, kind) in rows]
    split = analyse(rows, kept[0].n_parameters, bytes_per_parameter=_GRADIENT_BYTES.get(settings.precision, 4))
    found = [
        Compared(
            kind=kind,
            run=run,
            point=point,
            serial_fraction=_serial_fraction(point, kind),
            link_bytes_per_s=link_bytes_per_s or (None if run.split is None else run.split.peak_bus_bytes_per_s),
        )
        for run, point in zip(kept, split.points, strict=True)
    ]
    found.sort(key=lambda each: (each.batch_size, each.run.cell.n_devices))
    return SpeedupComparison(kind=kind, rows=tuple(found), warnings=(*left_out, *split.warnings))


def measured_csv(runs: Sequence[CellRun]) -> str:
    """Epochs as `traincast scale --measured` reads them; its batch is that of all devices."""
    lines = ["batch_size,n_devices,epoch_s,n_iterations"]
    lines += [f"{run.cell.global_batch_size},{run.cell.n_devices},{run.epoch_s!r},{run.n_steps}" for run in runs]
    return "\n".join(lines) + "\n"


def _fixed_batch(run: CellRun, kind: Kind) -> int:
    return run.cell.batch_size if kind == "weak" else run.cell.global_batch_size


def _epoch(run: CellRun, kind: Kind) -> MeasuredEpoch:
    return MeasuredEpoch(
        batch_size=_fixed_batch(run, kind),
        n_devices=run.cell.n_devices,
        epoch_s=run.epoch_s,
        n_iterations=run.n_steps,
        where=f"Run {run.cell.name}",
    )


def _serial_fraction(point: ScalingPoint, kind: Kind) -> float:
    """An epoch has the same samples on any number of devices, so T1/TN of epochs is the scaled speedup of steps too."""
    if kind == "strong":
        return point.serial_fraction
    return float(gustafson_fraction(point.speedup, point.row.n_devices))
