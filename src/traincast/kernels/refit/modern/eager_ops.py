"""Layers of language models as the kernels that eager PyTorch runs for them, forward and backward.

A line of a recipe is a kind of work and the bytes that it moves for each element of the layer, then how many elements
that is where it is not one; `small` is an op with one value a row, which costs its launch. The lines are those that
PyTorch dispatches (tests count them in real runs).
"""

from __future__ import annotations

from dataclasses import dataclass

from traincast.kernels.byte_kernels import SORTING_KERNELS, label_waits, softmax_work
from traincast.kernels.refit.modern.kernel_row import ITEM_BYTES, Call, moved, product
from traincast.kernels.work import ELEMENT_WORKS, NORM_WORKS, Work

_BY_ELEMENTS = (*ELEMENT_WORKS, Work.EMBEDDING)


@dataclass(frozen=True, slots=True)
class Passes:
    """Both directions of one layer; `added` puts a gradient on top of that of the step before."""

    forward: tuple[Call, ...]
    backward: tuple[Call, ...]
    added: tuple[Call, ...] = ()

    def of(self, direction: str) -> tuple[Call, ...]:
        full = self.forward + self.backward + self.added
        return {"forward": self.forward, "backward": self.backward, "full": full}[direction]


def recipe(text: str, n_elements: float, precision: str, *, n_rows: float = 1.0) -> tuple[Call, ...]:
    """The calls of lines such as "cast 6; reduction 4; small", over so many elements."""
    return tuple(_call(line.split(), n_elements, precision, n_rows) for line in text.split(";") if line.strip())


def _call(words: list[str], n_elements: float, precision: str, n_rows: float) -> Call:
    if words[0] == "small":
        return moved(Work.ELEMENTWISE, 2.0 * ITEM_BYTES[precision] * n_rows, precision=precision)
    work = Work[words[0].upper()]
    share = float(words[2]) if len(words) > 2 else 1.0
    turns = n_rows if work in NORM_WORKS else share * n_elements if work in _BY_ELEMENTS else 1.0
    return moved(work, float(words[1]) * n_elements, precision=precision, turns=turns)


# Llama's norm as transformers writes it, with weights in fp32 and activations in bf16. 16-bit operands beside others
# are read one by one; fp32 ones are wide enough not to suffer from it.
_RMS_NORM_BF16 = (
    "cast 6; elementwise 8; reduction 4; small; small; elementwise 8; cast 6; uneven 6",
    "cast 6; elementwise 8; uneven 10; reduction 4; cast 6; cast 6; elementwise 12; elementwise 8; reduction 4;"
    " small; small; small; elementwise 4; elementwise 8; elementwise 8; elementwise 12; elementwise 12; cast 6",
)
# The same in fp32, after a residual is added; both sums of gradients are ops of their own.
_ADD_RMS_NORM_FP32 = (
    "elementwise 12; elementwise 8; reduction 4; small; small; elementwise 8; elementwise 8",
    "elementwise 8; elementwise 12; reduction 4; elementwise 12; elementwise 8; reduction 4; elementwise 12; small;"
    " small; small; elementwise 4; elementwise 8; elementwise 8; elementwise 12; elementwise 12",
)
_TOTAL_VARIATION_FP32 = (
    "elementwise 12; elementwise 8; elementwise 8; reduction 4; small",
    "small; elementwise 4; elementwise 8; elementwise 12; softmax_backward 12",
)
# x * cos + cat(-second half, first half) * sin, of heads that are a transposed view.
_ROTARY_BF16 = (
    "uneven 4; uneven 2 0.5; uneven 4; uneven 4; uneven 6",
    "uneven 4; uneven 2 0.5; factory 2; uneven 2 0.5; factory 2; uneven 2 0.5; elementwise 6; uneven 4; uneven 6",
)
_COMPLEX_ROTARY_BF16 = ("cast 6; elementwise 8; cast 6", "cast 6; elementwise 8; cast 6")
_SQUARED_RELU_BF16 = ("elementwise 4; elementwise 4", "elementwise 4; elementwise 4; elementwise 6; elementwise 6")
# Halves of one tensor, and the gradient of a sum, which is one value seen everywhere.
_GATED_HALVES_BF16 = ("uneven 4; uneven 6", "uneven 4; uneven 4; uneven 6; copy 8")
_GATED_BF16 = ("elementwise 4; elementwise 6", "elementwise 6; elementwise 6; elementwise 6")
# Megatron's own: logits to fp32, their maximum, minus it, exponentials, their sum, divided by it; all in place.
_PARALLEL_LOSS_BF16 = (
    "cast 6; reduction 4; elementwise 8; small; small; small; elementwise 8; reduction 4; small; small; elementwise 8",
    "small; small; elementwise 8; cast 6",
)


def _both(texts: tuple[str, str], n_elements: float, precision: str, *, n_rows: float = 1.0, added: str = "") -> Passes:
    forward, backward, more = (recipe(text, n_elements, precision, n_rows=n_rows) for text in (*texts, added))
    return Passes(forward, backward, more)


