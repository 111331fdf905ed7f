"""Host and device as two timelines: when ops end, and what that makes of a step."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.hardware.host import Host
from traincast.kernels.method import OpTimes
from traincast.kernels.timeline import finish_times, step_timeline
from traincast.trace.graph import Graph, Phase, Ragged

FORWARD, LOSS, BACKWARD, OPTIMIZER = Phase
SECONDS = st.floats(0, 10, allow_subnormal=False)


def graph_of(*ops):
    """A graph of (name, phase) pairs without tensors; 'aten.empty' is an allocation, which only the host sees."""
    names = tuple(dict.fromkeys(name for name, _ in ops))
    n_ops = len(ops)
    none = np.zeros(0, dtype=np.int64)
    empty = np.zeros(1, dtype=np.int64)
    return Graph(
        names=names,
        attributes=("{}",),
        op_name=np.array([names.index(name) for name, _ in ops]),
        op_attribute=np.zeros(n_ops, dtype=np.int64),
        op_phase=np.array([phase for _, phase in ops]),
        op_module=np.zeros(n_ops, dtype=np.int64),
        op_forward=np.full(n_ops, -1),
        op_recomputed=np.zeros(n_ops, dtype=np.int64),
        op_inputs=Ragged.of([[]] * n_ops),
        op_outputs=Ragged.of([[]] * n_ops),
        tensor_dtype=none,
        tensor_storage=none,
        dim_start=empty,
        dim_base=none,
        dim_slope=none,
        stride_start=empty,
        stride_base=none,
        stride_slope=none,
        storage_owner=none,
        storage_alloc=none,
        storage_free=none,
        storage_kind=none,
    )


def host_of(dispatch_s=1.0, *, view_s=0.0, call_s=0.0):
    return Host(
        name="test",
        forward_dispatch_s=dispatch_s,
        backward_dispatch_s=dispatch_s,
        optimizer_dispatch_s=dispatch_s,
        view_dispatch_s=view_s,
        call_s=call_s,
    )


def times_of(*rows, compute_s=None, log_sd=0.0, error_group=0):
    seconds = np.array(rows, dtype=float)
    return OpTimes(
        seconds=seconds,
        compute_s=np.zeros_like(seconds) if compute_s is None else np.array(compute_s, dtype=float),
        log_sd=np.full(seconds.shape[1], log_sd) if np.isscalar(log_sd) else np.array(log_sd),
        error_group=np.broadcast_to(error_group, seconds.shape[1:]),
        is_covered=np.ones(seconds.shape[1], dtype=bool),
    )


STEP = graph_of(
    ("aten.mm", FORWARD), ("aten.relu", FORWARD), ("aten.mean", LOSS), ("aten.mm", BACKWARD), ("aten.add", OPTIMIZER)
)


def test_a_slow_device_never_waits_after_the_first_dispatch():
    assert finish_times(np.array([1.0, 2, 3]), np.array([[5.0, 5, 5]])).tolist() == [[6, 11, 16]]


def test_a_slow_host_makes_the_device_wait_for_every_op():
    assert finish_times(np.array([4.0, 8, 12]), np.array([[1.0, 1, 1]])).tolist() == [[5, 9, 13]]


def test_behind_a_long_op_short_ones_queue_up():
    # The long op ends at 11; the next two were dispatched at 2 and 3 and run one after the other.
    assert finish_times(np.array([1.0, 2, 3]), np.array([[10.0, 1, 1]])).tolist() == [[11, 12, 13]]


def test_a_queue_that_has_emptied_waits_for_the_host_again():
    assert finish_times(np.array([1.0, 2, 9]), np.array([[3.0, 1, 1]])).tolist() == [[4, 5, 10]]


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=30))
def test_the_closed_form_is_what_a_loop_gives(ops):
    dispatch_s, seconds = np.array(ops).T
    dispatched_s, end_s, expected = 0.0, 0.0, []
    for cost_s, work_s in ops:
        dispatched_s += cost_s
        end_s = max(dispatched_s, end_s) + work_s
        expected.append(end_s)
    assert finish_times(np.cumsum(dispatch_s), seconds[None])[0] == pytest.approx(expected)


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=30))
def test_a_step_is_no_shorter_than_either_timeline(ops):
    dispatch_s, seconds = np.array(ops).T
    end_s = finish_times(np.cumsum(dispatch_s), seconds[None])[0, -1]
    assert end_s >= max(dispatch_s.sum(), seconds.sum()) * (1 - 1e-12)
    assert end_s <= (dispatch_s.sum() + seconds.sum()) * (1 + 1e-12)


@given(st.lists(st.tuples(SECONDS, SECONDS), min_size=2, max_size=30), st.data())
def test_one_more_op_never_shortens_the_step(ops, data):
    left_out = data.draw(st.integers(0, len(ops) - 1))
    ends = []
    for chosen in (ops[:left_out] + ops[left_out + 1 :], ops):
        dispatch_s, seconds = np.array(chosen).T
        ends.append(finish_times(np.cumsum(dispatch_s), seconds[None])[0, -1])
    assert ends[0] <= ends[1] * (1 + 1e-12)


def test_phases_end_where_their_last_op_does():
    step = step_timeline(STEP, times_of([10, 10, 10, 20, 5]), host_of(1.0))
    # The first op starts at 1, when it has been dispatched, and the device is busy ever after.
    parts = [step.forward_s[0], step.loss_s[0], step.backward_s[0], step.optimizer_s[0]]
    assert parts == [21, 10, 20, 5]
    assert (step.step_s[0], step.host_s[0], step.device_s[0]) == (56, 5, 55)


def test_a_step_bound_by_its_host_is_as_long_as_the_dispatch_and_the_last_op():
    step = step_timeline(STEP, times_of([0.1] * 5), host_of(2.0))
    assert step.step_s[0] == pytest.approx(10.1)
    assert step.waiting_fraction[0] == pytest.approx(9.6 / 10.1)


def test_with_small_batches_the_device_waits_and_with_large_ones_it_works():
    times = times_of([0.1] * 5, [10] * 5, [20] * 5)
    assert step_timeline(STEP, times, host_of(1.0)).waiting_fraction == pytest.approx([4.6 / 5.1, 1 / 51, 1 / 101])


def test_the_update_is_a_part_of_what_the_device_works():
    times = times_of([10, 10, 10, 20, 5], compute_s=[[1, 1, 1, 1, 3]])
    step = step_timeline(STEP, times, host_of(1.0), n_micro_steps=3)
    assert (step.update_device_s[0], step.update_compute_s[0]) == (5, 3)


def test_compute_and_memory_share_the_time_of_the_device():
    step = step_timeline(STEP, times_of([4] * 5, compute_s=[[3] * 5]), host_of(0.0))
    assert (step.compute_s[0], step.memory_s[0], step.device_s[0]) == (15, 5, 20)


def test_an_allocation_costs_the_host_its_own_price_and_the_device_nothing():
    graph = graph_of(("aten.empty", FORWARD), ("aten.mm", FORWARD))
    step = step_timeline(graph, times_of([0, 5]), host_of(1.0, view_s=0.25))
    assert (step.step_s[0], step.host_s[0]) == (6.25, 1.25)


def test_a_last_allocation_keeps_the_step_open():
    graph = graph_of(("aten.mm", FORWARD), ("aten.empty", FORWARD))
    assert step_timeline(graph, times_of([0.5, 0]), host_of(1.0, view_s=3.0)).step_s[0] == 4.0


def test_the_call_of_a_step_comes_before_its_first_op():
    with_call = step_timeline(STEP, times_of([10] * 5), host_of(1.0, call_s=100.0))
    without = step_timeline(STEP, times_of([10] * 5), host_of(1.0))
    assert with_call.step_s[0] - without.step_s[0] == 100
    assert with_call.forward_s[0] - without.forward_s[0] == 100


def test_accumulation_repeats_all_but_the_update():
    once = step_timeline(STEP, times_of([10, 10, 10, 20, 5]), host_of(1.0))
    thrice = step_timeline(STEP, times_of([10, 10, 10, 20, 5]), host_of(1.0), n_micro_steps=3)
    assert thrice.forward_s[0] == 3 * once.forward_s[0]
    assert thrice.backward_s[0] == 3 * once.backward_s[0]
    assert thrice.optimizer_s[0] == once.optimizer_s[0]
    assert (thrice.host_s[0], thrice.device_s[0]) == (13, 155)


def test_on_a_cpu_dispatch_and_work_take_turns():
    step = step_timeline(STEP, times_of([10] * 5), host_of(1.0), is_synchronous=True)
    assert step.step_s[0] == 55


def test_a_phase_that_comes_back_is_added_to_itself():
    graph = graph_of(("aten.mm", FORWARD), ("aten.mean", LOSS), ("aten.mm", FORWARD))
    step = step_timeline(graph, times_of([1, 2, 4]), host_of(0.0))
    assert (step.forward_s[0], step.loss_s[0]) == (5, 2)


def test_recomputed_ops_are_dispatched_like_forward_ones_and_belong_to_backward():
    graph = graph_of(("aten.mm", FORWARD), ("aten.mm", BACKWARD))
    graph.op_recomputed[1] = 1
    slow_forward = Host(
        name="test",
        forward_dispatch_s=2.0,
        backward_dispatch_s=1.0,
        optimizer_dispatch_s=0,
        view_dispatch_s=0,
        call_s=0,
    )
    step = step_timeline(graph, times_of([0, 0]), slow_forward)
    assert (step.forward_s[0], step.backward_s[0]) == (2, 2)


def test_ops_of_one_group_err_together_and_groups_apart():
    two_ops = graph_of(("aten.mm", FORWARD), ("aten.relu", FORWARD))
    together = step_timeline(two_ops, times_of([1, 1], log_sd=0.2), host_of(0.0))
    assert together.op_log_sd[0] == pytest.approx(0.2)
    apart = step_timeline(two_ops, times_of([1, 1], log_sd=0.2, error_group=[0, 1]), host_of(0.0))
    assert apart.op_log_sd[0] == pytest.approx(0.2 / 2**0.5)


def test_a_step_without_work_has_no_time_and_no_spread():
    step = step_timeline(STEP, times_of([0] * 5, log_sd=1.0), host_of(0.0))
    assert (step.step_s[0], step.op_log_sd[0], step.waiting_fraction[0]) == (0, 0, 0)
