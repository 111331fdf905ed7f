"""Time of matrix products that are cut into tiles, as libraries do it.

A product takes the tile that ends first. Its tiles run in waves over the processors; few tiles are split along k until
all processors have work. Compute, cache and memory time overlap: they add as cubes, nearly the largest of the three.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.ceilings import Ceilings
from traincast.trace.graph import Floats, Ints

_TILES = np.array(
    [(256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (128, 32), (32, 128), (32, 32)], dtype=float
)
_HEIGHT, _WIDTH = _TILES.T
_SMALLER, _LARGER = _TILES.min(axis=1), _TILES.max(axis=1)
# Which tiles libraries offer, by the kernels' names in the measured rows; the first number of a name lies along n.
# Batched products on scalar units: one tile on Pascal, four on Volta and Turing, no narrow ones on others. Implicit
# convolutions cut 128 pixels by 32 to 128 channels; Winograd's fused kernels 32 patches by 32 channels, and the
# products between its transforms have no smallest tile.
_OFFERED = {
    "any": _LARGER > 0.0,
    "coarse": _SMALLER >= 64.0,
    "batched_pascal": (_HEIGHT == 64.0) & (_WIDTH == 128.0),
    "batched_volta": (_LARGER <= 128.0) & (_LARGER > 32.0) & ~((_HEIGHT == 128.0) & (_WIDTH >= 64.0)),
    "convolution": (_HEIGHT == 128.0) & (_WIDTH <= 128.0),
    "winograd_fused": _LARGER == 32.0,
    "winograd_apart": (_LARGER <= 128.0) & (_LARGER > 32.0),
}
TILING = {name: number for number, name in enumerate(_OFFERED)}
_IS_OFFERED = np.stack(list(_OFFERED.values()))
_TILE_FLOP = 2.0 * _HEIGHT * _WIDTH  # for each unit of k
_HALVINGS = np.maximum(np.log2(128.0 * 128.0 / _TILES.prod(axis=1)), 0.0)  # of a full tile
_TILES_IN_FLIGHT_PER_SM = 2.0
_QUANTISED_WAVES = 6.0  # from about here on the last, partly filled wave costs only its share


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Times:
    """Seconds, and the part of them that is bound by compute."""

    seconds: Floats
    compute_s: Floats


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Cutting:
    """How a library cuts such products on a device, whatever their number: one entry a kernel."""

    item_bytes: Floats
    is_on_matrix: NDArray[np.bool_]
    reached_flop_per_s: Floats  # with full tiles
    least_depth: Floats  # of a part when k is split
    start_up: Floats  # as a length of k
    loss: Floats  # logarithm of the rate left after each halving of the tile
    lone: Floats  # extra waves: the first ones have too few tiles in flight to hide latencies
    tiling: Ints  # which tiles are offered: a number of TILING

    def select(self, chosen: NDArray[Any]) -> Cutting:
        return Cutting(**{field.name: getattr(self, field.name)[chosen] for field in fields(self)})

    @staticmethod
    def join(parts: list[Cutting]) -> Cutting:
        """One after the other."""
        return Cutting(
            **{field.name: np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Cutting)}
        )


def bytes_seconds(moved: Floats, limits: Ceilings) -> Floats:
    """Time to move bytes that the previous kernel has just touched: the cache still holds some of them."""
    held = limits.l2_reach_bytes / np.maximum(moved, 1.0)
    missed_s = moved / (1.0 + held * held) / limits.memory_bytes_per_s
    cached_s = moved / limits.l2_bytes_per_s
    seconds: Floats = np.sqrt(missed_s * missed_s + cached_s * cached_s)  # the two overlap
    return seconds


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Pairs:
    """Every kernel with every tile that it may take, kernel by kernel; what does not depend on the shapes."""

    kernel: Ints
    first: Ints  # pair of each kernel
    tile_m: Floats
    tile_n: Floats
    slowness_s: Floats  # for each unit of k on a processor
    cache_s: Floats  # the same for the edges of the tile
    cutting: Cutting
    limits: Ceilings


def pairs_of(cutting: Cutting, limits: Ceilings) -> Pairs:
    kernel, tile = np.nonzero(_IS_OFFERED[cutting.tiling])
    cut, own = cutting.select(kernel), limits.select(kernel)
    tile_m, tile_n = _HEIGHT[tile], _WIDTH[tile]
    l2 = np.where(cut.is_on_matrix, own.l2_matrix_tile_bytes_per_s, own.l2_tile_bytes_per_s)
    return Pairs(
        kernel=kernel,
        first=np.searchsorted(kernel, np.arange(len(cutting.tiling))),
        tile_m=tile_m,
        tile_n=tile_n,
        slowness_s=own.n_sm * _TILE_FLOP[tile] / cut.reached_flop_per_s * np.exp(-cut.loss * _HALVINGS[tile]),
        cache_s=own.n_sm * (tile_m + tile_n) * cut.item_bytes / l2,
        cutting=cut,
        limits=own,
    )


def quantised(waves: Floats) -> Floats:
    """Waves with what the last, partly filled one costs: at least one, and hardly more than their number when many."""
    last = (np.ceil(waves) - waves) * _QUANTISED_WAVES / (_QUANTISED_WAVES + waves)
    return np.maximum(1.0, waves + last)


def tile_seconds(shapes: Floats, pairs: Pairs) -> Times:
    """Time with the best tile on offer, and the compute time of that tile.

    `shapes` are those of b products of m x k by k x n and the bytes that they move (not a number: what the tiles do),
    five along the axis before the last and one entry a pair along the last.
    """
    cut, limits, tile_m, tile_n = pairs.cutting, pairs.limits, pairs.tile_m, pairs.tile_n
    b, m, n, k, moved_bytes = (shapes[..., place, :] for place in range(5))
    # A product without rows, columns or items takes a tile all the same, so that it takes no more than its launch.
    n_m, n_n = np.maximum(np.ceil(m / tile_m), 1.0), np.maximum(np.ceil(n / tile_n), 1.0)
    tiles = np.maximum(b, 1.0) * n_m * n_n
    split = np.minimum(np.maximum(limits.n_sm / tiles, 1.0), np.maximum(k / cut.least_depth, 1.0))
    waves = tiles * split / limits.n_sm
    lengths = (quantised(waves) + cut.lone) * (k / split + cut.start_up)
    compute_s, cache_s = lengths * pairs.slowness_s, lengths * pairs.cache_s
    in_flight = limits.n_sm * _TILES_IN_FLIGHT_PER_SM
    rows = np.minimum(n_m, in_flight)
    columns = np.minimum(np.maximum(in_flight / rows, 1.0), n_n)
    read = np.maximum(tiles / columns * tile_m, b * m) + np.maximum(tiles / rows * tile_n, b * n)
    moved = cut.item_bytes * (read * k + b * m * n * np.where(split > 1.0, 1.0 + 2.0 * split, 1.0))
    memory_s = bytes_seconds(np.where(np.isnan(moved_bytes), moved, moved_bytes), limits)
    cubed = compute_s * compute_s * compute_s + cache_s * cache_s * cache_s + memory_s * memory_s * memory_s
    least = np.minimum.reduceat(cubed, pairs.first, axis=-1)
    # Several tiles that end together: any of them tells whether compute binds.
    of_best = np.where(cubed == least[..., pairs.kernel], compute_s, 0.0)
    return Times(seconds=np.cbrt(least), compute_s=np.maximum.reduceat(of_best, pairs.first, axis=-1))
