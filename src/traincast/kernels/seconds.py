"""Seconds of kernels: the larger of compute and memory time over what a device sustains, plus the launch.

Products run in tiles (`tiles.py`), 3 x 3 convolutions in fp32 also by Winograd's algorithms (`ways.py`), whichever ends
first. All other work moves bytes, a fitted number of times, from the cache as far as they fit. What does not depend
on the batch size is found first, as a plan, and serves all batch sizes.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.attention import AttentionPlan, attention_plan, attention_seconds
from traincast.kernels.ceilings import Ceilings
from traincast.kernels.coefficients import IS_CONVOLUTION, IS_DEPTHWISE, IS_WEIGHT_GRADIENT, Coefficients
from traincast.kernels.kernels_of import SIZE
from traincast.kernels.shapes import WayShapes, way_shapes
from traincast.kernels.tiles import Cutting, Pairs, Times, bytes_seconds, pairs_of, tile_seconds
from traincast.kernels.ways import Kinds, by_definition, rates_of, winograd_apart, winograd_fused
from traincast.kernels.work import ATTENTION_WORKS, ELEMENT_WORKS, FIRST_BYTES, NORM_WORKS, OVERLAPPED_WORKS, Work
from traincast.trace.graph import Floats, Ints

# PyTorch takes rows of a table with eight blocks of 128 threads a processor, and each thread reads an index, then one
# element of the row: two loads that wait for each other, as those of a label do.
_LOOKUPS_IN_FLIGHT = 1024.0
_COMPUTE_SHARE = 0.7  # products whose compute time is more than this of their time are bound by compute


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Plan:
    """How kernels run on a device, or each on a device of its own. Indices are into all kernels, or into `products`."""

    launch_s: float
    others: Ints  # kernels that move bytes
    other_limits: Ceilings
    passes: Floats  # of others
    turn_s: Floats  # of others: seconds for each unit of `b`, the turns that bytes do not explain
    is_overlapped: NDArray[np.bool_]  # of others: turns are taken while bytes move, not after them
    products: Ints
    limits: Ceilings  # of products
    plain: Cutting  # of products
    attention: AttentionPlan
    tuned_attention: AttentionPlan  # the same by the vendor's kernels for this generation
    attending: Ints  # of products: those that are attention
    depthwise: Ints
    recurrent: Ints
    relaid: Ints  # those that change the layout of images
    layout_passes: float
    recurrent_step_s: float
    fast: Ints  # of products: those that Winograd's algorithms may serve
    ways: Pairs  # of products, then of `fast` in one kernel, then of `fast` with transforms apart
    way_shapes: WayShapes  # one column a pair
    ways_of_fast: Ints  # by definition, fused, apart: three rows, one column a product of `fast`
    fast_limits: Ceilings
    fast_item: Floats
    transform_passes: float
    transform_s: float

    @property
    def n_bytes(self) -> int:
        """What its arrays take in memory."""
        return array_bytes(self)


def array_bytes(value: object) -> int:
    """Of an array, or of all that are in the fields of a dataclass."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    return sum(array_bytes(getattr(value, one.name)) for one in fields(value)) if is_dataclass(value) else 0


def plan_of(
    kinds: Kinds, limits: Ceilings, coefficients: Coefficients, *, layout: str, tf32: bool, attention: str = "eager"
) -> Plan:
    """For one device, or with ceilings that have one entry a kernel, each on its own. `attention`: whose kernels."""
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
    number = np.arange(len(fast))
    attending = np.flatnonzero(np.isin(chosen.work, ATTENTION_WORKS))
    peak = np.broadcast_to(rates.peak_flop_per_s, chosen.work.shape)[attending]
    attention_by = {
        kernels: attention_plan(
            kinds, products[attending], limits_of.select(attending), coefficients, peak=peak, kernels=kernels
        )
        for kernels in {attention, "tuned"}
    }
    ways = pairs_of(
        Cutting.join([plain, fused, apart]), limits_of.select(np.concatenate([np.arange(len(products)), fast, fast]))
    )
    return Plan(
        launch_s=float(np.exp(coefficients["launch_s"])),
        others=others,
        other_limits=limits.select(others),
        passes=coefficients.passes[layout][kinds.work[others]],
        turn_s=_turn_seconds(kinds.work[others], limits.select(others), coefficients, layout),
        is_overlapped=np.isin(kinds.work[others], OVERLAPPED_WORKS),
        products=products,
        limits=limits_of,
        plain=plain,
        attention=attention_by[attention],
        tuned_attention=attention_by["tuned"],
        attending=attending,
        depthwise=np.flatnonzero(IS_DEPTHWISE[chosen.work]),
        recurrent=np.flatnonzero(chosen.work == Work.RECURRENT),
        relaid=np.flatnonzero(rates.on_matrix & is_convolution & (layout == "nchw")),
        layout_passes=float(np.exp(coefficients["layout.change"])),
        recurrent_step_s=float(np.exp(coefficients["recurrent_step_s"])),
        fast=fast,
        ways=ways,
        way_shapes=way_shapes(products, fast, is_convolution, ways.kernel, n_kernels=len(kinds.work)),
        ways_of_fast=np.stack([fast, len(products) + number, len(products) + len(fast) + number]),
        fast_limits=fast_limits,
        fast_item=chosen.item[fast].astype(np.float64),
        transform_passes=float(np.exp(coefficients["winograd.transform"])),
        transform_s=float(np.exp(coefficients["winograd.transform_s"])),
    )


