"""Lines with a band around them, and points beside lines."""

import pytest

from traincast.report.chart import Chart, Series
from traincast.report.figure import to_figure


def chart(*series):
    return Chart(title="t", kind="line", series=series, x_label="step", y_label="loss")


def test_a_band_goes_along_its_upper_edge_and_back_along_the_lower_behind_the_line():
    line = Series(name="forecast", x=[1, 2], y=[3.0, 2.0], low=[2.5, 1.0], high=[3.5, 3.0])
    band, drawn = to_figure(chart(line), with_title=False)["data"]
    assert band["x"] == [1, 2, 2, 1]
    assert band["y"] == [3.5, 3.0, 1.0, 2.5]
    assert band["fill"] == "toself"
    assert drawn["y"] == [3.0, 2.0]


def test_measured_points_are_dots_in_a_chart_of_lines():
    dots = Series(name="logged", x=[1, 2], y=[3.0, 2.0], is_dots=True)
    (drawn,) = to_figure(chart(dots), with_title=False)["data"]
    assert drawn["mode"] == "markers"


def test_a_band_needs_both_edges_for_every_point():
    with pytest.raises(ValueError, match="2 y, 1 low, 2 high"):
        Series(name="x", x=[1, 2], y=[1, 2], low=[1], high=[1, 2])
