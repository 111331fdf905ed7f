"""ONNX operations that work element by element or reduce: a function (node, *values) for each."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from traincast.frontend.onnx_model.values import axis_of, ints, is_host, number, operands, tensors, torch_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincast.frontend.onnx_model.graph import Node


def _unary(function: Callable[[Any], Any]) -> Callable[..., Any]:
    return lambda node, x: function(x)


def _binary(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Both operands may be numbers to torch's operators, where its functions insist on a tensor first."""
    return lambda node, a, b: function(*operands(a, b))


def _tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, *values: function(*tensors(*values))


def _folded(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda node, *values: reduce(function, tensors(*values) if len(values) > 1 else values)


def _divide(a: Any, b: Any) -> Any:
    whole = all(not (x.is_floating_point() if isinstance(x, torch.Tensor) else isinstance(x, float)) for x in (a, b))
    return torch.div(a, b, rounding_mode="trunc") if whole else a / b


def _modulo(node: Node, a: Any, b: Any) -> Any:
    a, b = operands(a, b)
    return torch.fmod(a, b) if node.get("fmod", 0) else a % b


def _gelu(node: Node, x: Any) -> Any:
    return functional.gelu(x, approximate=node.get("approximate", "none"))


def _hard_sigmoid(node: Node, x: Any) -> Any:
    alpha, beta = node.get("alpha", 0.2), node.get("beta", 0.5)
    if abs(alpha - 1 / 6) < 1e-6 and beta == 0.5:
        return functional.hardsigmoid(x)
    return torch.clamp(alpha * x + beta, 0.0, 1.0)


def _swish(node: Node, x: Any) -> Any:
    alpha = node.get("alpha", 1.0)
    return functional.silu(x) if alpha == 1.0 else x * torch.sigmoid(alpha * x)


def _clip(node: Node, x: Any, low: Any = None, high: Any = None) -> Any:
    low = node.get("min") if low is None else number(low, "The lower bound of a Clip")
    high = node.get("max") if high is None else number(high, "The upper bound of a Clip")
    if low == 0 and high == 6:
        return functional.relu6(x)
    return x if low is None and high is None else torch.clamp(x, low, high)


def _cast(node: Node, x: Any) -> Any:
    return x.to(torch_dtype(node.get("to")))


def _softmax(function: Callable[..., Any]) -> Callable[..., Any]:
    def op(node: Node, x: Any) -> Any:
        if node.opset >= 13:
            return function(x, dim=axis_of(node, node.get("axis", -1), x.dim()))
        axis = axis_of(node, node.get("axis", 1), x.dim())
        if axis == x.dim() - 1:
            return function(x, dim=-1)
        return function(x.flatten(axis), dim=-1).view(x.shape)  # before opset 13: over all axes from there

    return op


def _reduction(function: Callable[..., Any]) -> Callable[..., Any]:
    def op(node: Node, x: Any, axes: Any = None) -> Any:
        chosen = node.get("axes") if axes is None else ints(axes, "The axes of a reduction")
        if not chosen:
            if node.get("noop_with_empty_axes", 0):
                return x
            chosen = range(x.dim())
        return function(x, tuple(axis_of(node, axis, x.dim()) for axis in chosen), bool(node.get("keepdims", 1)))

    return op


def _product(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    for axis in sorted(axes, reverse=True):
        x = torch.prod(x, dim=axis, keepdim=keep)
    return x


def _arg(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, x: function(x, dim=node.get("axis", 0), keepdim=bool(node.get("keepdims", 1)))


def _cumsum(node: Node, x: Any, axis: Any) -> Any:
    dim = ints(axis, "The axis of a CumSum")[0]
    x = x.flip(dim) if node.get("reverse", 0) else x
    total = torch.cumsum(x, dim)
    total = total - x if node.get("exclusive", 0) else total
    return total.flip(dim) if node.get("reverse", 0) else total


def _top_k(node: Node, x: Any, k: Any = None) -> Any:
    count = node.get("k") if k is None else ints(k, "The k of a TopK")[0]
    found = torch.topk(x, count, dim=node.get("axis", -1), largest=bool(node.get("largest", 1)))
    return found.values, found.indices


def _where(node: Node, condition: Any, a: Any, b: Any) -> Any:
    like = next(value for value in (condition, a, b) if isinstance(value, torch.Tensor))
    condition = torch.tensor(condition, device=like.device) if is_host(condition) else condition
    a, b = operands(condition, a, b)[1:]
    return torch.where(condition, a, b)


def _einsum(node: Node, *values: Any) -> Any:
    return torch.einsum(node.get("equation"), *tensors(*values))


def _gemm(node: Node, a: Any, b: Any, c: Any = None) -> Any:
    a, b = tensors(a, b)
    a = a.t() if node.get("transA", 0) else a
    b = b.t() if node.get("transB", 0) else b
    alpha, beta = node.get("alpha", 1.0), node.get("beta", 1.0)
    if c is None:
        return torch.mm(a, b) if alpha == 1.0 else alpha * torch.mm(a, b)
    return torch.addmm(tensors(a, c)[1], a, b, alpha=alpha, beta=beta)


def _lp_norm(node: Node, x: Any) -> Any:
    return functional.normalize(x, p=node.get("p", 2), dim=node.get("axis", -1))


def _log_sum(x: Any, axes: tuple[int, ...], keep: bool) -> Any:
    return torch.log(torch.sum(x, axes, keep))


MATH: dict[str, Callable[..., Any]] = {
    "Abs": _unary(torch.abs),
    "Neg": _unary(torch.neg),
    "Exp": _unary(torch.exp),
    "Log": _unary(torch.log),
    "Sqrt": _unary(torch.sqrt),
    "Reciprocal": _unary(torch.reciprocal),
    "Floor": _unary(torch.floor),
    "Ceil": _unary(torch.ceil),
    "Round": _unary(torch.round),
    "Sign": _unary(torch.sign),
    "Sin": _unary(torch.sin),
    "Cos": _unary(torch.cos),
    "Tan": _unary(torch.tan),
    "Asin": _unary(torch.asin),
    "Acos": _unary(torch.acos),
    "Atan": _unary(torch.atan),
    "Sinh": _unary(torch.sinh),
    "Cosh": _unary(torch.cosh),
    "Tanh": _unary(torch.tanh),
    "Asinh": _unary(torch.asinh),
    "Acosh": _unary(torch.acosh),
    "Atanh": _unary(torch.atanh),
    "Erf": _unary(torch.erf),
    "Sigmoid": _unary(torch.sigmoid),
    "Relu": _unary(torch.relu),
    "Softplus": _unary(functional.softplus),
    "Softsign": _unary(functional.softsign),
    "HardSwish": _unary(functional.hardswish),
    "Mish": _unary(functional.mish),
    "Not": _unary(torch.logical_not),
    "IsNaN": _unary(torch.isnan),
    "IsInf": _unary(torch.isinf),
    "Identity": _unary(lambda x: x),
    "Gelu": _gelu,
    "Swish": _swish,
    "HardSigmoid": _hard_sigmoid,
    "LeakyRelu": lambda node, x: functional.leaky_relu(x, node.get("alpha", 0.01)),
    "Elu": lambda node, x: functional.elu(x, node.get("alpha", 1.0)),
    "Celu": lambda node, x: functional.celu(x, node.get("alpha", 1.0)),
    "Selu": lambda node, x: functional.selu(x),
    "ThresholdedRelu": lambda node, x: functional.threshold(x, node.get("alpha", 1.0), 0.0),
    "Clip": _clip,
    "Cast": _cast,
    "CastLike": lambda node, x, like: x.to(like.dtype),
    "Add": _binary(lambda a, b: a + b),
    "Sub": _binary(lambda a, b: a - b),
    "Mul": _binary(lambda a, b: a * b),
    "Div": _binary(_divide),
    "Pow": _binary(lambda a, b: a**b),
    "Mod": _modulo,
    "Equal": _binary(lambda a, b: a == b),
    "Less": _binary(lambda a, b: a < b),
    "LessOrEqual": _binary(lambda a, b: a <= b),
    "Greater": _binary(lambda a, b: a > b),
    "GreaterOrEqual": _binary(lambda a, b: a >= b),
    "And": _tensors(torch.logical_and),
    "Or": _tensors(torch.logical_or),
    "Xor": _tensors(torch.logical_xor),
    "Max": _folded(torch.maximum),
    "Min": _folded(torch.minimum),
    "Sum": _folded(torch.add),
    "Mean": lambda node, *values: reduce(torch.add, tensors(*values)) / len(values),
    "Where": _where,
    "Softmax": _softmax(torch.softmax),
    "LogSoftmax": _softmax(torch.log_softmax),
    "ReduceSum": _reduction(torch.sum),
    "ReduceMean": _reduction(torch.mean),
    "ReduceMax": _reduction(torch.amax),
    "ReduceMin": _reduction(torch.amin),
    "ReduceProd": _reduction(_product),
    "ReduceL1": _reduction(lambda x, axes, keep: torch.sum(torch.abs(x), axes, keep)),
    "ReduceL2": _reduction(lambda x, axes, keep: torch.linalg.vector_norm(x, 2, axes, keep)),
    "ReduceSumSquare": _reduction(lambda x, axes, keep: torch.sum(x * x, axes, keep)),
    "ReduceLogSum": _reduction(_log_sum),
    "ReduceLogSumExp": _reduction(torch.logsumexp),
    "ArgMax": _arg(torch.argmax),
    "ArgMin": _arg(torch.argmin),
    "CumSum": _cumsum,
    "TopK": _top_k,
    "LpNormalization": _lp_norm,
    "MatMul": _tensors(torch.matmul),
    "Gemm": _gemm,
    "Einsum": _einsum,
}
