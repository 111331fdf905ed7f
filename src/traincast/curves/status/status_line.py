"""A status in one line: of `watch` where there is no terminal, and of the callbacks."""

from __future__ import annotations

import math

from traincast.curves.status.arrival import Arrival
from traincast.curves.status.status import Status
from traincast.estimate import Estimate
from traincast.logs.counting import count
from traincast.units import show_duration, show_percent, show_usd


def line_of(status: Status) -> str:
    """'step 120 of 500 (24.0 %), loss 0.61, at the end 0.55 (0.5 to 0.6), 2.1 min left (2.0 min to 2.2 min)'."""
    parts = [place_of(status), f"{named(status)} {value_of(status)}"]
    if status.divergence is not None:
        parts.append("diverged")
    if status.is_over:
        if status.arrival is not None:
            parts.append(_chance(status.arrival))
        return ", ".join([*parts, "over" if status.spent_usd is None else f"over, {show_usd(status.spent_usd)} spent"])
    if status.end is not None:
        parts.append(f"at the end {_numbers(status.end)}")
    if status.left_s is not None:
        parts.append(f"{times(status.left_s)} left")
    if status.left_usd is not None:
        parts.append(f"{show_usd(status.left_usd.p50)} to go")
    if status.arrival is not None:
        parts.append(target_of(status))
    return ", ".join(parts)


def facts_of(status: Status) -> list[tuple[str, str]]:
    """Names and what they are now, with p10 to p90."""
    from traincast.curves.status.alarms import one_of

    rows = [(named(status), value_of(status))]
    if status.end is not None:
        rows.append(("at the end", f"{status.end.p50:.4g} ({status.end.p10:.4g} to {status.end.p90:.4g})"))
    if status.pace is not None:
        still = f", {show_duration(status.pace.downtime_s)} idle" if status.pace.downtime_s >= 1 else ""
        rows.append((one_of(status.unit), f"{show_duration(status.pace.step_s)}{still}"))
    if status.left_s is not None:
        rows.append(("time left", "over" if status.is_over else times(status.left_s)))
    if status.left_usd is not None:
        rows.append(("cost left", show_usd(status.left_usd.p50)))
    there = status.arrival
    if there is not None:
        rows.append((f"p({there.target:g})", show_percent(there.probability)))
        if math.isfinite(there.steps.p50):
            low, middle, high = (
                count(step, status.unit) for step in (there.steps.p10, there.steps.p50, there.steps.p90)
            )
            rows.append((f"reached at {status.unit}", f"{middle} ({low} to {high})"))
        if there.from_now_s is not None and math.isfinite(there.from_now_s.p50):
            rows.append(("reached in", times(there.from_now_s)))
        if there.cost_usd is not None and math.isfinite(there.cost_usd.p50):
            rows.append(("cost until then", show_usd(there.cost_usd.p50)))
    return rows


def place_of(status: Status) -> str:
    """Where the run is: steps, share, epochs; or epochs alone, where the log counts these."""
    unit, total = status.unit, status.total_steps
    length = "" if total is None else f" of {count(total, unit)} ({show_percent(status.progress or 0)})"
    epochs = "" if status.epochs is None or unit == "epoch" else f", epoch {status.epochs:.1f}"
    return f"{unit} {count(status.step, unit)}{length}{epochs}"


def value_of(status: Status) -> str:
    """Where the series is now."""
    return "not finite" if math.isnan(status.value) else f"{status.value:.4g}"


def named(status: Status) -> str:
    series = status.series
    return series.metric if series.split == "train" else f"{series.split} {series.metric}"


def target_of(status: Status) -> str:
    """How likely the target is, and when it is reached."""
    there = status.arrival
    assert there is not None
    chance = _chance(there)
    if there.from_now_s is None or not math.isfinite(there.from_now_s.p50):
        return chance
    cost = "" if there.cost_usd is None else f", {show_usd(there.cost_usd.p50)}"
    return f"{chance} in {times(there.from_now_s)}{cost}"


def _chance(there: Arrival) -> str:
    return f"p({there.target:g}) {show_percent(there.probability)}"


def times(found: Estimate) -> str:
    """'2.1 min (1.9 min to 2.4 min)'."""
    low, middle, high = (_time(value) for value in (found.p10, found.p50, found.p90))
    return f"{middle} ({low} to {high})"


def _time(value_s: float) -> str:
    return show_duration(value_s) if math.isfinite(value_s) else "never"


def _numbers(found: Estimate) -> str:
    return f"{found.p50:.4g} ({found.p10:.4g} to {found.p90:.4g})"
