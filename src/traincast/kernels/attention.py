"""Time of fused attention: the products of the query-key pairs that a mask leaves, and what each pair takes beside.

In tuned kernels a pair's scalar work (exponential, maximum, conversion) is written as flop of 16-bit operands, because
those of Hopper and Blackwell reach the same share of very different peaks; PyTorch's own kernels do not tell it apart,
and are as far from the peak with small heads as with large ones. A mask costs some tokens beside its diagonal. Few
heads and short sequences leave processors without work.
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
_ROWS_OF_TILE = 128.0
_FLOP_PER_PAIR = (2.0, 5.0)  # times the sizes of a query and a value: forward; backward makes five products
_COMPUTE_SHARE = 0.7


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class AttentionPlan:
    """How attention kernels run, whatever their sizes; one entry each. `chosen` are places among all kernels."""

    chosen: Ints
    limits: Ceilings
    is_backward: NDArray[np.bool_]
    is_masked: NDArray[np.bool_]
    flop_per_s: Floats
    pair_s: Floats  # scalar work of a pair
    diagonal: float
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
    eager = np.exp(coefficients["attention.eager"] + coefficients["attention.eager_causal"] * is_masked)
    share = np.where(is_tuned, np.exp(coefficients["attention.tuned"]), eager * limits.old_instructions)
    power = np.where(item > 2, limits.simt_power_flop_per_s, limits.matrix_power_flop_per_s * 2.0 / item)
    rate = within_power(peak * np.minimum(share, 1.0), power, coefficients)
    # Scalar units are as fast whatever the operands: 8-bit products save half of the time of products alone.
    pair_s = pair_flop / (rate * np.minimum(item, 2) / 2.0)
    return AttentionPlan(
        chosen=chosen,
        limits=limits,
        is_backward=is_backward,
        is_masked=is_masked,
        flop_per_s=rate,
        pair_s=pair_s,
        diagonal=float(np.exp(coefficients["attention.diagonal"])),
        start_s=float(np.exp(coefficients["attention.start_s"])),
    )


def attention_seconds(plan: AttentionPlan, sizes: Floats) -> Times:
    """`sizes` has any leading axes, then SIZES, then one entry a kernel of all."""
    heads, queries, width, keys, flop, moved = (
        sizes[..., SIZE[name], plan.chosen] for name in ("b", "m", "n", "k", "flop", "bytes")
    )
    flop_per_pair = np.where(plan.is_backward, *reversed(_FLOP_PER_PAIR)) * np.maximum(width, 1.0)
    pairs = flop / flop_per_pair
    beside = np.minimum(heads * queries * plan.diagonal, heads * queries * keys - pairs) * plan.is_masked
    pairs = pairs + np.maximum(beside, 0.0)
    worked_s = pairs * (flop_per_pair / plan.flop_per_s + plan.pair_s)
    rows = np.where(plan.is_backward, keys, queries)
    waves = np.maximum(heads * np.ceil(rows / _ROWS_OF_TILE), 1.0) / plan.limits.n_sm
    compute_s = worked_s * quantised(waves) / waves
    memory_s = bytes_seconds(moved, plan.limits)
    seconds = np.cbrt(compute_s**3 + memory_s**3)
    bound = np.where(compute_s > _COMPUTE_SHARE * seconds, seconds, 0.0)
    return Times(seconds=seconds + plan.start_s, compute_s=bound)
