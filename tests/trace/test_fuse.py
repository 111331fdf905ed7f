"""Compiled steps: the kernels that Inductor would plan, with the traffic that is left."""

import numpy as np
import pytest
import torch
from torch import nn

import traincast as tc
from traincast.trace.check import check_graph
from traincast.trace.flop import op_flop
from traincast.trace.graph import Phase
from traincast.trace.kinds import FUSED
from traincast.trace.lowering.fuse import fuse
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.traffic import op_bytes

BATCH = np.array([32])


def forward_bytes(graph):
    return op_bytes(graph, BATCH)[0][graph.op_phase == Phase.FORWARD].sum()


class Chain(nn.Module):
    def forward(self, x):
        return torch.tanh((x * 2 + 1).sigmoid())


def test_a_chain_reads_its_input_once_and_writes_its_result_once():
    trace = tc.capture(Chain(), lambda batch: torch.zeros(batch, 1000), mode="inference")
    graph = lower(trace)
    assert forward_bytes(graph) == 4 * 2 * 4 * 32 * 1000  # four ops, each reading and writing fp32
    assert forward_bytes(fuse(graph)) == 2 * 4 * 32 * 1000
    assert [fuse(graph).name_of(op) for op in range(fuse(graph).n_ops)] == [FUSED]


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(100, 100, bias=False)

    def forward(self, x):
        y = (x + 1).relu()
        return self.linear(y) * y


def test_what_an_op_outside_needs_is_still_written():
    trace = tc.capture(Residual(), lambda batch: torch.zeros(batch, 100), mode="inference")
    names = [fuse(lower(trace)).name_of(op) for op in range(fuse(lower(trace)).n_ops)]
    assert names == [FUSED, "aten.mm", FUSED]  # the product comes between: the last multiplication stands alone
    assert forward_bytes(fuse(lower(trace))) == forward_bytes(lower(trace)) - 2 * 4 * 32 * 100


@pytest.mark.parametrize("model", ["resnet18", "gpt2", "efficientnet_b0", "lstm_lm"])
@pytest.mark.parametrize("precision", ["fp32", "amp-fp16"])
def test_products_stay_and_traffic_shrinks(model, precision):
    graph = lower(tc.load_model(model), settings=Settings(precision, "adam"))
    fused = fuse(graph)
    assert fused.n_ops < graph.n_ops
    assert op_flop(fused, BATCH).sum() == op_flop(graph, BATCH).sum()
    assert op_bytes(fused, BATCH).sum() < op_bytes(graph, BATCH).sum()
    assert forward_bytes(fused) < forward_bytes(graph)
    check_graph(fused, where=model)


def test_a_graph_is_fused_once():
    graph = lower(tc.load_model("resnet18"))
    assert fuse(graph) is fuse(graph)
