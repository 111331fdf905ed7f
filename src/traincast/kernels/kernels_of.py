"""Which kernels an op runs: their kind of work and their sizes, read from the tensors of the op."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from traincast.kernels import byte_kernels
from traincast.kernels.work import Work
from traincast.trace.dtypes import BFLOAT16, ITEM_BYTES
from traincast.trace.flop import op_flop
from traincast.trace.graph import Floats, Graph, Ints, evaluate
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.traffic import op_bytes, tensor_bytes

# b products of an m x k by a k x n matrix; bytes moved at least; `image`: bytes of what a layout change would move, or
# the kernels around attention's backward pass;
# `patches_2`, `patches_4`: patches of 2 x 2 and 4 x 4 outputs that Winograd's algorithms work on.
SIZES = ("b", "m", "n", "k", "flop", "bytes", "image", "patches_2", "patches_4")
SIZE = {name: number for number, name in enumerate(SIZES)}
_WINOGRAD_BLOCKS = ((1, 4, 8), (2, 4, 4), (2, 2, 8), (4, 4, 2), (4, 2, 4), (4, 1, 8))  # images, rows, columns
_FAST_GROUP_WIDTHS = {4, 8, 16, 32}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of an op. `sizes` has a row for each of SIZES and a column for each probed batch size."""

    work: Work
    item_bytes: int
    is_bf16: bool
    sizes: tuple[tuple[float, ...], ...]
    is_winograd: bool = False
    is_unaligned: bool = False
    is_masked: bool = False  # attention that leaves out pairs

    def key(self) -> tuple[object, ...]:
        flags = (self.is_winograd, self.is_unaligned, self.is_masked)
        return (self.work, self.item_bytes, self.is_bf16, self.sizes, *flags)


@dataclass(frozen=True, slots=True)
class Op:
    """One op with what its kernels are read from; arrays hold one entry a probed batch size."""

    name: str
    kind: OpKind
    attributes: dict[str, Any]
    batch_sizes: Ints
    dims: Callable[[int], Floats]
    inputs: list[int]
    outputs: list[int]
    item_bytes: int
    is_bf16: bool
    is_strided: bool
    is_cast: bool  # between 16 and 32 bits
    is_uneven: bool  # 16-bit operands of different shape, layout or dtype
    flop: Floats
    bytes: Floats
    sizes_of: Callable[[int], Floats]  # bytes of a tensor

    def kernel(self, work: Work, *, shape: tuple[Any, Any, Any, Any] | None = None, **changes: Any) -> Kernel:
        b, m, n, k = shape if shape is not None else (1.0, 1.0, 1.0, 1.0)
        flop, moved = changes.pop("flop", self.flop), changes.pop("bytes", self.bytes)
        extra = [changes.pop(name, 0.0) for name in SIZES[6:]]
        rows = tuple(_numbers(value, len(self.flop)) for value in (b, m, n, k, flop, moved, *extra))
        return Kernel(work, self.item_bytes, self.is_bf16, rows, **changes)


def _numbers(value: Any, length: int) -> tuple[float, ...]:
    """One for each probed batch size."""
    if isinstance(value, np.ndarray) and value.ndim:
        return tuple(value.tolist()) if len(value) == length else tuple(value.tolist()) * length
    return (float(value),) * length


