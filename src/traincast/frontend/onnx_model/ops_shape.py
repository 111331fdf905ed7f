"""ONNX operations that move, cut and join tensors: a function (node, *values) for each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.nn import functional

from traincast.errors import CaptureError
from traincast.frontend.onnx_model.values import as_tensor, axis_of, ints, is_host, number, tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincast.frontend.onnx_model.graph import Node

FAR = 2**31  # exporters write the end of a slice as the largest integer


def reshape_target(node: Node, given: tuple[int, ...], shape: Any) -> list[int]:
    """The sizes of a Reshape of a tensor of the given shape, with its zeros (keep this axis) filled in."""
    sizes = node.get("shape") if shape is None else ints(shape, f"The shape of the Reshape '{node.name}'")
    if node.get("allowzero", 0):
        return list(sizes)
    return [given[axis] if size == 0 else size for axis, size in enumerate(sizes)]


def _reshape(node: Node, x: Any, shape: Any = None) -> Any:
    return x.reshape(reshape_target(node, x.shape, shape))


def _transpose(node: Node, x: Any) -> Any:
    return x.permute(node.get("perm") or list(range(x.dim()))[::-1])


def _flatten(node: Node, x: Any) -> Any:
    axis = node.get("axis", 1)
    axis = axis if axis == x.dim() else axis_of(node, axis, x.dim())
    if axis == 1:
        return x.flatten(1) if x.dim() > 1 else x.unsqueeze(1)
    rows = int(np.prod(x.shape[:axis], dtype=np.int64))
    return x.reshape(rows, -1)


def _axes(node: Node, axes: Any, n_dims: int) -> list[int] | None:
    chosen = node.get("axes") if axes is None else ints(axes, f"The axes of '{node.name}'")
    return None if chosen is None else sorted(axis_of(node, axis, n_dims) for axis in chosen)


def _squeeze(node: Node, x: Any, axes: Any = None) -> Any:
    chosen = _axes(node, axes, x.dim())
    return x.squeeze() if chosen is None else x.squeeze(tuple(chosen))


def _unsqueeze(node: Node, x: Any, axes: Any = None) -> Any:
    given = node.get("axes") if axes is None else ints(axes, f"The axes of '{node.name}'")
    for axis in _axes(node, axes, x.dim() + len(given)) or []:
        x = x.unsqueeze(axis)
    return x


def _concat(node: Node, *values: Any) -> Any:
    return torch.cat(tensors(*values), dim=node.get("axis", 0))


def _split(node: Node, x: Any, split: Any = None) -> Any:
    axis = node.get("axis", 0)
    sizes = node.get("split") if split is None else ints(split, f"The sizes of '{node.name}'")
    if sizes is not None:
        return torch.split(x, sizes, dim=axis)
    n_parts = node.get("num_outputs", len(node.outputs))
    return torch.split(x, -(-x.shape[axis] // n_parts), dim=axis)


def _slice(node: Node, x: Any, *given: Any) -> Any:
    if given:
        starts, ends = (ints(value, f"A bound of '{node.name}'") for value in given[:2])
    else:
        starts, ends = node.get("starts"), node.get("ends")
    axes = ints(given[2], "axes") if len(given) > 2 and given[2] is not None else node.get("axes")
    steps = ints(given[3], "steps") if len(given) > 3 and given[3] is not None else [1] * len(starts)
    for axis, start, end, step in zip(axes or range(len(starts)), starts, ends, steps, strict=True):
        x = _slice_axis(x, axis_of(node, axis, x.dim()), (start, end, step))
    return x


def _slice_axis(x: Any, axis: int, bounds: tuple[int, int, int]) -> Any:
    size, (start, end, step) = x.shape[axis], bounds
    if step > 0:
        index: list[Any] = [slice(None)] * x.dim()
        index[axis] = slice(start if abs(start) < FAR else None, end if end < FAR else None, step)
        return x if index[axis] == slice(0, None, 1) else x[tuple(index)]
    picked = range(size)[slice(start if start < FAR else None, end if end > -FAR else None, step)]
    if list(picked) == list(range(size))[::-1]:
        return x.flip(axis)
    return x.index_select(axis, torch.tensor(list(picked), device=x.device))


def _expand(node: Node, x: Any, shape: Any) -> Any:
    wanted = ints(shape, f"The shape of the Expand '{node.name}'")
    return x.expand(np.broadcast_shapes(tuple(x.shape), tuple(wanted)))


def _tile(node: Node, x: Any, repeats: Any) -> Any:
    return x.repeat(ints(repeats, f"The repeats of '{node.name}'"))


def _pad(node: Node, x: Any, pads: Any = None, value: Any = None, axes: Any = None) -> Any:
    mode = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}[
        node.get("mode", "constant")
    ]
    sizes = (node.get("pads") or node.get("paddings")) if pads is None else ints(pads, f"The pads of '{node.name}'")
    fill = node.get("value", 0.0) if value is None else number(value, f"The padding value of '{node.name}'")
    chosen = range(x.dim()) if axes is None else [axis_of(node, axis, x.dim()) for axis in ints(axes, "axes")]
    before_after = {axis: (sizes[i], sizes[i + len(sizes) // 2]) for i, axis in enumerate(chosen)}
    flat = [size for axis in reversed(range(x.dim())) for size in before_after.get(axis, (0, 0))]
    while len(flat) > 2 and flat[-2:] == [0, 0]:
        flat = flat[:-2]
    return functional.pad(x, flat, mode=mode, value=fill) if mode == "constant" else functional.pad(x, flat, mode=mode)


def _gather(node: Node, x: Any, indices: Any) -> Any:
    if is_host(x):
        x = as_tensor(x, indices)
    axis = axis_of(node, node.get("axis", 0), x.dim())
    if is_host(indices) and indices.ndim == 0:
        return x.select(axis, int(indices))
    if is_host(indices):
        indices = as_tensor(np.where(indices < 0, indices + x.shape[axis], indices), x)
    if axis == 0 and x.dim() == 2:
        return functional.embedding(indices, x)
    picked = x.index_select(axis, indices.reshape(-1))
    return picked.reshape(*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def _gather_elements(node: Node, x: Any, indices: Any) -> Any:
    x, indices = tensors(x, indices)
    return torch.gather(x, node.get("axis", 0), indices)


def _gather_nd(node: Node, x: Any, indices: Any) -> Any:
    x, indices = tensors(x, indices)
    if node.get("batch_dims", 0):
        raise CaptureError(f"The GatherND '{node.name}' has batch dims, which are not supported.")
    return x[tuple(indices.unbind(-1))]


def _scatter_elements(node: Node, x: Any, indices: Any, updates: Any) -> Any:
    x, indices, updates = tensors(x, indices, updates)
    if node.get("reduction", "none") == "add":
        return torch.scatter_add(x, node.get("axis", 0), indices, updates)
    return torch.scatter(x, node.get("axis", 0), indices, updates)


def _scatter_nd(node: Node, x: Any, indices: Any, updates: Any) -> Any:
    x, indices, updates = tensors(x, indices, updates)
    return torch.index_put(x, indices.unbind(-1), updates, accumulate=node.get("reduction", "none") == "add")


def _depth_to_space(node: Node, x: Any) -> Any:
    block = node.get("blocksize")
    if node.get("mode", "DCR") == "CRD":
        return functional.pixel_shuffle(x, block)
    n, c, h, w = x.shape
    parts = x.reshape(n, block, block, c // block**2, h, w).permute(0, 3, 4, 1, 5, 2)
    return parts.reshape(n, c // block**2, h * block, w * block)


def _space_to_depth(node: Node, x: Any) -> Any:
    block = node.get("blocksize")
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // block, block, w // block, block).permute(0, 3, 5, 1, 2, 4)
    return parts.reshape(n, c * block**2, h // block, w // block)


def _trilu(node: Node, x: Any, k: Any = None) -> Any:
    diagonal = 0 if k is None else int(number(k, f"The diagonal of '{node.name}'"))
    return torch.triu(x, diagonal) if node.get("upper", 1) else torch.tril(x, diagonal)


def _one_hot(node: Node, indices: Any, depth: Any, values: Any) -> Any:
    off, on = (item.item() for item in np.asarray(values).reshape(-1))
    hot = functional.one_hot(indices.long(), int(number(depth, f"The depth of '{node.name}'")))
    hot = hot.movedim(-1, node.get("axis", -1))
    return hot.to(torch.get_default_dtype() if isinstance(on, float) else torch.int64) * (on - off) + off


SHAPE: dict[str, Callable[..., Any]] = {
    "Shape": lambda node, x: np.array(x.shape[node.get("start", 0) : node.get("end")], dtype=np.int64),
    "Size": lambda node, x: np.array(x.numel(), dtype=np.int64),
    "Reshape": _reshape,
    "Transpose": _transpose,
    "Flatten": _flatten,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Expand": _expand,
    "Tile": _tile,
    "Pad": _pad,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "DepthToSpace": _depth_to_space,
    "SpaceToDepth": _space_to_depth,
    "Trilu": _trilu,
    "OneHot": _one_hot,
}
