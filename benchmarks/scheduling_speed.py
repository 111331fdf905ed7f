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
from traincast.scheduling.policies.registry import POLICIES, make_policy
from traincast.scheduling.pollux_tables import read_applications
from traincast.scheduling.simulator import simulate_policy

PHILLY, PHILLY_FULL = find_machines("500x4xGPU"), find_machines("100x4xGPU")
PHILLY_FILE = "philly_jobs.csv.gz"
PHILLY_SIZES = (10_000, 20_000, 40_000, 82_247)
FULL_SIZES = {  # what takes more than a few minutes is left out
    "fifo": (5_000, 10_000, 20_000, 82_247),
    "srtf": (5_000, 10_000, 20_000, 82_247),
    "tiresias": (5_000, 10_000, 20_000),
    "traincast": (5_000, 10_000),
}
SIDE_BY_SIDE = ("fifo", "srtf", "drf", "gavel", "tiresias", "optimus", "pollux", "traincast", "traincast-batch")


def speed(data: Path, machines: Machines) -> str:
    """Of one simulation from the files on: what an earlier one has worked out is not used again."""
    rows = []
    for name in SIDE_BY_SIDE:
        start, cpu = time.perf_counter(), time.process_time()
        applications = read_applications(data / "distributed")
        path = data / "cluster" / "pollux_workloads.csv"
        jobs = read_jobs(path, applications=applications, workload="load-1.0/1")
        read_cpu = time.process_time() - cpu
        schedule = simulate_policy(jobs, machines, make_policy(name))
        rows.append(
            (
                name,
                f"{read_cpu:.2f}",
                f"{time.process_time() - cpu - read_cpu:.2f}",
                f"{time.perf_counter() - start:.2f}",
                f"{len(schedule.moments):,}",
            )
        )
    return table(("policy", "reading, CPU s", "simulating, CPU s", "both, seconds", "decisions"), rows)


def philly_full(path: Path) -> str:
    """On a fifth of the devices, where up to thousands of jobs wait."""
    jobs = read_jobs(path)
    rows = []
    sizes = sorted({n for taken in FULL_SIZES.values() for n in taken})
    for name, taken in FULL_SIZES.items():
        cells, longest = [], 0
        for n in sizes:
            if n not in taken:
                cells.append("")
                continue
            chosen = jobs[:n] if n < len(jobs) else jobs  # a beginning: as dense as the whole
            cpu = time.process_time()
            schedule = simulate_policy(chosen, PHILLY_FULL, make_policy(name))
            cells.append(f"{time.process_time() - cpu:.0f}")
            longest = max(moment.n_waiting for moment in schedule.moments)
        rows.append((name, *cells, f"{longest:,}"))
    return table(("policy", *(f"{n:,} jobs" for n in sizes), "longest queue"), rows)


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
    most = max(moment.n_devices for moment in schedule.moments)
    said = f"The cluster is never full: at most {most:,} of its {PHILLY.n_devices:,} devices are in use."
    return f"{table(header, rows)}\n\n{said}", chart


def _every(jobs: Sequence[Job], n: int) -> list[Job]:
    """So many jobs, spread over the whole trace: what grows is the load, as does the number of decisions."""
    chosen = np.linspace(0, len(jobs) - 1, n).astype(int)
    return [jobs[place] for place in np.unique(chosen)]


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    n_columns = sum(cell.count(" | ") + 1 for cell in header)
    lines = [f"| {' | '.join(header)} |", f"| --- |{' ---: |' * (n_columns - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
