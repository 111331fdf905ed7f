"""Hosts that nobody wrote down, found again from the steps that they made."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.kernels.host_fit import (
    TimedStep,
    fit_call,
    fit_call_and_dispatch,
    fit_floors,
    predicted_s,
    uniform_host,
)
from traincast.kernels.lone_layer import Layer, lone_layer_graph
from traincast.kernels.method import OpTimes

FORWARD = lone_layer_graph(Layer(channels_in=1, channels_out=1), None)  # 3 ops
TRAINING = lone_layer_graph(Layer(channels_in=1, channels_out=1), "sgd")  # 19 ops


def step(graph, measured_s=0.0, *, op_s=0.0):
    seconds = np.full((1, graph.n_ops), op_s)
    times = OpTimes(
        seconds=seconds,
        compute_s=np.zeros_like(seconds),
        log_sd=np.zeros(graph.n_ops),
        error_group=np.zeros(graph.n_ops, dtype=np.int64),
        is_covered=np.ones(graph.n_ops, dtype=bool),
    )
    return TimedStep(graph=graph, times=times, measured_s=measured_s)


def test_a_call_is_what_dispatch_and_device_leave():
    assert fit_call([step(FORWARD, 1e-3)], dispatch_s=1e-4).call_s == pytest.approx(7e-4)


def test_where_the_device_binds_a_dispatch_is_hidden():
    busy = step(FORWARD, 4e-3, op_s=1e-3)  # the first op waits for its dispatch, three take 1 ms each
    assert fit_call([busy], dispatch_s=1e-4).call_s == pytest.approx(9e-4)


def test_two_models_tell_a_dispatch_from_a_call():
    host = fit_call_and_dispatch([step(FORWARD, 230e-6), step(TRAINING, 390e-6)])
    assert host.call_s == pytest.approx(200e-6, rel=1e-3)
    assert host.forward_dispatch_s == host.backward_dispatch_s == host.optimizer_dispatch_s
    assert host.forward_dispatch_s == pytest.approx(10e-6, rel=1e-3)


@given(st.floats(1e-6, 1e-3), st.floats(1e-6, 5e-5), st.floats(0.0, 1e-6))
def test_a_host_that_made_the_steps_is_found_again(call_s, dispatch_s, op_s):
    host = uniform_host("true", call_s=call_s, dispatch_s=dispatch_s)
    steps = [step(FORWARD, op_s=op_s), step(TRAINING, op_s=op_s)]
    measured = predicted_s(steps, host)
    again = fit_call_and_dispatch([step(s.graph, m, op_s=op_s) for s, m in zip(steps, measured, strict=True)])
    assert predicted_s(steps, again) == pytest.approx(measured, rel=1e-3, abs=1e-8)


def test_one_odd_floor_in_four_changes_nothing():
    n_ops = np.array([2.0, 3, 17, 19, 21, 23])
    seconds = 100.0 + 5.0 * n_ops
    seconds[4] = 1000.0
    assert fit_floors(n_ops, seconds) == (100.0, 5.0)


def test_what_cannot_be_told_is_not_guessed():
    with pytest.raises(InputError, match="give two models"):
        fit_call_and_dispatch([step(FORWARD, 1.0), step(FORWARD, 2.0)])
    with pytest.raises(InputError, match="cannot tell a call from dispatches"):
        fit_floors(np.array([3.0, 3.0]), np.array([1.0, 2.0]))
    with pytest.raises(InputError, match="no call fits them"):
        fit_call([step(FORWARD, 1e-6)], dispatch_s=1e-3)