def kernels_of(graph: Graph, batch_sizes: Ints) -> Iterator[list[Kernel]]:
    """The kernels of every op, in order; none for views and allocations."""
    flop, moved = op_flop(graph, batch_sizes), op_bytes(graph, batch_sizes)
    all_dims = graph.dims(batch_sizes).astype(np.float64)
    sizes = tensor_bytes(graph, batch_sizes)
    start, dtype = graph.dim_start, graph.tensor_dtype.tolist()
    seen: dict[tuple[object, ...], list[Kernel]] = {}
    kinds, shape_keys = op_kinds(graph), _ShapeKeys(graph)
    numbers, lists = (graph.op_name.tolist(), graph.op_attribute.tolist()), (graph.op_inputs, graph.op_outputs)
    rows = zip(kinds, *numbers, *(ragged.rows() for ragged in lists), strict=True)
    for op, (kind, name, attribute, inputs, outputs) in enumerate(rows):
        if kind in (OpKind.VIEW, OpKind.ALLOCATION, OpKind.UNCOSTED):
            yield []
            continue
        tensors = inputs + outputs
        # Inputs that are one tensor twice are read once, so the key must tell them from two equal ones.
        key = (name, attribute, *(shape_keys[t] for t in tensors), len(inputs), len(set(inputs)))
        if key not in seen:
            main = _main_tensor(kind, inputs, outputs, dtype)
            seen[key] = _KERNELS.get(kind, byte_kernels.bytes_kernel)(
                Op(
                    name=graph.names[name],
                    kind=kind,
                    attributes=graph.attributes_of(op),
                    batch_sizes=batch_sizes,
                    dims=lambda t: all_dims[:, start[t] : start[t + 1]],
                    inputs=inputs,
                    outputs=outputs,
                    item_bytes=int(ITEM_BYTES[dtype[main]]) if main >= 0 else 4,
                    is_bf16=main >= 0 and dtype[main] == BFLOAT16,
                    is_strided=any(shape_keys[t][1] for t in inputs),
                    is_cast={ITEM_BYTES[dtype[t]] for t in tensors} == {2, 4},
                    is_uneven=_is_uneven([shape_keys[t] for t in tensors]),
                    flop=flop[:, op],
                    bytes=moved[:, op],
                    sizes_of=lambda t: sizes[:, t],
                )
            )
        yield seen[key]


class _ShapeKeys(dict[int, tuple[int, ...]]):
    """By tensor its dtype, whether it has strides of its own, and its dimensions: looked up where asked."""

    def __init__(self, graph: Graph) -> None:
        super().__init__()
        self._start, self._stride_start = graph.dim_start, graph.stride_start
        self._graph = graph

    def __missing__(self, tensor: int) -> tuple[int, ...]:
        graph, dims = self._graph, slice(self._start[tensor], self._start[tensor + 1])
        is_strided = self._stride_start[tensor + 1] > self._stride_start[tensor]
        sizes = (*graph.dim_base[dims].tolist(), *graph.dim_slope[dims].tolist())
        key = (int(graph.tensor_dtype[tensor]), bool(is_strided), *sizes)
        self[tensor] = key
        return key


def _is_uneven(keys: list[tuple[int, ...]]) -> bool:
    """Whether a 16-bit operand is read beside others of another shape, layout or dtype. Scalars are no operands."""
    operands = {key for key in keys if len(key) > 2}
    has_half = any(ITEM_BYTES[key[0]] == 2 for key in operands)
    return has_half and (len(operands) > 1 or any(key[1] for key in operands))


def _main_tensor(kind: OpKind, inputs: list[int], outputs: list[int], dtype: list[int]) -> int:
    """The operand whose dtype says which units do the work: for products the second to last input, a factor."""
    if kind in (OpKind.GEMM, OpKind.BATCHED_GEMM):
        return inputs[-1]
    return inputs[0] if inputs else outputs[0] if outputs else -1


def _linear(op: Op) -> list[Kernel]:
    left, right = op.dims(op.inputs[-2]), op.dims(op.inputs[-1])
    if right.shape[1] < 2:
        return [op.kernel(Work.REDUCTION)]
    m, k, n = left[:, 0], left[:, 1], right[:, 1]
    return [op.kernel(Work.LINEAR, shape=(1.0, m, n, k), is_unaligned=_odd(op, k, n))]


def _batched(op: Op) -> list[Kernel]:
    if op.name.startswith("traincast.grouped_mm"):
        return [_grouped(op)]
    left, right = op.dims(op.inputs[-2]), op.dims(op.inputs[-1])
    b, m, k, n = left[:, 0], left[:, 1], left[:, 2], right[:, 2]
    return [op.kernel(Work.BATCHED, shape=(b, m, n, k), is_unaligned=_odd(op, k, n))]


def _grouped(op: Op) -> Kernel:
    """One product an expert, each of its even share of the rows."""
    rows, other = op.dims(op.inputs[0]), op.dims(op.inputs[1])
    if op.name == "traincast.grouped_mm":
        n_experts, (k, n) = other[:, 0], (rows[:, 1], op.dims(op.outputs[0])[:, 1])
        return op.kernel(Work.BATCHED, shape=(n_experts, rows[:, 0] / n_experts, n, k), is_unaligned=_odd(op, k, n))
    n_experts = op.dims(op.outputs[0])[:, 0]
    m, n = rows[:, 1], other[:, 1]
    return op.kernel(Work.BATCHED, shape=(n_experts, m, n, rows[:, 0] / n_experts), is_unaligned=_odd(op, m, n))


