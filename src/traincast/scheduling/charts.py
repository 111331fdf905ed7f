"""Schedules as charts: who was on which device when, and how many waited."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traincast.report.chart import Chart, Series
from traincast.scheduling.schedule import Schedule

MOST_SPANS = 20_000  # more bars than that are one grey wall and a slow page
_MOST_POINTS = 1_500


def gantt_chart(schedule: Schedule) -> Chart:
    """A bar for each stay of a job on a device, in the colour of its kind; rows are devices, node by node."""
    first_row = np.concatenate([[0], np.cumsum(schedule.machines.devices)])
    busy_until = [[-1.0] * n for n in schedule.machines.devices]
    bars: dict[str, tuple[list[float], list[float | None], list[str]]] = {}
    for span in sorted(schedule.spans, key=lambda one: one.since_s):
        record = schedule.jobs[span.job]
        x, y, text = bars.setdefault(record.kind, ([], [], []))
        for node, n in span.placement:
            for lane in _free_lanes(busy_until[node], span.since_s, n):
                busy_until[node][lane] = span.until_s
                x += [span.since_s, span.until_s, span.until_s]
                y += [float(first_row[node] + lane), float(first_row[node] + lane), None]
                text += [f"{record.name}, node {node}"] * 3
    return Chart(
        title=f"Devices under {schedule.policy}",
        kind="gantt",
        series=tuple(Series(name=kind, x=x, y=y, text=text) for kind, (x, y, text) in bars.items()),
        x_label="time",
        y_label="device",
        x_show="duration",
        y_show="integer",
    )


def _free_lanes(busy_until_s: Sequence[float], since_s: float, n: int) -> list[int]:
    free = [lane for lane, until in enumerate(busy_until_s) if until <= since_s + 1e-6]
    assert len(free) >= n, "a device was assigned twice"
    return free[:n]


def queue_chart(schedules: Sequence[Schedule]) -> Chart:
    """Waiting jobs, over time."""
    return _over_time(schedules, "Waiting jobs", "n_waiting", "jobs")


def devices_chart(schedules: Sequence[Schedule]) -> Chart:
    """Devices in use, over time."""
    return _over_time(schedules, "Devices in use", "n_devices", "devices")


def _over_time(schedules: Sequence[Schedule], title: str, what: str, label: str) -> Chart:
    series = []
    for schedule in schedules:
        every = max(1, -(-len(schedule.moments) // _MOST_POINTS))
        starts = range(0, len(schedule.moments), every)
        times = [schedule.moments[start].now_s for start in starts]
        # Of several moments in one point the highest: the longest queue should be seen.
        values = [float(max(getattr(one, what) for one in schedule.moments[start : start + every])) for start in starts]
        x = [time for time in times for _ in range(2)][1:]  # a value holds until the next decision: steps, not slopes
        y = [value for value in values for _ in range(2)][:-1]
        end_s = max(job.finish_s for job in schedule.jobs)
        series.append(Series(name=schedule.policy, x=[*x, end_s, end_s], y=[*y, y[-1], 0.0]))
    return Chart(
        title=title,
        kind="line",
        series=tuple(series),
        x_label="time",
        y_label=label,
        x_show="duration",
        y_show="integer",
    )


def completion_chart(schedules: Sequence[Schedule]) -> Chart:
    """Which fraction of the jobs was done within which time."""
    series = []
    for schedule in schedules:
        times = np.sort(schedule.completions_s)
        done = np.arange(1, len(times) + 1) / len(times)
        every = max(1, -(-len(times) // _MOST_POINTS))
        kept = np.unique(np.append(np.arange(0, len(times), every), len(times) - 1))
        series.append(Series(name=schedule.policy, x=times[kept].tolist(), y=done[kept].tolist()))
    return Chart(
        title="Jobs done within a time",
        kind="line",
        series=tuple(series),
        x_label="from submission to end",
        y_label="jobs",
        x_show="duration",
        y_show="percent",
        log_x=True,
    )
