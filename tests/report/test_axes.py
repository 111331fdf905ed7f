"""Axes: one unit for all values of one, and marks that can be read."""

import pytest

from traincast.report.axes import axis_of


@pytest.mark.parametrize(
    ("show", "values", "unit", "marks"),
    [
        ("flop", [3e6, 5e12], "flop", "SI"),  # 10 M to 1 T, and not 10 u of a Tflop
        ("flop_per_s", [4e12, 1.3e15], "Tflop/s", "none"),  # plotly has no prefix for 10^15
        ("duration", [2e-6, 0.5], "s", "SI"),
        ("duration", [2e-3, 0.5], "ms", "none"),
        ("duration", [60.0, 7200.0], "min", "none"),
        ("bytes", [2**10, 2**20], "KiB", "none"),
        ("integer", [1, 1000], "", "SI"),
    ],
)
def test_a_logarithmic_axis_has_a_unit_for_all_that_it_spans(show, values, unit, marks):
    axis = axis_of(values, show, is_log=True)
    assert axis.unit == unit
    assert axis.layout("x")["exponentformat"] == marks


@pytest.mark.parametrize(
    ("values", "every"), [([2.0, 8.0], None), ([3.0], "D2"), ([1.0, 500.0], "D2"), ([1.0, 1e6], 1)]
)
def test_marks_of_a_logarithmic_axis_do_not_lie_on_one_another(values, every):
    assert axis_of(values, "ratio", is_log=True).layout("x").get("dtick") == every


def test_few_whole_things_have_whole_marks():
    assert axis_of([0, 2], "integer", is_log=False).layout("devices")["dtick"] == 1
    assert "dtick" not in axis_of([0, 400], "integer", is_log=False).layout("devices")
    assert "dtick" not in axis_of([0, 2], "ratio", is_log=False).layout("speedup")


def test_an_axis_without_values_is_one_of_base_units():
    assert axis_of([], "duration", is_log=True).size == 1
    assert axis_of(["a", None, float("nan")], "flop", is_log=False).size == 1
