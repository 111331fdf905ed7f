"""What an op is to a device, by the name that PyTorch's profiler writes for it ('aten::addmm').

The profiler nests: conv2d calls convolution, which calls mkldnn_convolution. A captured trace has one op where PyTorch
dispatches to a kernel, so that is the op which gets the time of all that it calls. Ops that only call others
(composite) and views do no work of their own: what they take is the host's.
"""

from __future__ import annotations

import csv
import importlib.resources
import io
import re
from functools import lru_cache

from traincast.trace.kinds import OpKind, kind_by_name

COMMUNICATION = "communication"

# Kernels behind ops that a captured trace names once, whatever the backend.
_SAME_AS = {
    "native_batch_norm": OpKind.NORMALISATION,
    "native_batch_norm_backward": OpKind.NORMALISATION,
    "cudnn_batch_norm": OpKind.NORMALISATION,
    "cudnn_batch_norm_backward": OpKind.NORMALISATION,
    "miopen_batch_norm": OpKind.NORMALISATION,
    "miopen_batch_norm_backward": OpKind.NORMALISATION,
    "_native_batch_norm_legit": OpKind.NORMALISATION,
    "_batch_norm_with_update": OpKind.NORMALISATION,
    "_convolution_double_backward": OpKind.CONVOLUTION_BACKWARD,
    "mkldnn_convolution_backward": OpKind.CONVOLUTION_BACKWARD,
    "miopen_convolution": OpKind.CONVOLUTION,
    "miopen_depthwise_convolution": OpKind.CONVOLUTION,
    "_conv_depthwise2d": OpKind.CONVOLUTION,
    "_slow_conv2d_forward": OpKind.CONVOLUTION,
    "_slow_conv2d_backward": OpKind.CONVOLUTION_BACKWARD,
    "thnn_conv2d": OpKind.CONVOLUTION,
    "mkldnn_max_pool2d": OpKind.POOLING,
    "mkldnn_max_pool2d_backward": OpKind.POOLING,
    "mkldnn_linear": OpKind.GEMM,
    "mkldnn_linear_backward": OpKind.GEMM,
    "_thnn_fused_lstm_cell": OpKind.RECURRENT,
    "_thnn_fused_gru_cell": OpKind.RECURRENT,
    "miopen_rnn": OpKind.RECURRENT,
    "miopen_rnn_backward": OpKind.RECURRENT,
    "_fused_dropout": OpKind.DROPOUT,
}
# Bookkeeping of the host, or a wait for the device: no kernel.
_HOST = {
    "_local_scalar_dense",
    "set_",
    "resize_",
    "as_strided_",
    "detach_",
    "record_stream",
    "is_pinned",
    "_pin_memory",
}
_COMMUNICATION = re.compile(r"nccl|gloo:|mpi:|c10d::(?!barrier)|_c10d_functional::", re.IGNORECASE)
_KERNELS: tuple[tuple[re.Pattern[str], OpKind], ...] = (
    (re.compile(r"dgrad|wgrad|bgrad", re.IGNORECASE), OpKind.CONVOLUTION_BACKWARD),
    (re.compile(r"flash|fmha|attention", re.IGNORECASE), OpKind.ATTENTION),
    (re.compile(r"conv|implicit_gemm|winograd|fprop", re.IGNORECASE), OpKind.CONVOLUTION),
    (re.compile(r"gemm|cutlass|cublas|matmul", re.IGNORECASE), OpKind.GEMM),
    (re.compile(r"batch_?norm|layer_?norm|bn_[fb]w", re.IGNORECASE), OpKind.NORMALISATION),
    (re.compile(r"softmax", re.IGNORECASE), OpKind.SOFTMAX),
    (re.compile(r"multi_tensor_apply", re.IGNORECASE), OpKind.OPTIMIZER),
    (re.compile(r"reduce", re.IGNORECASE), OpKind.REDUCTION),
    (re.compile(r"elementwise|triton_poi", re.IGNORECASE), OpKind.ELEMENTWISE),
    (re.compile(r"memcpy", re.IGNORECASE), OpKind.COPY),
    (re.compile(r"memset", re.IGNORECASE), OpKind.FACTORY),
)


@lru_cache(maxsize=1)
def op_roles() -> dict[str, str]:
    """'composite' or 'view' of the ops that are one: written from PyTorch's own dispatch table."""
    text = importlib.resources.files("traincast").joinpath("data/op_roles.csv").read_text(encoding="utf-8")
    return {row["name"]: row["role"] for row in csv.DictReader(io.StringIO(text))}


@lru_cache(maxsize=4096)
def kind_of_op(name: str) -> str | None:
    """The kind of work that an op and all it calls are; None for what does no work itself or calls others for it."""
    if is_communication(name):
        return COMMUNICATION
    space, _, short = name.rpartition("::")
    if space not in ("aten", "prims"):
        return _kind_of_foreign(name)
    if short in _SAME_AS:
        return _SAME_AS[short].value
    if short in _HOST or name in op_roles():
        return None
    kind = kind_by_name(f"{space}.{short}")
    return None if kind in (OpKind.VIEW, OpKind.ALLOCATION) else kind.value


def _kind_of_foreign(name: str) -> str | None:
    """Of an op outside of PyTorch's own: a compiled kernel or somebody's extension. Autograd's records are neither."""
    if name.startswith(("triton_", "cpp_fused_", "graph_")):
        return OpKind.ELEMENTWISE.value  # what torch.compile made of a chain of pointwise ops
    if name.startswith("torch.distributed.ddp.reducer::copy"):
        return OpKind.COPY.value
    is_extension = "::" in name and not name.startswith(("autograd::", "torch::", "profiler::", "DistributedData"))
    return OpKind.UNCOSTED.value if is_extension else None


@lru_cache(maxsize=4096)
def kind_of_kernel(name: str) -> str:
    """A guess by the name of a GPU kernel, for one whose launching op the trace does not tell."""
    if is_communication(name):
        return COMMUNICATION
    return next((kind.value for pattern, kind in _KERNELS if pattern.search(name)), OpKind.UNCOSTED.value)


def is_communication(name: str) -> bool:
    """Whether it is a collective between processes."""
    return _COMMUNICATION.search(name) is not None
