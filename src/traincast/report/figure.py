"""A chart as a plain plotly figure: a dictionary, so that plotly's slow Python classes are not needed."""

from __future__ import annotations

import html
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from traincast.report.axes import axis_of, is_finite
from traincast.report.json_ import plain
from traincast.report.labels import readable
from traincast.report.reference_lines import DASHED, Extent, draw_lines
from traincast.report.table import show_value

if TYPE_CHECKING:
    from traincast.report.chart import Chart, Series

# Paul Tol's bright scheme: distinct for colour-blind readers, on white and on black.
COLORS = ("#4477AA", "#EE6677", "#228833", "#CCBB44", "#66CCEE", "#AA3377", "#999999")
_LEGEND_ROW_PX, _LEGEND_MARK_PX, _LETTER_PX, _LEGEND_WIDTH_PX = 30, 45, 8, 850
_LEAST_DOT_PX, _LARGEST_DOT_PX = 5.0, 34.0
_ROWS_PX, _THINNEST_BAR_PX, _THICKEST_BAR_PX = 150.0, 1.5, 14.0  # of a Gantt chart
_BAR_GAP, _WIDEST_BAR = 0.2, 0.25  # of a bar's place; of the width of the chart
_TRACE: dict[str, dict[str, Any]] = {
    "line": {"type": "scatter", "mode": "lines+markers"},
    "scatter": {"type": "scatter", "mode": "markers"},
    "gantt": {"type": "scatter", "mode": "lines"},
    "stacked_area": {"type": "scatter", "mode": "lines", "stackgroup": "all", "line": {"width": 0.5}},
    "stacked_steps": {"type": "scatter", "mode": "lines", "stackgroup": "all", "line": {"width": 0.5, "shape": "hv"}},
    "bar": {"type": "bar"},
    "stacked_bar": {"type": "bar"},
}


def to_figure(chart: Chart, *, with_title: bool) -> dict[str, Any]:
    """Data and layout for plotly. Each axis is divided by one unit, which joins its label: 'memory (GiB)'."""
    x_axis = axis_of(_x_values(chart), chart.x_show, is_log=chart.log_x)
    y_axis = axis_of(_y_values(chart), chart.y_show, is_log=chart.log_y)
    if chart.diagonal:
        y_axis = replace(y_axis, size=x_axis.size, unit=x_axis.unit)
    x_size, y_size = x_axis.size, y_axis.size
    x_extent = Extent.of(x_axis, _x_values(chart), from_zero=False)
    y_extent = Extent.of(y_axis, _y_values(chart), from_zero=chart.kind != "gantt")
    lines, line_names = draw_lines(chart, x_extent, y_extent)
    legend_px = _LEGEND_ROW_PX * _legend_rows(chart)
    layout: dict[str, Any] = {
        "xaxis": x_axis.layout(_escaped(chart.x_label)),
        "yaxis": y_axis.layout(_escaped(chart.y_label)),
        "barmode": "stack" if chart.kind == "stacked_bar" else "group",
        "colorway": list(COLORS),
        "plot_bgcolor": "#ffffff",
        "font": {"family": "system-ui, sans-serif", "size": 13},
        "hovermode": "closest",
        "showlegend": len(chart.series) > 1,
        "legend": {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "traceorder": "normal"},
        "margin": {"l": 70, "r": 20, "t": legend_px + (60 if with_title else 10), "b": 60},
        "shapes": lines + _diagonal(chart, x_size),
        "annotations": line_names,
    }
    if with_title:
        layout["title"] = {"text": _escaped(chart.title), "y": 0.97, "yanchor": "top"}
    if chart.kind in ("bar", "stacked_bar"):
        layout["bargap"] = max(_BAR_GAP, 1 - _WIDEST_BAR * len({x for series in chart.series for x in series.x}))
    else:
        layout["yaxis"]["rangemode"] = "normal" if chart.log_y or chart.kind == "gantt" else "tozero"
    data = [_trace(series, chart, x_size, y_size) for series in chart.series]
    _write_labels(data, chart)
    if chart.kind == "line":
        for trace in data[len(COLORS) :]:  # colours come again: what they mean must not
            trace["line"] = {"dash": "dash"}
        bands = [
            _band(series, COLORS[place % len(COLORS)], x_size, y_size)
            for place, series in enumerate(chart.series)
            if series.low
        ]
        for place, trace in enumerate(data):  # a band would take the next colour of the lines
            trace["line"] = {**trace.get("line", {}), "color": COLORS[place % len(COLORS)]}
        data = bands + data
    figure = {"data": data, "layout": layout}
    result: dict[str, Any] = plain(figure)
    return result


