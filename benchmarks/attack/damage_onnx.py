"""Damage to ONNX models that still are valid protobufs: other ops, other names, other shapes and attributes."""

from __future__ import annotations

import contextlib
import random
from typing import Any

from attack.damage_bytes import damaged_bytes

_OPS = (
    "Add", "Gemm", "Conv", "ConvTranspose", "MatMul", "Reshape", "Concat", "Split", "Slice", "Gather", "Resize",
    "If", "Loop", "LSTM", "Softmax", "Transpose", "Squeeze", "Pad", "Expand", "Range", "ConstantOfShape", "Einsum",
    "QuantizeLinear", "Shape", "BatchNormalization", "Dropout", "Cast", "Unsqueeze", "Identity", "Tile",
    "ReduceMean", "Flatten", "Where", "NoSuchOp",
)  # fmt: skip
_NUMBERS = (-1, 0, 1, 2, 3, 7, 64, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63))


def damaged_onnx(data: bytes, rng: random.Random) -> bytes:
    """Of an ONNX file."""
    if rng.random() < 0.25:
        return damaged_bytes(data, rng)
    import onnx

    model = onnx.load_from_string(data)
    for _ in range(rng.choice((1, 1, 2, 3))):
        with contextlib.suppress(IndexError):  # an accident before has emptied what this one wants
            rng.choice(_ACCIDENTS)(model, rng)
    return model.SerializeToString(deterministic=True)


def _op(model: Any, rng: random.Random) -> None:
    rng.choice(model.graph.node).op_type = rng.choice(_OPS)


def _wire(model: Any, rng: random.Random) -> None:
    """An input or output becomes another value: one that comes later, itself, or none."""
    node = rng.choice(model.graph.node)
    ends = rng.choice((node.input, node.output))
    names = [name for one in model.graph.node for name in (*one.input, *one.output)]
    if ends:
        ends[rng.randrange(len(ends))] = rng.choice([*names, "", "nowhere"])


def _ends(model: Any, rng: random.Random) -> None:
    node = rng.choice(model.graph.node)
    if rng.random() < 0.5 and node.input:
        node.input.pop()
    else:
        node.input.append(rng.choice(("x", "w", "shape", "")))


def _attribute(model: Any, rng: random.Random) -> None:
    """Of a node: its numbers, its kind, or its name."""
    attributes = [one for node in model.graph.node for one in node.attribute]
    if not attributes:
        return
    one, how = rng.choice(attributes), rng.randrange(4)
    if how == 0:
        one.name = rng.choice(("axis", "group", "dilations", "strides", "pads", "perm", "body", ""))
    elif how == 1:
        one.type = rng.randrange(0, 14)
    elif how == 2 and one.ints:
        one.ints.pop()
    elif one.ints:
        one.ints[rng.randrange(len(one.ints))] = rng.choice(_NUMBERS)


def _weight(model: Any, rng: random.Random) -> None:
    """Of an initializer: its shape, its type, its name, or its bytes."""
    tensor, how = rng.choice(model.graph.initializer), rng.randrange(5)
    if how == 0 and tensor.dims:
        tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(_NUMBERS)
    elif how == 1:
        tensor.data_type = rng.randrange(0, 30)
    elif how == 2:
        tensor.name = rng.choice(("x", "y", "", "w"))
    elif how == 3:
        tensor.raw_data = tensor.raw_data[: rng.randrange(len(tensor.raw_data) + 1)]
    else:
        tensor.raw_data = rng.randbytes(len(tensor.raw_data))


def _shape(model: Any, rng: random.Random) -> None:
    """Of an input or output of the whole."""
    value = rng.choice((*model.graph.input, *model.graph.output))
    dims = value.type.tensor_type.shape.dim
    how = rng.randrange(4)
    if how == 0:
        value.type.tensor_type.elem_type = rng.randrange(0, 30)
    elif how == 1:
        value.ClearField("type")
    elif dims and how == 2:
        dims.pop()
    elif dims:
        dims[rng.randrange(len(dims))].dim_value = rng.choice(_NUMBERS)


def _nodes(model: Any, rng: random.Random) -> None:
    """Left out, written twice, or in another order."""
    nodes, how = list(model.graph.node), rng.randrange(3)
    if how == 0:
        nodes.pop(rng.randrange(len(nodes)))
    elif how == 1:
        nodes.append(rng.choice(nodes))
    else:
        rng.shuffle(nodes)
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _opset(model: Any, rng: random.Random) -> None:
    if rng.random() < 0.5:
        del model.opset_import[:]
    else:
        model.opset_import[0].version = rng.choice((0, 1, 6, 99, 2**40))


def _empty(model: Any, rng: random.Random) -> None:
    model.graph.ClearField(rng.choice(("node", "input", "output", "initializer")))


_ACCIDENTS = (_op, _op, _wire, _wire, _ends, _attribute, _attribute, _weight, _weight, _shape, _nodes, _opset, _empty)
