"""The charts of docs/layer_sums.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from traincast.report.chart import Chart, ReferenceLine, Series


class Sum(Protocol):
    """What a chart needs of a model at one batch size."""

    data: str
    batch: int
    step_s: float

    @property
    def ratio(self) -> float: ...

    @property
    def measured_ratio(self) -> float: ...

    def causes_s(self) -> dict[str, float]: ...


def charts(sums: Sequence[Sum], constant: float) -> dict[str, Chart]:
    return {"layer_sum_ratio": ratio_chart(sums, constant), "layer_sum_causes": causes_chart(sums)}


def ratio_chart(sums: Sequence[Sum], constant: float) -> Chart:
    series = []
    for data in dict.fromkeys(each.data for each in sums):
        rows = [each for each in sums if each.data == data]
        batches = [each.batch for each in rows]
        series.append(Series(name=f"{data}, measured", x=batches, y=[each.measured_ratio for each in rows]))
        series.append(Series(name=f"{data}, ours (batch 8 fitted)", x=batches, y=[each.ratio for each in rows]))
    return Chart(
        title="Sum of lone layers over the whole model, P100",
        kind="line",
        series=tuple(series),
        x_label="batch size",
        y_label="ratio",
        reference_lines=(ReferenceLine(value=constant, label="the project's constant"),),
    )


def causes_chart(sums: Sequence[Sum]) -> Chart:
    places = [f"{each.data} {each.batch}" for each in sums]
    parts = [{name: seconds / each.step_s for name, seconds in each.causes_s().items()} for each in sums]
    return Chart(
        title="What the sum of lone layers is made of, in units of the whole model (ours)",
        kind="stacked_bar",
        series=tuple(Series(name=name, x=places, y=[part[name] for part in parts]) for name in parts[0]),
        x_label="model and batch size",
        y_label="part of the sum (whole model: 1)",
    )
