"""What a device can do: peaks by precision, fallbacks, and values that cannot be right."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.hardware.device import PRECISIONS, Device


def a_device(**changes):
    """Fp32 10, fp16 tensor 80 Tflop/s, no bf16 or tf32 units; 1 TB/s: like a V100, in round numbers."""
    figures = {
        "name": "round",
        "fp32_flop_per_s": 10e12,
        "tf32_flop_per_s": 0.0,
        "fp16_flop_per_s": 80e12,
        "bf16_flop_per_s": 0.0,
        "memory_bytes": 16 * 2**30,
        "memory_bytes_per_s": 1e12,
    }
    return Device(**{**figures, **changes})


@pytest.mark.parametrize(
    ("precision", "flop_per_s", "used"),
    [
        ("fp32", 10e12, "fp32"),
        ("tf32", 10e12, "fp32"),
        ("amp-fp16", 80e12, "fp16"),
        ("amp-bf16", 10e12, "fp32"),
        ("bf16", 10e12, "fp32"),
    ],
)
def test_a_precision_without_units_of_its_own_runs_at_the_fp32_rate(precision, flop_per_s, used):
    peak = a_device().peak(precision)
    assert (peak.flop_per_s, peak.used) == (flop_per_s, used)
    assert peak.is_fallback == (peak.asked != used)
    assert a_device().peak_flop_per_s(precision) == flop_per_s


def test_matrix_units_for_fp32_give_the_fp32_rate_of_products():
    mi100_like = a_device(fp32_matrix_flop_per_s=40e12)
    assert mi100_like.peak_flop_per_s("fp32") == 40e12
    assert mi100_like.peak_flop_per_s("tf32") == 40e12


def test_the_ridge_is_where_compute_and_memory_take_equally_long():
    assert a_device().ridge_flop_per_byte("fp32") == 10
    assert a_device().ridge_flop_per_byte("amp-fp16") == 80


WITH_FALLBACK = [name for name in PRECISIONS if name != "fp8"]  # which a device has or has not


@pytest.mark.parametrize("precision", WITH_FALLBACK)
def test_an_unknown_fp32_rate_is_not_guessed(precision):
    laptop = a_device(name="laptop", fp32_flop_per_s=None, fp16_flop_per_s=None)
    with pytest.raises(InputError, match=r"The fp(32|16) rate of 'laptop' is not known"):
        laptop.peak(precision)


def test_an_unknown_tensor_rate_is_not_taken_for_missing_units():
    with pytest.raises(InputError, match="The bf16 rate of 'round' is not known"):
        a_device(bf16_flop_per_s=None).peak("amp-bf16")


def test_an_unknown_precision_is_answered_with_the_known_ones():
    with pytest.raises(InputError, match="Unknown precision 'fp4'; known are fp32, tf32, amp-fp16, amp-bf16, bf16"):
        a_device().peak("fp4")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fp32_flop_per_s", 0.0),
        ("memory_bytes", 0),
        ("memory_bytes_per_s", -1.0),
        ("fp16_flop_per_s", -1.0),
        ("tdp_w", math.nan),
        ("l2_bytes", math.inf),
        ("nvlink_bytes_per_s", -1.0),
    ],
)
def test_figures_that_cannot_be_right_are_named(field, value):
    with pytest.raises(InputError, match=f"Device 'round': {field} cannot be {value}"):
        a_device(**{field: value})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": " "}, "needs a name"),
        ({"kind": "tpu"}, "'gpu', 'cpu' or 'accelerator', not 'tpu'"),
        ({"memory_bytes": None}, "needed"),
    ],
)
def test_a_device_has_a_name_a_kind_and_memory(change, words):
    with pytest.raises(InputError, match=words):
        a_device(**change)


rates = st.floats(min_value=1e9, max_value=1e16)


@given(fp32=rates, tensor=st.one_of(st.just(0.0), rates), precision=st.sampled_from(WITH_FALLBACK))
def test_a_peak_is_always_one_of_the_figures_of_the_device(fp32, tensor, precision):
    device = a_device(fp32_flop_per_s=fp32, tf32_flop_per_s=tensor, fp16_flop_per_s=tensor, bf16_flop_per_s=tensor)
    peak = device.peak(precision)
    assert peak.flop_per_s == (tensor if tensor and precision != "fp32" else fp32)
    assert peak.is_fallback == (tensor == 0 and precision != "fp32")
    assert device.ridge_flop_per_byte(precision) > 0
