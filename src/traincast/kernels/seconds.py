"""Seconds of kernels: the larger of compute and memory time over what a device sustains, plus the launch.

Products run in tiles (`tiles.py`), 3 x 3 convolutions in fp32 also by Winograd's algorithms, whichever ends first. All
other work moves bytes, a fitted number of times, from the cache as far as they fit.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.ceilings import Ceilings, within_power
from traincast.kernels.coefficients import (
    IS_CONVOLUTION,
    IS_DEPTHWISE,
    IS_GROUPED,
    IS_WEIGHT_GRADIENT,
    Coefficients,
)
from traincast.kernels.tiles import Products, Times, bytes_seconds, tile_seconds
from traincast.kernels.work import FIRST_BYTES, Work
from traincast.trace.graph import Floats, Ints

_FLAGS = ("work", "item", "is_bf16", "is_winograd", "is_unaligned")


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Kernels:
    """Kernels to be timed: any shape that broadcasts; `work` and the flags along the last axis."""

    work: Ints
    item: Ints  # bytes of an element
    is_bf16: NDArray[np.bool_]
    is_winograd: NDArray[np.bool_]
    is_unaligned: NDArray[np.bool_]
    sizes: dict[str, Floats]

    def select(self, chosen: NDArray[Any]) -> Kernels:
        sizes = {name: value[..., chosen] for name, value in self.sizes.items()}
        return Kernels(**{name: getattr(self, name)[chosen] for name in _FLAGS}, sizes=sizes)


def kernel_seconds(kernels: Kernels, limits: Ceilings, coefficients: Coefficients, *, layout: str, tf32: bool) -> Times:
    """Times of all kernels on one device, or with ceilings that have one entry a kernel, each on its own."""
    launch_s = np.exp(coefficients["launch_s"])
    is_product = kernels.work < FIRST_BYTES
    seconds = np.empty(np.broadcast_shapes(kernels.sizes["bytes"].shape, kernels.work.shape))
    compute_s = np.zeros(seconds.shape)
    others = np.flatnonzero(~is_product)
    if len(others):
        moved = kernels.sizes["bytes"][..., others] * coefficients.passes[layout][kernels.work[others]]
        seconds[..., others] = bytes_seconds(moved, _chosen(limits, others)) + launch_s
    chosen = np.flatnonzero(is_product)
    if len(chosen):
        found = _product_seconds(
            kernels.select(chosen), _chosen(limits, chosen), coefficients, layout=layout, tf32=tf32
        )
        seconds[..., chosen] = found.seconds + launch_s
        compute_s[..., chosen] = found.compute_s
    return Times(seconds=seconds, compute_s=compute_s)


def _chosen(limits: Ceilings, chosen: NDArray[Any]) -> Ceilings:
    """Ceilings of some of the kernels; those of one device serve all."""
    if np.ndim(limits.n_sm) == 0:
        return limits
    return Ceilings(**{field.name: np.asarray(getattr(limits, field.name))[chosen] for field in fields(limits)})


def _rates(kernels: Kernels, limits: Ceilings, *, tf32: bool) -> tuple[Any, NDArray[np.bool_]]:
    """Peak products a second by operand, and which kernels run on matrix units."""
    matrix = np.where(
        kernels.item == 2,
        np.where(kernels.is_bf16, limits.bf16_flop_per_s, limits.fp16_flop_per_s),
        limits.tf32_flop_per_s if tf32 else 0.0,
    )
    on_matrix = (matrix > limits.simt_flop_per_s) & ~IS_DEPTHWISE[kernels.work] & (kernels.item <= 4)
    return np.where(on_matrix, matrix, limits.simt_flop_per_s), on_matrix


def _reached(
    kernels: Kernels, limits: Ceilings, coefficients: Coefficients, *, layout: str, tf32: bool
) -> tuple[Floats, NDArray[np.bool_]]:
    """Products a second with full tiles, and which kernels run on matrix units.

    Their share of the peak, within what power allows: units that wait draw little of it. Odd rows take more
    instructions for the same products, and so more energy, and Winograd's weight gradients fewer.
    """
    rate, on_matrix = _rates(kernels, limits, tf32=tf32)
    efficiency = _efficiency(kernels, limits, coefficients, on_matrix, layout)
    matrix_power = limits.matrix_power_flop_per_s * np.where(kernels.item == 2, 1.0, 0.5)
    power = np.where(on_matrix, matrix_power, limits.simt_power_flop_per_s)
    # Scalar units suffer from odd rows only where both operands lie along k, as in linear layers.
    suffers = kernels.is_unaligned & (on_matrix | (kernels.work == Work.LINEAR)) & ~IS_GROUPED[kernels.work]
    old = np.asarray(limits.is_pascal) * ~on_matrix
    unaligned = coefficients.by_unit("unaligned")[on_matrix.astype(np.int64)]
    saves = kernels.is_winograd & ~on_matrix & IS_WEIGHT_GRADIENT[kernels.work]
    instructions = suffers * (unaligned + coefficients["pascal_unaligned"] * old)
    instructions = instructions + coefficients["winograd.weight"] * saves
    return within_power(rate * np.exp(efficiency), power) * np.exp(instructions), on_matrix


def _product_seconds(
    kernels: Kernels, limits: Ceilings, coefficients: Coefficients, *, layout: str, tf32: bool
) -> Times:
    reached, on_matrix = _reached(kernels, limits, coefficients, layout=layout, tf32=tf32)
    products = _products(kernels, coefficients, reached, on_matrix)
    fast = np.flatnonzero(kernels.is_winograd & ~on_matrix & ~IS_WEIGHT_GRADIENT[kernels.work])
    times = _fastest_way(kernels, products, limits, coefficients, fast)
    seconds, compute_s = times.seconds, times.compute_s
    is_depthwise = IS_DEPTHWISE[kernels.work]
    if is_depthwise.any():
        # Too few products a byte for tiles: the sum of what the scalar units and the memory need.
        flop_s = kernels.sizes["flop"] / products.reached_flop_per_s
        seconds = np.where(is_depthwise, flop_s + bytes_seconds(kernels.sizes["bytes"], limits), seconds)
    if layout == "nchw" and on_matrix.any():
        changes = on_matrix & IS_CONVOLUTION[kernels.work] & (kernels.item == 2)
        moved = np.exp(coefficients["layout.change"]) * 2.0 * kernels.sizes["image"]
        seconds = seconds + np.where(changes, bytes_seconds(moved, limits), 0.0)
    is_recurrent = kernels.work == Work.RECURRENT
    if is_recurrent.any():
        seconds = seconds + is_recurrent * kernels.sizes["b"] * np.exp(coefficients["recurrent_step_s"])
    return Times(seconds=seconds, compute_s=np.where(compute_s > 0.7 * seconds, seconds, 0.0))


def _efficiency(
    kernels: Kernels, limits: Ceilings, coefficients: Coefficients, on_matrix: NDArray[np.bool_], layout: str
) -> Floats:
    """Logarithm of the share of the peak that full tiles reach where power allows it."""
    efficiency = coefficients.efficiency[layout][on_matrix.astype(np.int64), kernels.work]
    old = np.asarray(limits.is_pascal) * ~on_matrix * (kernels.work != Work.BATCHED)
    efficiency = efficiency + coefficients["pascal"] * old
    is_grouped = IS_GROUPED[kernels.work]
    if is_grouped.any():
        # Doublings of a group's channels beyond 16: m of a weight gradient, n of the others.
        width = np.where(IS_WEIGHT_GRADIENT[kernels.work], kernels.sizes["m"], kernels.sizes["n"])
        doublings = np.log2(np.clip(width, 1.0, 256.0) / 16.0)
        odd = coefficients[f"group_odd.{layout}"] * kernels.is_unaligned
        efficiency = efficiency + is_grouped * (coefficients[f"group_width.{layout}"] * doublings + odd)
    return efficiency


def _products(kernels: Kernels, coefficients: Coefficients, reached: Floats, on_matrix: NDArray[np.bool_]) -> Products:
    """The kernels as products: convolutions by their definition."""
    unit, work, sizes = on_matrix.astype(np.int64), kernels.work, kernels.sizes
    is_batched = work == Work.BATCHED
    is_scalar_convolution = IS_CONVOLUTION[work] & ~on_matrix
    least_depth = np.where(
        IS_WEIGHT_GRADIENT[work],
        coefficients["split_k.weight"],
        np.where(IS_CONVOLUTION[work], coefficients["split_k.convolution"], coefficients["split_k.matrices"]),
    )
    return Products(
        b=sizes["b"],
        m=sizes["m"],
        n=sizes["n"],
        k=sizes["k"],
        # An unrolled convolution never exists in memory: its k counts every pixel once for each place of the window.
        moved_bytes=np.where(IS_CONVOLUTION[work], sizes["bytes"], np.nan),
        item_bytes=kernels.item,
        reached_flop_per_s=reached,
        least_depth=np.exp(least_depth),
        start_up=np.exp(
            coefficients.by_unit("k_overhead")[unit] + coefficients["k_overhead.convolution"] * is_scalar_convolution
        ),
        loss=coefficients.by_unit("tile_loss")[unit]
        + coefficients["tile_loss.batched"] * is_batched
        + coefficients["tile_loss.convolution"] * is_scalar_convolution,
        is_coarse=is_batched & ~on_matrix,
    )


def _fastest_way(
    kernels: Kernels, products: Products, limits: Ceilings, coefficients: Coefficients, fast: NDArray[Any]
) -> Times:
    """Each kernel by its definition, those in `fast` also by Winograd's two ways, all in one pass."""
    if not len(fast):
        return tile_seconds(products, limits)
    n_all, n_fast = products.m.shape[-1], len(fast)
    chosen, limits_of, plain = kernels.select(fast), _chosen(limits, fast), products.select(fast)
    transformed, transform_s = _winograd_apart(chosen, plain, limits_of, coefficients)
    joined = Products.join([products, _winograd_fused(chosen, plain, limits_of, coefficients), transformed])
    index = np.concatenate([np.arange(n_all), fast, fast])
    times = tile_seconds(joined, _chosen(limits, index))
    seconds, compute_s = times.seconds[..., :n_all], times.compute_s[..., :n_all]
    for first, added_s in ((n_all, 0.0), (n_all + n_fast, transform_s)):
        other_s = times.seconds[..., first : first + n_fast] + added_s
        is_better = other_s < seconds[..., fast]
        compute_s[..., fast] = np.where(is_better, times.compute_s[..., first : first + n_fast], compute_s[..., fast])
        seconds[..., fast] = np.minimum(other_s, seconds[..., fast])
    return Times(seconds=seconds, compute_s=compute_s)


