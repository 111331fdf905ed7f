"""Updates of graph frameworks: one op a variable, each tensor touched once."""

import numpy as np
import pytest

import traincast as tc
from traincast.errors import InputError
from traincast.kernels.fused_updates import weights_of, with_fused_updates
from traincast.trace.check import check_graph
from traincast.trace.flop import op_flop
from traincast.trace.graph import Phase
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.traffic import op_bytes

BATCHES = np.array([2, 8])
N_VARIABLES = 8  # four layers with a weight and a bias each
N_PARAMETERS = 113_386


@pytest.fixture(scope="module")
def trace():
    return tc.load_model("mnist_cnn_2conv")


def without_optimizer(trace):
    return lower(trace, target="cuda", settings=Settings("fp32", "none"))


def updates(graph):
    return np.flatnonzero(graph.op_phase == Phase.OPTIMIZER)


@pytest.mark.parametrize(("optimizer", "n_ops", "tensors_moved"), [("sgd", 8, 3), ("momentum", 8, 5), ("adam", 12, 7)])
def test_every_variable_is_updated_once(trace, optimizer, n_ops, tensors_moved):
    graph = with_fused_updates(without_optimizer(trace), optimizer)
    ops = updates(graph)
    assert len(ops) == n_ops  # Adam has four more for its powers
    moved = op_bytes(graph, BATCHES)[:, ops[:N_VARIABLES]].sum(axis=1)
    assert moved.tolist() == [tensors_moved * 4 * N_PARAMETERS] * 2


def test_the_rest_of_the_step_stays_as_it_is(trace):
    before, after = without_optimizer(trace), with_fused_updates(without_optimizer(trace), "sgd")
    kept = slice(0, before.n_ops)
    assert [after.name_of(op) for op in range(before.n_ops)] == [before.name_of(op) for op in range(before.n_ops)]
    assert op_flop(after, BATCHES)[:, kept].tolist() == op_flop(before, BATCHES).tolist()
    assert op_bytes(after, BATCHES)[:, kept].tolist() == op_bytes(before, BATCHES).tolist()
    check_graph(after, where="the step")


def test_weights_are_those_of_the_model(trace):
    graph = without_optimizer(trace)
    assert int(graph.numel(np.array([2]))[0, weights_of(graph)].sum()) == N_PARAMETERS


def test_a_step_is_not_updated_twice(trace):
    lowered = lower(trace, target="cuda", settings=Settings("fp32", "sgd"))
    with pytest.raises(InputError, match="lower it with the optimizer 'none'"):
        with_fused_updates(lowered, "sgd")
    with pytest.raises(InputError, match="No fused update is known for 'lion'"):
        with_fused_updates(without_optimizer(trace), "lion")
