"""Seconds of kernels: the larger of compute and memory time over what a device sustains, plus the launch.

Products are laid out in tiles over the device's processors as libraries do: a product takes the tile that ends first,
counted in waves, with the traffic that its tiles cause in the cache and, by wave, in memory. All other work moves
bytes, a fitted number of times, from the cache as far as they fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.ceilings import Ceilings
from traincast.kernels.coefficients import IS_CONVOLUTION, IS_DEPTHWISE, IS_GROUPED, IS_WEIGHT_GRADIENT, Coefficients
from traincast.kernels.work import FIRST_BYTES, Work
from traincast.trace.graph import Floats, Ints

_TILES = np.array(
    [(256, 128), (128, 256), (128, 128), (128, 64), (64, 128), (64, 64), (128, 32), (32, 128), (32, 32)], dtype=float
)
_HALVINGS = np.maximum(np.log2(128.0 * 128.0 / _TILES.prod(axis=1)), 0.0)  # of a full tile
_TILES_IN_FLIGHT_PER_SM = 2.0
_QUANTISED_WAVES = 2.4  # from about here on the last, partly filled wave costs only its share


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Kernels:
    """Kernels to be timed: any shape that broadcasts; `work` and the flags along the last axis."""

    work: Ints
    item: Ints
    is_bf16: NDArray[np.bool_]
    is_winograd: NDArray[np.bool_]
    is_unaligned: NDArray[np.bool_]
    sizes: dict[str, Floats]

    def select(self, chosen: NDArray[np.bool_]) -> Kernels:
        sizes = {name: value[..., chosen] for name, value in self.sizes.items()}
        flags = (getattr(self, name)[chosen] for name in ("work", "item", "is_bf16", "is_winograd", "is_unaligned"))
        work, item, is_bf16, is_winograd, is_unaligned = flags
        return Kernels(
            work=work, item=item, is_bf16=is_bf16, is_winograd=is_winograd, is_unaligned=is_unaligned, sizes=sizes
        )


@dataclass(frozen=True, eq=False, slots=True)
class Times:
    """Seconds, and the part of them that is bound by compute."""

    seconds: Floats
    compute_s: Floats


def bytes_seconds(moved: Floats, limits: Ceilings) -> Floats:
    """Time to move bytes that the previous kernel has just touched: the cache still holds some of them."""
    held = limits.l2_reach_bytes / np.maximum(moved, 1.0)
    missed = moved / (1.0 + held * held)
    return missed / limits.memory_bytes_per_s + moved / limits.l2_bytes_per_s


def kernel_seconds(kernels: Kernels, limits: Ceilings, coefficients: Coefficients, *, layout: str, tf32: bool) -> Times:
    """Times of all kernels on one device, or with ceilings that have one entry a kernel, each on its own."""
    launch_s = np.exp(coefficients["launch_s"])
    is_product = kernels.work < FIRST_BYTES
    shape = np.broadcast_shapes(kernels.sizes["bytes"].shape, kernels.work.shape)
    seconds, compute_s = np.empty(shape), np.zeros(shape)
    others = ~is_product
    if others.any():
        moved = kernels.sizes["bytes"][..., others] * coefficients.passes[layout][kernels.work[others]]
        seconds[..., others] = bytes_seconds(moved, _chosen(limits, others)) + launch_s
    if is_product.any():
        products = _product_seconds(
            kernels.select(is_product), _chosen(limits, is_product), coefficients, layout=layout, tf32=tf32
        )
        seconds[..., is_product] = products.seconds + launch_s
        compute_s[..., is_product] = products.compute_s
    return Times(seconds, compute_s)


def _chosen(limits: Ceilings, chosen: NDArray[np.bool_]) -> Ceilings:
    """Ceilings of some of the kernels; those of one device serve all."""
    if np.ndim(limits.n_sm) == 0:
        return limits
    return Ceilings(**{name: np.asarray(getattr(limits, name))[chosen] for name in Ceilings.__dataclass_fields__})


def _rates(kernels: Kernels, limits: Ceilings, *, tf32: bool) -> tuple[Any, NDArray[np.bool_]]:
    """Sustained products a second by operand, and which kernels run on matrix units."""
    matrix = np.where(
        kernels.item == 2,
        np.where(kernels.is_bf16, limits.bf16_flop_per_s, limits.fp16_flop_per_s),
        limits.tf32_flop_per_s if tf32 else 0.0,
    )
    on_matrix = (matrix > limits.simt_flop_per_s) & ~IS_DEPTHWISE[kernels.work] & (kernels.item <= 4)
    return np.where(on_matrix, matrix, limits.simt_flop_per_s), on_matrix


def _product_seconds(
    kernels: Kernels, limits: Ceilings, coefficients: Coefficients, *, layout: str, tf32: bool
) -> Times:
    rate, on_matrix = _rates(kernels, limits, tf32=tf32)
    unit = on_matrix.astype(np.int64)
    efficiency = coefficients.efficiency[layout][unit, kernels.work]
    efficiency = efficiency + coefficients.by_unit("unaligned")[unit] * kernels.is_unaligned
    old = np.asarray(limits.is_pascal) * ~on_matrix
    efficiency = efficiency + coefficients["pascal_unaligned"] * (old * kernels.is_unaligned)
    efficiency = efficiency + IS_GROUPED[kernels.work] * coefficients[f"group_width.{layout}"] * _doublings(kernels)
    is_weight = IS_WEIGHT_GRADIENT[kernels.work]
    saves_products = kernels.is_winograd & ~on_matrix
    efficiency = efficiency + coefficients["winograd.weight"] * (saves_products & is_weight)
    forward = np.where(
        IS_CONVOLUTION[kernels.work], coefficients["split_k.convolution"], coefficients["split_k.matrices"]
    )
    split_k = np.exp(np.where(is_weight, coefficients["split_k.weight"], forward))
    tiling = _Tiling(
        reached=rate * np.exp(efficiency),
        split_k=split_k,
        overhead=np.exp(coefficients.by_unit("k_overhead"))[unit],
        loss=coefficients.by_unit("tile_loss")[unit],
    )
    times = _in_tiles(kernels, limits, tiling)
    seconds, compute_s = times.seconds, times.compute_s
    fast = saves_products & ~is_weight
    if fast.any():
        chosen, limits_of = kernels.select(fast), _chosen(limits, fast)
        for way in (_winograd_fused, _winograd_apart):
            other = way(chosen, limits_of, coefficients, tiling.select(fast))
            better = other.seconds < seconds[..., fast]
            seconds[..., fast] = np.where(better, other.seconds, seconds[..., fast])
            compute_s[..., fast] = np.where(better, other.compute_s, compute_s[..., fast])
    seconds = np.where(IS_DEPTHWISE[kernels.work], _depthwise(kernels, limits, tiling.reached), seconds)
    if layout == "nchw":
        changes = on_matrix & IS_CONVOLUTION[kernels.work] & (kernels.item == 2)
        moved = np.exp(coefficients["layout.change"]) * 2.0 * kernels.sizes["image"]
        seconds = seconds + np.where(changes, bytes_seconds(moved, limits), 0.0)
    step_s = np.exp(coefficients["recurrent_step_s"])
    seconds = seconds + np.where(kernels.work == Work.RECURRENT, kernels.sizes["b"] * step_s, 0.0)
    return Times(seconds, np.where(compute_s > 0.7 * seconds, seconds, 0.0))


def _doublings(kernels: Kernels) -> Floats:
    """Of a group's channels beyond 16: m of a weight gradient, n of the others."""
    is_weight = kernels.work == Work.GROUPED_WEIGHT
    width = np.where(is_weight, kernels.sizes["m"], kernels.sizes["n"])
    return np.log2(np.clip(width, 1.0, 256.0) / 16.0)


