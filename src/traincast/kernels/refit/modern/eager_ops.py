"""Layers of language models as the kernels that eager PyTorch runs for them, forward and backward.

Every op reads what it needs and writes what it makes; the counts of a line are reads, then writes, in elements of the
whole tensor. Statistics with one value a row count as nothing: they are small ops, and each still costs a launch.
"""

from __future__ import annotations

from dataclasses import dataclass

from traincast.kernels.refit.modern.kernel_row import ITEM_BYTES, Call, moved, product
from traincast.kernels.work import Work

_LONG_ROW = 1024


@dataclass(frozen=True, slots=True)
class Passes:
    """Both directions of one layer."""

    forward: tuple[Call, ...]
    backward: tuple[Call, ...]

    def of(self, direction: str) -> tuple[Call, ...]:
        return {"forward": self.forward, "backward": self.backward, "full": self.forward + self.backward}[direction]


@dataclass(frozen=True, slots=True)
class _Tensor:
    """Writes ops over tensors of one size."""

    n: float
    precision: str

    def op(self, elements: float, work: Work = Work.ELEMENTWISE) -> Call:
        return moved(work, elements * self.n * ITEM_BYTES[self.precision], precision=self.precision)

    def cast(self, other: str) -> tuple[Call, ...]:
        """None where both are the same."""
        if ITEM_BYTES[other] == ITEM_BYTES[self.precision]:
            return ()
        n_bytes = self.n * (ITEM_BYTES[other] + ITEM_BYTES[self.precision])
        return (moved(Work.COPY, n_bytes, precision=self.precision),)


def eager_rms_norm(n_rows: float, width: float, precision: str) -> Passes:
    """Llama's as transformers writes it: to fp32, square, mean, scale, back, times the weight."""
    whole, wide, row = (
        _Tensor(n_rows * width, precision),
        _Tensor(n_rows * width, "fp32"),
        _Tensor(n_rows, "fp32"),
    )
    mean = wide.op(1, Work.REDUCTION)
    forward = (*whole.cast("fp32"), wide.op(2), mean, row.op(2), row.op(2), wide.op(2), *wide.cast(precision))
    forward += (whole.op(2),)
    backward = (
        whole.op(2),  # gradient of what the weight scales
        whole.op(3),
        whole.op(1, Work.REDUCTION),  # gradient of the weight
        *whole.cast("fp32"),
        wide.op(2),  # through the scaling
        wide.op(3),
        wide.op(1, Work.REDUCTION),
        row.op(2),
        row.op(2),
        row.op(3),
        wide.op(1),  # mean's gradient, spread over the row
        wide.op(2),  # square's
        wide.op(3),
        wide.op(3),  # both paths to the input
        *wide.cast(precision),
    )
    return Passes(forward, backward)


def fused_norm(n_rows: float, width: float, precision: str) -> Passes:
    """torch.nn.LayerNorm and torch.nn.functional.rms_norm: one kernel each way."""
    whole = _Tensor(n_rows * width, precision)
    return Passes((whole.op(2, Work.LAYER_NORM),), (whole.op(3, Work.LAYER_NORM_BACKWARD),))


def add_before(layer: Passes, n_elements: float, precision: str) -> Passes:
    """A residual is added in front of a layer; going back, both paths' gradients are."""
    whole = _Tensor(n_elements, precision)
    return Passes((whole.op(3), *layer.forward), (*layer.backward, whole.op(3)))


def gated_product(n_elements: float, precision: str, *, is_joined: bool = False) -> Passes:
    """act(a) * b; `is_joined`: a and b are halves of one tensor, whose gradient is put together at the end."""
    whole = _Tensor(n_elements, precision)
    joined = (whole.op(4, Work.STRIDED_COPY),) if is_joined else ()
    return Passes((whole.op(2), whole.op(3)), (whole.op(3), whole.op(3), whole.op(3), *joined))


def linear(n_rows: float, n_out: float, n_in: float, precision: str) -> Passes:
    """A layer without bias."""
    return Passes(
        (product(n_rows, n_out, n_in, precision=precision),),
        (
            product(n_out, n_in, n_rows, precision=precision),
            product(n_rows, n_in, n_out, precision=precision),
        ),
    )


def gated_mlp(n_rows: float, width: float, inner: float, precision: str) -> Passes:
    """down(act(gate(x)) * up(x)); the two gradients of x are added."""
    into, out = linear(n_rows, inner, width, precision), linear(n_rows, width, inner, precision)
    gate = gated_product(n_rows * inner, precision)
    both = _Tensor(n_rows * width, precision).op(3)
    return Passes(
        into.forward * 2 + gate.forward + out.forward, out.backward + gate.backward + into.backward * 2 + (both,)
    )


def rotary(n_elements: float, precision: str) -> Passes:
    """x * cos + cat(-second half, first half) * sin of one tensor."""
    whole = _Tensor(n_elements, precision)
    forward = (whole.op(2), whole.op(1), whole.op(2, Work.STRIDED_COPY), whole.op(2), whole.op(3))
    backward = (
        whole.op(2),  # times cos
        whole.op(2),  # times sin
        whole.op(1),  # minus sign of one half
        whole.op(1, Work.FACTORY),  # each half's gradient lies in a tensor of zeros
        whole.op(1, Work.STRIDED_COPY),
        whole.op(1, Work.FACTORY),
        whole.op(1, Work.STRIDED_COPY),
        whole.op(3),
        whole.op(3),
    )
    return Passes(forward, backward)


def cross_entropy(n_rows: float, n_classes: float, precision: str) -> Passes:
    """Logarithm of softmax and the loss of the labels."""
    whole, row = _Tensor(n_rows * n_classes, precision), _Tensor(n_rows, precision)
    work = Work.SOFTMAX_LONG if n_classes > _LONG_ROW else Work.SOFTMAX
    forward = (whole.op(2, work), row.op(3, Work.REDUCTION))
    return Passes(forward, (whole.op(1, Work.REDUCTION), whole.op(3, Work.SOFTMAX_BACKWARD)))


def head_with_loss(n_rows: float, width: float, n_classes: float, precision: str) -> Passes:
    """The last layer and its loss."""
    last, loss = linear(n_rows, n_classes, width, precision), cross_entropy(n_rows, n_classes, precision)
    return Passes(last.forward + loss.forward, loss.backward + last.backward)


def embedding(n_rows: float, width: float, n_entries: float, precision: str) -> Passes:
    """Rows of a table; going back, a gradient as large as the table is written."""
    rows, table = _Tensor(n_rows * width, precision), _Tensor(n_entries * width, precision)
    n_bytes = rows.op(1).bytes + table.op(1).bytes
    return Passes((rows.op(2, Work.EMBEDDING),), (moved(Work.EMBEDDING_BACKWARD, n_bytes, precision=precision),))


def squared_relu(n_elements: float, precision: str) -> Passes:
    whole = _Tensor(n_elements, precision)
    return Passes((whole.op(2), whole.op(2)), (whole.op(2), whole.op(3), whole.op(3)))
