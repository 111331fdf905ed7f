"""How long simulations take: one workload with every policy, and the Philly trace in growing parts."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from traincast.report.chart import Chart, Series
from traincast.scheduling.job import Job
from traincast.scheduling.jobs_file import read_jobs
from traincast.scheduling.machines import Machines, find_machines
from traincast.scheduling.policies.registry import POLICIES
from traincast.scheduling.simulator import simulate_policy

PHILLY = find_machines("500x4xGPU")
PHILLY_FILE = "philly_jobs.csv.gz"
PHILLY_SIZES = (10_000, 20_000, 40_000, 82_247)
SIDE_BY_SIDE = ("fifo", "srtf", "drf", "gavel", "tiresias", "optimus", "pollux", "traincast", "traincast-batch")


def speed(jobs: Sequence[Job], machines: Machines) -> str:
    """CPU seconds of one simulation, tables worked out anew."""
    rows = []
    for name in SIDE_BY_SIDE:
        start, cpu = time.perf_counter(), time.process_time()
        schedule = simulate_policy(jobs, machines, POLICIES[name]())
        rows.append(
            (
                name,
                f"{time.process_time() - cpu:.2f}",
                f"{time.perf_counter() - start:.2f}",
                f"{len(schedule.moments):,}",
            )
        )
    return table(("policy", "CPU seconds", "seconds", "decisions"), rows)


def philly(path: Path) -> tuple[str, Chart]:
    """The whole trace and its beginnings; memory is the most that the process has held so far."""
    jobs = read_jobs(path)
    rows, series = [], []
    for name in ("fifo", "srtf", "tiresias", "optimus", "traincast"):
        taken = []
        for n in PHILLY_SIZES:
            cpu = time.process_time()
            schedule = simulate_policy(_every(jobs, n), PHILLY, POLICIES[name]())
            taken.append(time.process_time() - cpu)
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        rows.append(
            (
                name,
                *(f"{seconds:.0f}" for seconds in taken),
                f"{held:,.0f}",
                f"{schedule.mean_completion_s:,.0f}",
                f"{len(schedule.moments):,}",
            )
        )
        series.append(Series(name=name, x=list(PHILLY_SIZES), y=taken))
    header = ("policy", *(f"{n:,} jobs" for n in PHILLY_SIZES), "MiB", "mean completion, s", "decisions")
    chart = Chart(
        title="Philly on 2,000 GPUs",
        kind="line",
        series=tuple(series),
        x_label="jobs",
        y_label="CPU time",
        x_show="integer",
        y_show="duration",
    )
    return table(header, rows), chart


def _every(jobs: Sequence[Job], n: int) -> list[Job]:
    """So many jobs, spread over the whole trace: what grows is the load, as does the number of decisions."""
    chosen = np.linspace(0, len(jobs) - 1, n).astype(int)
    return [jobs[place] for place in np.unique(chosen)]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    n_columns = sum(cell.count(" | ") + 1 for cell in header)
    lines = [f"| {' | '.join(header)} |", f"| --- |{' ---: |' * (n_columns - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