def _odd(op: Op, *lengths: Floats) -> bool:
    """Rows that do not start at 16 bytes need more and smaller loads. A length that is the batch is no row's."""
    step = 16 // op.item_bytes if op.item_bytes <= 4 else 1
    return any(length[0] % step != 0 for length in lengths if length[0] == length[-1])


def _convolution(op: Op) -> list[Kernel]:
    image, weight, output = op.dims(op.inputs[0]), op.dims(op.inputs[1]), op.dims(op.outputs[0])
    return [_one_convolution(op, (op.inputs[0], op.inputs[1], op.outputs[0]), image, weight, output, 0)]


def _convolution_backward(op: Op) -> list[Kernel]:
    gradient, image, weight = op.inputs[:3]
    mask = op.attributes["output_mask"]
    kernels = [
        _one_convolution(op, (image, weight, gradient), op.dims(image), op.dims(weight), op.dims(gradient), which)
        for which in (1, 2)
        if mask[which - 1]
    ]
    if mask[2]:
        kernels.append(op.kernel(Work.REDUCTION, flop=np.zeros_like(op.flop), bytes=op.sizes_of(gradient)))
    return kernels


def _one_convolution(
    op: Op, tensors: tuple[int, int, int], image: Floats, weight: Floats, output: Floats, which: int
) -> Kernel:
    """As a matrix product: which is 0 for the output, 1 for the gradient of the input, 2 of the weight."""
    groups = evaluate(op.attributes["groups"], op.batch_sizes)  # one a sample where each has filters of its own
    is_grouped = bool(np.max(groups) > 1)
    window = weight[:, 2:].prod(axis=1)
    transposed = op.attributes.get("transposed", False)
    source, target = (output, image) if transposed else (image, output)
    c_in, c_out = source[:, 1] / groups, target[:, 1] / groups
    places = target[:, 0] * target[:, 2:].prod(axis=1)
    spots = source[:, 0] * source[:, 2:].prod(axis=1)
    flop = 2.0 * places * window * c_in * c_out * groups
    role = (1, 0, 2)[which] if transposed else which
    if role == 0:
        shape = (groups, places, c_out, c_in * window)
    elif role == 1:  # positions that a stride skips are zeros: k shrinks so that the flop stay those of the forward
        shape = (groups, spots, c_in, c_out * window * places / spots)
    else:
        shape = (groups, c_out, c_in * window, places)
    depthwise = is_grouped and c_in[0] == 1
    base = Work.DEPTHWISE if depthwise else Work.GROUPED if is_grouped else Work.CONVOLUTION
    stride, dilation = op.attributes["stride"], op.attributes["dilation"]
    three = weight.shape[1] == 4 and (weight[0, 2:] == 3).all()
    made = source if role == 1 else target
    moved = sum(op.sizes_of(tensor) for tensor in tensors)
    return op.kernel(
        Work(base + role),
        shape=shape,
        flop=flop,
        bytes=moved,
        image=moved - op.sizes_of(tensors[1]),
        patches_2=made[:, 0] * patches_in_blocks(made[0, 2:]) if three else np.zeros_like(places),
        patches_4=made[:, 0] * np.ceil(made[:, 2:] / 4).prod(axis=1),
        is_winograd=bool(three and max(stride) == 1 and max(dilation) == 1 and not is_grouped),
        is_unaligned=_is_odd_convolution(int(c_in[0]), int(c_out[0]), is_grouped=is_grouped),
    )


def patches_in_blocks(image: Any) -> float:
    """Patches of 2 x 2 outputs of an image when fused Winograd kernels take 32 at a time, cut as fits best."""
    height, width = np.ceil(image[..., 0] / 2), np.ceil(image[..., 1] / 2)
    counts = [
        rows * columns * np.ceil(height / rows) * np.ceil(width / columns) for images, rows, columns in _WINOGRAD_BLOCKS
    ]
    return np.min(counts, axis=0)


