"""What a step is bound by: the largest of the parts that its table shows."""

import numpy as np
import pytest

import traincast as tc
from traincast.forecasting.by_bound import largest_bounds, seconds_by_bound


def bound_by(*, compute_s=0.0, memory_s=0.0, host_s=0.0, bubble_s=0.0, exposed_s=0.0, input_wait_s=0.0):
    """Of a step with these parts."""
    device_s = compute_s + memory_s
    parts = seconds_by_bound(
        np.array([device_s + host_s + bubble_s], dtype=float),
        np.array([device_s], dtype=float),
        np.array([compute_s], dtype=float),
        bubble_s=np.array([bubble_s]),
        exposed_s=np.array([exposed_s]),
        input_wait_s=np.array([input_wait_s]),
    )
    assert sum(parts.values()) == pytest.approx(device_s + host_s + bubble_s + exposed_s + input_wait_s)
    (found,) = largest_bounds(parts)
    return found


@pytest.mark.parametrize(
    ("compute_s", "memory_s", "exposed_s", "by"),
    [
        (34, 22, 44, "communication"),
        (25, 15, 60, "communication"),
        (15, 25, 60, "communication"),
        (50, 30, 20, "compute"),
        (30, 50, 20, "memory"),
        (60, 40, 0, "compute"),
    ],
)
def test_communication_is_named_when_it_is_the_largest_part_and_not_when_it_is_smaller(
    compute_s, memory_s, exposed_s, by
):
    assert bound_by(compute_s=compute_s, memory_s=memory_s, exposed_s=exposed_s) == by


@pytest.mark.parametrize(("exposed_s", "by"), [(0.99, "compute"), (1.01, "communication")])
def test_beside_one_second_of_compute_a_second_of_communication_decides(exposed_s, by):
    assert bound_by(compute_s=1.0, memory_s=0.5, exposed_s=exposed_s) == by


@pytest.mark.parametrize(("host_s", "by"), [(0.99, "memory"), (1.01, "host")])
def test_beside_one_second_of_memory_a_second_of_waiting_for_the_host_decides(host_s, by):
    assert bound_by(compute_s=0.5, memory_s=1.0, host_s=host_s) == by


def test_waiting_for_other_stages_is_not_the_hosts_doing():
    assert bound_by(compute_s=3, host_s=2, bubble_s=4) == "pipeline"


def test_a_loader_is_named_when_the_step_waits_for_it_longest():
    assert bound_by(compute_s=10, exposed_s=20, input_wait_s=30) == "input"


def test_slow_links_bind_a_real_step_and_fast_ones_do_not():
    slow, fast = (tc.forecast("vgg16", f"2x4xV100-SXM2-16GB@{rate}", 64) for rate in ("1Gb/s", "400Gb/s"))
    assert (slow.bound_by, fast.bound_by) == ("communication", "compute")
