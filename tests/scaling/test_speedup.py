"""Speedup, efficiency and serial fraction, each by its right name."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.scaling.speedup import (
    amdahl_speedup,
    gustafson_fraction,
    gustafson_speedup,
    karp_flatt_fraction,
    samples_per_s,
    strong_scaling,
    weak_scaling,
)

fractions = st.floats(0.0, 1.0)
counts = st.integers(2, 1024)


def test_strong_scaling_the_same_epoch_in_half_the_time_on_four_devices_is_speedup_two_and_efficiency_half():
    scaling = strong_scaling([2, 4], [60.0, 50.0], one_device_s=100.0)
    assert scaling.speedup == pytest.approx([100 / 60, 2.0])
    assert scaling.efficiency_fraction == pytest.approx([100 / 120, 0.5])
    assert scaling.warnings == ()


def test_weak_scaling_a_step_that_takes_twice_as_long_on_four_devices_is_also_speedup_two_and_efficiency_half():
    scaling = weak_scaling(4, 2.0, one_device_s=1.0)
    assert (scaling.speedup, scaling.efficiency_fraction) == (2.0, 0.5)


def test_the_same_seconds_mean_different_speedups_in_strong_and_weak_scaling():
    strong = strong_scaling(4, 1.0, one_device_s=1.0)
    weak = weak_scaling(4, 1.0, one_device_s=1.0)
    assert (strong.speedup, strong.efficiency_fraction) == (1.0, 0.25)
    assert (weak.speedup, weak.efficiency_fraction) == (4.0, 1.0)


def test_speedup_below_one_is_a_slowdown_and_stays_one():
    scaling = strong_scaling([2, 4], [67, 121], one_device_s=38)  # ResNet-18, DataParallel, batch 32, seconds an epoch
    assert scaling.speedup == pytest.approx([0.5671641791, 0.3140495868])
    assert scaling.serial_fraction == pytest.approx([(67 / 38 - 1 / 2) / (1 / 2), (121 / 38 - 1 / 4) / (3 / 4)])
    assert scaling.serial_fraction[1] > scaling.serial_fraction[0] > 1  # more than all work serial: added overhead


def test_on_one_device_there_is_nothing_serial_to_find():
    strong, weak = strong_scaling([1, 2], [1.0, 0.5], one_device_s=1.0), weak_scaling(1, 1.0, one_device_s=1.0)
    assert np.isnan(strong.serial_fraction[0])
    assert strong.serial_fraction[1] == 0.0
    assert np.isnan(weak.serial_fraction)
    assert weak.speedup == weak.efficiency_fraction == 1.0


def test_superlinear_speedup_gives_a_negative_serial_fraction_and_says_so():
    scaling = strong_scaling([2, 4], [0.4, 0.25], one_device_s=1.0)
    assert scaling.serial_fraction == pytest.approx([(0.4 - 0.5) / 0.5, 0.0])
    assert len(scaling.warnings) == 1
    assert "on 2 devices" in scaling.warnings[0]
    assert "negative there" in scaling.warnings[0]
    weak = weak_scaling(4, 0.8, one_device_s=1.0)
    assert weak.serial_fraction == pytest.approx(-1 / 3)
    assert "on 4 devices" in weak.warnings[0]


def test_throughput_counts_the_samples_of_all_devices():
    assert samples_per_s([256, 512], 0.5) == pytest.approx([512.0, 1024.0])


@pytest.mark.parametrize(("serial", "n", "amdahl", "gustafson"), [(0, 8, 8, 8), (1, 8, 1, 1), (0.5, 4, 1.6, 2.5)])
def test_amdahl_and_gustafson_by_hand(serial, n, amdahl, gustafson):
    assert amdahl_speedup(serial, n) == pytest.approx(amdahl)
    assert gustafson_speedup(serial, n) == pytest.approx(gustafson)


@given(serial=fractions, n=counts)
def test_the_serial_fraction_of_amdahls_speedup_is_the_one_it_was_made_of(serial, n):
    assert karp_flatt_fraction(amdahl_speedup(serial, n), n) == pytest.approx(serial, abs=1e-9)
    assert gustafson_fraction(gustafson_speedup(serial, n), n) == pytest.approx(serial, abs=1e-9)


@given(serial=fractions, n=counts)
def test_amdahl_never_promises_more_than_gustafson(serial, n):
    assert 1 - 1e-9 <= amdahl_speedup(serial, n) <= gustafson_speedup(serial, n) + 1e-9 * n
    assert amdahl_speedup(serial, n) <= amdahl_speedup(serial, n + 1) + 1e-9


@given(serial=fractions, n=counts, one_s=st.floats(1e-6, 1e6))
def test_efficiency_is_the_share_of_n_in_both_kinds(serial, n, one_s):
    strong = strong_scaling(n, one_s / amdahl_speedup(serial, n), one_device_s=one_s)
    weak = weak_scaling(n, n * one_s / gustafson_speedup(serial, n), one_device_s=one_s)
    for scaling in (strong, weak):
        assert scaling.efficiency_fraction == pytest.approx(scaling.speedup / n)
        assert scaling.serial_fraction == pytest.approx(serial, abs=1e-8)


@pytest.mark.parametrize("wrong", [0.0, -1.0, np.nan, np.inf])
def test_seconds_are_positive(wrong):
    with pytest.raises(InputError, match=r"Seconds on N devices must be above 0 and finite, not (0|-1|nan|inf)\."):
        strong_scaling([2, 4], [1.0, wrong], one_device_s=1.0)
    with pytest.raises(InputError, match="Seconds on one device"):
        weak_scaling(2, 1.0, one_device_s=wrong)
    with pytest.raises(InputError, match="A step's seconds"):
        samples_per_s(1, wrong)


@pytest.mark.parametrize("wrong", [0, 1.5, -2, np.inf])
def test_devices_are_counted(wrong):
    with pytest.raises(InputError, match="a whole number of at least 1, not"):
        strong_scaling(wrong, 1.0, one_device_s=1.0)


def test_a_law_needs_a_fraction():
    with pytest.raises(InputError, match=r"between 0 and 1, not -0\.2\."):
        amdahl_speedup([0.1, -0.2], 2)
    with pytest.raises(InputError, match=r"between 0 and 1, not nan\."):
        gustafson_speedup(np.nan, 2)
