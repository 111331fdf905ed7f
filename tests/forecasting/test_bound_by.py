"""When the links are what a step waits for: against the device's own work, and against the loader."""

import numpy as np
import pytest

import traincast as tc
from traincast.forecasting.device_steps import DeviceSteps
from traincast.kernels.timeline import StepTimeline
from traincast.scaling.local_step import ParallelStep


@pytest.fixture(scope="module")
def question():
    return tc.forecast("mnist_cnn", "4xT4", 8, method="roofline").question


def bound_by(question, *, compute_s, memory_s, exposed_s, input_wait_s=0.0):
    """Of a step on a device that never waits for its host."""
    none, device_s = np.zeros(1), np.array([compute_s + memory_s])
    own = {"forward_s": device_s, "loss_s": none, "backward_s": none, "optimizer_s": none}
    (found,) = DeviceSteps(
        question=question,
        batch_sizes=np.array([8]),
        timeline=StepTimeline(
            **own,
            host_s=none,
            device_s=device_s,
            compute_s=np.array([compute_s]),
            op_log_sd=none,
            finished_s=device_s[:, None],
        ),
        parallel=ParallelStep(
            **own, exposed_s=np.array([exposed_s]), communication_s=np.array([exposed_s]), bytes_sent=none
        ),
        input_wait_s=np.array([input_wait_s]),
        log_sd=none,
        is_covered=np.ones(1, dtype=bool),
        method_warnings=(),
    ).bound_by
    return found


@pytest.mark.parametrize(
    ("compute_s", "memory_s", "exposed_s", "by"),
    [
        (25, 15, 60, "communication"),
        (15, 25, 60, "communication"),
        (50, 30, 20, "compute"),
        (30, 50, 20, "memory"),
        (60, 40, 0, "compute"),
    ],
)
def test_communication_is_named_when_it_is_the_largest_part_and_not_when_it_is_smaller(
    question, compute_s, memory_s, exposed_s, by
):
    assert bound_by(question, compute_s=compute_s, memory_s=memory_s, exposed_s=exposed_s) == by


@pytest.mark.parametrize(("exposed_s", "by"), [(0.99, "compute"), (1.01, "communication")])
def test_beside_one_second_of_compute_alone_a_second_of_communication_decides(question, exposed_s, by):
    assert bound_by(question, compute_s=1.0, memory_s=0.0, exposed_s=exposed_s) == by


def test_a_loader_that_the_step_waits_for_is_named_before_the_links(question):
    assert bound_by(question, compute_s=10, memory_s=0, exposed_s=90, input_wait_s=1) == "input"


def test_slow_links_bind_a_real_step_and_fast_ones_do_not():
    slow, fast = (tc.forecast("vgg16", f"2x4xV100-SXM2-16GB@{rate}", 64) for rate in ("1Gb/s", "400Gb/s"))
    assert (slow.bound_by, fast.bound_by) == ("communication", "compute")
