"""ONNX nodes that own weights, as the torch layers that a training script would have.

A builder takes (node, parameters) and gives a module, or None if this node must run as a plain function. The
module is called with the node's remaining inputs: those that are not weights.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from traincast.frontend.onnx_model.ops_nn import pad_spatial, spatial_pads
from traincast.frontend.onnx_model.values import as_tensor, to_tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from traincast.frontend.onnx_model.graph import Node
    from traincast.frontend.onnx_model.weights import Source, TrainedWeights

CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)


class Parameters:
    """One nn.Parameter for each source, however many nodes use it: tied weights stay tied."""

    def __init__(self, weights: TrainedWeights) -> None:
        self.weights = weights
        self._made: dict[str, tuple[Any, bool]] = {}

    def source(self, node: Node, index: int) -> Source | None:
        return self.weights.of(node, index)

    def shape(self, node: Node, index: int) -> tuple[int, ...]:
        source = self.weights.of(node, index)
        return () if source is None else self.weights.shape(source)

    def take(self, source: Source, *, swap: bool = False) -> tuple[Any, bool]:
        """The parameter, and whether the caller has to swap its two axes at run time.

        The first taker decides how it is stored, so that a layer keeps its weight in torch's own layout.
        """
        swapped = source.swapped != swap
        if source.name not in self._made:
            values = self.values(source)
            parameter = values.t().contiguous() if swap else values
            self._made[source.name] = (nn.Parameter(parameter), swapped)
        parameter, stored = self._made[source.name]
        return parameter, stored != swapped

    def values(self, source: Source) -> Any:
        """The tensor of an operand: on meta, unless the weights were asked for."""
        if self.weights.with_values:
            return to_tensor(self.weights.values(source))
        dtype = to_tensor(np.empty(0, self.weights.dtype(source.name))).dtype
        return torch.empty(self.weights.shape(source), dtype=dtype, device="meta")


class SwappedLinear(nn.Module):
    """A linear layer whose weight is tied to a tensor of the other layout."""

    def __init__(self, weight: Any, bias: Any) -> None:
        super().__init__()
        self.weight, self.bias = weight, bias

    def forward(self, x: Any) -> Any:
        return functional.linear(x, self.weight.t(), self.bias)


class BatchNorm(nn.modules.batchnorm._BatchNorm):
    """Batch norm of any rank: ONNX does not write the rank down."""

    def _check_input_dim(self, x: Any) -> None:
        """Every rank will do."""


class UnevenConv(nn.Module):
    """A convolution that pads more on one side than on the other, or so as to keep the size."""

    def __init__(self, conv: Any, node: Node) -> None:
        super().__init__()
        self.conv, self.node = conv, node

    def forward(self, x: Any) -> Any:
        before, after = spatial_pads(self.node, x, list(self.conv.kernel_size))
        return self.conv(pad_spatial(x, before, after))


class Norm(nn.Module):
    """Layer, group, instance and root-mean-square normalisation: the node says which."""

    def __init__(self, node: Node, weight: Any, bias: Any) -> None:
        super().__init__()
        self.node, self.weight, self.bias = node, weight, bias

    def forward(self, x: Any) -> Any:
        eps = self.node.get("epsilon", 1e-5)
        if self.node.op == "LayerNormalization":
            return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, eps)
        if self.node.op == "RMSNormalization":
            return functional.rms_norm(x, self.weight.shape, self.weight, eps)
        if self.node.op == "InstanceNormalization":
            return functional.instance_norm(x, weight=self.weight, bias=self.bias, eps=eps)
        n_groups, n_channels = self.node.get("num_groups"), x.shape[1]
        weight, bias = self.weight, self.bias
        if weight.numel() != n_channels:  # opset 18: one scale a group, not a channel
            weight, bias = (part.repeat_interleave(n_channels // n_groups) for part in (weight, bias))
        return functional.group_norm(x, n_groups, weight, bias, eps)


class PRelu(nn.Module):
    """A slope a channel, without the axes that ONNX gives it to broadcast."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, x: Any) -> Any:
        return functional.prelu(x, self.weight.reshape(-1))


class Embedding(nn.Module):
    """Rows of a table."""

    def __init__(self, weight: Any) -> None:
        super().__init__()
        self.weight = weight

    def forward(self, indices: Any) -> Any:
        return functional.embedding(as_tensor(indices, self.weight), self.weight)


