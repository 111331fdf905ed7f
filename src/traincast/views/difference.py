"""What `traincast forecast --compare` and `--against` add: the earlier forecast beside this one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.report.table import Column, Row, Table
from traincast.units import show_bytes, show_duration, show_energy, show_kg, show_ratio, show_usd

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincast.planning.difference import Change, Difference

_SHOWN: dict[str, tuple[str, Callable[[float], str]]] = {
    "total_s": ("total", show_duration),
    "cost_usd": ("cost", show_usd),
    "step_s": ("step", show_duration),
    "samples_per_s": ("samples/s", show_ratio),
    "peak_memory_bytes": ("peak memory", show_bytes),
    "energy_j": ("energy", show_energy),
    "co2_kg": ("CO2", show_kg),
    "updates_to_target": ("updates to the target", show_ratio),
    "to_target_s": ("time to the target", show_duration),
    "cost_to_target_usd": ("cost to the target", show_usd),
}


def difference_table(difference: Difference, source: str) -> Table:
    """Numbers first, then what bounds it, then the settings that are not the same."""
    rows: list[Row] = [_cells(change) for change in difference.numbers if change.after is not None or change.before]
    if difference.bound_by[0] != difference.bound_by[1]:
        rows.append(("bound by", *difference.bound_by, None, None))
    if difference.fits[0] != difference.fits[1]:
        rows.append(("fits", *("yes" if fits else "NO" for fits in difference.fits), None, None))
    rows += [(name, _told(before), _told(after), None, None) for name, before, after in difference.settings]
    return Table(
        title=f"Against {source}: {difference.headline}",
        columns=(
            Column(key="what", header="", show="name"),
            Column(key="before", header="before", show="name"),
            Column(key="after", header="now", show="name"),
            Column(key="difference", header="change", show="name"),
            Column(key="relative", header="in %", show="name"),
        ),
        rows=tuple(rows),
    )


def _told(setting: object) -> str | None:
    return None if setting is None else str(setting)


def _cells(change: Change) -> Row:
    title, show = _SHOWN[change.name]
    before, after = (None if value is None else show(value) for value in (change.before, change.after))
    if change.difference is None:
        return title, before, after, None, None
    sign = "+" if change.difference > 0 else "-" if change.difference < 0 else ""
    relative = None if change.relative is None else f"{100 * change.relative:+.1f} %"
    return title, before, after, f"{sign}{show(abs(change.difference))}", relative
