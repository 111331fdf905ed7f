"""What a reader must know about a measurement before believing it."""

from __future__ import annotations

import math
import mmap
from collections.abc import Sequence

from traincast.measurement.statistics import Summary
from traincast.records.environment import Environment
from traincast.units import show_bytes, show_duration, show_ratio

# Below this, timing the calls instead of the work would mislead.
_LAUNCH_FRACTION = 0.5
_MANY_OUTLIERS = 0.1
_MUCH_FRESH_BYTES = 4 * 2**20
_WIDE_SPREAD = 0.25


def remarks_on(  # noqa: PLR0913  (all that a measurement can tell)
    *,
    step: Summary,
    launch: Summary | None,
    losses: Sequence[float],
    environment: Environment,
    is_partial: bool,
    is_warm: bool,
    page_faults: float = 0.0,
) -> tuple[str, ...]:
    """A sentence each."""
    found = []
    if is_partial:
        found.append(f"Stopped after {_counted(step.n, 'step')}.")
    if not is_warm:
        found.append("No step was timed after the warm-up: these are warm-up steps, slower than those of a long run.")
    found += [
        *on_losses(losses, "step", first="the first of the warm-up"),
        *_on_launches(step, launch),
        *_on_page_faults(page_faults),
    ]
    found += on_noise(step, environment)
    return tuple(found)


def on_losses(losses: Sequence[float], what: str, *, first: str | None = None) -> list[str]:
    """Whether the loss was a number all the time; `first` says what the count begins with where that is not clear."""
    bad = [number for number, loss in enumerate(losses, start=1) if not math.isfinite(loss)]
    if not bad:
        return []
    counted = "" if first is None else f", counted from {first},"
    return [
        f"The loss was {losses[bad[0] - 1]} at {what} {bad[0]}{counted} and not finite at {len(bad)} of "
        f"{_counted(len(losses), what)}: steps with such values can run at a different speed."
    ]


def _on_launches(step: Summary, launch: Summary | None) -> list[str]:
    if launch is None or launch.median >= _LAUNCH_FRACTION * step.median:
        return []
    factor = show_ratio(step.median / launch.median) if launch.median > 0 else "endless"
    return [
        f"The host finishes issuing a step after {show_duration(launch.median)}: a loop that reads its clock "
        f"without synchronising would report that instead of {show_duration(step.median)}, {factor} x too fast."
    ]


def _on_page_faults(n_faults: float) -> list[str]:
    fresh_bytes = n_faults * mmap.PAGESIZE
    if fresh_bytes < _MUCH_FRESH_BYTES:
        return []
    return [
        f"Every step asks the system for {show_bytes(fresh_bytes)} that the previous step returned, page by page: "
        "keep memory in the process, with MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=4000000000 or another "
        "allocator."
    ]


def on_noise(step: Summary, environment: Environment) -> list[str]:
    """Signs that the machine did something else meanwhile."""
    found = []
    if step.n_outliers > _MANY_OUTLIERS * step.n:
        found.append(
            f"{step.n_outliers} of {_counted(step.n, 'step')} were far slower than the others and are left out."
        )
    elif step.spread_fraction > _WIDE_SPREAD:
        found.append(f"Steps differ by {step.spread_fraction:.0%} (a standard deviation): repeat on a quiet machine.")
    return [*found, *on_load(environment)]


def on_load(environment: Environment) -> tuple[str, ...]:
    """Whether others were at work before the run."""
    load, n_cores = environment.load_average, environment.n_cores
    if load is None or load <= n_cores:
        return ()
    cores = "1 core" if n_cores == 1 else f"{n_cores} cores"
    return (f"The machine was busy before the measurement: a load of {load:g} on {cores}.",)


def _counted(n: int, what: str) -> str:
    return f"1 {what}" if n == 1 else f"{n} {what}{'es' if what.endswith('ch') else 's'}"
