"""What `traincast records --spread` shows: equal measurements, again on one machine and on others of its kind."""

from __future__ import annotations

import math
from collections.abc import Sequence

from traincast.records.spread import Spread
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Column, Table
from traincast.units import show_percent, show_things

_COLUMNS = (
    Column(key="what", header="measured", show="name"),
    Column(key="device", header="device", show="name"),
    Column(key="n_machines", header="machines", show="integer"),
    Column(key="n", header="records", show="integer"),
    Column(key="median_s", header="median", show="duration"),
    Column(key="within_fraction", header="within a machine", show="percent"),
    Column(key="between_fraction", header="between machines", show="percent"),
    Column(key="slowest_over_fastest", header="slowest / fastest machine", show="ratio"),
)
_MOST_BARS = 12


def document_of(store: str, found: Sequence[Spread]) -> Document:
    several = [one for one in found if one.n_machines > 1]
    return Document(
        title=f"Spread of equal measurements in '{store}'",
        verdict=_verdict(found, several),
        tables=(Table(title="Spread", columns=_COLUMNS, rows=tuple(_row(one) for one in found), notes=(_WORDS,)),),
        charts=(_chart(several),) if several else (),
    )


_WORDS = (
    "Standard deviations of log times, as percentages: within a machine of one measurement from the next, between "
    "machines of what their means differ beyond that."
)


def _fraction(log_sd: float | None) -> float | None:
    return None if log_sd is None else math.expm1(log_sd)


def _row(one: Spread) -> tuple[object, ...]:
    own = {"within_fraction": _fraction(one.within_log_sd), "between_fraction": _fraction(one.between_log_sd)}
    return tuple(own[column.key] if column.key in own else getattr(one, column.key) for column in _COLUMNS)


def _verdict(found: Sequence[Spread], several: Sequence[Spread]) -> str:
    measured = f"{show_things(len(found), 'question')} measured more than once"
    if not several:
        return f"{measured}, all on one machine each: nothing is known of other machines."
    widest = max(several, key=lambda one: one.slowest_over_fastest or 1.0)
    ratio = show_percent((widest.slowest_over_fastest or 1.0) - 1)
    return (
        f"{measured}, {len(several)} of them on several machines. Widest: {widest.what} on {widest.n_machines} "
        f"machines with {widest.device}, the slowest {ratio} above the fastest. A forecast that knows only the "
        "device's name errs by that."
    )


def _chart(several: Sequence[Spread]) -> Chart:
    shown = several[:_MOST_BARS]
    machines = list(dict.fromkeys(name for one in shown for name in one.by_machine_s))
    return Chart(
        title="Median by machine, over the median of all",
        kind="bar",
        series=tuple(
            Series(
                name=machine,
                x=[one.what for one in shown],
                y=[one.by_machine_s[machine] / one.median_s if machine in one.by_machine_s else None for one in shown],
            )
            for machine in machines
        ),
        x_label="",
        y_label="time / median",
        y_show="ratio",
    )
