"""The kernels of a lowered graph as arrays: distinct ones once, every size a quadratic in the batch size.

A lowered ResNet-50 has 472 ops but some 150 distinct kernels, and a sweep evaluates these for many batch sizes and
devices; the table is built once a graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.kernels_of import SIZES, Kernel, kernels_of
from traincast.kernels.ways import Kinds, group_width
from traincast.trace.graph import Floats, Graph, Ints
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.once import once_per_graph
from traincast.trace.structure import known_of, once_per_structure

# Sizes are read at these batch sizes and interpolated: exact for polynomials up to the square.
_PROBES = np.array([2, 3, 5], dtype=np.int64)
_TO_COEFFICIENTS = np.linalg.inv(np.vander(_PROBES.astype(float), 3, increasing=True))


@dataclass(frozen=True, eq=False)
class KernelTable:
    """Distinct kernels, and for every op which of them it runs.

    `coefficients` are those of 1, of the batch size and of its square, each with one row a size (SIZES) and one column
    a kernel.
    """

    kinds: Kinds
    coefficients: Floats
    op_kernels: Ints  # one row an op, up to three kernels; -1: none
    without_kernel: Ints  # these ops
    more_kernels: tuple[tuple[Ints, Ints], ...]  # the ops that have a second or third kernel, and which
    is_silent: NDArray[np.bool_]  # ops that only the host sees: views, allocations
    is_covered: NDArray[np.bool_]

    @property
    def n_kernels(self) -> int:
        return len(self.kinds.work)

    @cached_property
    def n_runs(self) -> Floats:
        """How often a step runs each kernel."""
        used = self.op_kernels[self.op_kernels >= 0]
        return np.bincount(used, minlength=self.n_kernels).astype(np.float64)

    def sizes(self, batch_sizes: Ints) -> Floats:
        """By batch size, size (SIZES) and kernel."""
        constant, linear, square = self.coefficients
        batches = np.asarray(batch_sizes, dtype=np.float64)[:, None, None]
        return constant + batches * (linear + batches * square)

    def by_op(self, by_kernel: Floats) -> Floats:
        """Sums what the kernels of each op have."""
        if not self.n_kernels:
            return np.zeros((len(by_kernel), len(self.op_kernels)))
        total: Floats = by_kernel[:, self.op_kernels[:, 0]]
        total[:, self.without_kernel] = 0.0
        for ops, kernels in self.more_kernels:
            total[:, ops] += by_kernel[:, kernels]
        return total


@once_per_graph
def kernel_table(graph: Graph) -> KernelTable:
    """The table of a graph, built once."""
    numbers: dict[tuple[object, ...], int] = {}
    distinct: list[Kernel] = []
    all_kernels, class_of = _kernels_by_class(graph)
    by_class = np.full((len(all_kernels), 3), -1, dtype=np.int64)
    for one, kernels in enumerate(all_kernels):
        for place, kernel in enumerate(kernels):
            key = kernel.key()
            if key not in numbers:
                numbers[key] = len(distinct)
                distinct.append(kernel)
            by_class[one, place] = numbers[key]
    by_op = by_class[class_of]
    probed = np.array([kernel.sizes for kernel in distinct], dtype=np.float64).reshape(len(distinct), len(SIZES), 3)
    work = np.array([kernel.work for kernel in distinct], dtype=np.int64)
    coefficients = np.einsum("keb,cb->cek", probed, _TO_COEFFICIENTS)
    more = [np.flatnonzero(by_op[:, place] >= 0) for place in (1, 2)]
    return KernelTable(
        kinds=Kinds(
            work=work,
            item=np.array([kernel.item_bytes for kernel in distinct], dtype=np.int64),
            is_bf16=np.array([kernel.is_bf16 for kernel in distinct], dtype=bool),
            is_winograd=np.array([kernel.is_winograd for kernel in distinct], dtype=bool),
            is_unaligned=np.array([kernel.is_unaligned for kernel in distinct], dtype=bool),
            is_masked=np.array([kernel.is_masked for kernel in distinct], dtype=bool),
            group_width=group_width(work, dict(zip(SIZES, probed[:, :, 0].T, strict=True))),
        ),
        coefficients=np.where(np.abs(coefficients) < 1e-6, 0.0, coefficients),
        op_kernels=by_op,
        without_kernel=np.flatnonzero(by_op[:, 0] < 0),
        more_kernels=tuple((ops, by_op[ops, place]) for place, ops in enumerate(more, start=1) if len(ops)),
        is_silent=_is_of(graph)[0],
        is_covered=_is_of(graph)[1],
    )


def _kernels_by_class(graph: Graph) -> tuple[list[list[Kernel]], Ints]:
    """Kernels of ops that stand for others, and for each op the place of the one that stands for it."""
    known = known_of(graph)
    if known is None:
        return list(kernels_of(graph, _PROBES)), np.arange(graph.n_ops)
    return [*_fixed_kernels(known.structure.fixed), *kernels_of(known.moving, _PROBES)], known.structure.class_of


@once_per_graph
def _fixed_kernels(graph: Graph) -> list[list[Kernel]]:
    return list(kernels_of(graph, _PROBES))


@once_per_structure
def _is_of(graph: Graph) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whether each op is silent, and whether it is covered."""
    kinds = op_kinds(graph)
    silent = np.array([kind in (OpKind.VIEW, OpKind.ALLOCATION) for kind in kinds])
    return silent, np.array([kind != OpKind.UNCOSTED for kind in kinds])
