"""Whether Inductor turns the images of a step to channels-last (`decide_layout_opt` of torch/_inductor/graph.py).

It does on GPUs unless few of the ops are convolutions or, by the average speed of kinds of convolutions that its
authors measured, that would be slower. Training has rules instead of averages. The figures are those of PyTorch 2.13.
"""

from __future__ import annotations

import numpy as np

from traincast.trace.flop import op_flop
from traincast.trace.graph import Graph, Phase, evaluate
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.once import once_per_graph

_MOST_OPS_A_CONVOLUTION = 300
# Time in channels-last over time in nchw, by kind of convolution.
_GROUPED, _SMALL, _NARROWING, _OTHER = 1.358, 0.783, 0.725, 0.823
_SMALL_CHANNELS = 64
# Ops that one op becomes in the graph that Inductor counts.
_N_OPS = {OpKind.NORMALISATION: 10, OpKind.SOFTMAX: 6, OpKind.ELEMENTWISE: 1.5, OpKind.ALLOCATION: 0}


@once_per_graph
def runs_channels_last(graph: Graph) -> bool:
    """Of a lowered graph, before kernels are joined."""
    kinds = op_kinds(graph)
    is_forward = (graph.op_phase <= Phase.LOSS).tolist()
    convolutions = [op for op, kind in enumerate(kinds) if kind == OpKind.CONVOLUTION and is_forward[op]]
    n_ops = sum(_N_OPS.get(kind, 1) for op, kind in enumerate(kinds) if is_forward[op])
    if not convolutions or n_ops >= _MOST_OPS_A_CONVOLUTION * len(convolutions):
        return False
    inputs = graph.op_inputs
    weights = [graph.shape_of(int(inputs.values[inputs.start[op] + 1]), 1) for op in convolutions]
    n_groups = [evaluate(graph.attributes_of(op)["groups"], 1) for op in convolutions]
    is_grouped = np.array([groups > 1 and shape[1] > 1 for groups, shape in zip(n_groups, weights, strict=True)])
    is_narrowing = np.array([2 * shape[0] <= shape[1] and shape[2] > 1 for shape in weights])
    is_small = np.array([max(shape[:2]) <= _SMALL_CHANNELS for shape in weights])
    if (graph.op_phase == Phase.BACKWARD).any():
        return not (is_grouped.any() or is_narrowing.any() or is_small.all())
    slowdown = np.select([is_grouped, is_small, is_narrowing], [_GROUPED, _SMALL, _NARROWING], _OTHER)
    flop = op_flop(graph, np.array([1]))[0][convolutions]
    return bool((flop * slowdown).sum() <= flop.sum())
