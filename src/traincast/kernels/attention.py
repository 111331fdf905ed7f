"""Time of fused attention: the query-key pairs of the tiles that a mask leaves, and what each tile costs beside.

A pair is worked on by matrix units (two products forward, five backward) and by scalar ones: exponential, maximum,
conversion, and backward the fp32 sums of the queries' gradients. In tuned kernels a pair's scalar work is written as
flop of 16-bit operands, whatever the operands are, because Hopper and Blackwell grow alike in both; PyTorch's own
kernels do not tell it apart, and are as far from the peak with small heads as with large ones. The two kinds of work
overlap in part (they add as squares) while one tile is loaded as another is worked on. Backward kernels with heads so
wide that shared memory holds no second tile do one after the other.

Each tile of rows starts with loads that nothing hides and ends with a store. A tile on an edge of the mask is worked
on in full. Few heads and short sequences leave processors without work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.ceilings import Ceilings, within_power
from traincast.kernels.coefficients import Coefficients
from traincast.kernels.kernels_of import SIZE
from traincast.kernels.tiles import Times, bytes_seconds, quantised
from traincast.kernels.ways import Kinds
from traincast.kernels.work import Work
from traincast.trace.graph import Floats, Ints

KERNELS = ("eager", "tuned")  # PyTorch's own, written for Ampere; the vendor's for each generation
_TILE = 128.0  # rows of queries, and of keys
_FLOP_PER_PAIR = (2.0, 5.0)  # times the sizes of a query and a value: forward; backward makes five products
_COMPUTE_SHARE = 0.7
_CAUSAL_SHARE = 0.499  # of all pairs; a mask that leaves fewer has a second edge, that of a sliding window
# What a block of threads has on Hopper and data-centre Blackwell. Backward keeps a tile of keys and values, two of
# queries and of their gradients, and the scores' gradient.
_SHARED_MEMORY_BYTES = 227 * 1024.0
_TILES_IN_SHARED_MEMORY = 3.0


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class AttentionPlan:
    """How attention kernels run, whatever their sizes; one entry each. `chosen` are places among all kernels."""

    chosen: Ints
    limits: Ceilings
    coefficients: Coefficients
    is_backward: NDArray[np.bool_]
    is_masked: NDArray[np.bool_]
    item_bytes: Floats
    flop_per_s: Floats  # of products alone, were there power for it
    power_flop_per_s: Floats
    pair_s: Floats  # scalar work of a pair
    tile_s: float
    start_s: float


def attention_plan(
    kinds: Kinds, chosen: Ints, limits: Ceilings, coefficients: Coefficients, *, peak: Floats, kernels: str
) -> AttentionPlan:
    """`peak` are the rates of the units that run each of them."""
    is_backward = kinds.work[chosen] == Work.ATTENTION_BACKWARD
    is_masked, item = kinds.is_masked[chosen], kinds.item[chosen]
    is_tuned = np.broadcast_to((kernels == "tuned") | np.asarray(limits.needs_tuned_attention), chosen.shape)
    names = ("attention.pair_flop_backward", "attention.pair_flop")
    pair_flop = np.where(is_tuned, np.exp(np.where(is_backward, *(coefficients[name] for name in names))), 0.0)
    eager = np.exp(coefficients["attention.eager"] + coefficients["attention.eager_backward"] * is_backward)
    share = np.where(is_tuned, np.exp(coefficients["attention.tuned"]), eager * limits.old_instructions)
    return AttentionPlan(
        chosen=chosen,
        limits=limits,
        coefficients=coefficients,
        is_backward=is_backward,
        is_masked=is_masked,
        item_bytes=item.astype(np.float64),
        flop_per_s=peak * np.minimum(share, 1.0),
        power_flop_per_s=np.where(item > 2, limits.simt_power_flop_per_s, limits.matrix_power_flop_per_s * 2.0 / item),
        # Scalar units are as fast whatever the operands: 8-bit products save half of the time of products alone.
        pair_s=pair_flop / (peak * np.minimum(item, 2) / 2.0),
        tile_s=float(np.exp(coefficients["attention.tile_s"])),
        start_s=float(np.exp(coefficients["attention.start_s"])),
    )


def attention_seconds(plan: AttentionPlan, sizes: Floats) -> Times:
    """`sizes` has any leading axes, then SIZES, then one entry a kernel of all."""
    heads, queries, width, keys, flop, moved, around = (
        sizes[..., SIZE[name], plan.chosen] for name in ("b", "m", "n", "k", "flop", "bytes", "image")
    )
    flop_per_pair = np.where(plan.is_backward, *reversed(_FLOP_PER_PAIR)) * np.maximum(width, 1.0)
    pairs = _touched(plan, heads * queries, keys, flop / flop_per_pair)
    n_tiles = np.maximum(heads * np.ceil(np.where(plan.is_backward, keys, queries) / _TILE), 1.0)
    waves = n_tiles / plan.limits.n_sm
    worked_s = pairs * _pair_seconds(plan, flop_per_pair, width) + waves * plan.tile_s
    compute_s = worked_s * quantised(waves) / waves
    seconds = np.cbrt(compute_s**3 + bytes_seconds(moved, plan.limits) ** 3)
    seconds = seconds + around / plan.limits.memory_bytes_per_s
    bound = np.where(compute_s > _COMPUTE_SHARE * seconds, seconds, 0.0)
    return Times(seconds=seconds + plan.start_s, compute_s=bound)


def _touched(plan: AttentionPlan, rows: Floats, keys: Floats, pairs: Floats) -> Floats:
    """Pairs of all tiles that a mask touches: half a tile of keys more for each row and edge."""
    n_edges = plan.is_masked * (1.0 + (pairs < _CAUSAL_SHARE * rows * keys))
    touched: Floats = np.minimum(pairs + n_edges * rows * _TILE / 2.0, np.maximum(rows * keys, pairs))
    return touched


def _pair_seconds(plan: AttentionPlan, flop_per_pair: Floats, width: Floats) -> Floats:
    """Of a pair on a busy device. Units that wait draw little power, so waiting comes before the limit."""
    products_s = flop_per_pair / plan.flop_per_s
    in_turns_s = products_s + plan.pair_s
    overlapped_s = np.sqrt(products_s**2 + plan.pair_s**2)
    kept_bytes = _TILE * plan.item_bytes * (_TILES_IN_SHARED_MEMORY * width + _TILE)
    pair_s = np.where(plan.is_backward & (kept_bytes > _SHARED_MEMORY_BYTES), in_turns_s, overlapped_s)
    seconds: Floats = flop_per_pair / within_power(flop_per_pair / pair_s, plan.power_flop_per_s, plan.coefficients)
    return seconds
