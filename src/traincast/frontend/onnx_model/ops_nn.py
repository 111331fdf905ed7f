"""ONNX operations of neural networks without weights: pooling, resizing, attention, losses."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional

from traincast.errors import CaptureError
from traincast.frontend.onnx_model.values import ints, is_host, tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincast.frontend.onnx_model.graph import Node

POOLS: dict[str, tuple[Any, ...]] = {
    "MaxPool": (functional.max_pool1d, functional.max_pool2d, functional.max_pool3d),
    "AveragePool": (functional.avg_pool1d, functional.avg_pool2d, functional.avg_pool3d),
}
CONVOLUTIONS: tuple[Any, ...] = (functional.conv1d, functional.conv2d, functional.conv3d)


def spatial_pads(node: Node, x: Any, kernel: list[int]) -> tuple[list[int], list[int]]:
    """How much to add before and after each spatial axis."""
    n = len(kernel)
    mode = node.get("auto_pad", "NOTSET")
    if mode in ("NOTSET", "VALID"):
        pads = node.get("pads") or [0] * (2 * n)
        return (pads[:n], pads[n:]) if mode == "NOTSET" else ([0] * n, [0] * n)
    strides, dilations = node.get("strides") or [1] * n, node.get("dilations") or [1] * n
    before, after = [], []
    for size, width, stride, dilation in zip(x.shape[2:], kernel, strides, dilations, strict=True):
        total = max((math.ceil(size / stride) - 1) * stride + (width - 1) * dilation + 1 - size, 0)
        small, large = total // 2, total - total // 2
        before.append(large if mode == "SAME_LOWER" else small)
        after.append(small if mode == "SAME_LOWER" else large)
    return before, after


def pad_spatial(x: Any, before: list[int], after: list[int], value: float = 0.0) -> Any:
    flat = [size for pair in zip(reversed(before), reversed(after), strict=True) for size in pair]
    return functional.pad(x, flat, value=value)


def _pool(node: Node, x: Any) -> Any:
    kernel = node.get("kernel_shape")
    strides = node.get("strides") or [1] * len(kernel)
    before, after = spatial_pads(node, x, kernel)
    function = POOLS[node.op][len(kernel) - 1]
    options: dict[str, Any] = {"stride": strides, "ceil_mode": bool(node.get("ceil_mode", 0))}
    average = node.op == "AveragePool"
    if before != after or any(2 * pad > size for pad, size in zip(before, kernel, strict=True)):
        if average and not node.get("count_include_pad", 0):
            raise CaptureError(f"The AveragePool '{node.name}' pads unevenly and does not count the padding.")
        x = pad_spatial(x, before, after, 0.0 if average else -math.inf)
    else:
        options["padding"] = before
    if average:
        return function(x, kernel, count_include_pad=bool(node.get("count_include_pad", 0)), **options)
    return function(x, kernel, dilation=node.get("dilations") or 1, **options)


def _global_pool(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda node, x: function(x, tuple(range(2, x.dim())), True)


def _resize(node: Node, x: Any, *given: Any) -> Any:
    sizes = given[2] if node.op == "Resize" and len(given) > 2 else None
    scales = given[-1] if node.op == "Upsample" and given else given[1] if len(given) > 1 else None
    if sizes is not None:
        target = ints(sizes, f"The sizes of '{node.name}'")
    else:
        factors = node.get("scales") if scales is None else [float(factor) for factor in scales]
        target = [math.floor(size * factor) for size, factor in zip(x.shape[-len(factors) :], factors, strict=True)]
    spatial = target[-(x.dim() - 2) :]
    mode = node.get("mode", "nearest")
    if mode == "nearest":
        return functional.interpolate(x, spatial, mode="nearest")
    aligned = node.get("coordinate_transformation_mode", "half_pixel") == "align_corners"
    name = {
        ("linear", 3): "linear",
        ("linear", 4): "bilinear",
        ("linear", 5): "trilinear",
        ("cubic", 4): "bicubic",
    }
    if (mode, x.dim()) not in name:
        raise CaptureError(f"The {node.op} '{node.name}' of mode '{mode}' on {x.dim()} axes is not supported.")
    return functional.interpolate(x, spatial, mode=name[mode, x.dim()], align_corners=aligned)


def _convolve(node: Node, x: Any, weight: Any, bias: Any = None) -> Any:
    """A convolution whose kernel is computed, not stored."""
    x, weight = tensors(x, weight)
    n = weight.dim() - 2
    before, after = spatial_pads(node, x, list(weight.shape[2:]))
    x, padding = (x, before) if before == after else (pad_spatial(x, before, after), [0] * n)
    strides, dilations = node.get("strides") or [1] * n, node.get("dilations") or [1] * n
    return CONVOLUTIONS[n - 1](x, weight, bias, strides, padding, dilations, node.get("group", 1))


def _attention(node: Node, *values: Any) -> Any:
    """Attention of opset 23, without a cache of earlier keys."""
    query, key, value = values[:3]
    if any(given is not None for given in values[4:]):
        raise CaptureError(f"The Attention '{node.name}' reads a cache of earlier keys, which training does not have.")
    merged = query.dim() == 3
    if merged:
        query = _heads(query, node.get("q_num_heads"))
        key, value = (_heads(part, node.get("kv_num_heads")) for part in (key, value))
    mask = values[3] if len(values) > 3 else None
    out = functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=None if mask is None else tensors(query, mask)[1],
        is_causal=bool(node.get("is_causal", 0)),
        scale=node.get("scale"),
        enable_gqa=query.shape[1] != key.shape[1],
    )
    return out.transpose(1, 2).flatten(2) if merged else out


def _heads(x: Any, n_heads: int) -> Any:
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


def _cross_entropy(node: Node, scores: Any, labels: Any, weight: Any = None) -> Any:
    options = {"ignore_index": node.get("ignore_index", -100), "reduction": node.get("reduction", "mean")}
    if is_host(weight):
        weight = tensors(scores, weight)[1]
    if node.op == "NegativeLogLikelihoodLoss":
        return functional.nll_loss(scores, labels.long(), weight, **options)
    loss = functional.cross_entropy(scores, labels.long(), weight, **options)
    return (loss, torch.log_softmax(scores, dim=1)) if len(node.outputs) > 1 else loss


def _local_response(node: Node, x: Any) -> Any:
    return functional.local_response_norm(
        x, node.get("size"), node.get("alpha", 1e-4), node.get("beta", 0.75), node.get("bias", 1.0)
    )


def _mean_variance(node: Node, x: Any) -> Any:
    axes = node.get("axes", [0, 2, 3])
    centred = x - x.mean(axes, keepdim=True)
    return centred / (centred.square().mean(axes, keepdim=True).sqrt() + 1e-9)


NETWORK: dict[str, Callable[..., Any]] = {
    "MaxPool": _pool,
    "AveragePool": _pool,
    "GlobalAveragePool": _global_pool(torch.mean),
    "GlobalMaxPool": _global_pool(torch.amax),
    "Resize": _resize,
    "Upsample": _resize,
    "Conv": _convolve,
    "Attention": _attention,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
    "NegativeLogLikelihoodLoss": _cross_entropy,
    "LRN": _local_response,
    "MeanVarianceNormalization": _mean_variance,
}
