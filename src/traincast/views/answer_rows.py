"""Rows of a whole answer beside its forecast: energy, CO2, the way to a target, and seconds by bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from traincast.report.table import Column, Row, Table
from traincast.units import show_duration, show_energy, show_kg, show_usd, show_watts, shown_or_never

if TYPE_CHECKING:
    from traincast.estimate import Estimate
    from traincast.forecasting.forecast import Forecast

_LEAST_SHOWN = 0.0005  # of the step
_SHOWN_AS = {"pipeline": "pipeline bubble"}


def energy_rows(answer: Forecast) -> list[Row]:
    """Mean power; energy and CO2 where the run has a length."""
    energy = answer.energy
    if energy is None:
        return []
    rows: list[Row] = [_row("mean power", energy.power_w, show_watts)]
    if energy.total_j is not None:
        rows.append(_row("energy", energy.total_j, show_energy))
    if energy.co2_kg is not None:
        rows.append(_row("CO2", energy.co2_kg, show_kg))
    return rows


def target_rows(answer: Forecast) -> list[Row]:
    """When the target is reached, counted from the first step."""
    there = answer.to_target
    if there is None:
        return []
    name = f"{there.metric} {there.target:g}"
    rows: list[Row] = [
        (f"chance of {name}", f"{100 * there.probability:.0f} %", None, None),
        _row(f"updates to {name}", there.updates, lambda value: f"{value:,.0f}"),
        _row(f"time to {name}", there.total_s, show_duration),
    ]
    if there.cost_usd is not None:
        rows.append(_row(f"cost to {name}", there.cost_usd, show_usd))
    return rows


def bound_table(bound_s: Mapping[str, float]) -> Table:
    """Largest first; what takes no time is left out."""
    step_s = sum(bound_s.values())
    shares = sorted(bound_s.items(), key=lambda item: -item[1])
    return Table(
        title="A step by what bounds it",
        columns=(
            Column(key="bound", header="bound by", show="name"),
            Column(key="seconds_s", header="time", show="duration"),
            Column(key="step_fraction", header="share", show="percent"),
        ),
        rows=tuple(
            (_SHOWN_AS.get(name, name), seconds, seconds / step_s)
            for name, seconds in shares
            if seconds > _LEAST_SHOWN * step_s
        ),
    )


def _row(title: str, found: Estimate, show: Callable[[float], str]) -> Row:
    return title, *(shown_or_never(value, show) for value in (found.p50, found.p10, found.p90))