def _turn_seconds(work: Ints, limits: Ceilings, coefficients: Coefficients, layout: str) -> Floats:
    """Of rows of norms, lookups and lone elements all processors take their share; one takes the labels of a loss."""
    row, row_backward, element, number = (
        np.exp(coefficients[name]) / limits.clocks_per_s
        for name in ("norm_row_clocks", "norm_row_clocks.backward", "element_clocks", "dropout_clocks")
    )
    # In nhwc neighbouring threads take neighbouring channels: what that costs beside bytes was measured on one GPU.
    pixel, pixel_backward = (
        np.exp(coefficients[f"batch_norm_clocks{end}"]) / limits.clocks_per_s * (layout == "nchw")
        for end in ("", ".backward")
    )
    wait_s = np.exp(coefficients["label_wait_s"])
    turn_s = np.zeros(work.shape)
    for works, seconds in (
        (NORM_WORKS, row),
        ((Work.LAYER_NORM_BACKWARD, Work.RMS_NORM_BACKWARD), row_backward),
        (ELEMENT_WORKS, element),
        ((Work.DROPOUT,), number),
        ((Work.BATCH_NORM,), pixel),
        ((Work.BATCH_NORM_BACKWARD,), pixel_backward),
        ((Work.EMBEDDING,), wait_s / (_LOOKUPS_IN_FLIGHT * limits.n_sm)),
        ((Work.EMBEDDING_BACKWARD,), np.exp(coefficients["launch_s"])),  # each small kernel of a sort
        ((Work.OPTIMIZER,), np.exp(coefficients["list_tensor_s"])),
        ((Work.LABEL_LOSS,), wait_s),
    ):
        turn_s = np.where(np.isin(work, works), seconds, turn_s)
    return turn_s


def kernel_seconds(plan: Plan, sizes: Floats) -> Times:
    """Times of all kernels. `sizes` has any leading axes, then SIZES, then one entry a kernel."""
    seconds = np.empty((*sizes.shape[:-2], sizes.shape[-1]))
    compute_s = np.zeros(seconds.shape)
    if len(plan.others):
        moved = sizes[..., SIZE["bytes"], plan.others]
        turns_s = sizes[..., SIZE["b"], plan.others] * plan.turn_s
        moved_s = bytes_seconds(moved * plan.passes, plan.other_limits)
        seconds[..., plan.others] = np.where(plan.is_overlapped, np.cbrt(moved_s**3 + turns_s**3), moved_s + turns_s)
    if len(plan.products):
        found = _product_seconds(plan, sizes)
        seconds[..., plan.products] = found.seconds
        fraction = found.compute_s / np.maximum(found.seconds, np.finfo(np.float64).tiny)
        compute_s[..., plan.products] = found.compute_s + fraction * plan.launch_s  # a launch is shared as the rest is
    seconds += plan.launch_s
    return Times(seconds=seconds, compute_s=compute_s)


def _product_seconds(plan: Plan, sizes: Floats) -> Times:
    """What transforms, changes of the layout and steps in time add to the products is not bound by compute."""
    times = _fastest_way(plan, sizes)
    if len(plan.attending):
        attended = attention_seconds(plan.attention, sizes)
        times.seconds[..., plan.attending] = attended.seconds
        times.compute_s[..., plan.attending] = attended.compute_s
    seconds, chosen = times.seconds, plan.depthwise
    if len(chosen):
        # Too few products a byte for tiles: the sum of what the scalar units and the memory need.
        flop, moved = (sizes[..., SIZE[name], plan.products[chosen]] for name in ("flop", "bytes"))
        flop_s = flop / plan.plain.reached_flop_per_s[chosen]
        seconds[..., chosen] = flop_s + bytes_seconds(moved, plan.limits.select(chosen))
        times.compute_s[..., chosen] = flop_s
    chosen = plan.relaid
    if len(chosen):
        moved = plan.layout_passes * 2.0 * sizes[..., SIZE["image"], plan.products[chosen]]
        seconds[..., chosen] += bytes_seconds(moved, plan.limits.select(chosen))
    chosen = plan.recurrent
    if len(chosen):
        seconds[..., chosen] += sizes[..., SIZE["b"], plan.products[chosen]] * plan.recurrent_step_s
    return times


def _fastest_way(plan: Plan, sizes: Floats) -> Times:
    """Each kernel by its definition, those in `fast` also by Winograd's two ways, all in one pass."""
    tiles = tile_seconds(plan.way_shapes.read(sizes), plan.ways)
    is_compute = tiles.compute_s > _COMPUTE_SHARE * tiles.seconds
    times = Times(seconds=tiles.seconds, compute_s=is_compute * tiles.seconds)
    if not len(plan.fast):
        return times
    kernels = plan.products[plan.fast]
    n, k, patches, moved = (sizes[..., SIZE[name], kernels] for name in ("n", "k", "patches_4", "bytes"))
    c_in = k / 9.0
    transformed = 36.0 * plan.fast_item * (patches * (c_in + n) + c_in * n)
    transform_s = bytes_seconds(moved + transformed * plan.transform_passes, plan.fast_limits)
    seconds = times.seconds[..., plan.ways_of_fast]
    seconds[..., -1, :] += transform_s + plan.transform_s
    least = seconds.min(axis=-2)
    # Several ways that end together: any of them tells whether compute binds.
    of_best = times.compute_s[..., plan.ways_of_fast] * (seconds == least[..., None, :])
    found_s, found_compute_s = (each[..., : len(plan.products)] for each in (times.seconds, times.compute_s))
    found_s[..., plan.fast], found_compute_s[..., plan.fast] = least, of_best.max(axis=-2)
    return Times(seconds=found_s, compute_s=found_compute_s)
