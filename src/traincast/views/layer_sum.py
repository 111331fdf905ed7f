"""What `traincast explain --layer-sum` shows: lone layers added up, the whole model, their ratio, and its causes."""

from __future__ import annotations

from traincast.forecasting.layer_sum import LayerSum
from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Column, Table
from traincast.units import show_duration, show_things

_TIME = Column(key="time_s", header="time", show="duration")
_SHARE = Column(key="share_fraction", header="share", show="percent")
_CONSTANT = 1.5  # what the practicum divided by, whatever the model and the batch


def document_of(found: LayerSum) -> Document:
    low, high = found.ratio_by_call
    total, whole = show_duration(found.sum_s), show_duration(found.whole_s)
    return Document(
        title=f"Lone layers of {found.model} against the whole, {found.device}, batch {found.batch_size:,}",
        subtitle=f"fp32, {found.optimizer}, layers by session.run, the whole model in Keras",
        verdict=(
            f"{show_things(len(found.layers), 'layer')} timed alone add up to {total}, a step of the whole model takes "
            f"{whole}: ratio {found.ratio:.2f} ({low:.2f} to {high:.2f} on machines with other calls), where the "
            f"practicum divided by {_CONSTANT} for every model and batch."
        ),
        tables=(
            _parts("Why the layers alone take so long", found.causes_s, found.sum_s),
            _parts("What the whole model's step is made of", found.whole_parts_s, found.whole_s),
            _layers(found),
        ),
        charts=(_chart(found),),
        notes=_notes(found),
    )


def _parts(title: str, parts: dict[str, float], total_s: float) -> Table:
    rows = [(name, seconds, seconds / total_s) for name, seconds in parts.items()]
    return Table(
        title=title,
        columns=(Column(key="part", header="", show="name"), _TIME, _SHARE),
        rows=(*rows, ("together", total_s, 1.0)),
    )


def _layers(found: LayerSum) -> Table:
    columns = (
        Column(key="path", header="layer", show="name"),
        Column(key="kind", header="kind", show="name"),
        _TIME,
        _SHARE,
    )
    return Table(
        title="Each layer alone",
        columns=columns,
        rows=tuple((one.path, one.kind, one.seconds, one.seconds / found.sum_s) for one in found.layers),
    )


def _notes(found: LayerSum) -> tuple[str, ...]:
    notes = [
        f"A call of session.run costs {show_duration(found.call_s)} here; 116 us to 352 us on the machines measured. "
        "The model behind this errs by 0.09 in the ratio on the practicum's two networks (docs/layer_sums.md).",
        "Pooling, normalisation and the real loss are in the whole model only.",
    ]
    notes += [f"Left out of the sum: {show_things(n, 'layer')} ({why})." for why, n in found.left_out.items()]
    return tuple(notes)


_IN_CHART = {"a call per layer": "calls", "one call": "calls"}
_IN_CHART |= dict.fromkeys(("the layers themselves", "gradients of their inputs", "the device's work"), "layers")


def _for_chart(parts: dict[str, float]) -> dict[str, float]:
    """What is alike in both has one name, and so one colour."""
    joined: dict[str, float] = {}
    for name, seconds in parts.items():
        key = _IN_CHART.get(name, name)
        joined[key] = joined.get(key, 0.0) + seconds
    return joined


def _chart(found: LayerSum) -> Chart:
    x = ["layers alone", "whole model"]
    alone, whole = (_for_chart(parts) for parts in (found.causes_s, found.whole_parts_s))
    return Chart(
        title=f"Layers of {found.model} alone, and the whole",
        kind="stacked_bar",
        series=tuple(
            Series(name=name, x=x, y=[alone.get(name, 0.0), whole.get(name, 0.0)])
            for name in dict.fromkeys((*alone, *whole))
        ),
        x_label="",
        y_label="time",
        y_show="duration",
    )