def _legend_rows(chart: Chart) -> int:
    """How many rows the names take above an image of the usual width: plotly sets them in columns of one width."""
    widest_px = max((_LEGEND_MARK_PX + _LETTER_PX * len(series.name) for series in chart.series), default=0)
    return max(1, math.ceil(len(chart.series) * widest_px / _LEGEND_WIDTH_PX))


def _trace(series: Series, chart: Chart, x_size: float, y_size: float) -> dict[str, Any]:
    texts = list(series.text) or [
        f"{show_value(x, 'text' if isinstance(x, str) else chart.x_show)}: {show_value(y, chart.y_show)}"
        for x, y in zip(series.x, series.y, strict=True)
    ]
    drawn = dict(_TRACE["scatter" if series.is_dots else chart.kind])
    if series.low or (not series.is_dots and any(other.sizes for other in chart.series)):
        drawn["mode"] = "lines"  # markers would hide the band, or be taken for points
    if chart.kind == "gantt":
        n_rows = 1 + max((y for each in chart.series for y in each.y if y is not None), default=0.0)
        drawn["line"] = {"width": min(max(_ROWS_PX / n_rows, _THINNEST_BAR_PX), _THICKEST_BAR_PX)}
    if series.sizes:
        widths = [_LEAST_DOT_PX + (_LARGEST_DOT_PX - _LEAST_DOT_PX) * math.sqrt(size) for size in series.sizes]
        drawn["marker"] = {"size": widths, "opacity": 0.75}
    return {
        **drawn,
        "name": _escaped(series.name),
        "x": [_escaped(x) if isinstance(x, str) else x / x_size for x in series.x],
        "y": [None if y is None else y / y_size for y in series.y],
        "hovertext": [_escaped(text) for text in texts],
        "hovertemplate": "%{hovertext}",
    }


def _band(series: Series, color: str, x_size: float, y_size: float) -> dict[str, Any]:
    """Once along the upper edge and back along the lower."""
    x = [_escaped(each) if isinstance(each, str) else each / x_size for each in series.x]
    edge = [*series.high, *reversed(series.low)]
    return {
        "type": "scatter",
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": f"rgba({', '.join(str(int(color[place : place + 2], 16)) for place in (1, 3, 5))}, 0.2)",
        "x": x + x[::-1],
        "y": [None if y is None else y / y_size for y in edge],
        "hoverinfo": "skip",
        "showlegend": False,
    }


def _write_labels(data: list[dict[str, Any]], chart: Chart) -> None:
    """Names beside the points of a scatter chart, as far as they can be read."""
    named = [
        (trace, place, (float(series.x[place]), y, name))
        for trace, series in zip(data, chart.series, strict=True)
        for place, (y, name) in enumerate(zip(series.y, series.labels, strict=False))
        if y is not None
    ]
    shown = readable([point for _, _, point in named], log_x=chart.log_x, log_y=chart.log_y) if named else []
    for (trace, place, _), (name, side) in zip(named, shown, strict=True):
        trace.update(mode="markers+text", textfont={"size": 11}, cliponaxis=False)
        trace.setdefault("text", [""] * len(trace["x"]))[place] = _escaped(name)
        trace.setdefault("textposition", [side] * len(trace["x"]))[place] = side


def _x_values(chart: Chart) -> list[Any]:
    lines = [line.value for line in chart.reference_lines if line.axis == "x"]
    return [*lines, *(x for series in chart.series for x in series.x)]


def _y_values(chart: Chart) -> list[Any]:
    lines = [line.value for line in chart.reference_lines if line.axis == "y"]
    if not chart.kind.startswith("stacked_"):
        return [*lines, *(y for series in chart.series for y in series.y)]
    heights: dict[Any, float] = {}
    for series in chart.series:
        for x, y in zip(series.x, series.y, strict=True):
            heights[x] = heights.get(x, 0.0) + (y if y is not None and math.isfinite(y) else 0.0)
    return [*lines, *heights.values()]


def _diagonal(chart: Chart, x_size: float) -> list[dict[str, Any]]:
    """From the least to the largest x; both axes have one unit."""
    values = [x for x in _x_values(chart) if is_finite(x)]
    if not (chart.diagonal and values):
        return []
    low, high = min(values) / x_size, max(values) / x_size
    at = {"x0": low, "x1": high, "y0": low, "y1": high}
    return [{**DASHED, "xref": "x", "yref": "y", **at}]


def _escaped(text: str) -> str:
    """Plotly reads a little HTML in its labels; names are not meant as such."""
    return html.escape(str(text), quote=False)
