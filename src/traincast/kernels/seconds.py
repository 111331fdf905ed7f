"""Seconds of kernels: the larger of compute and memory time over what a device sustains, plus the launch.

Products run in tiles (`tiles.py`), 3 x 3 convolutions in fp32 also by Winograd's algorithms (`ways.py`), whichever ends
first. All other work moves bytes, a fitted number of times, from the cache as far as they fit. What does not depend
on the batch size is found first, as a plan, and serves all batch sizes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.ceilings import Ceilings
from traincast.kernels.coefficients import IS_CONVOLUTION, IS_DEPTHWISE, IS_WEIGHT_GRADIENT, Coefficients
from traincast.kernels.tiles import Cutting, Pairs, Shapes, Times, bytes_seconds, pairs_of, tile_seconds
from traincast.kernels.ways import Kinds, by_definition, rates_of, winograd_apart, winograd_fused
from traincast.kernels.work import FIRST_BYTES, Work
from traincast.trace.graph import Floats, Ints

Sizes = dict[str, Floats]  # by name of SIZES: any leading axes, one entry a kernel along the last
_COMPUTE_SHARE = 0.7  # a kernel whose compute time is more than this of its time is bound by compute


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Plan:
    """How kernels run on a device, or each on a device of its own. Indices are into all kernels, or into `products`."""

    launch_s: float
    others: Ints  # kernels that move bytes
    other_limits: Ceilings
    passes: Floats  # of others
    products: Ints
    limits: Ceilings  # of products
    plain: Cutting  # of products
    is_convolution: NDArray[np.bool_]  # of products, and so on
    is_depthwise: NDArray[np.bool_]
    is_recurrent: NDArray[np.bool_]
    changes_layout: NDArray[np.bool_]
    layout_passes: float
    recurrent_step_s: float
    fast: Ints  # of products: those that Winograd's algorithms may serve
    ways: Pairs  # of products, then of `fast` in one kernel, then of `fast` with transforms apart
    fast_limits: Ceilings
    fast_item: Floats
    transform_passes: float
    transform_s: float


def plan_of(kinds: Kinds, limits: Ceilings, coefficients: Coefficients, *, layout: str, tf32: bool) -> Plan:
    """For one device, or with ceilings that have one entry a kernel, each on its own."""
    is_product = kinds.work < FIRST_BYTES
    others, products = np.flatnonzero(~is_product), np.flatnonzero(is_product)
    chosen, limits_of = kinds.select(products), limits.select(products)
    rates = rates_of(chosen, limits_of, coefficients, layout=layout, tf32=tf32)
    plain = by_definition(chosen, rates, limits_of, coefficients)
    is_convolution = IS_CONVOLUTION[chosen.work]
    fast = np.flatnonzero(chosen.is_winograd & ~rates.on_matrix & ~IS_WEIGHT_GRADIENT[chosen.work])
    fast_limits, fast_plain = limits_of.select(fast), plain.select(fast)
    fused = winograd_fused(fast_plain, fast_limits, coefficients)
    apart = winograd_apart(fast_plain, fast_limits, coefficients)
    return Plan(
        launch_s=float(np.exp(coefficients["launch_s"])),
        others=others,
        other_limits=limits.select(others),
        passes=coefficients.passes[layout][kinds.work[others]],
        products=products,
        limits=limits_of,
        plain=plain,
        is_convolution=is_convolution,
        is_depthwise=IS_DEPTHWISE[chosen.work],
        is_recurrent=chosen.work == Work.RECURRENT,
        changes_layout=rates.on_matrix & is_convolution & (chosen.item == 2) & (layout == "nchw"),
        layout_passes=float(np.exp(coefficients["layout.change"])),
        recurrent_step_s=float(np.exp(coefficients["recurrent_step_s"])),
        fast=fast,
        ways=pairs_of(
            Cutting.join([plain, fused, apart]),
            limits_of.select(np.concatenate([np.arange(len(products)), fast, fast])),
        ),
        fast_limits=fast_limits,
        fast_item=chosen.item[fast].astype(np.float64),
        transform_passes=float(np.exp(coefficients["winograd.transform"])),
        transform_s=float(np.exp(coefficients["winograd.transform_s"])),
    )


def kernel_seconds(plan: Plan, sizes: Sizes) -> Times:
    """Times of all kernels."""
    seconds = np.empty(sizes["bytes"].shape)
    compute_s = np.zeros(seconds.shape)
    if len(plan.others):
        seconds[..., plan.others] = bytes_seconds(sizes["bytes"][..., plan.others] * plan.passes, plan.other_limits)
    if len(plan.products):
        found = _product_seconds(plan, {name: value[..., plan.products] for name, value in sizes.items()})
        seconds[..., plan.products] = found.seconds
        compute_s[..., plan.products] = np.where(
            found.compute_s > _COMPUTE_SHARE * found.seconds, found.seconds + plan.launch_s, 0.0
        )
    return Times(seconds=seconds + plan.launch_s, compute_s=compute_s)


def _product_seconds(plan: Plan, sizes: Sizes) -> Times:
    times = _fastest_way(plan, sizes)
    seconds = times.seconds
    if plan.is_depthwise.any():
        # Too few products a byte for tiles: the sum of what the scalar units and the memory need.
        flop_s = sizes["flop"] / plan.plain.reached_flop_per_s
        seconds = np.where(plan.is_depthwise, flop_s + bytes_seconds(sizes["bytes"], plan.limits), seconds)
    if plan.changes_layout.any():
        moved = plan.layout_passes * 2.0 * sizes["image"]
        seconds = seconds + np.where(plan.changes_layout, bytes_seconds(moved, plan.limits), 0.0)
    if plan.is_recurrent.any():
        seconds = seconds + plan.is_recurrent * sizes["b"] * plan.recurrent_step_s
    return Times(seconds=seconds, compute_s=times.compute_s)


def _fastest_way(plan: Plan, sizes: Sizes) -> Times:
    """Each kernel by its definition, those in `fast` also by Winograd's two ways, all in one pass."""
    b, m, n, k = (sizes[name] for name in "bmnk")
    # An unrolled convolution never exists in memory: its k counts every pixel once for each place of the window.
    moved = np.where(plan.is_convolution, sizes["bytes"], np.nan)
    fast = plan.fast
    if not len(fast):
        return tile_seconds(Shapes(b=b, m=m, n=n, k=k, moved_bytes=moved), plan.ways)
    n_all, n_fast = m.shape[-1], len(fast)
    c_in, c_out, patches = k[..., fast] / 9.0, n[..., fast], sizes["patches_4"][..., fast]
    one = np.ones_like(c_in)
    shapes = Shapes(
        b=np.concatenate([b, one, 36.0 * one], axis=-1),
        m=np.concatenate([m, sizes["patches_2"][..., fast], patches], axis=-1),
        n=np.concatenate([n, c_out, c_out], axis=-1),
        k=np.concatenate([k, 16.0 * c_in, c_in], axis=-1),
        moved_bytes=np.concatenate([moved, moved[..., fast], np.nan * one], axis=-1),
    )
    times = tile_seconds(shapes, plan.ways)
    transformed = 36.0 * plan.fast_item * (patches * (c_in + c_out) + c_in * c_out)
    transform_s = bytes_seconds(sizes["bytes"][..., fast] + transformed * plan.transform_passes, plan.fast_limits)
    # In each row: by definition, fused, apart.
    seconds = np.stack(
        [
            times.seconds[..., fast],
            times.seconds[..., n_all : n_all + n_fast],
            times.seconds[..., n_all + n_fast :] + transform_s + plan.transform_s,
        ]
    )
    way = seconds.argmin(axis=0) * n_fast + n_all - n_fast + np.arange(n_fast)
    way = np.where(way < n_all, fast, way)
    found_s, found_compute_s = times.seconds[..., :n_all], times.compute_s[..., :n_all]
    found_compute_s[..., fast] = np.take_along_axis(times.compute_s, way, axis=-1)
    found_s[..., fast] = seconds.min(axis=0)
    return Times(seconds=found_s, compute_s=found_compute_s)
