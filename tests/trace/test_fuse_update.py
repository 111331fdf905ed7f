"""The whole update as one kernel."""

import numpy as np
import pytest

import traincast as tc
from traincast.trace.check import check_graph
from traincast.trace.graph import Phase
from traincast.trace.kinds import FUSED, OpKind, op_kinds
from traincast.trace.lowering.fuse import fuse, fuse_update
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.traffic import op_bytes

BATCH = np.array([4])


def update_bytes(graph):
    return op_bytes(graph, BATCH)[0][graph.op_phase == Phase.OPTIMIZER].sum()


@pytest.mark.parametrize(("optimizer", "n_tensors"), [("momentum", 5), ("adam", 7), ("adamw", 7)])
def test_each_tensor_of_an_update_is_read_once_and_written_once(optimizer, n_tensors):
    trace = tc.load_model("mnist_cnn")
    graph = fuse_update(lower(trace, settings=Settings("fp32", optimizer)))
    assert (graph.op_phase == Phase.OPTIMIZER).sum() == 1
    # Weights and states are read and written, gradients read; step counters are a few bytes more.
    assert update_bytes(graph) == pytest.approx(4 * n_tensors * trace.n_parameters, rel=0.01)
    check_graph(graph, where=optimizer)


def test_everything_but_the_update_stays():
    graph = lower(tc.load_model("mnist_cnn"), settings=Settings("fp32", "adam"))
    fused = fuse_update(graph)
    before, after = ((g.op_phase != Phase.OPTIMIZER).sum() for g in (graph, fused))
    assert before == after


def test_what_a_compiler_joins_in_place_is_work_and_no_view():
    fused = fuse(lower(tc.load_model("resnet18")))
    joined = [kind for op, kind in enumerate(op_kinds(fused)) if fused.name_of(op) == FUSED]
    assert joined
    assert OpKind.VIEW not in joined  # a residual sum and its activation write where one of them reads


@pytest.mark.parametrize("optimizer", ["none", "sgd"])
def test_an_update_of_one_op_stays_as_it_is(optimizer):
    graph = lower(tc.load_model("mnist_cnn"), settings=Settings("fp32", optimizer))
    assert fuse_update(graph) is graph
