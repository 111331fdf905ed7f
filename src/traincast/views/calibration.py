"""What `traincast calibrate` shows: the machine, and the rate of every kind of work."""

from __future__ import annotations

from traincast.api.calibrating import Calibration
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Row, Show, Table, columns_of
from traincast.units import show_bytes, show_bytes_per_s, show_count, show_duration, show_flop_per_s, show_percent

# What a unit of work is called, by how the names of its prices begin.
_UNITS = {
    "flop": "flop/s",
    "bytes": "B/s",
    "element": "results/s",
    "window": "places/s",
}
_CALLS = ("phase", "call", "steps", "threads")


def document_of(found: Calibration) -> Document:
    return Document(
        title=f"This machine: {found.device.name}",
        subtitle=found.device.source,
        tables=(_machine(found), _rates(found)) if found.device.prices else (_machine(found),),
        charts=_charts(found) if found.device.prices else (),
        notes=_notes(found),
    )


def _machine(found: Calibration) -> Table:
    device, price_s = found.device, dict(found.device.prices)
    rows: list[Row] = [
        ("cores" if device.kind == "cpu" else "multiprocessors", str(device.n_sm)),
        ("memory", show_bytes(device.memory_bytes)),
        ("last cache", show_bytes(device.l2_bytes) if device.l2_bytes else None),
        ("sustained products, fp32", show_flop_per_s(found.fp32_flop_per_s) if found.fp32_flop_per_s else None),
        ("copies beyond the caches", show_bytes_per_s(found.memory_bytes_per_s)),
        ("took", show_duration(found.seconds)),
    ]
    if price_s:
        forward_s, backward_s = price_s["call.forward"] + price_s["call.module"], price_s["call.backward"]
        rows.insert(
            -1, ("one op call, forward and backward", f"{show_duration(forward_s)}, {show_duration(backward_s)}")
        )
    if device.link_bytes_per_s is not None:
        link = f"{show_bytes_per_s(device.link_bytes_per_s)}, {show_duration(device.link_latency_s or 0.0)} per message"
        rows.insert(-1, ("link between processes", link))
    if device.waiting_fraction is not None:
        rows.insert(-1, ("lost to other processes", f"{show_percent(device.waiting_fraction)} of a step"))
    if found.mean_error is not None:
        told = f"{show_percent(found.mean_error)} off on average"
        rows.insert(-1, ("benchmarks, each predicted from the others", told))
    columns = columns_of("what:, found")
    return Table(title="Machine", columns=columns, rows=tuple(rows))


def _rates(found: Calibration) -> Table:
    rows: list[Row] = []
    for work, price_s in found.device.prices:
        kind = work.partition(".")[0]
        if kind in _CALLS:
            rows.append((work, show_duration(price_s) + " each"))
        else:
            rows.append((work, show_count(1.0 / price_s, _UNITS[kind]) if price_s else "overlapped with other work"))
    columns = columns_of("work as name, rate")
    return Table(title="Rates", columns=columns, rows=tuple(rows))


def _charts(found: Calibration) -> tuple[Chart, ...]:
    return (
        _chart(found, "flop.", "products", "flop_per_s"),
        _chart(found, "bytes.", "bytes through caches and memory", "bytes_per_s"),
    )


def _chart(found: Calibration, kind: str, what: str, show: Show) -> Chart:
    shown = {
        work.removeprefix(kind): 1 / price for work, price in found.device.prices if work.startswith(kind) and price
    }
    return Chart(
        title=f"What {found.device.name} does per second: {what}",
        kind="bar",
        x_label="work",
        y_label="rate",
        y_show=show,
        series=(Series(name="rate", x=tuple(shown), y=tuple(shown.values())),),
    )


def _notes(found: Calibration) -> tuple[str, ...]:
    notes = [found.device.notes]
    if found.path is not None:
        notes += [
            f"'{found.on}' now names this profile; calibrate again after changing torch or the number of threads.",
            f"Kept in {found.path}.",
        ]
    notes += [f"Warning: {warning} Calibrate again when nothing else runs." for warning in found.warnings]
    return tuple(notes)
