"""Points that are as large as what they stand for."""

import pytest

from traincast.report.chart import Chart, Series
from traincast.report.figure import to_figure


def test_area_follows_the_size_and_lines_beside_such_points_have_no_marks():
    dots = Series(name="ops", x=[1.0, 2.0, 3.0], y=[1.0, 2.0, 3.0], sizes=[0.0, 0.25, 1.0], is_dots=True)
    roof = Series(name="roof", x=[1.0, 3.0], y=[3.0, 3.0])
    chart = Chart(title="t", kind="line", series=(roof, dots), x_label="x", y_label="y")
    line, points = to_figure(chart, with_title=False)["data"]
    assert line["mode"] == "lines"
    small, middle, large = points["marker"]["size"]
    assert 0 < small < middle < large
    assert middle == pytest.approx((small + large) / 2)


def test_each_point_has_a_size_or_none_has():
    with pytest.raises(ValueError, match="2 y, 1 sizes"):
        Series(name="ops", x=[1.0, 2.0], y=[1.0, 2.0], sizes=[1.0])
