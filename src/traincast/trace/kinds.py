"""All kinds of ops on one page: what an op is to a device, by its name."""

from __future__ import annotations

from enum import StrEnum

from traincast.trace.graph import Graph
from traincast.trace.structure import once_per_structure


class OpKind(StrEnum):
    """How a device sees an op. Elementwise is the rule for an aten op that is not named below."""

    VIEW = "view"  # another look at the same memory: the host dispatches it, no kernel runs
    GEMM = "gemm"
    BATCHED_GEMM = "batched gemm"
    CONVOLUTION = "convolution"
    CONVOLUTION_BACKWARD = "convolution backward"  # gradients of input and weight in one op
    ATTENTION = "attention"  # fused scaled-dot-product attention, both directions
    RECURRENT = "recurrent"  # fused LSTM, GRU and plain RNN layers, both directions
    NORMALISATION = "normalisation"
    SOFTMAX = "softmax"
    REDUCTION = "reduction"
    POOLING = "pooling"
    EMBEDDING = "embedding"  # rows picked by index, and their scattered gradient
    DROPOUT = "dropout"
    COPY = "copy"  # the same values elsewhere: casts, clones, concatenations, padding
    FACTORY = "factory"  # values from nothing: zeros, ranges, random numbers
    ALLOCATION = "allocation"  # memory without values
    OPTIMIZER = "optimizer"
    ELEMENTWISE = "elementwise"
    UNCOSTED = "uncosted"  # work that we cannot count; it is listed, never dropped


_NAMES = {
    OpKind.GEMM: "mm addmm _addmm_activation mv addmv dot vdot addr ger _scaled_mm _int_mm",
    OpKind.BATCHED_GEMM: "bmm baddbmm addbmm",
    OpKind.CONVOLUTION: "convolution _convolution cudnn_convolution cudnn_convolution_transpose mkldnn_convolution",
    OpKind.CONVOLUTION_BACKWARD: "convolution_backward",
    OpKind.NORMALISATION: "batch_norm batch_norm_backward native_layer_norm native_layer_norm_backward"
    " native_group_norm native_group_norm_backward _fused_rms_norm _fused_rms_norm_backward",
    OpKind.SOFTMAX: "_softmax _softmax_backward_data _log_softmax _log_softmax_backward_data _safe_softmax",
    OpKind.REDUCTION: "sum mean amax amin max min argmax argmin prod norm linalg_vector_norm any all var var_mean std"
    " std_mean cumsum cumprod logsumexp nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward"
    " mse_loss mse_loss_backward topk sort",
    OpKind.POOLING: "max_pool2d_with_indices max_pool2d_with_indices_backward avg_pool2d avg_pool2d_backward"
    " _adaptive_avg_pool2d _adaptive_avg_pool2d_backward adaptive_max_pool2d adaptive_max_pool2d_backward"
    " max_pool3d_with_indices max_pool3d_with_indices_backward avg_pool3d avg_pool3d_backward"
    " _adaptive_avg_pool3d _adaptive_avg_pool3d_backward avg_pool1d"
    " upsample_nearest2d upsample_nearest2d_backward upsample_bilinear2d upsample_bilinear2d_backward"
    " upsample_bicubic2d upsample_bicubic2d_backward",
    OpKind.EMBEDDING: "embedding embedding_dense_backward embedding_backward index index_select gather take"
    " scatter scatter_ scatter_add scatter_add_ index_put index_put_ _index_put_impl_ index_add index_add_"
    " _embedding_bag _embedding_bag_dense_backward _unsafe_index index_select_backward",
    OpKind.DROPOUT: "native_dropout native_dropout_backward",
    OpKind.COPY: "_to_copy clone copy_ copy cat stack constant_pad_nd reflection_pad2d replication_pad2d contiguous"
    " repeat flip roll slice_backward select_backward as_strided_scatter slice_scatter split_with_sizes_copy"
    " reflection_pad2d_backward replication_pad2d_backward unfold_backward tril triu pixel_shuffle im2col col2im",
    OpKind.FACTORY: "zeros ones full arange linspace eye scalar_tensor rand randn randint randperm zeros_like ones_like"
    " full_like rand_like randn_like new_zeros new_ones new_full bernoulli bernoulli_ normal_ uniform_ random_ zero_"
    " fill_",
    OpKind.ALLOCATION: "empty empty_like new_empty empty_strided new_empty_strided empty_permuted",
    OpKind.UNCOSTED: "_cdist_forward _cdist_backward _fft_r2c _fft_c2r _fft_c2c linalg_qr _linalg_svd _linalg_eigh"
    " linalg_inv_ex _linalg_solve_ex linalg_cholesky_ex linalg_lu_factor_ex linalg_lstsq grid_sampler_2d"
    " grid_sampler_2d_backward grid_sampler_3d _ctc_loss _ctc_loss_backward",
}
_KIND = {f"aten.{name}": kind for kind, names in _NAMES.items() for name in names.split()}
_KIND |= {
    "traincast.attention": OpKind.ATTENTION,
    "traincast.attention_backward": OpKind.ATTENTION,
    "traincast.rms_norm": OpKind.NORMALISATION,
    "traincast.rms_norm_backward": OpKind.NORMALISATION,
    "traincast.grouped_mm": OpKind.BATCHED_GEMM,
    "traincast.grouped_mm_weight": OpKind.BATCHED_GEMM,
    "traincast.rnn": OpKind.RECURRENT,
    "traincast.rnn_backward": OpKind.RECURRENT,
    "traincast.request_dtype": OpKind.VIEW,
    "aten._cudnn_rnn": OpKind.RECURRENT,
    "aten._cudnn_rnn_backward": OpKind.RECURRENT,
    "aten.mkldnn_rnn_layer": OpKind.RECURRENT,
    "aten.mkldnn_rnn_layer_backward": OpKind.RECURRENT,
}
_FUSED_ATTENTION = ("aten._scaled_dot_product_", "aten._flash_attention", "aten._efficient_attention")
# What kernels that were joined are called. They may write in place: without the mark at the end they would be taken for
# views.
FUSED = "traincast.fused_"
FUSED_REDUCTION = "traincast.fused_reduction_"
_KNOWN_NAMESPACES = ("aten.", "prims.", "traincast.")


def kind_by_name(name: str) -> OpKind:
    """The kind of an op that is not a view."""
    if name in _KIND:
        return _KIND[name]
    if name.startswith(_FUSED_ATTENTION):
        return OpKind.ATTENTION
    if name.startswith(("aten._foreach_", "aten._fused_")):
        return OpKind.OPTIMIZER
    return OpKind.ELEMENTWISE if name.startswith(_KNOWN_NAMESPACES) else OpKind.UNCOSTED


@once_per_structure
def op_kinds(graph: Graph) -> tuple[OpKind, ...]:
    """The kind of every op."""
    return tuple(_find_kinds(graph))


def _find_kinds(graph: Graph) -> list[OpKind]:
    """A view's outputs all lie in the storage of an input, and nothing is written."""
    by_name = [kind_by_name(name) for name in graph.names]
    in_place = [name.endswith("_") for name in graph.names]
    storage = graph.tensor_storage.tolist()
    kinds = []
    for name, inputs, outputs in zip(
        graph.op_name.tolist(), graph.op_inputs.rows(), graph.op_outputs.rows(), strict=True
    ):
        sources = {storage[tensor] for tensor in inputs}
        is_view = bool(outputs) and not in_place[name] and all(storage[tensor] in sources for tensor in outputs)
        kinds.append(OpKind.VIEW if is_view else by_name[name])
    return kinds
