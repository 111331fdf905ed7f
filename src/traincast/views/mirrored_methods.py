"""What `traincast explain --strategy mirrored --layer-sum` shows: three methods and ours, beside a measured step."""

from __future__ import annotations

from traincast.forecasting.mirrored_methods import MethodStep, MirroredMethods
from traincast.report.chart import Chart, ReferenceLine, Series
from traincast.report.document import Document
from traincast.report.table import Cell, Column, Table
from traincast.units import show_duration, show_percent


def document_of(found: MirroredMethods) -> Document:
    has_measured = found.measured_s is not None
    columns = [
        Column(key="method", header="method", show="name"),
        Column(key="what", header="what it adds up"),
        Column(key="step_s", header="step", show="duration"),
    ]
    if has_measured:
        columns += [
            Column(key="measured_s", header="measured", show="duration"),
            Column(key="error_fraction", header="error", show="percent"),
        ]
    return Document(
        title=f"{found.model} under MirroredStrategy on {found.place}, batch {found.batch_size:,}",
        subtitle=f"fp32, {found.optimizer}, {found.batch_size_per_device:,} samples each, {found.n_layers} layers",
        verdict=_verdict(found),
        tables=(Table(title="Methods", columns=tuple(columns), rows=tuple(_row(found, one) for one in found.methods)),),
        charts=(_chart(found),),
        notes=_NOTES,
    )


_NOTES = (
    "Times of layers are our predictions in all methods, where the practicum had networks trained on its benchmarks.",
    "Under the strategy Keras does its work around a step once per replica: method 1 pays that for every layer, the "
    "whole model once. The practicum's own benchmarks also held the start of an epoch: its method 1 said hundreds of "
    "ms.",
    "Method 2 and 3 reduce the gradients of the last layer only; MirroredStrategy reduces those of all layers.",
)


def _row(found: MirroredMethods, one: MethodStep) -> tuple[Cell, ...]:
    beside = () if found.measured_s is None else (found.measured_s, found.error_fraction(one))
    return (one.name, one.what, one.step_s, *beside)


def _verdict(found: MirroredMethods) -> str:
    ours = found.methods[-1]
    low, high = (show_duration(seconds) for seconds in found.ours_interval_s)
    first = f"Ours: {show_duration(ours.step_s)} (p10-p90: {low} to {high})."
    told = [f"{one.name} {show_duration(one.step_s)}" for one in found.methods[:-1]]
    sentence = f"{first} The practicum's: {', '.join(told)}."
    if found.measured_s is None:
        return sentence
    errors = {one.name: abs(one.step_s / found.measured_s - 1) for one in found.methods}
    best = min(errors, key=errors.__getitem__)
    measured = show_duration(found.measured_s)
    return f"{sentence} Measured: {measured}; nearest is {best}, off by {show_percent(errors[best])}."


def _chart(found: MirroredMethods) -> Chart:
    measured = found.measured_s
    return Chart(
        title=f"Steps of {found.model} by method",
        kind="bar",
        series=(Series(name="step", x=[one.name for one in found.methods], y=[one.step_s for one in found.methods]),),
        x_label="",
        y_label="step",
        y_show="duration",
        reference_lines=() if measured is None else (ReferenceLine(value=measured, label="measured"),),
    )
