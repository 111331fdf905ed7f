"""Loader workers 0, 1, 2, 4 ... until more of them stop helping: which number is best, and why?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from traincast.measurement.epoch import N_WARMUPS, EpochMeasurement, measure_epoch
from traincast.measurement.failures import users_code
from traincast.measurement.measure import check_count_of
from traincast.measurement.runnable import Runnable
from traincast.measurement.sweeps.collect import WITHIN_FRACTION, collect, first_within
from traincast.measurement.sweeps.loading import BatchLoader, LoadCost, measure_load
from traincast.measurement.sweeps.variants import fresh
from traincast.measurement.training import PHASES
from traincast.records.environment import n_usable_cores
from traincast.units import show_duration, show_percent

if TYPE_CHECKING:
    from traincast.measurement.measure import Progress

_BUDGET_S, _FEWEST_BATCHES, _MOST_BATCHES = 2.0, 12, 200
_MOST_WAITING = 16  # workers that only wait need no core


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersRow:
    """An epoch, or its beginning, with so many workers."""

    n_workers: int
    epoch: EpochMeasurement

    @property
    def batch_s(self) -> float:
        """Between one batch and the next, on average: workers deliver in bursts."""
        return self.epoch.batch.mean

    @property
    def data_s(self) -> float:
        """What the loop waited for a batch, on average."""
        return self.epoch.phases["data"].mean

    @property
    def samples_per_s(self) -> float:
        return self.epoch.samples_per_s

    def to_dict(self) -> dict[str, Any]:
        return {
            "n_workers": self.n_workers,
            "batch_s": self.batch_s,
            "data_s": self.data_s,
            "data_fraction": self.epoch.data_fraction,
            "samples_per_s": self.samples_per_s,
            "start_s": self.epoch.start_s,
            "measured": self.epoch.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkersSweep:
    """What each number of workers made of the loop, and what loading and the step cost by themselves."""

    model: str
    data: str
    batch_size: int
    n_cores: int
    load: LoadCost
    rows: tuple[WorkersRow, ...]
    was_stopped: bool = False

    @property
    def step_s(self) -> float:
        """Of a batch that is there: copy and step, with no worker beside it."""
        return sum(self.rows[0].epoch.phases[phase].median for phase in ("copy", *PHASES))

    @property
    def n_needed(self) -> int:
        """Workers that would load as fast as the step trains, each with a core of its own."""
        return math.ceil(self.load.sample_s * self.batch_size / self.step_s)

    @property
    def best(self) -> WorkersRow:
        """The fewest workers that are nearly as quick as any number."""
        return first_within(self.rows, lambda row: row.samples_per_s)

    @property
    def verdict(self) -> str:
        return f"{self._choice} {self._reason}"

    @property
    def _choice(self) -> str:
        best, alone = self.best, self.rows[0]
        if best is alone:
            return f"No workers are needed: {alone.samples_per_s:,.0f} samples/s without, and more do not help."
        gain = best.samples_per_s / alone.samples_per_s
        workers = "1 worker is" if best.n_workers == 1 else f"{best.n_workers} workers are"
        return f"{workers} best: {best.samples_per_s:,.0f} samples/s, {gain:.2f} times as many as without."

    @property
    def _reason(self) -> str:
        load, best = self.load, self.best
        kind = "of it CPU work" if load.is_busy else "of it CPU work, the rest waiting"
        costs = (
            f"Loading a sample costs {show_duration(load.sample_s)} ({show_percent(load.cpu_fraction)} {kind}) and the "
            f"step of {self.batch_size:,} takes {show_duration(self.step_s)}"
        )
        share = show_percent(best.epoch.data_fraction)
        needed = "1 worker is" if self.n_needed == 1 else f"{self.n_needed} workers are"
        waits = f"with {best.n_workers} the loop waits for data {share} of its time"
        told = f"{costs}: {needed} needed to keep up, and {waits}"
        is_short = best.n_workers < self.n_needed and best.epoch.data_fraction > WITHIN_FRACTION
        if is_short and load.is_busy and self.n_needed >= self.n_cores:  # the step needs a core as well
            return f"{told}, because {self.n_cores} cores do both: make loading cheaper."
        return f"{told}."

    def to_dict(self) -> dict[str, Any]:
        return {
            "sweep": "workers",
            "model": self.model,
            "data": self.data,
            "batch_size": self.batch_size,
            "n_cores": self.n_cores,
            "load_sample_s": self.load.sample_s,
            "load_cpu_fraction": self.load.cpu_fraction,
            "step_s": self.step_s,
            "n_workers_needed": self.n_needed,
            "n_workers_best": self.best.n_workers,
            "rows": [row.to_dict() for row in self.rows],
            "verdict": self.verdict,
            "was_stopped": self.was_stopped,
        }


def sweep_workers(
    runnable: Runnable,
    dataset: Any,
    *,
    data: str,
    batch_size: int,
    on_row: Callable[[WorkersRow], None] | None = None,
    on_progress: Progress | None = None,
    **settings: Any,
) -> WorkersSweep:
    """`settings` are those of `measure_epoch`; its `n_batches` fixes how many are timed for each number of workers."""
    check_count_of("batches", settings.get("n_batches"))
    load = measure_load(dataset, batch_size=batch_size)
    n_cores = n_usable_cores()
    with users_code("An example batch of 1 sample"):
        like = runnable.make_inputs(1)
    chosen = {name: value for name, value in settings.items() if name != "n_batches"}

    def attempt(n_workers: int, step_s: float | None) -> WorkersRow:
        n_batches = settings.get("n_batches") or _n_batches(load, batch_size, n_workers, step_s)
        loader = BatchLoader(dataset, like, batch_size=batch_size, n_batches=n_batches, num_workers=n_workers)
        epoch = measure_epoch(fresh(runnable), loader, n_batches=n_batches, on_progress=on_progress, **chosen)
        return WorkersRow(n_workers=n_workers, epoch=epoch)

    most = max(2 * n_cores, 0 if load.is_busy else _MOST_WAITING)
    done = collect(_rows(attempt, most), on_row)
    return WorkersSweep(
        model=runnable.name,
        data=data,
        batch_size=batch_size,
        n_cores=n_cores,
        load=load,
        rows=done.rows,
        was_stopped=done.was_stopped,
    )


def _rows(attempt: Callable[[int, float | None], WorkersRow], most: int) -> Iterator[WorkersRow]:
    n_workers, best, n_without_gain = 0, 0.0, 0
    step_s = None
    while n_workers <= most and n_without_gain < 2:
        row = attempt(n_workers, step_s)
        yield row
        if n_workers == 0:
            step_s = row.batch_s - row.data_s
        gained = row.samples_per_s > (1 + WITHIN_FRACTION) * best
        n_without_gain = 0 if gained else n_without_gain + 1
        best = max(best, row.samples_per_s)
        n_workers = max(1, 2 * n_workers)


def _n_batches(load: LoadCost, batch_size: int, n_workers: int, step_s: float | None) -> int:
    """For about two seconds, and whole rounds of the workers: they deliver in bursts of as many batches."""
    load_s = load.sample_s * batch_size
    batch_s = load_s if step_s is None else max(step_s, load_s / max(n_workers, 1))
    wanted = min(_MOST_BATCHES, max(_FEWEST_BATCHES, int(_BUDGET_S / max(batch_s, 1e-6))))
    per_round = max(n_workers, 1)
    return N_WARMUPS + per_round * max(2, math.ceil(wanted / per_round))
