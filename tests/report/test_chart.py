"""Charts: raw series in, axes in one readable unit out."""

import json
import math

import numpy as np
import pytest

from traincast.report.chart import Chart, ReferenceLine, Series
from traincast.report.figure import to_figure

GIB = 2**30


def a_chart(**changes):
    series = (
        Series(name="weights", x=[1, 2], y=[1 * GIB, 1 * GIB]),
        Series(name="rest", x=[1, 2], y=[2 * GIB, 5 * GIB]),
    )
    settings = {"title": "Memory", "kind": "line", "series": series, "x_label": "batch", "y_label": "memory"}
    return Chart(**{**settings, "y_show": "bytes", **changes})


def test_an_axis_takes_the_unit_of_its_largest_value():
    figure = to_figure(a_chart(), with_title=False)
    assert figure["layout"]["yaxis"]["title"]["text"] == "memory (GiB)"
    assert figure["data"][1]["y"] == [2.0, 5.0]
    assert figure["layout"]["xaxis"]["title"]["text"] == "batch"


@pytest.mark.parametrize(
    ("show", "values", "label", "shown"),
    [
        ("duration", [0.001, 0.5], "y (ms)", [1.0, 500.0]),
        ("flop_per_s", [1e12, 2e12], "y (Tflop/s)", [1.0, 2.0]),
        ("bytes_per_s", [1e9, 2e9], "y (GB/s)", [1.0, 2.0]),
        ("percent", [0.25, 0.5], "y (%)", [25.0, 50.0]),
        ("usd", [1.0, 2.0], "y (USD)", [1.0, 2.0]),
        ("ratio", [1e6, 2e6], "y", [1e6, 2e6]),
        ("bytes", [None, math.nan], "y (B)", [None, None]),
    ],
)
def test_units_of_axes(show, values, label, shown):
    chart = a_chart(series=(Series(name="s", x=[1, 2], y=values),), y_label="y", y_show=show)
    figure = to_figure(chart, with_title=False)
    assert figure["layout"]["yaxis"]["title"]["text"] == label
    assert figure["data"][0]["y"] == pytest.approx(shown, nan_ok=True)


def test_a_stack_is_measured_by_its_height():
    half = [600 * 2**20, 600 * 2**20]
    series = tuple(Series(name=name, x=[1, 2], y=half) for name in "ab")
    for kind, unit in (("line", "MiB"), ("stacked_area", "GiB"), ("stacked_bar", "GiB")):
        figure = to_figure(a_chart(kind=kind, series=series), with_title=False)
        assert figure["layout"]["yaxis"]["title"]["text"] == f"memory ({unit})"


def test_every_kind_is_drawn_as_what_it_is():
    figures = {
        kind: to_figure(a_chart(kind=kind), with_title=False)
        for kind in ("line", "bar", "stacked_bar", "stacked_area", "scatter")
    }
    assert {kind: figure["data"][0]["type"] for kind, figure in figures.items()} == {
        "line": "scatter",
        "bar": "bar",
        "stacked_bar": "bar",
        "stacked_area": "scatter",
        "scatter": "scatter",
    }
    assert figures["stacked_bar"]["layout"]["barmode"] == "stack"
    assert figures["bar"]["layout"]["barmode"] == "group"
    assert "stackgroup" in figures["stacked_area"]["data"][0]
    assert figures["scatter"]["data"][0]["mode"] == "markers"


def test_reference_lines_share_the_unit_and_know_log_axes():
    line = ReferenceLine(value=16 * GIB, label="T4")
    layout = to_figure(a_chart(reference_lines=(line,)), with_title=False)["layout"]
    assert (layout["shapes"][0]["y0"], layout["annotations"][0]["y"]) == (16.0, 16.0)
    layout = to_figure(a_chart(reference_lines=(line,), log_y=True), with_title=False)["layout"]
    assert (layout["shapes"][0]["y0"], layout["annotations"][0]["y"]) == (16.0, pytest.approx(math.log10(16)))
    layout = to_figure(a_chart(reference_lines=(ReferenceLine(value=2, label="b", axis="x"),)), with_title=False)[
        "layout"
    ]
    assert (layout["shapes"][0]["x0"], layout["annotations"][0]["x"]) == (2, 2)


