"""A copy of the user's model and inputs on meta tensors: shapes without memory. The user's own stay as they are."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from traincast.errors import CaptureError, InputError
from traincast.frontend.capturing.recorder import tensors_in


def meta_copy(module: Any, *, train: bool) -> Any:
    """The module with every parameter and buffer on meta. Tied weights stay tied, frozen ones frozen.

    Copying with a memo never touches the weights, and also reaches the lists in which RNNs keep theirs.
    """
    memo: dict[int, Any] = {}
    for parameter in module.parameters():
        empty = torch.empty_like(parameter, device="meta", requires_grad=False)
        memo[id(parameter)] = torch.nn.Parameter(empty, requires_grad=parameter.requires_grad)
    for buffer in module.buffers():
        memo[id(buffer)] = torch.empty_like(buffer, device="meta")
    try:
        copied = copy.deepcopy(module, memo)
    except (TypeError, RuntimeError) as error:
        raise CaptureError(
            f"{type(module).__name__} cannot be copied ({error}): keep tensors in parameters or buffers, and files, "
            "locks and generators out of the module."
        ) from error
    if train and not copied.training:
        copied.train()
    if not train:
        copied.eval()
    return copied


def batched_example(example: Any) -> Callable[[int], Any]:
    """A callable batch size -> arguments: the user's own, or made from tensors whose first dim is the batch."""
    if callable(example) and not isinstance(example, torch.Tensor):
        return example
    sizes = [tensor.shape[0] for tensor in tensors_in(example) if tensor.dim()]
    if not sizes:
        raise InputError(
            "example holds no tensor with a batch dimension: give a callable batch_size -> inputs, or tensors whose "
            "first dimension is the batch."
        )
    batch = sizes[0]

    def resized(tensor: Any, batch_size: int) -> Any:
        if not tensor.dim() or tensor.shape[0] != batch:
            return tensor
        shape = (batch_size, *tensor.shape[1:])
        return torch.empty(shape, dtype=tensor.dtype, device="meta", requires_grad=tensor.requires_grad)

    return lambda batch_size: map_tensors(example, lambda tensor: resized(tensor, batch_size))


def on_meta(inputs: Any) -> Any:
    """The inputs with every tensor on meta."""

    def moved(tensor: Any) -> Any:
        if tensor.device.type == "meta":
            return tensor
        return torch.empty_like(tensor, device="meta", requires_grad=tensor.requires_grad)

    return map_tensors(inputs, moved)


def call(module: Any, inputs: Any) -> Any:
    """Calls the module with a tensor, a tuple of arguments, or a dict of keyword arguments."""
    if isinstance(inputs, dict):
        return module(**inputs)
    if isinstance(inputs, (tuple, list)):
        return module(*inputs)
    return module(inputs)


def map_tensors(value: Any, change: Callable[[Any], Any]) -> Any:
    """Nested tuples, lists and dicts with every tensor changed; dict-like objects keep their own type."""
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(map_tensors(item, change) for item in value))
    if isinstance(value, (tuple, list)):
        return type(value)(map_tensors(item, change) for item in value)
    if isinstance(value, dict):
        return {key: map_tensors(item, change) for key, item in value.items()}
    return value
