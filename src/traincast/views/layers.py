"""What the layers of a model show."""

from __future__ import annotations

from typing import Any, Literal

from traincast.forecasting.layer_table import LayerTable
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Column, Table, columns_of
from traincast.trace.trace import Trace
from traincast.units import show_count, show_duration, show_flop, show_flop_per_s, show_integer
from traincast.views.repeated_layers import Row, folded

_N_BARS = 30


def document_of(answer: LayerTable) -> Document:
    trace, batch, shape = answer.trace, answer.batch_size, answer.by
    is_listed = shape == "kind" or answer.is_cut
    rows = tuple(Row(layer.path, layer) for layer in answer.layers) if is_listed else folded(answer.layers)
    columns = [Column(key="kind", header="kind")]
    if shape == "kind":
        columns.append(Column(key="n_layers", header="layers", show="integer"))
    else:
        columns.insert(0, Column(key="path", header="layer"))
        columns += [*columns_of("input_shape: input as shape, output_shape: output as shape")]
    columns += [
        *columns_of(
            "n_parameters: parameters, forward_flop: forward, backward_flop: backward, "
            "moved_bytes: bytes moved, flop_per_byte: flop/byte, flop_fraction: share"
        )
    ]
    if answer.device is not None:
        columns.append(Column(key="ideal_s", header="ideal time", show="duration"))
    table = Table(
        title=f"Layers of {trace.name}",
        columns=tuple(columns),
        rows=tuple(tuple(_cell(answer, row, column.key) for column in columns) for row in rows),
    )
    return Document(
        title=f"{trace.name}, batch {batch}",
        verdict=_summary(trace, batch),
        tables=(table,),
        charts=(
            _chart(f"Flop of one step of {trace.name}", rows, "flop", shape=shape),
            _chart(f"Bytes that one step of {trace.name} moves", rows, "bytes", shape=shape),
        ),
        warnings=_uncounted(trace),
        notes=(*_notes(answer), *_equal(rows), *_tied(trace)),
        assumptions=tuple(f"{assumption}." for assumption in trace.assumptions),
    )


def _chart(title: str, rows: tuple[Row, ...], what: Literal["flop", "bytes"], *, shape: str) -> Chart:
    """The largest layers, forward and backward."""
    parts = ("forward", "backward")
    own = [row for row in rows if not row.layer.is_container]
    sizes = {row: sum(getattr(row.layer, f"{part}_{what}") for part in parts) for row in own}
    shown = sorted((row for row, size in sizes.items() if size), key=lambda row: -sizes[row])[:_N_BARS]
    names = [row.layer.kind if shape == "kind" else _name(row) or row.layer.kind for row in shown]
    return Chart(
        title=title + (f", the {_N_BARS} largest layers" if len(shown) == _N_BARS else ""),
        kind="stacked_bar",
        series=tuple(
            Series(name=part, x=names, y=[getattr(row.layer, f"{part}_{what}") for row in shown]) for part in parts
        ),
        x_label="kind" if shape == "kind" else "layer",
        y_label=what,
        y_show=what,
    )


def _name(row: Row) -> str:
    return f"{row.path} x {row.n_equal}" if row.n_equal > 1 else row.path


def _equal(rows: tuple[Row, ...]) -> tuple[str, ...]:
    """What a row of several layers means."""
    if all(row.n_equal == 1 for row in rows):
        return ()
    return ("Equal layers of repeated blocks are one row, with totals: 'x 16' means 16 layers.",)


def _cell(answer: LayerTable, row: Row, key: str) -> Any:
    layer = row.layer
    if key == "path":
        name = _name(row) or "(model)"
        if answer.by == "tree" and layer.path:
            name = "  " * layer.depth + _name(row).rpartition(".")[2]
        return f"{name} (tied)" if layer.n_tied_parameters else name
    if key == "ideal_s":
        return answer.ideal_s(layer)
    if key in ("input_shape", "output_shape"):
        return getattr(layer, key) or None
    return getattr(layer, key)


def _summary(trace: Trace, batch: int) -> str:
    forward, backward = trace.forward_flop(batch), trace.backward_flop(batch)
    return (
        f"{show_integer(trace.n_parameters)} parameters; forward {show_flop(forward)}, "
        f"backward {show_flop(backward)}; {show_count(forward / batch / 2)} multiply-adds per sample forward."
    )


def _notes(answer: LayerTable) -> tuple[str, ...]:
    trace, batch, device, precision = answer.trace, answer.batch_size, answer.device, answer.precision
    notes = [
        "A multiply-add counts as 2 flop; only matrix products and convolutions count. Bytes are in the captured dtype."
    ]
    if device is not None:
        peak = device.peak(precision)
        ideal_s = (trace.forward_flop(batch) + trace.backward_flop(batch)) / peak.flop_per_s
        notes.append(
            f"Ideal time: flop over the peak of {device.name} ({show_flop_per_s(peak.flop_per_s)}, {peak.used}"
            + (f", as it has no {peak.asked} units" if peak.is_fallback else "")
            + f"). A step takes {show_duration(ideal_s)} ({batch / ideal_s:,.0f} samples/s); real devices take longer."
        )
    return tuple(notes)


def _uncounted(trace: Trace) -> tuple[str, ...]:
    if not trace.uncosted_ops:
        return ()
    covered = f"{100 * trace.covered_flop_fraction:.1f} %"
    return (f"Not counted: {', '.join(trace.uncosted_ops)}; counted ops move {covered} of the bytes.",)


def _tied(trace: Trace) -> tuple[str, ...]:
    """Every layer that shares weights, whichever rows are shown: sums must count them once."""
    return tuple(
        f"{layer.path} shares {layer.n_tied_parameters:,} parameters with {', '.join(layer.tied_to)}: "
        "sums count them once."
        for layer in trace.layers(1)
        if layer.n_tied_parameters
    )
