"""Devices of one die: what multiplies matrices is the same, so rates differ by clock and processors only.

A forecast that is faster on one of two such devices must have found the reason in clock, processors, memory or power.
"""

import pytest

from traincast.hardware.catalog import all_devices

DEVICES = {device.name: device for device in all_devices() if device.die}
DIES = sorted({device.die for device in DEVICES.values()})

# GeForce multiplies at half rate when it accumulates in fp32, which is what the table holds (fp4 is not halved).
# A10G and L40 are printed at half the rate of other cards with their die, for no reason that the vendor gives.
HALF_RATE = (
    "RTX-2070",
    "RTX-2080Ti",
    "RTX-3070",
    "RTX-3080",
    "RTX-3090",
    "RTX-4090",
    "RTX-5090",
    "A10G",
    "L40",
)
CAPPED = ("H20-SXM5-96GB",)  # rates held down for export, below what its processors could do
HALVED = ("tf32_flop_per_s", "fp16_flop_per_s", "bf16_flop_per_s", "fp8_flop_per_s")


def flop_per_clock(device, field):
    """Of one multiprocessor, as if GeForce were not halved; none where something is not known."""
    clock_hz = device.boost_clock_hz
    if field != "fp32_flop_per_s":
        clock_hz = device.peak_clock_hz or clock_hz
    rate = getattr(device, field)
    if rate is None or clock_hz is None or device.n_sm is None:
        return None
    full = 2 if device.name in HALF_RATE and field in HALVED else 1
    return full * rate / (device.n_sm * clock_hz)


@pytest.mark.parametrize("field", ["fp32_flop_per_s", *HALVED, "fp4_flop_per_s"])
@pytest.mark.parametrize("die", DIES)
def test_devices_of_one_die_do_the_same_in_a_clock(die, field):
    siblings = [device for device in DEVICES.values() if device.die == die]
    found = {device.name: flop_per_clock(device, field) for device in siblings if device.name not in CAPPED}
    known = {name: flop for name, flop in found.items() if flop is not None}
    assert known == {name: pytest.approx(max(known.values()), rel=0.02) for name in known}


@pytest.mark.parametrize("die", DIES)
def test_devices_of_one_die_are_made_alike(die):
    siblings = [device for device in DEVICES.values() if device.die == die]
    assert len({(device.vendor, device.arch, device.process_nm) for device in siblings}) == 1


@pytest.mark.parametrize("name", HALF_RATE)
def test_a_halved_rate_is_said_beside_it(name):
    assert any(word in DEVICES[name].notes for word in ("with fp32 accumulate", "half"))


@pytest.mark.parametrize("name", sorted(DEVICES))
def test_narrower_products_are_never_slower(name):
    device = DEVICES[name]
    rates = [device.tf32_flop_per_s, device.bf16_flop_per_s, device.fp8_flop_per_s, device.fp4_flop_per_s]
    known = [rate for rate in rates if rate]
    assert known == sorted(known)


def test_the_tensor_rate_of_an_h100_is_528_tensor_cores_at_1830_mhz():
    h100 = DEVICES["H100-SXM5-80GB"]
    assert h100.bf16_flop_per_s == pytest.approx(528 * 1024 * 1830e6, rel=1e-4)
    assert (h100.peak_clock_hz, h100.boost_clock_hz) == (1830e6, 1980e6)


def test_the_chip_of_a_gh200_is_that_of_an_h200():
    """The module's power is for its CPU too: what the GPU has is not more than elsewhere."""
    fields = ("n_sm", "boost_clock_hz", "peak_clock_hz", "bf16_flop_per_s", "tdp_w", "process_nm", "l2_bytes")
    gh200, h200 = DEVICES["GH200-96GB"], DEVICES["H200-SXM"]
    assert {field: getattr(gh200, field) for field in fields} == {field: getattr(h200, field) for field in fields}
