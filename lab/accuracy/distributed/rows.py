"""Measured steps on many devices beside the steps that we predict for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from traincast.hardware.catalog import find_device
from traincast.hardware.host import find_host
from traincast.kernels.predictor import Traincast
from traincast.kernels.timeline import StepTimeline, step_timeline
from traincast.scaling.hierarchy import Network
from traincast.scaling.local_step import LocalStep
from traincast.scaling.stragglers import SPREAD
from traincast.scaling.strategy import DDP, parallel_step
from traincast.trace.graph import Floats
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.trace import Trace

_HOST = "torch-eager"


@dataclass(frozen=True, slots=True)
class Job:
    """What one device does: which trace with which settings on which device.

    `is_apex`: weights and activations in fp16, lowered as pure 16 bit, run on the fp16 units.
    """

    trace: Trace
    settings: Settings
    device: str
    is_apex: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelRow:
    """One measured step of a job on devices in nodes."""

    job: Job
    placement: tuple[int, ...]
    local_batch: int
    step_s: float
    one_device_s: float | None = None  # measured on one device at the same local batch
    sync_s: float | None = None  # from the last gradient to the end of the all-reduce
    tags: dict[str, str]

    @property
    def n_devices(self) -> int:
        return sum(self.placement)


@dataclass(frozen=True, eq=False, slots=True)
class Predicted:
    """One entry a row."""

    step_s: Floats
    exposed_s: Floats
    one_device_s: Floats

    @property
    def efficiency(self) -> Floats:
        """Of weak scaling: the step of one device over that of all."""
        return self.one_device_s / self.step_s


class Steps:
    """The steps of one device at all batch sizes that rows ask for, worked out once a job."""

    def __init__(self, rows: Sequence[ParallelRow], *, is_given: bool = False) -> None:
        """With `is_given` the measured step of one device is taken, cut as we predict it; else our own."""
        self.rows = tuple(rows)
        self._local: dict[Job, tuple[Any, LocalStep]] = {}
        for job in {row.job for row in rows}:
            own = [row for row in rows if row.job == job]
            sizes = np.unique([row.local_batch for row in own])
            step = _local_step(job, sizes)
            if is_given:
                step = replace(step, timeline=_stretched(step.timeline, sizes, own))
            self._local[job] = (sizes, step)

    def predict(
        self,
        network_of: Callable[[ParallelRow], Network],
        rows: Iterable[int] | None = None,
        *,
        spread: float = SPREAD,
    ) -> Predicted:
        """With the links that `network_of` gives each row; of all rows, or of those with these numbers."""
        chosen = [self.rows[number] for number in (range(len(self.rows)) if rows is None else rows)]
        known: dict[Any, Any] = {}
        found = np.zeros((3, len(chosen)))
        for number, row in enumerate(chosen):
            sizes, step = self._local[row.job]
            key = (row.job, row.placement)
            if key not in known:
                known[key] = parallel_step(DDP, step, network_of(row), spread=spread)
            at = int(np.searchsorted(sizes, row.local_batch))
            of_all = known[key]
            found[:, number] = of_all.step_s[at], of_all.exposed_s[at], step.timeline.step_s[at]
        return Predicted(*found)


def _local_step(job: Job, sizes: Any) -> LocalStep:
    graph, host = lower(job.trace, settings=job.settings), find_host(_HOST)
    precision = "amp-fp16" if job.is_apex else job.settings.precision
    times = Traincast().op_times(graph, find_device(job.device), sizes, precision=precision)
    return LocalStep(graph=graph, timeline=step_timeline(graph, times, host), host=host, batch_sizes=sizes)


def _stretched(timeline: StepTimeline, sizes: Any, rows: Sequence[ParallelRow]) -> StepTimeline:
    """All of a step longer or shorter by one factor a batch size, so that it is what one device took."""
    measured = {row.local_batch: row.one_device_s for row in rows}
    factor = np.array([measured[int(size)] for size in sizes], dtype=float) / timeline.step_s
    parts = {field.name: getattr(timeline, field.name) for field in fields(timeline) if field.name != "op_log_sd"}
    return replace(
        timeline, **{name: part * (factor[:, None] if part.ndim == 2 else factor) for name, part in parts.items()}
    )
