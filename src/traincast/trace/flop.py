"""Flop of every op: matrix products, convolutions, attention and recurrent layers. A multiply-add is 2.

Additions of tensors, activations and normalisations are bound by memory on every device we know, so their
arithmetic is not counted; their bytes are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from traincast.trace.graph import Floats, Graph, Ints
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.once import once_per_graph
from traincast.trace.structure import by_class

Dims = Callable[[int], Floats]  # tensor -> its dimensions, one row a batch size


# Products of dimensions that are linear in the batch: read at three batch sizes and held against a fourth.
_PROBES, _CHECK = (2, 3, 5), 7


def op_flop(graph: Graph, batch_sizes: Ints) -> Floats:
    """One row a batch size, one column an op."""
    found = _coefficients(graph)
    if found is None:
        return by_class(graph, lambda part: _by_formula(part, batch_sizes))
    constant, linear, square = found
    batches = np.asarray(batch_sizes, dtype=np.float64)[:, None]
    flop: Floats = constant + batches * (linear + batches * square)
    return flop


@once_per_graph
def _coefficients(graph: Graph) -> Floats | None:
    """Of 1, the batch size and its square, one column an op; None where some op has more than a square."""
    *probed, checked = by_class(graph, lambda part: _by_formula(part, np.array([*_PROBES, _CHECK])))
    found = np.linalg.inv(np.vander(np.array(_PROBES, dtype=float), 3, increasing=True)) @ np.array(probed)
    found = np.round(found)  # counts of whole things: what is left beside is rounding
    again = found[0] + _CHECK * (found[1] + _CHECK * found[2])
    return found if np.allclose(again, checked, rtol=1e-12, atol=0.0) else None


def _by_formula(graph: Graph, batch_sizes: Ints) -> Floats:
    all_dims = graph.dims(np.asarray(batch_sizes, dtype=np.int64)).astype(np.float64)
    start = graph.dim_start

    def dims(tensor: int) -> Floats:
        return all_dims[:, start[tensor] : start[tensor + 1]]

    flop = np.zeros((len(batch_sizes), graph.n_ops))
    formulas = [FORMULAS.get(name) for name in graph.names]
    has_formula = np.array([formula is not None for formula in formulas], dtype=bool)
    for op in np.flatnonzero(has_formula[graph.op_name]).tolist():
        formula = formulas[graph.op_name[op]]
        assert formula is not None
        low, high = graph.op_inputs.start[op], graph.op_inputs.start[op + 1]
        flop[:, op] = formula(graph.op_inputs.values[low:high].tolist(), dims, graph.attributes_of(op))
    return flop


def uncosted_ops(graph: Graph) -> tuple[str, ...]:
    """Names of the ops whose work we cannot count."""
    kinds = op_kinds(graph)
    return tuple(sorted({graph.name_of(op) for op, kind in enumerate(kinds) if kind == OpKind.UNCOSTED}))


def _product(*factors: Any) -> Floats:
    return 2.0 * np.prod(np.stack(np.broadcast_arrays(*factors)), axis=0)


def _mm(inputs: list[int], dims: Dims, _: dict[str, Any]) -> Floats:
    left, right = dims(inputs[-2]), dims(inputs[-1])
    return _product(left[:, 0], left[:, 1], right[:, 1])


def _mv(inputs: list[int], dims: Dims, _: dict[str, Any]) -> Floats:
    matrix = dims(inputs[-2])
    return _product(*matrix.T)


def _bmm(inputs: list[int], dims: Dims, _: dict[str, Any]) -> Floats:
    left, right = dims(inputs[-2]), dims(inputs[-1])
    return _product(left[:, 0], left[:, 1], left[:, 2], right[:, 2])


def _convolution(inputs: list[int], dims: Dims, attributes: dict[str, Any]) -> Floats:
    """Every weight meets every position of the output once per sample (of the input, where it is transposed)."""
    image, weight = dims(inputs[0]), dims(inputs[1])
    is_transposed = attributes.get("transposed", False)
    positions = image[:, 2:] if is_transposed else _positions(image[:, 2:], weight[:, 2:], attributes)
    return 2.0 * image[:, 0] * positions.prod(axis=1) * weight.prod(axis=1)


def _positions(size: Floats, kernel: Floats, attributes: dict[str, Any]) -> Floats:
    stride, padding, dilation = (np.array(attributes[name], dtype=float) for name in ("stride", "padding", "dilation"))
    return np.floor((size + 2 * padding - dilation * (kernel - 1) - 1) / stride) + 1


def _convolution_backward(inputs: list[int], dims: Dims, attributes: dict[str, Any]) -> Floats:
    """As much as the forward for each of the two gradients that are asked for."""
    gradient, image, weight = (dims(tensor) for tensor in inputs[:3])
    positions = image[:, 2:] if attributes.get("transposed") else gradient[:, 2:]
    n_gradients = sum(attributes["output_mask"][:2])
    return 2.0 * n_gradients * gradient[:, 0] * positions.prod(axis=1) * weight.prod(axis=1)


def _attention(inputs: list[int], dims: Dims, attributes: dict[str, Any]) -> Floats:
    query, key, value = (dims(tensor) for tensor in inputs[:3])
    return 2.0 * query[:, :-1].prod(axis=1) * _seen_keys(key, attributes) * (query[:, -1] + value[:, -1])


def _seen_keys(key: Floats, attributes: dict[str, Any]) -> Floats:
    """All keys, causal or not; those of a sliding window where it is shorter."""
    window = attributes.get("window", 0)
    return np.minimum(key[:, -2], window) if window else key[:, -2]


def _attention_backward(inputs: list[int], dims: Dims, attributes: dict[str, Any]) -> Floats:
    """Four products: the gradients of query, key, value and weights. What a kernel computes again is its own affair."""
    return 2.0 * _attention(inputs[1:], dims, attributes)


def _fused_attention_backward(inputs: list[int], dims: Dims, attributes: dict[str, Any]) -> Floats:
    """A fused kernel does not keep the attention weights and computes them again: five products."""
    query, key = dims(inputs[1]), dims(inputs[2])
    again = 2.0 * query.prod(axis=1) * _seen_keys(key, attributes)
    return _attention_backward(inputs, dims, attributes) + again


def _grouped(inputs: list[int], dims: Dims, _: dict[str, Any]) -> Floats:
    """Each row meets the matrix of its expert."""
    rows, weight = dims(inputs[0]), dims(inputs[1])
    return _product(rows[:, 0], weight[:, -2], weight[:, -1])


def _grouped_weight(inputs: list[int], dims: Dims, _: dict[str, Any]) -> Floats:
    rows, grad = dims(inputs[0]), dims(inputs[1])
    return _product(rows[:, 0], rows[:, 1], grad[:, 1])


def _matrices(inputs: list[int], dims: Dims) -> list[Floats]:
    return [dims(tensor).prod(axis=1) for tensor in inputs if dims(tensor).shape[1] == 2]


def _rnn(inputs: list[int], dims: Dims, attributes: dict[str, Any]) -> Floats:
    n_tokens = dims(inputs[0])[:, :-1].prod(axis=1)
    weights = inputs[1 + n_states(attributes) :]
    return 2.0 * n_tokens * sum(_matrices(weights, dims))


def _rnn_backward(inputs: list[int], dims: Dims, attributes: dict[str, Any]) -> Floats:
    """Gradients of the weights, of the layers' inputs and of the state, which the first step needs only if asked."""
    hidden = inputs[2]
    weights = _matrices(inputs[2 + n_states(attributes) : -2], dims)
    n_tokens = dims(inputs[1])[:, :-1].prod(axis=1)
    n_recurrent_tokens = n_tokens if attributes["hidden_gradient"] else n_tokens - dims(hidden)[:, -2]
    per_layer = len(weights) // (attributes["n_layers"] * attributes["n_directions"])
    total = n_tokens * sum(weights)
    for number, weight in enumerate(weights):
        if number % per_layer == 1:
            total = total + n_recurrent_tokens * weight
        elif number // per_layer >= attributes["n_directions"] or attributes["input_gradient"]:
            total = total + n_tokens * weight
    return 2.0 * total


