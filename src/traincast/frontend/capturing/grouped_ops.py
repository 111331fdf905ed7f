"""Products of experts as single ops: rows sorted by expert, each block of rows times the matrix of its expert.

`torch._grouped_mm`, Megatron's grouped GEMM and Megablocks run it so. How many rows an expert has is decided by the
router; shapes need the sum alone, and time is that of a balanced router.
"""

from __future__ import annotations

from typing import Any

import torch

from traincast.frontend.capturing.fused_ops import NAMESPACE

_library = torch.library.Library(NAMESPACE, "FRAGMENT")
_library.define("grouped_mm(Tensor rows, Tensor weight, bool transposed=False) -> Tensor")
_library.define("grouped_mm_weight(Tensor rows, Tensor grad, int n_experts) -> Tensor")


def grouped_product(rows: Any, weight: Any) -> Any:
    """(rows, in) times (experts, in, out)."""
    return torch.ops.traincast.grouped_mm(rows, weight)


@torch.library.register_fake(f"{NAMESPACE}::grouped_mm", lib=_library)
def _grouped_mm(rows: Any, weight: Any, transposed: bool = False) -> Any:
    return rows.new_empty((rows.shape[0], weight.shape[1] if transposed else weight.shape[2]))


@torch.library.register_fake(f"{NAMESPACE}::grouped_mm_weight", lib=_library)
def _grouped_mm_weight(rows: Any, grad: Any, n_experts: int) -> Any:
    return rows.new_empty((n_experts, rows.shape[1], grad.shape[1]))


def _context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    rows, weight, _ = inputs
    ctx.save_for_backward(rows, weight)


def _derivative(ctx: Any, grad: Any) -> tuple[Any, ...]:
    rows, weight = ctx.saved_tensors
    row_gradient = torch.ops.traincast.grouped_mm(grad, weight, True) if ctx.needs_input_grad[0] else None
    weight_gradient = None
    if ctx.needs_input_grad[1]:
        weight_gradient = torch.ops.traincast.grouped_mm_weight(rows, grad, weight.shape[0])
    return row_gradient, weight_gradient, None


torch.library.register_autograd(f"{NAMESPACE}::grouped_mm", _derivative, setup_context=_context, lib=_library)
