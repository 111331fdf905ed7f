"""Shapes of the products that kernels are, by each of the ways to run them, from the sizes of the kernels."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.kernels_of import SIZE
from traincast.trace.graph import Floats, Ints

# For b, m, n, k and the bytes that are moved: the size that it is read from, a factor, and what is added. Bytes that
# are not a number: those that the tiles move. A patch of 2 x 2 outputs takes 16 products of its channels in one kernel;
# a patch of 4 x 4 takes 36, each of them in one multiplication with those of all other patches.
_DEFINITION = (("b", 1, 0), ("m", 1, 0), ("n", 1, 0), ("k", 1, 0), ("bytes", 1, np.nan))
# An unrolled convolution never exists in memory: its k counts every pixel once for each place of the window.
_CONVOLUTION = (*_DEFINITION[:4], ("bytes", 1, 0))
_WINOGRAD_FUSED = (("b", 0, 1), ("patches_2", 1, 0), ("n", 1, 0), ("k", 16 / 9, 0), ("bytes", 1, 0))
_WINOGRAD_APART = (("b", 0, 36), ("patches_4", 1, 0), ("n", 1, 0), ("k", 1 / 9, 0), ("bytes", 0, np.nan))
_WAYS = (_DEFINITION, _CONVOLUTION, _WINOGRAD_FUSED, _WINOGRAD_APART)
_SOURCE = np.array([[SIZE[size] for size, _, _ in way] for way in _WAYS]).T
_SCALE = np.array([[scale for _, scale, _ in way] for way in _WAYS], dtype=float).T
_SHIFT = np.array([[shift for _, _, shift in way] for way in _WAYS], dtype=float).T


@dataclass(frozen=True, eq=False, slots=True)
class WayShapes:
    """Five rows (b, m, n, k, bytes); one column a product and way, as often as it is tried."""

    source: Ints  # a place among the sizes of all kernels, row after row
    scale: Floats
    shift: Floats

    def read(self, sizes: Floats) -> Floats:
        """At sizes with any leading axes, then SIZES, then one entry a kernel."""
        flat = sizes.reshape(*sizes.shape[:-2], -1)
        found: Floats = flat[..., self.source]
        found *= self.scale
        found += self.shift
        return found


def way_shapes(
    products: Ints, fast: Ints, is_convolution: NDArray[np.bool_], tried: Ints, *, n_kernels: int
) -> WayShapes:
    """Every product by its definition, then those in `fast` by Winograd's two ways; `tried` are places among these."""
    way = np.concatenate([is_convolution.astype(np.int64), np.full(len(fast), 2), np.full(len(fast), 3)])[tried]
    kernel = np.concatenate([products, products[fast], products[fast]])[tried]
    return WayShapes(_SOURCE[:, way] * n_kernels + kernel, _SCALE[:, way], _SHIFT[:, way])