def _depthwise(kernels: Kernels, limits: Ceilings, reached: Floats) -> Floats:
    """Too few products a byte for tiles: the sum of what the scalar units and the memory need."""
    return kernels.sizes["flop"] / reached + bytes_seconds(kernels.sizes["bytes"], limits)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class _Tiling:
    """How products are cut, one entry a kernel: rate that full tiles reach, least depth worth splitting, start-up."""

    reached: Floats
    split_k: Floats
    overhead: Floats
    loss: Floats  # logarithm of the rate lost with each halving of the tile

    def select(self, chosen: NDArray[np.bool_]) -> _Tiling:
        return _Tiling(
            **{name: getattr(self, name)[..., chosen] for name in ("reached", "split_k", "overhead", "loss")}
        )


def _winograd_fused(kernels: Kernels, limits: Ceilings, coefficients: Coefficients, tiling: _Tiling) -> Times:
    """Patches of 2 x 2 outputs need 16 products instead of 36; the transforms happen in registers."""
    # The sixteen products of a patch are made in one kernel, so they share its tiles' start-up and waves.
    sizes = {**kernels.sizes, "m": kernels.sizes["patches_2"], "k": kernels.sizes["k"] * (16.0 / 9.0)}
    reached = limits.simt_flop_per_s * np.exp(coefficients["winograd.fused"]) + 0.0 * tiling.reached
    return _in_tiles(replace(kernels, sizes=sizes), limits, replace(tiling, reached=reached))