def linear(parameters: Parameters, weight: Source, bias: Source | None, *, swap: bool) -> Any:
    """A layer that multiplies by a weight of (in, out) if `swap`, else of (out, in)."""
    kernel, swapped = parameters.take(weight, swap=swap)
    shift = parameters.take(bias)[0] if bias is not None else None
    if swapped:
        return SwappedLinear(kernel, shift)
    layer = nn.Linear(kernel.shape[1], kernel.shape[0], bias=shift is not None, device="meta")
    layer.weight = kernel
    if shift is not None:
        layer.bias = shift
    return layer


def _conv(node: Node, parameters: Parameters) -> Any:
    weight, bias = parameters.source(node, 1), parameters.source(node, 2)
    if weight is None or (bias is None and len(node.inputs) > 2 and node.inputs[2]):
        return None
    kernel = parameters.take(weight)[0]
    n, group = kernel.dim() - 2, node.get("group", 1)
    pads = node.get("pads") or [0] * (2 * n)
    even = node.get("auto_pad", "NOTSET") in ("NOTSET", "VALID") and pads[:n] == pads[n:]
    options: dict[str, Any] = {
        "stride": tuple(node.get("strides") or [1] * n),
        "padding": tuple(pads[:n]) if even and node.get("auto_pad", "NOTSET") == "NOTSET" else 0,
        "dilation": tuple(node.get("dilations") or [1] * n),
        "groups": group,
        "bias": bias is not None,
        "device": "meta",
    }
    size = tuple(kernel.shape[2:])
    if node.op == "ConvTranspose":
        if not even or node.get("output_shape"):
            return None
        options["output_padding"] = tuple(node.get("output_padding") or [0] * n)
        layer = TRANSPOSED[n - 1](kernel.shape[0], kernel.shape[1] * group, size, **options)
    else:
        layer = CONVOLUTIONS[n - 1](kernel.shape[1] * group, kernel.shape[0], size, **options)
    layer.weight = kernel
    if bias is not None:
        layer.bias = parameters.take(bias)[0]
    return layer if even else UnevenConv(layer, node)


def _gemm(node: Node, parameters: Parameters) -> Any:
    weight, bias = parameters.source(node, 1), parameters.source(node, 2)
    has_bias = len(node.inputs) > 2 and bool(node.inputs[2])
    plain = node.get("alpha", 1.0) == 1.0 and node.get("beta", 1.0) == 1.0 and not node.get("transA", 0)
    if weight is None or not plain or (has_bias and (bias is None or len(parameters.shape(node, 2)) != 1)):
        return None
    return linear(parameters, weight, bias, swap=not node.get("transB", 0))


def _matmul(node: Node, parameters: Parameters) -> Any:
    weight = parameters.source(node, 1)
    if weight is None or len(parameters.shape(node, 1)) != 2:
        return None
    return linear(parameters, weight, None, swap=True)


def _batch_norm(node: Node, parameters: Parameters) -> Any:
    weight, bias = parameters.source(node, 1), parameters.source(node, 2)
    if weight is None or bias is None:
        return None
    graph, values = parameters.weights.graph, parameters.weights.with_values
    layer = BatchNorm(
        parameters.shape(node, 1)[0], node.get("epsilon", 1e-5), 1 - node.get("momentum", 0.9), device="meta"
    )
    layer.weight, layer.bias = parameters.take(weight)[0], parameters.take(bias)[0]
    if values and all(name in graph.initializers for name in node.inputs[3:5]):
        layer.running_mean, layer.running_var = (to_tensor(graph.array(name)) for name in node.inputs[3:5])
        layer.num_batches_tracked = torch.tensor(0)
    return layer


def _norm(node: Node, parameters: Parameters) -> Any:
    weight, bias = parameters.source(node, 1), parameters.source(node, 2)
    if weight is None:
        return Norm(node, None, None) if node.op == "InstanceNormalization" else None
    return Norm(node, parameters.take(weight)[0], parameters.take(bias)[0] if bias is not None else None)


def _prelu(node: Node, parameters: Parameters) -> Any:
    slope = parameters.source(node, 1)
    return None if slope is None else PRelu(parameters.take(slope)[0])


def _embedding(node: Node, parameters: Parameters) -> Any:
    table = parameters.source(node, 0)
    if table is None or len(parameters.shape(node, 0)) != 2 or node.get("axis", 0):
        return None
    weight, swapped = parameters.take(table)
    return None if swapped else Embedding(weight)


LAYERS: dict[str, Callable[[Node, Parameters], Any]] = {
    "Conv": _conv,
    "ConvTranspose": _conv,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "BatchNormalization": _batch_norm,
    "LayerNormalization": _norm,
    "RMSNormalization": _norm,
    "InstanceNormalization": _norm,
    "GroupNormalization": _norm,
    "PRelu": _prelu,
    "Gather": _embedding,
}
