"""Products of matrices, convolutions, attention and recurrent layers, as a CPU's library runs them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.cpu.terms import Term
from traincast.kernels.kernels_of import SIZE
from traincast.kernels.table import kernel_table
from traincast.kernels.work import CONVOLUTION_WORKS, DEPTHWISE_WORKS, FIRST_BYTES, Work
from traincast.trace.graph import Floats, Graph, Ints, evaluate
from traincast.trace.kinds import OpKind, op_kinds

_ITEM_BYTES = 4.0
_VECTOR = 8.0  # channels that a blocked layout holds together
_USUAL_WINDOW = 9.0  # 3 x 3: libraries have fast depthwise kernels for it and few others


def product_terms(graph: Graph, batch_sizes: Ints) -> list[Term]:
    """Everything that is made of products, and the gradients of biases that come with it."""
    table = kernel_table(graph)
    sizes = table.sizes(batch_sizes)
    terms = []
    for place in range(table.op_kernels.shape[1]):
        ops = np.flatnonzero(table.op_kernels[:, place] >= 0)
        kernels = table.op_kernels[ops, place]
        works = table.kinds.work[kernels]
        for work in np.unique(works).tolist():
            chosen = works == work
            if work == Work.RECURRENT:
                terms += list(_recurrent(graph, ops[chosen], sizes[:, :, kernels[chosen]]))
            elif work < FIRST_BYTES:
                terms += list(_products(graph, Work(work), ops[chosen], sizes[:, :, kernels[chosen]]))
            elif place > 0 and work == Work.REDUCTION:  # the gradient of a convolution's bias
                terms.append(Term("bytes.reduction", ops[chosen], sizes[:, SIZE["bytes"], kernels[chosen]]))
    return terms


def _products(graph: Graph, work: Work, ops: Ints, sizes: Floats) -> Iterator[Term]:
    name, flop, moved = work.name.lower(), sizes[:, SIZE["flop"]], sizes[:, SIZE["bytes"]]
    # Libraries look up or make what fits the shape, and rearrange operands, before the first product.
    family = "convolution" if work in CONVOLUTION_WORKS else "matrices" if work < Work.ATTENTION else "attention"
    yield Term(f"call.{family}", ops, np.ones_like(flop))
    if work in DEPTHWISE_WORKS:
        is_usual = _window(work, sizes) == _USUAL_WINDOW
        for suffix, chosen in (("", is_usual), (".other", ~is_usual)):
            yield Term(f"flop.{name}{suffix}", ops[chosen], flop[:, chosen])
        yield Term(f"bytes.{name}", ops, moved)
        return
    yield Term(f"flop.{name}", ops, flop)
    if work in CONVOLUTION_WORKS:
        padding = _padding(graph, work, ops)
        is_single = padding == _VECTOR - 1.0  # one channel: libraries have no vectors for it, and no good way
        for suffix, chosen in ((".thin", ~is_single), (".single", is_single)):
            yield Term(f"flop.{name}{suffix}", ops[chosen], flop[:, chosen] * padding[chosen])
    if work in (Work.LINEAR, Work.BATCHED):
        yield Term("bytes.matrices", ops, moved)
    elif work in CONVOLUTION_WORKS:  # blocked layouts: images are rearranged before and after
        yield Term(f"bytes.{name}", ops, moved)


def _window(work: Work, sizes: Floats) -> NDArray[np.float64]:
    """Places of the window of a depthwise convolution, whatever the batch size: its k, or n of a weight gradient."""
    return np.round(sizes[0, SIZE["n" if work == Work.DEPTHWISE_WEIGHT else "k"]])


def _padding(graph: Graph, work: Work, ops: Ints) -> NDArray[np.float64]:
    """What rounding channels up to whole vectors adds to the products, as a share of them: those of what is made.

    A gradient of the weight has both kinds of channels; an image of one channel then takes eight times the work.
    """
    is_backward = work not in (Work.CONVOLUTION, Work.GROUPED)
    inputs = graph.op_inputs.rows()
    shapes = np.array([graph.shape_of(inputs[op][2 if is_backward else 1], 2)[:2] for op in ops.tolist()], dtype=float)
    groups = np.array([evaluate(graph.attributes_of(op)["groups"], 2) for op in ops.tolist()], dtype=float)
    c_out, c_in = shapes[:, 0] / groups, shapes[:, 1]
    made = {
        Work.CONVOLUTION: (c_out,),
        Work.GROUPED: (c_out,),
        Work.CONVOLUTION_INPUT: (c_in,),
        Work.GROUPED_INPUT: (c_in,),
    }
    share = np.ones(len(ops))
    for channels in made.get(work, (c_out, c_in)):
        share *= np.ceil(channels / _VECTOR) * _VECTOR / channels
    return share - 1.0


def _recurrent(graph: Graph, ops: Ints, sizes: Floats) -> Iterator[Term]:
    """LSTM layers run fused; others run their steps one by one, each with calls of its own."""
    kinds = op_kinds(graph)
    for place, op in enumerate(ops.tolist()):
        if kinds[op] != OpKind.RECURRENT:
            continue
        mode = "lstm" if graph.attributes_of(op)["mode"] == "lstm" else "rnn"
        way = "backward" if graph.name_of(op).endswith("backward") else "forward"
        yield Term(f"flop.{mode}.{way}", ops[place : place + 1], sizes[:, SIZE["flop"], place : place + 1])
        yield Term(f"steps.{mode}.{way}", ops[place : place + 1], sizes[:, SIZE["b"], place : place + 1])
        # Every step reads all weights, whatever the batch.
        weights = sizes[:, SIZE["b"]] * sizes[:, SIZE["n"]] * sizes[:, SIZE["k"]]
        yield Term(f"bytes.{mode}.{way}", ops[place : place + 1], _ITEM_BYTES * weights[:, place : place + 1])
