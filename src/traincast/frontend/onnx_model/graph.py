"""An ONNX file as plain Python: nodes with decoded attributes, constants read only when they are needed."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from traincast.errors import CaptureError, FileFormatError, MissingExtraError, UnknownModelError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_MOST_VALUES = 1 << 52  # of a tensor
SCOPES_KEY = "pkg.torch.onnx.name_scopes"
KIND_KEY = "pkg.torch.export.graph_signature.InputSpec.kind"


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """One operation. An input that is left out has the empty name."""

    op: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    opset: int
    scope: str
    proto: Any = field(repr=False)

    def get(self, name: str, default: Any = None) -> Any:
        return self.attributes.get(name, default)


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphInput:
    """A tensor that the caller gives: its dims are numbers, names, or None where the file says nothing."""

    name: str
    onnx_type: int
    dims: tuple[int | str | None, ...]


class Graph:
    """The nodes of an ONNX model in topological order, and who makes and uses each value."""

    def __init__(self, model: Any, path: Path) -> None:
        self.path = path
        self.opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
        graph = model.graph
        self.initializers = {tensor.name: tensor for tensor in graph.initializer}
        self.initializers |= {p.output[0]: _constant(p) for p in graph.node if p.op_type == "Constant"}
        numbered = [(n, proto) for n, proto in enumerate(graph.node) if proto.op_type != "Constant"]
        taken = Counter(proto.name for _, proto in numbered)
        self.nodes = [_node(proto, n, self.opset, rename=taken[proto.name] > 1) for n, proto in numbered]
        self.inputs = [_input(value, path) for value in graph.input if value.name not in self.initializers]
        self.sparse = tuple(tensor.values.name for tensor in graph.sparse_initializer)
        self.outputs = tuple(value.name for value in graph.output)
        self.output_dims = {value.name: _dims(value) for value in graph.output}
        # What torch's exporter notes about an initializer: PARAMETER or BUFFER.
        self.kinds = {value.name: _metadata(value).get(KIND_KEY, "") for value in graph.value_info}
        self.producers = {output: node for node in self.nodes for output in node.outputs if output}
        self._arrays: dict[str, Any] = {}

    @cached_property
    def users(self) -> dict[str, list[tuple[Node, int]]]:
        users: dict[str, list[tuple[Node, int]]] = {}
        for node in self.nodes:
            for index, name in enumerate(node.inputs):
                users.setdefault(name, []).append((node, index))
        return users

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.initializers[name].dims)

    def is_float(self, name: str) -> bool:
        from onnx import TensorProto

        floats = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE)
        return self.initializers[name].data_type in floats

    def numpy_dtype(self, name: str) -> Any:
        from onnx.helper import tensor_dtype_to_np_dtype

        return tensor_dtype_to_np_dtype(self.initializers[name].data_type)

    def array(self, name: str) -> Any:
        """The values of an initializer, from the file beside the model if that is where they are."""
        if name not in self._arrays:
            self._arrays[name] = _values(self.initializers[name], self.path)
        return self._arrays[name]


def load_graph(path: Path) -> Graph:
    """Read the file without its weights; local functions are written out, and nothing in it is run."""
    try:
        import onnx
        import torch  # noqa: F401
        from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
        from onnx import inliner
    except ImportError as error:
        raise MissingExtraError("An ONNX file", extra="onnx") from error
    if not path.is_file():
        raise UnknownModelError(f"There is no file {path}; an ONNX model is named by the path of its .onnx file.")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except DecodeError as error:
        raise FileFormatError(f"{path} is not an ONNX file, or only a part of one: {error}.") from error
    if not model.graph.node:
        raise FileFormatError(f"{path} holds no ONNX graph: it has no nodes.")
    if model.functions:
        model = inliner.inline_local_functions(model)
    try:
        graph = Graph(model, path)
    except (
        TypeError,
        ValueError,
        LookupError,
        SyntaxError,
    ) as error:  # an attribute without a type, no name of a scope
        raise FileFormatError(f"{path} holds a node or tensor that cannot be read: {error}.") from error
    _check_order(graph)
    for name, tensor in graph.initializers.items():
        if tensor.data_type == onnx.TensorProto.UNDEFINED or tensor.data_type not in onnx.TensorProto.DataType.values():
            raise FileFormatError(
                f"{path}: the tensor '{name}' is of type {tensor.data_type}, which ONNX does not have."
            )
        if min(graph.shape(name), default=0) < 0:
            raise FileFormatError(f"{path}: the tensor '{name}' has a dimension below 0: {graph.shape(name)}.")
        if math.prod(graph.shape(name)) > _MOST_VALUES:
            raise FileFormatError(f"{path}: the tensor '{name}' is larger than any model: {graph.shape(name)}.")
    return graph


def _check_order(graph: Graph) -> None:
    """As ONNX wants it: a node reads what is there before it, and makes what nobody has made. So there is no circle."""
    made = {*graph.initializers, *(value.name for value in graph.inputs), *graph.sparse}
    for node in graph.nodes:
        for name in filter(None, node.inputs):
            if name not in made:
                raise FileFormatError(
                    f"{graph.path}: node '{node.name}' reads '{name}', which nothing before it makes."
                )
        for name in filter(None, node.outputs):
            if name in made:
                raise FileFormatError(f"{graph.path}: node '{node.name}' makes '{name}' a second time.")
            made.add(name)


def _constant(proto: Any) -> Any:
    """The tensor of a Constant node: some exporters keep even their weights in these."""
    from onnx import numpy_helper

    attribute = proto.attribute[0]
    if attribute.name == "value":
        return attribute.t
    if attribute.name in ("value_float", "value_floats"):
        return numpy_helper.from_array(np.array(_attribute(attribute), dtype=np.float32))
    if attribute.name in ("value_int", "value_ints"):
        return numpy_helper.from_array(np.array(_attribute(attribute), dtype=np.int64))
    raise CaptureError(f"The ONNX constant '{proto.output[0]}' is neither a tensor nor a number.")


def _node(proto: Any, number: int, opset: int, *, rename: bool) -> Node:
    name = f"{proto.name or proto.op_type}_{number}" if rename or not proto.name else proto.name
    attributes = {attribute.name: _attribute(attribute) for attribute in proto.attribute}
    op = proto.op_type if proto.domain in ("", "ai.onnx") else f"{proto.domain}.{proto.op_type}"
    return Node(
        op=op,
        name=name,
        inputs=tuple(proto.input),
        outputs=tuple(proto.output),
        attributes=attributes,
        opset=opset,
        scope=_scope(proto, name),
        proto=proto,
    )


def _attribute(attribute: Any) -> Any:
    from onnx import AttributeProto, numpy_helper
    from onnx.helper import get_attribute_value

    if attribute.type == AttributeProto.TENSOR:
        return numpy_helper.to_array(attribute.t)
    value = get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    return list(value) if attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS) else value


def _scope(proto: Any, name: str) -> str:
    """The module that the node came from, as the exporters note it; else the node's own name."""
    scopes = _metadata(proto).get(SCOPES_KEY, "")
    if scopes:
        path = ast.literal_eval(scopes)
        if len(path) > 1 and path[-2]:
            return str(path[-2])
    parts = [part for part in name.split("/") if part]
    if name.startswith("/") and len(parts) > 1:
        return ".".join(re.sub(r"\W", "_", part) for part in ".".join(parts[:-1]).split("."))
    return re.sub(r"\W", "_", name)


