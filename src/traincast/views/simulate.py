"""What `traincast simulate` shows: policies side by side, the slowest jobs, and who was where when."""

from __future__ import annotations

from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Cell, Table, columns_of
from traincast.scheduling.charts import MOST_SPANS, completion_chart, devices_chart, gantt_chart, queue_chart
from traincast.scheduling.compare import Outcome, PolicyComparison
from traincast.units import show_duration, show_things

_COLUMNS = columns_of(
    "policy as name, mean_completion_s: mean completion, median_completion_s: median, "
    "p99_completion_s: p99, makespan_s: makespan, mean_wait_s: wait, utilisation_fraction: in use, "
    "restarting_fraction: restarting, fairness_fraction: fairness, n_restarts: restarts"
)
_SPREAD = columns_of("low_completion_s: p10, high_completion_s: p90")
_N_SLOWEST = 5


def document_of(comparison: PolicyComparison, *, with_charts: bool = True) -> Document:
    """One row per policy. The jobs and charts are those of the first seed."""
    outcomes = comparison.outcomes
    first = outcomes[0].schedule
    columns = (*_COLUMNS[:2], *_SPREAD, *_COLUMNS[2:]) if comparison.n_seeds > 1 else _COLUMNS
    return Document(
        title=f"{show_things(len(first.jobs), 'job')} on {first.machines.name}",
        subtitle=_settings(comparison),
        tables=(
            Table(
                title="Policies",
                columns=columns,
                rows=tuple(tuple(_cell(one, column.key) for column in columns) for one in outcomes),
            ),
            _slowest(best_of(comparison)),
        ),
        charts=_charts(comparison) if with_charts else (),
        notes=_notes(comparison),
    )


def best_of(comparison: PolicyComparison) -> Outcome:
    """The policy with the shortest mean completion."""
    return min(comparison.outcomes, key=lambda one: one.mean("mean_completion_s"))


def _settings(comparison: PolicyComparison) -> str:
    rules, machines = comparison.rules, comparison.outcomes[0].schedule.machines
    parts = [show_things(machines.n_devices, "device")]
    parts.append(
        f"a decision every {show_duration(rules.interval_s)}" if rules.interval_s else "decisions at each event"
    )
    if rules.work_sigma or rules.speed_sigma:
        parts.append(f"forecasts off by sigma {rules.work_sigma:g} (work) and {rules.speed_sigma:g} (speed)")
    n_own = sum(job.work_sigma is not None for job in comparison.jobs)
    if n_own:
        parts.append(f"{show_things(n_own, 'job')} with intervals of their own")
    if rules.failures is not None:
        parts.append(f"a node fails every {show_duration(rules.failures.mean_between_s)}")
    if comparison.n_seeds > 1:
        parts.append(f"{comparison.n_seeds} seeds")
    return ", ".join(parts)


def _cell(one: Outcome, key: str) -> Cell:
    if key == "policy":
        return one.policy
    if key in ("low_completion_s", "high_completion_s"):
        return one.interval("mean_completion_s")[key == "high_completion_s"]
    value = one.mean(key)
    return round(value) if key == "n_restarts" else value


def _slowest(one: Outcome) -> Table:
    jobs = sorted(one.schedule.jobs, key=lambda job: -job.completion_s)[:_N_SLOWEST]
    return Table(
        title=f"Slowest jobs under {one.policy}",
        columns=columns_of(
            "job as name, kind as name, completion_s: completion, wait_s: wait, device_s: device time, "
            "n_restarts: restarts"
        ),
        rows=tuple((job.name, job.kind, job.completion_s, job.wait_s, job.device_s, job.n_restarts) for job in jobs),
    )


def _charts(comparison: PolicyComparison) -> tuple[Chart, ...]:
    schedules = [one.schedule for one in comparison.outcomes]
    bars = Chart(
        title="Mean completion time",
        kind="bar",
        series=(
            Series(
                name="mean completion",
                x=[one.policy for one in comparison.outcomes],
                y=[one.mean("mean_completion_s") for one in comparison.outcomes],
            ),
        ),
        x_label="policy",
        y_label="from submission to end",
        y_show="duration",
    )
    drawn = dict.fromkeys((schedules[0], best_of(comparison).schedule))  # each is a heavy chart
    gantts = tuple(gantt_chart(one) for one in drawn if len(one.spans) <= MOST_SPANS)
    return (bars, completion_chart(schedules), queue_chart(schedules), devices_chart(schedules), *gantts)


def _notes(comparison: PolicyComparison) -> tuple[str, ...]:
    notes = []
    best = best_of(comparison)
    if len(comparison.outcomes) > 1:
        worst = max(comparison.outcomes, key=lambda one: one.mean("mean_completion_s"))
        times = worst.mean("mean_completion_s") / best.mean("mean_completion_s")
        shorter = f"{times:.2f} times shorter than {worst.policy}"
        is_tie = shorter.startswith("1.00 ")
        notes.append(
            "The mean completion is as long under each policy."
            if is_tie
            else f"Shortest mean completion: {best.policy}, {shorter}."
        )
    if comparison.n_seeds > 1:
        notes.append(
            f"Policies and their mean completion are means over {comparison.n_seeds} seeds; jobs, and charts over "
            "time, are of the first."
        )
    for one in comparison.outcomes:
        if one.schedule.n_failures:
            notes.append(f"{one.policy}: {show_things(one.schedule.n_failures, 'failure')} of nodes (first seed).")
        if len(one.schedule.spans) > MOST_SPANS:
            notes.append(f"{one.policy}: {len(one.schedule.spans):,} stays on devices are too many to draw.")
    return tuple(notes)
