"""The two kinds of values in a running ONNX graph: tensors on the device, and numpy arrays on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from traincast.errors import CaptureError, DataDependentError

if TYPE_CHECKING:
    from traincast.frontend.onnx_model.graph import Node


def is_host(value: Any) -> bool:
    return isinstance(value, (np.ndarray, np.generic))


def to_tensor(array: Any) -> Any:
    """A numpy array as a tensor of its own; numpy's stand-in for bfloat16 is unknown to torch."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.astype(np.float32)).to(torch.bfloat16)
    try:
        return torch.from_numpy(np.array(array))
    except TypeError:
        raise CaptureError(
            f"The model holds numbers of type {array.dtype.name}, which torch does not compute with."
        ) from None


def as_tensor(value: Any, like: Any) -> Any:
    """A host value as a tensor beside another; tensors stay as they are."""
    return to_tensor(value).to(like.device) if is_host(value) else value


def operands(*values: Any) -> list[Any]:
    """Operands of an elementwise op: single numbers stay Python numbers, as a model's own code has them."""
    like = next(value for value in values if isinstance(value, torch.Tensor))
    return [_number(value, like) if is_host(value) else value for value in values]


def tensors(*values: Any) -> list[Any]:
    like = next(value for value in values if isinstance(value, torch.Tensor))
    return [as_tensor(value, like) for value in values]


def ints(value: Any, what: str) -> list[int]:
    """Sizes, axes or steps, which must be known without running the device."""
    if isinstance(value, torch.Tensor):
        raise DataDependentError(f"{what} is computed from the values of a tensor, which a capture does not have.")
    return [int(item) for item in np.asarray(value).reshape(-1)]


def axis_of(node: Node, axis: int, n_dims: int) -> int:
    """The axis of a tensor with so many, counted from its first; one that it does not have is a broken file."""
    if not -n_dims <= axis < n_dims:
        raise CaptureError(f"The {node.op} '{node.name}' asks for axis {axis} of a tensor with {n_dims} dimensions.")
    return axis % n_dims


def number(value: Any, what: str) -> Any:
    """One number that must be known without running the device."""
    if isinstance(value, torch.Tensor):
        raise DataDependentError(f"{what} is computed from the values of a tensor, which a capture does not have.")
    return np.asarray(value).reshape(-1)[0].item()


def torch_dtype(onnx_type: int) -> Any:
    """The torch dtype of an ONNX element type."""
    from onnx import TensorProto

    names = {
        TensorProto.FLOAT: torch.float32,
        TensorProto.DOUBLE: torch.float64,
        TensorProto.FLOAT16: torch.float16,
        TensorProto.BFLOAT16: torch.bfloat16,
        TensorProto.INT64: torch.int64,
        TensorProto.INT32: torch.int32,
        TensorProto.INT16: torch.int16,
        TensorProto.INT8: torch.int8,
        TensorProto.UINT8: torch.uint8,
        TensorProto.BOOL: torch.bool,
    }
    if onnx_type not in names:
        called = dict(zip(TensorProto.DataType.values(), TensorProto.DataType.keys(), strict=True)).get(
            onnx_type, onnx_type
        )
        raise CaptureError(f"ONNX tensors of type {called} cannot be trained on.")
    return names[onnx_type]


def _number(value: Any, like: Any) -> Any:
    small = value.size == 1 and value.ndim <= like.dim()
    return value.reshape(-1)[0].item() if small else as_tensor(value, like)