def _metadata(proto: Any) -> dict[str, str]:
    return {entry.key: entry.value for entry in getattr(proto, "metadata_props", ())}


def _input(value: Any, path: Path) -> GraphInput:
    if not value.type.HasField("tensor_type"):
        raise CaptureError(f"{path}: the input '{value.name}' is not a tensor, and only tensors can be trained on.")
    return GraphInput(name=value.name, onnx_type=value.type.tensor_type.elem_type, dims=_dims(value))


def _dims(value: Any) -> tuple[int | str | None, ...]:
    dims = value.type.tensor_type.shape.dim
    return tuple(d.dim_value if d.HasField("dim_value") else d.dim_param or None for d in dims)


def _values(tensor: Any, path: Path) -> Any:
    from onnx import TensorProto, checker, numpy_helper
    from onnx.external_data_helper import load_external_data_for_tensor

    try:
        if tensor.data_location == TensorProto.EXTERNAL:
            load_external_data_for_tensor(tensor, str(path.parent))
            tensor.data_location = TensorProto.DEFAULT
        return numpy_helper.to_array(tensor)
    except (OSError, ValueError, TypeError, checker.ValidationError) as error:
        raise FileFormatError(
            f"{path}: the values of '{tensor.name}' cannot be read from the file that holds them: {error}."
        ) from error
