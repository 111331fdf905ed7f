"""Shapes of an op's outputs, remembered: layers repeat, and PyTorch's own shape functions are slow Python."""

from __future__ import annotations

from typing import Any

import torch

from traincast.frontend.capturing.recorder import tensors_in


class MetaCache:
    """Runs ops on meta tensors; where op, shapes and arguments were seen before, only the outputs are made."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func.is_view or func._schema.is_mutable:
            return func(*args, **kwargs)
        try:
            key = (func, _frozen(args), _frozen(kwargs))
            known = self._known.get(key)
        except TypeError:  # an argument that cannot be a key
            return func(*args, **kwargs)
        if known is not None:
            return _make(known)
        output = func(*args, **kwargs)
        spec = _spec(output)
        if spec is not None and _is_fresh(output, (args, kwargs)):
            self._known[key] = spec
        return output


def _frozen(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (value.shape, value.stride(), value.dtype)
    if isinstance(value, (list, tuple)):
        return tuple([_frozen(item) for item in value])
    if isinstance(value, dict):
        return tuple([(name, _frozen(item)) for name, item in value.items()])
    return (type(value), value)  # 1, 1.0 and True are equal, but not the same argument


def _spec(output: Any) -> Any:
    if isinstance(output, torch.Tensor):
        return (output.shape, output.stride(), output.dtype)
    if isinstance(output, (list, tuple)) and all(item is None or isinstance(item, torch.Tensor) for item in output):
        return [None if item is None else _spec(item) for item in output]
    return None


def _make(spec: Any) -> Any:
    if isinstance(spec, list):
        return tuple([None if item is None else _make(item) for item in spec])
    shape, stride, dtype = spec
    return torch.empty_strided(shape, stride, dtype=dtype, device="meta")


def _is_fresh(output: Any, inputs: Any) -> bool:
    """Whether every output has a storage of its own, just as large as itself: only then can it be made anew."""
    taken = {tensor.untyped_storage()._cdata for tensor in tensors_in(inputs)}
    for tensor in tensors_in(output):
        storage = tensor.untyped_storage()
        if storage._cdata in taken or tensor.storage_offset() or storage.nbytes() != tensor.numel() * tensor.itemsize:
            return False
        taken.add(storage._cdata)
    return True