def test_a_diagonal_is_where_y_equals_x_and_gives_both_axes_one_unit():
    series = (Series(name="rows", x=[0.002, 0.5], y=[0.003, 2.0]),)
    axes = {"x_show": "duration", "y_show": "duration", "series": series}
    layout = to_figure(a_chart(diagonal=True, **axes), with_title=False)["layout"]
    (line,) = layout["shapes"]
    assert (line["x0"], line["x1"]) == (line["y0"], line["y1"]) == (pytest.approx(2), pytest.approx(500))
    assert [layout[axis]["title"]["text"] for axis in ("xaxis", "yaxis")] == ["batch (ms)", "memory (ms)"]
    layout = to_figure(a_chart(**axes), with_title=False)["layout"]
    assert (layout["shapes"], layout["yaxis"]["title"]["text"]) == ([], "memory (s)")


def test_names_that_need_two_rows_get_room_below_the_title():
    few = tuple(Series(name=f"method {number}", x=[1], y=[1]) for number in range(3))
    many = tuple(Series(name=f"a method with a long name {number}", x=[1], y=[1]) for number in range(7))
    room = [to_figure(a_chart(series=s), with_title=True)["layout"]["margin"]["t"] for s in (few, many)]
    assert room[0] < room[1]


def test_log_axes_are_log():
    layout = to_figure(a_chart(log_x=True), with_title=False)["layout"]
    assert (layout["xaxis"].get("type"), layout["yaxis"].get("type")) == ("log", None)


def test_a_point_says_its_value_or_its_own_text():
    assert to_figure(a_chart(), with_title=False)["data"][1]["hovertext"] == [
        "1.00: 2.00 GiB",
        "2.00: 5.00 GiB",
    ]
    own = a_chart(series=(Series(name="s", x=["conv"], y=[1.0], text=["7x7"]),))
    assert to_figure(own, with_title=False)["data"][0]["hovertext"] == ["7x7"]


def test_names_are_not_read_as_markup():
    chart = a_chart(title="<b>t", series=(Series(name="<i>", x=["<a>"], y=[1.0]),))
    text = json.dumps(to_figure(chart, with_title=True))
    assert "&lt;b&gt;t" in text
    assert "<" not in text


def test_numpy_series_are_fine_and_the_title_is_optional():
    series = Series(name="s", x=np.arange(3), y=np.array([1.0, np.nan, 3.0]) * GIB)
    figure = to_figure(a_chart(series=(series,)), with_title=True)
    assert figure["data"][0]["y"] == [1.0, None, 3.0]
    assert figure["layout"]["title"]["text"] == "Memory"
    assert "title" not in to_figure(a_chart(), with_title=False)["layout"]
    json.dumps(figure, allow_nan=False)


def test_a_series_must_have_as_many_x_as_y():
    with pytest.raises(ValueError, match="series 's': 1 x, 2 y, 0 texts"):
        Series(name="s", x=[1], y=[1, 2])


def test_lines_that_share_a_colour_differ_in_their_dash():
    series = tuple(Series(name=f"s{number}", x=[1, 2], y=[1.0, number]) for number in range(9))
    data = to_figure(a_chart(series=series, y_show="ratio"), with_title=False)["data"]
    assert [trace.get("line", {}).get("dash") for trace in data] == [None] * 7 + ["dash"] * 2


def test_a_reference_line_that_a_log_axis_cannot_show_is_left_out():
    lines = tuple(ReferenceLine(value=value, label=f"at {value}") for value in (0.0, -1.0, GIB))
    for log_y, shown in ((True, ["at 1073741824"]), (False, ["at 0.0", "at -1.0", "at 1073741824"])):
        layout = to_figure(a_chart(reference_lines=lines, log_y=log_y), with_title=False)["layout"]
        assert [label["text"] for label in layout["annotations"]] == shown
        assert len(layout["shapes"]) == len(shown)


@pytest.mark.parametrize(("n_bars", "gap"), [(1, 0.75), (2, 0.5), (4, 0.2), (9, 0.2)])
def test_few_bars_do_not_fill_the_chart(n_bars, gap):
    series = (Series(name="s", x=[f"bar {n}" for n in range(n_bars)], y=[1.0] * n_bars),)
    for kind in ("bar", "stacked_bar"):
        layout = to_figure(a_chart(kind=kind, series=series), with_title=False)["layout"]
        assert layout["bargap"] == pytest.approx(gap)