def _winograd_fused(kernels: Kernels, plain: Products, limits: Ceilings, coefficients: Coefficients) -> Products:
    """Patches of 2 x 2 outputs need 16 products instead of 36; the transforms happen in registers.

    The sixteen products of a patch are made in one kernel, so they share its tiles' start-up and waves.
    """
    reached = within_power(
        limits.simt_flop_per_s * np.exp(coefficients["winograd.fused"]), limits.simt_power_flop_per_s
    )
    return replace(
        plain,
        m=kernels.sizes["patches_2"],
        k=plain.k * (16.0 / 9.0),
        reached_flop_per_s=np.broadcast_to(reached, plain.reached_flop_per_s.shape),
    )


def _winograd_apart(
    kernels: Kernels, plain: Products, limits: Ceilings, coefficients: Coefficients
) -> tuple[Products, Floats]:
    """Patches of 4 x 4 outputs need 36 products instead of 144, between transforms that pass through memory."""
    c_in, c_out, patches = plain.k / 9.0, plain.n, kernels.sizes["patches_4"]
    reached = within_power(
        limits.simt_flop_per_s * np.exp(coefficients["winograd.apart"]), limits.simt_power_flop_per_s
    )
    products = replace(
        plain,
        b=np.full_like(plain.b, 36.0),
        m=patches,
        k=c_in,
        moved_bytes=np.full_like(plain.moved_bytes, np.nan),
        reached_flop_per_s=np.broadcast_to(reached, plain.reached_flop_per_s.shape),
        loss=plain.loss + coefficients["tile_loss.batched"],
        is_coarse=np.ones_like(plain.is_coarse),
    )
    transformed = 36.0 * kernels.item * (patches * (c_in + c_out) + c_in * c_out)
    moved = kernels.sizes["bytes"] + transformed * np.exp(coefficients["winograd.transform"])
    return products, bytes_seconds(moved, limits)