def _winograd_apart(kernels: Kernels, limits: Ceilings, coefficients: Coefficients, tiling: _Tiling) -> Times:
    """Patches of 4 x 4 outputs need 36 products instead of 144, between transforms that pass through memory."""
    c_in, c_out, patches = kernels.sizes["k"] / 9.0, kernels.sizes["n"], kernels.sizes["patches_4"]
    sizes = {**kernels.sizes, "b": 36.0 + 0.0 * c_out, "m": patches, "k": c_in}
    reached = limits.simt_flop_per_s * np.exp(coefficients["winograd.apart"]) + 0.0 * tiling.reached
    products = _in_tiles(replace(kernels, sizes=sizes), limits, replace(tiling, reached=reached), is_plain=True)
    transformed = 36.0 * kernels.item * (patches * (c_in + c_out) + c_in * c_out)
    moved = kernels.sizes["bytes"] + transformed * np.exp(coefficients["winograd.transform"])
    seconds = products.seconds + bytes_seconds(moved, limits)
    return Times(seconds, products.compute_s)


def _in_tiles(kernels: Kernels, limits: Ceilings, tiling: _Tiling, *, is_plain: bool = False) -> Times:
    """Time with the best tile, and the compute time of that tile.

    Compute, cache and memory time overlap: they add as cubes, which is nearly the largest of the three. Few tiles are
    split along k until all processors have work.
    """
    b, m, n, k = (kernels.sizes[name] for name in ("b", "m", "n", "k"))
    at = (slice(None),) + (None,) * m.ndim
    tile_m, tile_n = _TILES[:, 0][at], _TILES[:, 1][at]
    n_m, n_n = np.ceil(m / tile_m), np.ceil(n / tile_n)
    tiles = b * n_m * n_n
    split = np.minimum(np.maximum(limits.n_sm / tiles, 1.0), np.maximum(k / tiling.split_k, 1.0))
    waves = tiles * split / limits.n_sm
    waves = np.maximum(1.0, waves + (np.ceil(waves) - waves) * _QUANTISED_WAVES / (_QUANTISED_WAVES + waves))
    depth = k / split + tiling.overhead
    halvings = _HALVINGS[at]
    compute_s = waves * (2.0 * tile_m * tile_n) * depth * limits.n_sm / tiling.reached * np.exp(-tiling.loss * halvings)
    cache_s = waves * limits.n_sm * (tile_m + tile_n) * depth * kernels.item / limits.l2_tile_bytes_per_s
    in_flight = limits.n_sm * _TILES_IN_FLIGHT_PER_SM
    rows = np.minimum(n_m, in_flight)
    columns = np.minimum(np.maximum(in_flight / rows, 1.0), n_n)
    read = np.maximum(tiles / columns * tile_m, b * m) * k + np.maximum(tiles / rows * tile_n, b * n) * k
    moved = kernels.item * (read + b * m * n * np.where(split > 1.0, 1.0 + 2.0 * split, 1.0))
    if not is_plain:
        # An unrolled convolution never exists in memory: its k counts every pixel once for each place of the window.
        moved = np.where(IS_CONVOLUTION[kernels.work], kernels.sizes["bytes"], moved)
    memory_s = bytes_seconds(moved, limits)
    cubed = compute_s * compute_s * compute_s + cache_s * cache_s * cache_s + memory_s * memory_s * memory_s
    least = cubed.min(axis=0)
    # Several tiles that end together: any of them tells whether compute binds.
    return Times(np.cbrt(least), np.where(cubed == least, compute_s, 0.0).max(axis=0))
