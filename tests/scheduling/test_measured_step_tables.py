"""Step times between measured ones, and batches that a placement runs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_cluster import tiny_application

from traincast.errors import InputError
from traincast.scheduling.applications import Learning
from traincast.scheduling.machines import find_machines
from traincast.scheduling.measured_steps import StepRow, measured_steps, smallest_rotation


def row(shape, local_batch, step_s, *, is_even=False):
    return StepRow(
        shape=None if is_even else shape,
        n_nodes=len(shape),
        n_devices=sum(shape),
        local_batch=local_batch,
        step_s=step_s,
        sync_s=step_s / 4,
    )


TABLE = measured_steps(
    "app",
    [
        row((1,), 8, 1.0),
        row((1,), 16, 2.0),
        row((4,), 8, 1.5),
        row((4,), 16, 2.5),
        row((1, 1), 8, 2.0),
        row((1, 1), 16, 3.0),
        row((4, 4), 8, 4.0),
        row((4, 4), 16, 5.0),
        row((4, 4, 4, 4), 8, 8.0, is_even=True),
        row((4, 4, 4, 4), 16, 9.0, is_even=True),
        row((1, 1, 1, 1), 8, 6.0, is_even=True),
        row((1, 1, 1, 1), 16, 7.0, is_even=True),
    ],
)


def step(shape, local_batch):
    return float(TABLE.step_and_sync_s(shape, np.array([float(local_batch)]))[0][0])


def test_a_measured_placement_is_read_from_its_row():
    assert step((4,), 8) == 1.5
    assert step((4,), 12) == 2.0
    assert step((4,), 20) == 3.0  # beyond the last batch its slope goes on


def test_between_counts_of_a_node_time_is_linear():
    assert step((2,), 8) == pytest.approx(1.0 + 0.5 / 3)


def test_between_numbers_of_nodes_time_is_linear_at_the_same_filling():
    assert step((4, 4, 4), 8) == pytest.approx(6.0)
    assert step((1, 1, 1), 8) == pytest.approx(4.0)


def test_a_ring_has_no_first_node():
    assert smallest_rotation((4, 1, 3)) == (1, 3, 4)
    assert smallest_rotation((4, 3, 1)) == (1, 4, 3)


@pytest.mark.parametrize("shape", [(), (5,), (4, 4, 4, 4, 4)])
def test_what_lies_outside_the_table_is_told(shape):
    with pytest.raises(InputError, match=r"measured on up to 16 devices and 4 per node"):
        step(shape, 8)


@given(st.integers(1, 4), st.integers(0, 12), st.floats(8, 16))
def test_between_measurements_time_stays_between_them(n_nodes, extra, local_batch):
    n = min(n_nodes + extra, 4 * n_nodes)
    shape = tuple(sorted((n // n_nodes + (place < n % n_nodes) for place in range(n_nodes)), reverse=True))
    assert 1.0 - 1e-9 <= step(shape, local_batch) <= 9.0 + 1e-9


def test_a_batch_that_does_not_fit_is_accumulated():
    application = tiny_application()
    on_two = application.epoch_s((2,), "GPU", 32)  # 16 a device, 8 at once: two passes, one wait
    steps = 100 / (2 / (1 * 8 / 32 + 1))
    assert on_two.tolist() == pytest.approx([steps * (0.82 + 0.8)] * 2)


def test_without_noise_larger_batches_bring_nothing():
    quiet = Learning(
        batches=np.array([8.0, 32.0]), progress=np.array([10.0]), grad_sqr=np.ones((2, 1)), grad_var=np.zeros((2, 1))
    )
    assert quiet.steps(np.array([8.0, 16.0, 32.0])).ravel().tolist() == [10, 10, 10]


def test_with_noise_alone_a_batch_four_times_as_large_needs_a_quarter_of_the_steps():
    noisy = Learning(
        batches=np.array([8.0, 32.0]), progress=np.array([10.0]), grad_sqr=np.zeros((2, 1)), grad_var=np.ones((2, 1))
    )
    assert noisy.steps(np.array([8.0, 16.0, 32.0])).ravel().tolist() == [10, 5, 2.5]


@given(st.sampled_from([(1,), (2,), (1, 1), (2, 2)]), st.floats(0.0, 100.0))
def test_a_free_batch_is_never_slower_than_a_tried_one(shape, noise):
    application = tiny_application(noise=noise)
    free = application.epoch_s(shape, "GPU", None)
    assert (free <= application.epoch_s(shape, "GPU", 32) + 1e-9).all()


def test_a_type_that_was_not_measured_is_told():
    with pytest.raises(InputError, match="no measurements on A100, only on GPU"):
        tiny_application().epoch_s((1,), "A100", 8)


@pytest.mark.parametrize(
    ("text", "devices", "kinds"),
    [
        ("T4", (1,), ("T4",)),
        ("4xT4", (4,), ("T4",)),
        ("2x4xT4@50Gb/s", (4, 4), ("T4", "T4")),
        ("1x2xT4 + 1x8xV100-SXM2-16GB", (2, 8), ("T4", "V100-SXM2-16GB")),
    ],
)
def test_machines_in_words(text, devices, kinds):
    machines = find_machines(text)
    assert (machines.devices, machines.kinds) == (devices, kinds)


@pytest.mark.parametrize("text", ["", "16x4", "0x4xT4", "4x0xT4", "-1xT4", "2x2x2xT4", "T4+"])
def test_a_cluster_without_devices_is_told(text):
    with pytest.raises(InputError):
        find_machines(text)


def test_the_fewest_nodes_are_full_ones_and_a_rest():
    assert find_machines("3x4xT4").fewest_nodes("T4", 10) == (4, 4, 2)
    assert find_machines("3x4xT4").fewest_nodes("T4", 4) == (4,)
    assert find_machines("2x2xT4+1x8xT4").fewest_nodes("T4", 11) == (8, 2, 1)


def test_a_local_batch_so_small_that_a_step_would_take_no_time_is_told():
    steep = measured_steps("steep", [row((1,), 8, 1.0), row((1,), 16, 3.0)])
    assert steep.step_and_sync_s((1,), np.array([6.0]))[0].tolist() == [0.5]
    with pytest.raises(
        InputError, match=r"'steep' on \(1,\): steps were measured at local batches from 8 to 16: 4 is too"
    ):
        steep.step_and_sync_s((1,), np.array([8.0, 4.0]))


def test_one_measured_batch_says_nothing_of_others():
    lone = measured_steps("lone", [row((1,), 8, 1.0)])
    assert lone.step_and_sync_s((1,), np.array([8.0]))[0].tolist() == [1.0]
    with pytest.raises(InputError, match="a local batch of 8 alone: 9 cannot be told"):
        lone.step_and_sync_s((1,), np.array([9.0]))