def _is_odd_convolution(c_in: int, c_out: int, *, is_grouped: bool) -> bool:
    """Channels that do not fill matrix units. For groups libraries have fast kernels at four widths only."""
    if is_grouped:
        return c_in > 1 and not {c_in, c_out} <= _FAST_GROUP_WIDTHS
    return bool(c_in % 8 or c_out % 8)


def _attention(op: Op) -> list[Kernel]:
    """Seen as one product a head: queries times keys and values. A causal mask leaves half of the pairs."""
    is_backward = op.name.endswith("backward")
    query, key, value = (op.dims(t) for t in op.inputs[is_backward : 3 + is_backward])
    heads = query[:, :-2].prod(axis=1)
    shape = (heads, query[:, -2], query[:, -1] + value[:, -1], key[:, -2])
    is_causal = bool(op.attributes.get("is_causal", False))
    work = Work.ATTENTION_BACKWARD if is_backward else Work.ATTENTION
    around = np.zeros_like(heads)
    if is_backward:
        kv_heads = key[:, :-2].prod(axis=1)
        lengths, widths = (query[:, -2], key[:, -2]), (query[:, -1], value[:, -1])
        around = bytes_around_backward(heads, kv_heads, lengths, widths, item_bytes=op.item_bytes)
    flop = op.flop * _seen_fraction(key[:, -2], op.attributes) if is_causal else op.flop
    return [op.kernel(work, shape=shape, flop=flop, image=around, is_masked=is_causal)]


def _seen_fraction(keys: Floats, attributes: dict[str, Any]) -> Floats:
    """Of the pairs that are counted, those that a causal mask leaves; of a sliding window all but its first rows."""
    window = attributes.get("window", 0)
    return np.where((window > 0) & (keys > window), 1.0 - 0.5 * window / keys, 0.5)


def bytes_around_backward(
    heads: Any, kv_heads: Any, lengths: tuple[Any, Any], widths: tuple[Any, Any], *, item_bytes: int
) -> Any:
    """What kernels before and after attention's backward pass move. Heads are counted over the batch.

    `lengths` are the numbers of queries and of keys, `widths` the sizes of a query and of a value.

    The gradient of the queries is summed in fp32: zeros, sums, and a pass that reads them. Each row's sum of output
    times gradient is taken before. Where heads share keys, each writes a 16-bit gradient of them, and these are summed.
    """
    (queries, keys), (width, value_width) = lengths, widths
    rows = heads * queries * (3 * 4 * width + 2 * item_bytes * value_width)
    shared = np.where(kv_heads < heads, heads * keys * (width + value_width) * 2 * 2, 0.0)
    return rows + shared


def _recurrent(op: Op) -> list[Kernel]:
    """`b` counts the steps that must wait for each other, m x n x k is the work of one of them."""
    sequence = op.dims(op.inputs[1 if op.name.endswith("backward") else 0])
    layers = op.attributes["n_layers"] * op.attributes["n_directions"]
    is_batch_first = bool(op.attributes.get("batch_first", False))
    steps = sequence[:, 1 if is_batch_first else 0] if sequence.shape[1] == 3 else np.ones(len(sequence))
    n_batch = sequence[:, 0 if is_batch_first else 1] if sequence.shape[1] == 3 else sequence[:, 0]
    width = np.sqrt(op.flop / (2.0 * steps * layers * n_batch))
    return [op.kernel(Work.RECURRENT, shape=(steps * layers, n_batch, width, width))]


_KERNELS: dict[OpKind, Callable[[Op], list[Kernel]]] = {
    OpKind.GEMM: _linear,
    OpKind.BATCHED_GEMM: _batched,
    OpKind.CONVOLUTION: _convolution,
    OpKind.CONVOLUTION_BACKWARD: _convolution_backward,
    OpKind.ATTENTION: _attention,
    OpKind.RECURRENT: _recurrent,
    OpKind.COPY: byte_kernels.copy,
    OpKind.NORMALISATION: byte_kernels.normalisation,
    OpKind.SOFTMAX: byte_kernels.softmax,
    OpKind.OPTIMIZER: byte_kernels.optimizer,
    OpKind.REDUCTION: byte_kernels.reduction,
    OpKind.EMBEDDING: byte_kernels.embedding,
}
