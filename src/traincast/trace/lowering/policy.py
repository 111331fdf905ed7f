"""What autocast does to each op, by backend and by the name of the op in a trace.

Read from the registration tables of PyTorch 2.13 (ATen/autocast_mode.h for CUDA) and its documentation (CPU). The
CPU table is checked against real runs in the tests. The CUDA table could not be run where this was written.
"""

from __future__ import annotations

from dataclasses import dataclass

from traincast.trace.dtypes import BFLOAT16, FLOAT16, FLOAT32


@dataclass(frozen=True, slots=True)
class Precision:
    """The dtype of parameters and inputs, and, under autocast, the dtype of matrix products."""

    parameter_dtype: int
    autocast_dtype: int | None


PRECISION = {
    "fp32": Precision(FLOAT32, None),
    "tf32": Precision(FLOAT32, None),  # the same tensors; the device multiplies with fewer bits
    "amp-fp16": Precision(FLOAT32, FLOAT16),
    "amp-bf16": Precision(FLOAT32, BFLOAT16),
    "bf16": Precision(BFLOAT16, None),
    "fp8": Precision(BFLOAT16, None),  # but the products of linear layers in blocks: see eight_bit.py
}


@dataclass(frozen=True, slots=True)
class AutocastPolicy:
    """Ops that run in the lower precision, in fp32, or in the widest of their inputs. Others take what comes."""

    lower: frozenset[str]
    fp32: frozenset[str]
    fp32_output: frozenset[str]  # read the lower precision and write fp32, without a cast of their own
    widest: frozenset[str]


def _names(text: str) -> frozenset[str]:
    return frozenset(f"aten.{name}" for name in text.split())


# Functions that dispatch several ops, but that autocast sees as one.
_PRODUCT_CALLS = frozenset({"linear", "matmul", "einsum", "chain_matmul", "multi_dot"})
_PRODUCTS = (
    _PRODUCT_CALLS
    | _names("mm addmm _addmm_activation mv addmv bmm baddbmm addbmm convolution prelu")
    | {
        "traincast.attention",
        "traincast.grouped_mm",
        "traincast.rnn",
    }
)
_LOSSES = _names(
    "nll_loss_forward nll_loss2d_forward mse_loss smooth_l1_loss huber_loss soft_margin_loss multi_margin_loss"
    " multilabel_margin_loss_forward binary_cross_entropy binary_cross_entropy_with_logits _ctc_loss"
)

CUDA = AutocastPolicy(
    lower=_PRODUCTS,
    fp32=_LOSSES
    | {"traincast.rms_norm"}
    | _names(
        "pow exp expm1 log log10 log2 log1p reciprocal rsqrt acos asin cosh sinh tan erfinv softplus renorm norm"
        " native_layer_norm native_group_norm _fused_rms_norm _cdist_forward logsumexp"
        " upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_linear1d upsample_bilinear2d"
        " upsample_trilinear3d upsample_bicubic2d"
    ),
    fp32_output=_names("_softmax _safe_softmax _log_softmax sum prod cumsum cumprod linalg_vector_norm"),
    widest=_names("addcdiv addcmul atan2 dot vdot grid_sampler_2d index_put scatter_add cat stack"),
)

CPU = AutocastPolicy(
    lower=_PRODUCTS,
    fp32=_LOSSES | {"cross_entropy"} | _names("avg_pool3d grid_sampler_2d prod _cdist_forward"),
    fp32_output=frozenset(),
    widest=_names("cat stack"),
)

POLICIES = {"cuda": CUDA, "cpu": CPU}
TARGETS = tuple(POLICIES)
