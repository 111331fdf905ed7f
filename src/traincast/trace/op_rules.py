"""What an op must have, by its kind or name, for those who look into it: inputs of so many dimensions, attributes.

Ops that nobody looks into may be anything: what they move is known from their tensors alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from traincast.trace.dtypes import CODE
from traincast.trace.graph import Graph, Phase
from traincast.trace.kinds import OpKind, kind_by_name

_LARGEST = 2**31  # of a stride, a group count, a number of layers
_CONVOLUTIONS = {OpKind.CONVOLUTION, OpKind.CONVOLUTION_BACKWARD}
_DIVIDED = {*_CONVOLUTIONS, OpKind.RECURRENT}  # by their sizes: none may be zero


@dataclass(frozen=True, slots=True)
class OpForm:
    """An op as far as the rules look: how many dimensions its tensors have, and its attributes."""

    name: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    attributes: dict[str, Any]


def ops_out_of_form(graph: Graph) -> Iterator[str]:
    """The names of ops that lack what those who read them need."""
    rank = np.diff(graph.dim_start).tolist()
    inputs, outputs = graph.op_inputs.rows(), graph.op_outputs.rows()
    rules = [rule_of(name) for name in graph.names]
    kinds = [kind_by_name(name) for name in graph.names]
    is_empty = _without_elements(graph)
    seen: set[tuple[object, ...]] = set()
    for op, (name, attribute) in enumerate(zip(graph.op_name.tolist(), graph.op_attribute.tolist(), strict=True)):
        rule = rules[name]
        if rule is None:
            continue
        ranks = tuple(rank[tensor] for tensor in inputs[op]), tuple(rank[tensor] for tensor in outputs[op])
        if (name, attribute, *ranks) not in seen:
            seen.add((name, attribute, *ranks))
            if not rule(OpForm(graph.names[name], *ranks, graph.parsed_attributes[attribute])):
                yield graph.names[name]
        divided = inputs[op] + outputs[op] if kinds[name] in _CONVOLUTIONS else inputs[op]
        if kinds[name] in _DIVIDED and any(is_empty[tensor] for tensor in divided):
            yield graph.names[name]
    yield from _without_forward(graph)


def _without_elements(graph: Graph) -> list[bool]:
    empty: list[bool] = (graph.numel(np.array([1]))[0] == 0).tolist()
    return empty


def _without_forward(graph: Graph) -> Iterator[str]:
    """Fused ops leave their own backward what it needs, in the way their attributes say."""
    names, forward = graph.op_name.tolist(), graph.op_forward.tolist()
    for op in np.flatnonzero(graph.op_phase == Phase.BACKWARD).tolist():
        name = graph.names[names[op]]
        if name not in _NEEDS_FORWARD:
            continue
        of = forward[op]
        if (
            of < 0
            or graph.names[names[of]] != name.removesuffix("_backward")
            or graph.attributes_of(of).get("dropout_p") != graph.attributes_of(op).get("dropout_p")
        ):
            yield name


_NEEDS_FORWARD = {"traincast.attention_backward", "traincast.rms_norm_backward"}


def rule_of(name: str) -> Callable[[OpForm], bool] | None:
    """What an op of this name must fulfil; None if it may be anything."""
    return _BY_NAME.get(name) or _BY_KIND.get(kind_by_name(name))


def _is_whole(value: object, *, smallest: int = 0) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and smallest <= value <= _LARGEST


def _are_whole(value: object, *, smallest: int = 0) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(_is_whole(each, smallest=smallest) for each in value)


def _is_product(op: OpForm) -> bool:
    """Of two matrices, which come last, or of what is none."""
    has_factors = len(op.inputs) >= 2 and len(op.outputs) >= 1
    return has_factors and (op.inputs[-1] < 2 or op.inputs[-2] >= 2)


def _is_matrix_product(op: OpForm) -> bool:
    return op.inputs[-2:] == (2, 2) and len(op.outputs) >= 1


def _is_vector_product(op: OpForm) -> bool:
    return op.inputs[-2:] == (2, 1) and len(op.outputs) >= 1


def _is_batched_product(op: OpForm) -> bool:
    return op.inputs[-2:] == (3, 3) and len(op.outputs) >= 1


def _is_grouped_product(op: OpForm) -> bool:
    return op.inputs == (2, 3) and op.outputs == (2,)


def _is_grouped_weight(op: OpForm) -> bool:
    return op.inputs == (2, 2) and op.outputs == (3,) and _is_whole(op.attributes.get("n_experts"), smallest=1)


def _is_convolution(op: OpForm) -> bool:
    images = (*op.inputs[:2], *op.outputs[:1])
    return len(op.inputs) >= 2 and len(op.outputs) >= 1 and _is_window(op, images)


def _is_convolution_backward(op: OpForm) -> bool:
    mask = op.attributes.get("output_mask")
    is_mask = isinstance(mask, list) and len(mask) == 3 and all(isinstance(each, bool) for each in mask)
    return is_mask and len(op.inputs) >= 3 and len(op.outputs) >= 1 and _is_window(op, op.inputs[:3])


def _is_window(op: OpForm, images: tuple[int, ...]) -> bool:
    n_dims, groups = images[0], op.attributes.get("groups")
    if n_dims < 3 or set(images) != {n_dims}:
        return False
    named = {name: op.attributes.get(name) for name in ("stride", "padding", "dilation")}
    are_numbers = all(_are_whole(value, smallest=name != "padding") for name, value in named.items())
    fit = are_numbers and all(len(value) in (1, n_dims - 2) for value in named.values() if value)
    return fit and (_is_whole(groups, smallest=1) or _grows_with_batch(groups))


def _grows_with_batch(value: object) -> bool:
    """["batch", a, b] stands for a + b * batch, see `Graph`."""
    return isinstance(value, list) and value[:1] == ["batch"] and len(value) == 3 and _are_whole(value[1:])


def _is_attention(op: OpForm) -> bool:
    n_before = int(op.name.endswith("_backward"))  # its gradient comes first
    needed = op.inputs[: 3 + n_before]
    return len(needed) == 3 + n_before and min(needed) >= 2 and len(op.outputs) >= 1


def _is_own_attention(op: OpForm) -> bool:
    chance = op.attributes.get("dropout_p")
    n_inputs = 6 if op.name.endswith("_backward") else 3
    is_told = isinstance(chance, int | float) and 0 <= chance <= 1 and "is_causal" in op.attributes
    return is_told and len(op.inputs) in (n_inputs, n_inputs + 1) and _is_attention(op)


def _is_recurrent(op: OpForm) -> bool:
    """Sequence, states, and at least one matrix a layer and direction."""
    n_layers, n_directions = (op.attributes.get(name, 0) for name in ("n_layers", "n_directions"))
    is_told = _is_whole(n_layers, smallest=1) and n_directions in (1, 2) and isinstance(op.attributes.get("mode"), str)
    is_backward = op.name.endswith("_backward")
    if not is_told or len(op.inputs) < 3 + is_backward or not op.outputs:
        return False
    if op.attributes["mode"] == "lstm" and not is_backward and op.outputs[-1] < 1:  # its workspace
        return False
    if is_backward and not {"hidden_gradient", "input_gradient"} <= set(op.attributes):
        return False
    sequence, state = op.inputs[is_backward : 2 + is_backward]
    n_states = 2 if op.attributes["mode"] == "lstm" else 1
    weights = op.inputs[2 + n_states : -2] if is_backward else op.inputs[1 + n_states :]
    return sequence in (2, 3) and state >= 2 and weights.count(2) >= n_layers * n_directions


def _is_rms_norm(op: OpForm) -> bool:
    return len(op.inputs) in (1, 2) and len(op.outputs) == 2


def _is_rms_norm_backward(op: OpForm) -> bool:
    wanted = [op.attributes.get(name) for name in ("input_gradient", "weight_gradient")]
    if not all(isinstance(each, bool) for each in wanted):
        return False
    return len(op.inputs) in (3, 4) and len(op.outputs) == wanted.count(True) >= 1


def _is_label_loss(op: OpForm) -> bool:
    """Its rows are the labels."""
    return len(op.inputs) >= 2 and op.inputs[0] >= 1 and len(op.outputs) >= 1


def _is_normalisation(op: OpForm) -> bool:
    return len(op.inputs) >= (3 if op.name.endswith("_backward") else 1) and len(op.outputs) >= 1


def _is_softmax(op: OpForm) -> bool:
    dim, n_dims = op.attributes.get("dim", -1), max(op.inputs[:1], default=0)
    is_dim = isinstance(dim, int) and -max(n_dims, 1) <= dim < max(n_dims, 1)
    return is_dim and len(op.inputs) >= 1 and len(op.outputs) >= 1


def _is_reduction(op: OpForm) -> bool:
    dims = op.attributes.get("dim")
    listed = [] if dims is None else dims if isinstance(dims, list) else [dims]
    return all(isinstance(dim, int) for dim in listed) and len(op.inputs) >= 1 and len(op.outputs) >= 1


def _is_mean(op: OpForm) -> bool:
    return isinstance(op.attributes.get("dim"), list | None) and _is_reduction(op)


def _is_pooling(op: OpForm) -> bool:
    window = op.attributes.get("kernel_size", [1])
    return _are_whole(window, smallest=1) and len(op.inputs) >= 1 and len(op.outputs) >= 1


def _is_dropout(op: OpForm) -> bool:
    return len(op.inputs) >= 1 and len(op.outputs) == 2


def _is_arithmetic(op: OpForm) -> bool:
    return len(op.inputs) >= 1 and len(op.outputs) >= 1


def _is_request(op: OpForm) -> bool:
    return op.attributes.get("dtype") in CODE and _is_arithmetic(op)


def _has_known_dtype(op: OpForm) -> bool:
    return op.attributes.get("dtype") is None or op.attributes["dtype"] in CODE


_BY_KIND: dict[OpKind, Callable[[OpForm], bool]] = {
    OpKind.GEMM: _is_product,
    OpKind.BATCHED_GEMM: _is_batched_product,
    OpKind.CONVOLUTION: _is_convolution,
    OpKind.CONVOLUTION_BACKWARD: _is_convolution_backward,
    OpKind.ATTENTION: _is_attention,
    OpKind.RECURRENT: _is_recurrent,
    OpKind.NORMALISATION: _is_normalisation,
    OpKind.SOFTMAX: _is_softmax,
    OpKind.REDUCTION: _is_reduction,
    OpKind.POOLING: _is_pooling,
    OpKind.COPY: _has_known_dtype,
    OpKind.FACTORY: _has_known_dtype,
}
_BY_NAME: dict[str, Callable[[OpForm], bool]] = {
    "aten.mm": _is_matrix_product,
    "aten.addmm": _is_matrix_product,
    "aten._addmm_activation": _is_matrix_product,
    "aten._int_mm": _is_matrix_product,
    "aten.mv": _is_vector_product,
    "aten.addmv": _is_vector_product,
    "traincast.attention": _is_own_attention,
    "traincast.attention_backward": _is_own_attention,
    "traincast.grouped_mm": _is_grouped_product,
    "traincast.grouped_mm_weight": _is_grouped_weight,
    "traincast.rms_norm": _is_rms_norm,
    "traincast.rms_norm_backward": _is_rms_norm_backward,
    "traincast.request_dtype": _is_request,
    "aten.native_dropout": _is_dropout,
    "aten.mean": _is_mean,
    "aten.nll_loss_forward": _is_label_loss,
    "aten.nll_loss2d_forward": _is_label_loss,
    "aten.add": _is_arithmetic,
    "aten.div": _is_arithmetic,
}
