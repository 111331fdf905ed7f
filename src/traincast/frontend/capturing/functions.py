"""Sees calls before PyTorch takes them apart: fused layers, dropout, and explicit requests for a dtype.

A request such as `.float()` does nothing to an fp32 tensor and leaves no op behind, yet in a bf16 run it is a cast.
So each one is recorded, as an alias that carries the dtype asked for.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from traincast.frontend.capturing import fused_ops  # noqa: F401  (defines torch.ops.traincast)
from traincast.frontend.capturing.gradients import watch_gradients
from traincast.frontend.capturing.recorder import Recorder, runs_forward_again, tensors_in
from traincast.trace.graph import Phase

_SHORT_CASTS = {
    "float": torch.float32,
    "half": torch.float16,
    "bfloat16": torch.bfloat16,
    "double": torch.float64,
}
# Functions that convert their input first when they are given a dtype.
_TAKE_DTYPE = {
    "softmax",
    "log_softmax",
    "_softmax",
    "sum",
    "mean",
    "cumsum",
    "prod",
    "norm",
    "linalg_vector_norm",
}
# Functions that autocast sees whole although they dispatch several ops.
_CALLS = {
    "linear",
    "matmul",
    "__matmul__",
    "__rmatmul__",
    "einsum",
    "cross_entropy",
    "chain_matmul",
    "multi_dot",
}
_RNN_MODES = {"lstm", "gru", "rnn_tanh", "rnn_relu"}


def _without_override_check(function: types.FunctionType) -> types.FunctionType:
    """The same function, but calls inside it are seen by a function mode although the call itself already was."""
    checks = ("has_torch_function", "has_torch_function_unary")
    names = {**function.__globals__, **dict.fromkeys(checks, lambda _: False)}
    copied = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__)
    copied.__kwdefaults__ = function.__kwdefaults__
    return copied


# Functions that run a model's Python: PyTorch hides what a seen call does from the mode that saw it, but these must
# be seen through. A backward pass runs checkpointed blocks again, and they must take the same ops as the first time.
_SEEN_THROUGH = {
    function: _without_override_check(function)
    for function in (
        torch.nn.functional.multi_head_attention_forward,
        torch.Tensor.backward,
        torch.autograd.backward,
        torch.autograd.grad,
    )
}


class FunctionWatcher(TorchFunctionMode):
    """Redirects fused layers and notes dtype requests in `requests`, in the order in which they are made."""

    def __init__(self, recorder: Recorder | None) -> None:
        super().__init__()
        self.recorder = recorder
        self.requests: list[torch.dtype] = []

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if self.recorder is None or self.recorder.phase != Phase.BACKWARD or self.recorder.is_recomputing:
            return self._watch(func, args, kwargs)
        # Noted here because an op with a derivative in Python switches gradients off before it is dispatched.
        self.recorder.is_recomputing = runs_forward_again() and func not in _SEEN_THROUGH
        try:
            return self._watch(func, args, kwargs)
        finally:
            self.recorder.is_recomputing = False

    def _watch(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        name = getattr(func, "__name__", "")
        if name == "scaled_dot_product_attention":
            return _attention(*args, **kwargs)
        if name == "rms_norm":
            return _rms_norm(*args, **kwargs)
        if name in _RNN_MODES and len(args) == 9:
            return _recurrent(name, args)
        if func is torch.nn.functional.dropout or name in {"dropout", "dropout_"}:
            return _dropout(func, args, kwargs)
        if func in _SEEN_THROUGH:
            if func is torch.autograd.backward:
                self._watch_inner(args[0])
            with self:
                return _SEEN_THROUGH[func](*args, **kwargs)
        if name in _CALLS and self.recorder is not None:
            with self.recorder.calling(name.strip("_").replace("rmatmul", "matmul")):
                return func(*args, **kwargs)
        dtype = _requested(name, args, kwargs)
        if dtype is None or not args or not args[0].is_floating_point() or not dtype.is_floating_point:
            return func(*args, **kwargs)
        self.requests.append(dtype)
        if args[0].dtype != dtype:
            return func(*args, **kwargs)
        if name in _TAKE_DTYPE:
            kwargs = {key: value for key, value in kwargs.items() if key != "dtype"}
            return func(self._alias(args[0], dtype), *args[1:], **kwargs)
        result = func(*args, **kwargs)
        return self._alias(result, dtype) if result is args[0] else result

    def _watch_inner(self, outputs: Any) -> None:
        """A backward pass within one is that of a block just recomputed, whose graph was not there before."""
        if self.recorder is not None and torch._C._current_autograd_node() is not None:
            for output in tensors_in(outputs):
                if output.grad_fn is not None:
                    watch_gradients(output.grad_fn, self.recorder)

    def _alias(self, tensor: Any, dtype: torch.dtype) -> Any:
        if self.recorder is None:
            return tensor
        shown = str(dtype).removeprefix("torch.")
        self.recorder.pending_request = {"dtype": shown, "request": len(self.requests) - 1}
        try:
            aliased = torch.ops.aten.alias.default(tensor)
            self.recorder.identify(aliased, self.recorder.recording.op_outputs[-1][0])
        finally:
            self.recorder.pending_request = None
        return aliased


def _requested(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> torch.dtype | None:
    if not args or not isinstance(args[0], torch.Tensor):
        return None
    if name in _SHORT_CASTS:
        return _SHORT_CASTS[name]
    dtype = kwargs.get("dtype")
    if name in _TAKE_DTYPE:
        return dtype if isinstance(dtype, torch.dtype) else None
    if name in {"to", "type", "type_as"}:
        for value in (dtype, *args[1:]):
            if isinstance(value, torch.dtype):
                return value
            if isinstance(value, torch.Tensor):
                return value.dtype
    return None


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **_: Any,
) -> Any:
    # Scale and grouped heads change neither shapes nor products: each query head meets one key head.
    bias = attn_mask
    if bias is not None and bias.dtype == torch.bool:
        bias = torch.zeros_like(bias, dtype=query.dtype).masked_fill_(bias.logical_not(), float("-inf"))
    return torch.ops.traincast.attention(query, key, value, bias, float(dropout_p), bool(is_causal))[0]


def _rms_norm(input: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    """CUDA runs it as one op; elsewhere PyTorch takes it apart."""
    return torch.ops.traincast.rms_norm(input, weight, len(normalized_shape))[0]


def _recurrent(mode: str, args: tuple[Any, ...]) -> Any:
    packed = isinstance(args[3], (list, tuple))  # (data, batch_sizes, hidden, weights, ...) for packed sequences
    if packed:
        data, _, hidden, weights, _, n_layers, _, train, bidirectional = args
        batch_first = False
    else:
        data, hidden, weights, _, n_layers, _, train, bidirectional, batch_first = args
    states = list(hidden) if isinstance(hidden, (tuple, list)) else [hidden]
    directions = 2 if bidirectional else 1
    output, state, cell, _ = torch.ops.traincast.rnn(
        data, states, list(weights), mode, n_layers, directions, bool(train), bool(batch_first)
    )
    return (output, state, cell) if mode == "lstm" else (output, state)


def _dropout(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """CUDA runs dropout as one op with a bool mask; elsewhere PyTorch takes it apart."""
    names = ("input", "p", "train" if "train" in kwargs else "training", "inplace")
    given = dict(zip(names, args, strict=False)) | kwargs
    p = given.get("p", 0.5)
    if not given.get("training", given.get("train", True)) or p == 0 or given["input"].numel() == 0:
        return given["input"]
    return torch.ops.aten.native_dropout.default(given["input"], p, True)[0]