def n_states(attributes: dict[str, Any]) -> int:
    """An LSTM has a hidden and a cell state, the others one."""
    return 2 if attributes["mode"] == "lstm" else 1


FORMULAS: dict[str, Callable[[list[int], Dims, dict[str, Any]], Floats]] = {
    "aten.mm": _mm,
    "aten.addmm": _mm,
    "aten._addmm_activation": _mm,
    "aten._int_mm": _mm,
    "aten.mv": _mv,
    "aten.addmv": _mv,
    "aten.bmm": _bmm,
    "aten.baddbmm": _bmm,
    "aten.addbmm": _bmm,
    "traincast.grouped_mm": _grouped,
    "traincast.grouped_mm_weight": _grouped_weight,
    "aten.convolution": _convolution,
    "aten.convolution_backward": _convolution_backward,
    "traincast.attention": _attention,
    "traincast.attention_backward": _attention_backward,
    "traincast.rnn": _rnn,
    "traincast.rnn_backward": _rnn_backward,
    # What lowering makes of them.
    "aten._scaled_dot_product_flash_attention": _attention,
    "aten._scaled_dot_product_flash_attention_backward": _fused_attention_backward,
    "aten._scaled_dot_product_efficient_attention": _attention,
    "aten._scaled_dot_product_efficient_attention_backward": _fused_attention_backward,
    "aten._scaled_dot_product_flash_attention_for_cpu": _attention,
    "aten._scaled_dot_product_flash_attention_for_cpu_backward": _fused_attention_backward,
    "aten._cudnn_rnn": _rnn,
    "aten._cudnn_rnn_backward": _rnn_backward,
    "aten.mkldnn_rnn_layer": _rnn,
    "aten.mkldnn_rnn_layer_backward": _rnn_backward,
}