def rms_norm(n_rows: float, width: float) -> Passes:
    return _both(_RMS_NORM_BF16, n_rows * width, "bf16", n_rows=n_rows)


def add_rms_norm(n_rows: float, width: float) -> Passes:
    return _both(_ADD_RMS_NORM_FP32, n_rows * width, "fp32", n_rows=n_rows)


def total_variation(n_rows: float, n_classes: float) -> Passes:
    """Half the distance of two distributions; going back it ends with the softmax that made one of them."""
    layer = _both(_TOTAL_VARIATION_FP32, n_rows * n_classes, "fp32", n_rows=n_rows)
    added = recipe("elementwise 12", n_rows * n_classes, "fp32")
    return Passes(layer.forward, layer.backward + added)


def rotary(n_elements: float) -> Passes:
    """Queries or keys."""
    return _both(_ROTARY_BF16, n_elements, "bf16")


def complex_rotary(n_elements: float) -> Passes:
    """Llama 4's: pairs as complex numbers, in fp32."""
    return _both(_COMPLEX_ROTARY_BF16, n_elements, "bf16")


def squared_relu(n_elements: float) -> Passes:
    return _both(_SQUARED_RELU_BF16, n_elements, "bf16")


def gated_halves(n_elements: float) -> Passes:
    """silu(a) * b of halves of one tensor."""
    return _both(_GATED_HALVES_BF16, n_elements, "bf16")


def parallel_loss(n_rows: float, n_classes: float) -> Passes:
    return _both(_PARALLEL_LOSS_BF16, n_rows * n_classes, "bf16", n_rows=n_rows)


def fused_norm(n_rows: float, width: float, precision: str, *, name: str, is_added: bool = False) -> Passes:
    """torch.nn.LayerNorm ("layer_norm") and RMSNorm ("rms_norm"): one kernel each way."""
    item = ITEM_BYTES[precision]
    texts = (f"{name} {2 * item}", f"{name}_backward {3 * item}")
    return _both(texts, n_rows * width, precision, n_rows=n_rows, added=f"elementwise {3 * item}" if is_added else "")


def linear(n_rows: float, n_out: float, n_in: float, precision: str) -> Passes:
    """A layer without bias. The gradient of its weight is added to what is there."""
    weight = moved(Work.ELEMENTWISE, 3.0 * ITEM_BYTES[precision] * n_in * n_out, precision=precision)
    return Passes(
        (product(n_rows, n_out, n_in, precision=precision),),
        (
            product(n_out, n_in, n_rows, precision=precision),
            product(n_rows, n_in, n_out, precision=precision),
            weight,
        ),
    )


def gated_mlp(n_rows: float, width: float, inner: float, precision: str, *, is_tuned: bool = False) -> Passes:
    """down(act(gate(x)) * up(x)); the two gradients of x are added."""
    into, out = linear(n_rows, inner, width, precision), linear(n_rows, width, inner, precision)
    tuned = ("tuned_elementwise 6", "tuned_elementwise 10")
    gate = _both(tuned if is_tuned else _GATED_BF16, n_rows * inner, precision)
    both = recipe("elementwise 6", n_rows * width, precision)
    return Passes(
        into.forward * 2 + gate.forward + out.forward, out.backward + gate.backward + into.backward * 2 + both
    )


def cross_entropy(n_rows: float, n_classes: float, precision: str, *, n_threads: float = 32.0) -> Passes:
    """Logarithm of softmax and the loss of the labels, which PyTorch took with 32 threads when it was timed."""
    item, n_elements = ITEM_BYTES[precision], n_rows * n_classes
    name = softmax_work(n_classes, item).name
    loss = moved(Work.LABEL_LOSS, item * n_rows, precision=precision, turns=n_rows / n_threads)
    forward = (*recipe(f"{name} {2 * item}", n_elements, precision), loss)
    backward = recipe(f"factory {item}; softmax_backward {3 * item}", n_elements, precision)
    return Passes(forward, backward, recipe(f"elementwise {3 * item}", n_elements, precision))


def head_with_loss(n_rows: float, width: float, n_classes: float, precision: str) -> Passes:
    """The last layer and its loss."""
    last = linear(n_rows, n_classes, width, precision)
    loss = cross_entropy(n_rows, n_classes, precision, n_threads=n_rows / label_waits(n_rows))
    return Passes(last.forward + loss.forward, loss.backward + last.backward)


def embedding(n_rows: float, width: float, n_entries: float, precision: str) -> Passes:
    """Rows of a table. Going back: a random gradient, a table of zeros, the rows put into it, and the table added."""
    item, n_table = ITEM_BYTES[precision], n_entries * width
    drawn = recipe(f"factory {item}", n_rows * width, precision)
    zeros = recipe(f"factory {item}", n_table, precision)
    put = moved(Work.EMBEDDING_BACKWARD, item * n_rows * width, precision=precision, turns=SORTING_KERNELS)
    return Passes(
        recipe(f"embedding {2 * item}", n_rows * width, precision),
        (*drawn, *zeros, put),
        recipe(f"elementwise {3 * item}", n_table, precision),
    )
