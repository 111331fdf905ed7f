"""What a board's power leaves of its peak: clock and voltage fall together, and no rate passes the peak."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.hardware.catalog import find_device
from traincast.hardware.device_table import builtin_devices
from traincast.kernels.ceilings import DeviceFigures, at_most, ceilings, within_power
from traincast.kernels.coefficients import Coefficients, shipped
from traincast.kernels.kernels_of import SIZES
from traincast.kernels.seconds import kernel_seconds, plan_of
from traincast.kernels.ways import Kinds
from traincast.kernels.work import Work

COEFFICIENTS = shipped().coefficients
SQUARE = Coefficients(COEFFICIENTS.values | {"power_per_rate": np.log(2.0)})
A100, H100, B200 = (find_device(name) for name in ("A100-SXM4-80GB", "H100-SXM5-80GB", "B200"))


def product_flop_per_s(device, *, side=8192.0, item=2, coefficients=COEFFICIENTS):
    """Of a large square product of operands with so many bytes."""
    sizes = {"b": 1.0, "m": side, "n": side, "k": side, "flop": 2 * side**3, "bytes": 3 * item * side**2}
    false = np.zeros(1, dtype=bool)
    kinds = Kinds(
        work=np.array([Work.LINEAR]),
        item=np.array([item]),
        is_bf16=false,
        is_winograd=false,
        is_unaligned=false,
        is_masked=false,
        group_width=np.ones(1),
    )
    limits = ceilings(DeviceFigures.of(device), coefficients)
    plan = plan_of(kinds, limits, coefficients, layout="nchw", tf32=False)
    full = np.array([[sizes.get(name, 0.0)] for name in SIZES])
    return 2 * side**3 / float(kernel_seconds(plan, full).seconds[0])


def test_with_a_quarter_of_the_power_it_asks_for_a_unit_keeps_half_of_its_rate():
    # Power goes with the clock and the square of the voltage; here with the square of the rate.
    assert within_power(100.0, 25.0, SQUARE) == pytest.approx(50.0)


def test_below_its_power_limit_a_unit_keeps_its_rate():
    assert within_power(100.0, 150.0, SQUARE) == pytest.approx(100.0)


def test_the_smaller_of_two_limits_counts():
    assert at_most(3.0, 2.0) == pytest.approx(2.0)
    assert at_most(2.0, 3.0) == pytest.approx(2.0)


@given(st.floats(1.0, 1e3), st.floats(1.0, 1e3), st.floats(1.0, 2.0))
def test_more_power_or_a_higher_peak_never_slows_a_unit(rate, limit, more):
    base = within_power(rate, limit, COEFFICIENTS)
    assert within_power(rate, limit * more, COEFFICIENTS) >= base * (1 - 1e-12)
    assert within_power(rate * more, limit, COEFFICIENTS) >= base * (1 - 1e-12)
    assert base <= rate


@pytest.mark.parametrize("device", [d for d in builtin_devices() if d.kind == "gpu"], ids=lambda device: device.name)
def test_no_large_product_passes_the_peak_of_any_gpu(device):
    for precision, item in (("fp32", 4), ("amp-fp16", 2)):
        if device.fp32_flop_per_s is None or (item == 2 and not device.fp16_flop_per_s):
            continue
        assert product_flop_per_s(device, item=item) < device.peak_flop_per_s(precision)


def test_the_same_chip_with_less_power_is_slower_and_with_faster_memory_as_fast():
    assert product_flop_per_s(replace(H100, tdp_w=500.0)) < product_flop_per_s(H100)
    assert product_flop_per_s(find_device("H200-SXM")) == pytest.approx(product_flop_per_s(H100), rel=0.01)


def test_graphics_memory_leaves_less_power_for_arithmetic():
    stacked = replace(find_device("T4"), memory_kind="HBM2")
    assert product_flop_per_s(stacked, item=4) > product_flop_per_s(find_device("T4"), item=4)


def test_wider_matrix_units_reach_a_smaller_share_of_their_peak():
    unlimited = [replace(device, tdp_w=None) for device in (A100, H100, B200)]
    shares = [product_flop_per_s(device) / device.peak_flop_per_s("amp-fp16") for device in unlimited]
    assert shares == sorted(shares, reverse=True)
    assert 0.7 < shares[-1] < shares[0] < 1.0


def test_matrix_units_before_ampere_reach_less_of_their_peak():
    """Of a V100 with all the power that it can use; scalar units do not know the difference."""
    volta = replace(find_device("V100-SXM2-32GB"), tdp_w=None)
    behind = Coefficients(COEFFICIENTS.values | {"matrix_volta": COEFFICIENTS["matrix_volta"] + np.log(0.5)})
    for device, item, ratio in ((volta, 2, 2.0), (volta, 4, 1.0), (replace(A100, tdp_w=None), 2, 1.0)):
        fast, slow = (product_flop_per_s(device, item=item, coefficients=each) for each in (COEFFICIENTS, behind))
        assert fast / slow == pytest.approx(ratio, rel=0.02)


def test_eight_bit_products_are_faster_than_sixteen_bit_ones_by_at_most_their_peaks():
    for device in (H100, B200):
        ratio = product_flop_per_s(device, item=1) / product_flop_per_s(device, item=2)
        assert 1.2 < ratio <= device.fp8_flop_per_s / device.bf16_flop_per_s
