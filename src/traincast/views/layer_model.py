"""What `traincast train layer-model` shows: errors on rows left out, beside those that others published."""

from __future__ import annotations

from typing import TYPE_CHECKING

from traincast.report.chart import Chart, Series
from traincast.report.document import Document
from traincast.report.table import Column, Table
from traincast.units import show_percent

if TYPE_CHECKING:
    from traincast.api.layer_model import LayerModel

_COLUMNS = (
    Column(key="kind", header="layers", show="name"),
    Column(key="n_train", header="learnt from", show="integer"),
    Column(key="n_test", header="scored on", show="integer"),
    Column(key="rmse_s", header="RMSE", show="duration"),
    Column(key="median_error_fraction", header="median error", show="percent"),
    Column(key="mean_error_fraction", header="mean error", show="percent"),
    Column(key="constant_median_error_fraction", header="roofline and a factor: median error", show="percent"),
)


def document_of(found: LayerModel) -> Document:
    from traincast.api.layer_model import PUBLISHED_RMSE_S

    told = [f"{score.kind} {show_percent(score.median_error_fraction)}" for score in found.scores]
    rmse_s = {f"ours, {score.kind}": score.rmse_s for score in found.scores} | PUBLISHED_RMSE_S
    return Document(
        title=f"Layer networks from '{found.store}'",
        subtitle=f"timed on {', '.join(found.devices)}",
        verdict=f"Median errors on rows left out: {', '.join(told)}. Weights are in {found.path}.",
        tables=(
            Table(
                title="Errors on a tenth of the rows, at random",
                columns=_COLUMNS,
                rows=tuple(tuple(getattr(one, column.key) for column in _COLUMNS) for one in found.scores),
            ),
            Table(
                title="RMSE beside those published",
                columns=(
                    Column(key="whose", header="", show="name"),
                    Column(key="rmse_s", header="RMSE", show="duration"),
                ),
                rows=tuple(rmse_s.items()),
                notes=("Published ones are of other layers on other GPUs: an RMSE follows the longest of its rows.",),
            ),
        ),
        charts=(
            Chart(
                title="RMSE of layer networks",
                kind="bar",
                series=(Series(name="RMSE", x=list(rmse_s), y=list(rmse_s.values())),),
                x_label="",
                y_label="RMSE",
                y_show="duration",
            ),
        ),
        notes=(f"Use them: traincast forecast MODEL --on DEVICE --batch N --method layerwise --weights {found.path}",),
    )
