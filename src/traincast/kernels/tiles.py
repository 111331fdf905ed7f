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
from traincast.trace.graph import Floats

_TILES = np.array(
    [(256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (128, 32), (32, 128), (32, 32)], dtype=float
)
_IS_NARROW = _TILES.min(axis=1) < 64.0
_HALVINGS = np.maximum(np.log2(128.0 * 128.0 / _TILES.prod(axis=1)), 0.0)  # of a full tile
_TILES_IN_FLIGHT_PER_SM = 2.0
_QUANTISED_WAVES = 6.0  # from about here on the last, partly filled wave costs only its share


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Times:
    """Seconds, and the part of them that is bound by compute."""

    seconds: Floats
    compute_s: Floats


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Products:
    """b products of m x k by k x n, and how they are cut. One entry a kernel along the last axis."""

    b: Floats
    m: Floats
    n: Floats
    k: Floats
    moved_bytes: Floats  # what an unrolled convolution reads and writes; not a number: what its tiles do
    item_bytes: NDArray[Any]
    reached_flop_per_s: Floats  # with full tiles
    least_depth: Floats  # of a part when k is split
    start_up: Floats  # as a length of k
    loss: Floats  # logarithm of the rate left after each halving of the tile
    is_coarse: NDArray[np.bool_]  # libraries offer no narrow tiles

    def select(self, chosen: NDArray[Any]) -> Products:
        return Products(**{field.name: getattr(self, field.name)[..., chosen] for field in fields(self)})

    @staticmethod
    def join(parts: list[Products]) -> Products:
        """One after the other along the last axis; a field has the same shape in all parts but for that axis."""
        return Products(
            **{
                field.name: np.concatenate([getattr(part, field.name) for part in parts], axis=-1)
                for field in fields(Products)
            }
        )


def bytes_seconds(moved: Floats, limits: Ceilings) -> Floats:
    """Time to move bytes that the previous kernel has just touched: the cache still holds some of them."""
    held = limits.l2_reach_bytes / np.maximum(moved, 1.0)
    missed_s = moved / (1.0 + held * held) / limits.memory_bytes_per_s
    cached_s = moved / limits.l2_bytes_per_s
    seconds: Floats = np.sqrt(missed_s * missed_s + cached_s * cached_s)  # the two overlap
    return seconds


def tile_seconds(products: Products, limits: Ceilings) -> Times:
    """Time with the best tile, and the compute time of that tile."""
    b, m, n, k = products.b, products.m, products.n, products.k
    at = (slice(None),) + (None,) * m.ndim
    tile_m, tile_n = _TILES[:, 0][at], _TILES[:, 1][at]
    n_m, n_n = np.ceil(m / tile_m), np.ceil(n / tile_n)
    tiles = b * n_m * n_n
    split = np.minimum(np.maximum(limits.n_sm / tiles, 1.0), np.maximum(k / products.least_depth, 1.0))
    waves = tiles * split / limits.n_sm
    waves = np.maximum(1.0, waves + (np.ceil(waves) - waves) * _QUANTISED_WAVES / (_QUANTISED_WAVES + waves))
    on_all_sms = waves * (k / split + products.start_up) * limits.n_sm
    compute_s = on_all_sms * (2.0 * tile_m * tile_n) / products.reached_flop_per_s
    compute_s *= np.exp(-products.loss * _HALVINGS[at])
    compute_s[np.broadcast_to(products.is_coarse & _IS_NARROW[at], compute_s.shape)] = np.inf
    cache_s = on_all_sms * (tile_m + tile_n) * products.item_bytes / limits.l2_tile_bytes_per_s
    in_flight = limits.n_sm * _TILES_IN_FLIGHT_PER_SM
    rows = np.minimum(n_m, in_flight)
    columns = np.minimum(np.maximum(in_flight / rows, 1.0), n_n)
    read = np.maximum(tiles / columns * tile_m, b * m) + np.maximum(tiles / rows * tile_n, b * n)
    moved = products.item_bytes * (read * k + b * m * n * np.where(split > 1.0, 1.0 + 2.0 * split, 1.0))
    moved = np.where(np.isnan(products.moved_bytes), moved, products.moved_bytes)
    memory_s = bytes_seconds(moved, limits)
    cubed = compute_s * compute_s * compute_s + cache_s * cache_s * cache_s + memory_s * memory_s * memory_s
    least = cubed.min(axis=0)
    # Several tiles that end together: any of them tells whether compute binds.
    return Times(seconds=np.cbrt(least), compute_s=np.where(cubed == least, compute_s, 0.0).max(axis=0))
