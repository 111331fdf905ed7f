"""Names beside points: as many as can be read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.report.chart import Chart, Series
from traincast.report.figure import to_figure
from traincast.report.labels import readable

PLACES = st.floats(min_value=1.0, max_value=1e6)


def test_points_far_apart_all_have_their_names():
    shown = readable([(1.0, 1.0, "a"), (2.0, 3.0, "b"), (3.0, 2.0, "c")], log_x=False, log_y=False)
    assert [name for name, _ in shown] == ["a", "b", "c"]


def test_a_name_goes_to_the_side_that_is_free():
    points = [(1.0, 1.0, "left"), (1.2, 1.0, "right"), (9.0, 9.0, "far")]
    shown = readable(points, log_x=False, log_y=False)
    assert shown[1] == ("right", "middle right")
    assert shown[0][1] != "middle right"


def test_many_points_at_one_place_do_not_have_their_names_on_one_another():
    shown = readable([(1.0, 1.0, "same")] * 50 + [(2.0, 2.0, "other")], log_x=False, log_y=False)
    assert sum(name == "same" for name, _ in shown) <= 4


@given(st.lists(st.tuples(PLACES, PLACES), min_size=1, max_size=40), st.booleans())
def test_every_point_is_answered_for_with_its_own_name_or_none(places, is_log):
    points = [(x, y, f"n{number}") for number, (x, y) in enumerate(places)]
    shown = readable(points, log_x=is_log, log_y=is_log)
    assert all(name in ("", point[2]) for (name, _), point in zip(shown, points, strict=True))


def test_a_scatter_chart_writes_the_names_and_what_is_missing_has_none():
    series = Series(name="s", x=[1.0, 2.0, 3.0], y=[1.0, None, 9.0], labels=["<a>", "b", "c"])
    chart = Chart(title="t", kind="scatter", series=(series,), x_label="x", y_label="y")
    (trace,) = to_figure(chart, with_title=False)["data"]
    assert trace["mode"] == "markers+text"
    assert trace["text"] == ["&lt;a&gt;", "", "c"]


def test_labels_belong_to_points():
    with pytest.raises(ValueError, match="1 y, 2 labels"):
        Series(name="s", x=[1.0], y=[1.0], labels=["a", "b"])
