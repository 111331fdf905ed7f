"""How quantities read."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast import units


@pytest.mark.parametrize(
    ("show", "value", "text"),
    [
        (units.show_count, 0, "0"),
        (units.show_count, 999, "999"),
        (units.show_count, 25_557_032, "25.6 M"),
        (units.show_integer, 25_557_032, "25,557,032"),
        (units.show_flop, 4.09e9, "4.09 Gflop"),
        (units.show_flop_per_s, 8.1e12, "8.10 Tflop/s"),
        (units.show_bytes, 17_179_869_184, "16.0 GiB"),
        (units.show_bytes, 100, "100 B"),
        (units.show_bytes_per_s, 320e9, "320 GB/s"),
        (units.show_duration, 0, "0 s"),
        (units.show_duration, 0.0123, "12.3 ms"),
        (units.show_duration, 5400, "1.50 h"),
        (units.show_duration, 4e-10, "0.40 ns"),
        (units.show_percent, 0.0712, "7.1 %"),
        (units.show_ratio, 203.125, "203"),
        (units.show_ratio, 1.5, "1.50"),
        (units.show_ratio, 0.31, "0.31"),
        (units.show_ratio, 0.0044, "0.0044"),
        (units.show_ratio, -0.0712, "-0.071"),
        (units.show_ratio, 4.4e-9, "4.4e-09"),
        (units.show_ratio, 0, "0.00"),
        (units.show_usd, 1234.5, "$1,234.50"),
        (units.show_usd, -3, "-$3.00"),
        (units.show_usd, 0.0021, "$0.0021"),
        (units.show_usd, 1e-9, "less than $0.0001"),
        (units.show_usd, 0, "$0.00"),
        (units.show_shape, (64, 3, 7, 7), "64x3x7x7"),
        (units.show_shape, (), "scalar"),
    ],
)
def test_a_quantity_reads_as_people_write_it(show, value, text):
    assert show(value) == text


@pytest.mark.parametrize("unit_for", [units.count_unit, units.bytes_unit, units.duration_unit])
@given(value=st.floats(min_value=1e-8, max_value=1e21))
def test_the_best_unit_leaves_at_least_one_of_it(unit_for, value):
    size, name = unit_for(value)
    assert name or size == 1
    assert value / size >= 0.9995 or size in (1, 1e-9)
    assert math.isfinite(value / size)
