"""Names of reference lines: no two of them lie on each other, however narrow the chart."""

import pytest

from traincast.report.chart import Chart, ReferenceLine, Series
from traincast.report.figure import to_figure


def names_of(*lines, is_log=False):
    series = (Series(name="plans", x=[1.0, 100.0], y=[1.0, 100.0]),)
    chart = Chart(
        title="t",
        kind="scatter",
        series=series,
        x_label="x",
        y_label="y",
        log_x=is_log,
        log_y=is_log,
        reference_lines=lines,
    )
    return {name["text"]: name for name in to_figure(chart, with_title=False)["layout"]["annotations"]}


def deadline(at):
    return ReferenceLine(value=at, label="deadline", axis="x")


@pytest.mark.parametrize(("budget", "end"), [(90.0, 0), (10.0, 1)])
def test_a_deadline_has_its_name_in_the_half_that_the_budget_leaves_free(budget, end):
    names = names_of(deadline(50.0), ReferenceLine(value=budget, label="budget"))
    assert (names["deadline"]["y"], names["deadline"]["yanchor"]) == (end, "top" if end else "bottom")


@pytest.mark.parametrize(("is_log", "end"), [(False, 1), (True, 0)])
def test_on_a_log_axis_the_middle_is_that_of_the_drawing(is_log, end):
    names = names_of(deadline(50.0), ReferenceLine(value=20.0, label="budget"), is_log=is_log)
    assert names["deadline"]["y"] == end


@pytest.mark.parametrize(("at", "side"), [(99.0, "right"), (2.0, "left")])
def test_a_name_does_not_run_over_the_edge(at, side):
    assert names_of(deadline(at))["deadline"]["xanchor"] == side


def test_upright_lines_that_are_near_each_other_have_names_in_rows():
    names = names_of(deadline(50.0), ReferenceLine(value=50.5, label="now", axis="x"))
    assert names["deadline"]["yshift"] == 0
    assert names["now"]["yshift"] <= -14
