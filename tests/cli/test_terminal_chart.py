"""A small chart out of characters."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from traincast.cli.terminal_chart import Band, chart_lines

UP = np.arange(11.0)


def rows_with_dots(lines):
    return [number for number, line in enumerate(lines) if any(0x2800 < ord(mark) < 0x2900 for mark in line)]


def test_the_axes_name_their_ends():
    lines = chart_lines(UP * 100, UP, width=40, height=5)
    assert len(lines) == 6
    assert lines[0].startswith("10 |")
    assert lines[4].startswith(" 0 |")
    assert lines[5].split() == ["0", "1,000"]


def test_a_rising_line_goes_from_bottom_left_to_top_right():
    lines = chart_lines(UP, UP, width=44, height=4)
    first = [min(line.index(mark) for mark in line if ord(mark) > 0x2800) for line in lines[:4]]
    assert first == sorted(first, reverse=True)


def test_the_band_is_shaded_where_it_is_and_the_target_is_a_rule():
    ahead = np.linspace(10, 20, 5)
    band = Band(ahead, np.full(5, 4.0), np.full(5, 5.0), np.full(5, 6.0))
    lines = chart_lines(UP, UP, band, target=0.5, width=60, height=11)
    shaded = [number for number, line in enumerate(lines) if "░" in line]
    assert shaded == [4, 5, 6]
    assert all(line.index("░") > 28 for line in lines if "░" in line)
    assert "──────" in lines[10]
    assert lines[-1].split() == ["0", "20"]


def test_a_wild_start_does_not_press_the_rest_flat():
    y = np.r_[1e6, np.linspace(2.0, 1.0, 99)]
    assert chart_lines(np.arange(100.0), y, height=6)[0].lstrip().startswith("2 |")


@pytest.mark.parametrize("y", [[3.0], [3.0, 3.0, 3.0], [1.0, np.nan, 2.0]], ids=["one point", "constant", "a gap"])
def test_degenerate_points_are_drawn_too(y):
    assert rows_with_dots(chart_lines(np.arange(float(len(y))), np.array(y), height=5))


@given(
    y=arrays(float, st.integers(1, 60), elements=st.floats(-1e6, 1e6)),
    width=st.integers(5, 120),
    height=st.integers(2, 20),
)
def test_every_chart_has_its_height_and_fits_its_width(y, width, height):
    lines = chart_lines(np.arange(float(len(y))), y, width=width, height=height)
    assert len(lines) == height + 1
    assert max(map(len, lines[:-1])) <= max(width, 8 + 14)
    assert rows_with_dots(lines)
