"""The ways in which libraries run kernels that are products of matrices: units, rates, tiles, start-up.

Nothing here depends on the batch size. Convolutions run by their definition; in fp32 also by Winograd's algorithms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.ceilings import Ceilings, at_most, within_power
from traincast.kernels.coefficients import (
    IS_CONVOLUTION,
    IS_DEPTHWISE,
    IS_GROUPED,
    IS_WEIGHT_GRADIENT,
    Coefficients,
)
from traincast.kernels.tiles import TILING, Cutting
from traincast.kernels.work import Work
from traincast.trace.graph import Floats, Ints


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Kinds:
    """What kernels are, whatever the batch size. One entry a kernel."""

    work: Ints
    item: Ints  # bytes of an element of the operands: 4, 2 for fp16 and bf16, 1 for fp8
    is_bf16: NDArray[np.bool_]
    is_winograd: NDArray[np.bool_]  # 3 x 3 with stride 1: fewer products than its definition says
    is_unaligned: NDArray[np.bool_]  # operand rows that do not start at vector loads, channels that do not fill units
    is_masked: NDArray[np.bool_]  # attention that leaves out pairs
    group_width: Floats  # channels of a group of a convolution's output

    def select(self, chosen: NDArray[Any]) -> Kinds:
        return Kinds(**{name: getattr(self, name)[chosen] for name in self.__slots__})


def group_width(work: Ints, sizes: dict[str, Floats]) -> Floats:
    """Channels of a group: m of a weight gradient, n of the others. The batch size has no part in it."""
    width: Floats = np.where(IS_WEIGHT_GRADIENT[work], sizes["m"], sizes["n"])
    return width


@dataclass(frozen=True, eq=False, slots=True)
class Rates:
    """Products a second at most and with full tiles, and which kernels run on matrix units."""

    peak_flop_per_s: Floats
    reached_flop_per_s: Floats
    on_matrix: NDArray[np.bool_]


def rates_of(kinds: Kinds, limits: Ceilings, coefficients: Coefficients, *, layout: str, tf32: bool) -> Rates:
    """Their share of the peak, within what power allows: units that wait draw little of it.

    Odd rows take more instructions for the same products, and so more energy, and Winograd's weight gradients fewer.
    """
    rate, on_matrix = _peaks(kinds, limits, tf32=tf32)
    efficiency = _efficiency(kinds, limits, coefficients, on_matrix, layout)
    matrix_power = limits.matrix_power_flop_per_s * 2.0 / kinds.item  # energy grows with the bits of the operands
    power = np.where(on_matrix, matrix_power, limits.simt_power_flop_per_s)
    # Scalar units suffer from odd rows only where both operands lie along k, as in linear layers.
    suffers = kinds.is_unaligned & (on_matrix | (kinds.work == Work.LINEAR)) & ~IS_GROUPED[kinds.work]
    old = np.asarray(limits.is_pascal) * ~on_matrix
    unaligned = coefficients.by_unit("unaligned")[on_matrix.astype(np.int64)]
    saves = kinds.is_winograd & ~on_matrix & IS_WEIGHT_GRADIENT[kinds.work]
    instructions = suffers * (unaligned + coefficients["pascal_unaligned"] * old)
    instructions = instructions + coefficients["winograd.weight"] * saves
    # Tiles of groups are padded with products that nobody counts: only theirs may seem to pass the peak.
    reached = np.where(IS_GROUPED[kinds.work], rate * np.exp(efficiency), at_most(rate * np.exp(efficiency), rate))
    return Rates(rate, within_power(reached, power, coefficients) * np.exp(instructions), on_matrix)


def _peaks(kinds: Kinds, limits: Ceilings, *, tf32: bool) -> tuple[Any, NDArray[np.bool_]]:
    """Peak products a second by operand, and which kernels run on matrix units."""
    matrix = np.where(
        kinds.item == 2,
        np.where(kinds.is_bf16, limits.bf16_flop_per_s, limits.fp16_flop_per_s),
        np.where(kinds.item == 1, limits.fp8_flop_per_s, limits.tf32_flop_per_s if tf32 else 0.0),
    )
    # As fast is fast enough: matrix units take less energy (GeForce has the same rate for tf32 and plain fp32).
    on_matrix = (matrix >= limits.simt_flop_per_s) & ~IS_DEPTHWISE[kinds.work] & (kinds.item <= 4)
    return np.where(on_matrix, matrix, limits.simt_flop_per_s), on_matrix


def _efficiency(
    kinds: Kinds, limits: Ceilings, coefficients: Coefficients, on_matrix: NDArray[np.bool_], layout: str
) -> Floats:
    """Logarithm of the share of the peak that full tiles reach where power allows it."""
    efficiency = coefficients.efficiency[layout][on_matrix.astype(np.int64), kinds.work]
    old = np.asarray(limits.is_pascal) * ~on_matrix * (kinds.work != Work.BATCHED)
    wide = np.exp(coefficients["matrix_width"]) * np.log2(np.asarray(limits.matrix_width) / 1024.0)
    amd = coefficients["amd"] * np.asarray(limits.is_amd)  # its fp32 products run on matrix units, too
    volta = coefficients["matrix_volta"] * np.asarray(limits.is_volta)
    efficiency = efficiency + coefficients["pascal"] * old + amd - wide * on_matrix + volta * on_matrix
    is_grouped = IS_GROUPED[kinds.work]
    if is_grouped.any():
        doublings = np.log2(np.clip(kinds.group_width, 1.0, 256.0) / 16.0)
        odd = coefficients[f"group_odd.{layout}"] * kinds.is_unaligned
        efficiency = efficiency + is_grouped * (coefficients[f"group_width.{layout}"] * doublings + odd)
    return efficiency


def by_definition(kinds: Kinds, rates: Rates, limits: Ceilings, coefficients: Coefficients) -> Cutting:
    """Every kernel as the product that it is: a convolution as its unrolled image times its weight."""
    work, on_matrix = kinds.work, rates.on_matrix
    unit = on_matrix.astype(np.int64)
    is_scalar_batch = (work == Work.BATCHED) & ~on_matrix
    is_scalar_convolution = IS_CONVOLUTION[work] & ~on_matrix
    # What was measured on these architectures tells their tiles: no loss needs to stand for others.
    batched = np.where(
        np.asarray(limits.is_pascal) > 0.0,
        TILING["batched_pascal"],
        np.where(np.asarray(limits.is_volta) > 0.0, TILING["batched_volta"], TILING["coarse"]),
    )
    is_coarse = is_scalar_batch & (batched == TILING["coarse"])
    tiling = np.where(is_scalar_convolution, TILING["convolution"], TILING["any"])
    least_depth = np.where(
        IS_WEIGHT_GRADIENT[work],
        coefficients["split_k.weight"],
        np.where(IS_CONVOLUTION[work], coefficients["split_k.convolution"], coefficients["split_k.matrices"]),
    )
    start_up = coefficients.by_unit("k_overhead")[unit]
    lone = np.where(is_scalar_convolution, coefficients["lone.convolution"], coefficients.by_unit("lone")[unit])
    return Cutting(
        item_bytes=kinds.item.astype(np.float64),
        is_on_matrix=on_matrix,
        reached_flop_per_s=rates.reached_flop_per_s,
        least_depth=np.exp(least_depth),
        start_up=np.exp(start_up + coefficients["k_overhead.convolution"] * is_scalar_convolution),
        loss=coefficients.by_unit("tile_loss")[unit]
        + coefficients["tile_loss.batched"] * ((work == Work.BATCHED) & (on_matrix | is_coarse))
        + coefficients["tile_loss.convolution"] * is_scalar_convolution,
        lone=np.exp(lone),
        tiling=np.where(is_scalar_batch, batched, tiling),
    )


def winograd_fused(plain: Cutting, limits: Ceilings, coefficients: Coefficients) -> Cutting:
    """Patches of 2 x 2 outputs need 16 products instead of 36; the transforms happen in registers.

    The sixteen products of a patch are made in one kernel, so they share its tiles' start-up and waves. For each
    channel a tile of 32 patches loads 10 x 18 pixels and 9 x 32 weights, not the 16 x (32 + 32) that it multiplies.
    """
    power = limits.simt_power_flop_per_s * np.exp(-coefficients["winograd.energy"])
    reached = within_power(limits.simt_flop_per_s * np.exp(coefficients["winograd.fused"]), power, coefficients)
    return Cutting(
        item_bytes=plain.item_bytes * ((10 * 18 + 9 * 32) / (16 * (32 + 32))),
        is_on_matrix=plain.is_on_matrix,
        reached_flop_per_s=np.broadcast_to(reached, plain.loss.shape),
        least_depth=np.full_like(plain.least_depth, np.inf),
        start_up=np.full_like(plain.start_up, np.exp(coefficients["winograd.fused_start_up"])),
        loss=np.zeros_like(plain.loss),
        lone=np.full_like(plain.lone, np.exp(coefficients["winograd.fused_lone"])),
        tiling=np.full_like(plain.tiling, TILING["winograd_fused"]),
    )


def winograd_apart(plain: Cutting, limits: Ceilings, coefficients: Coefficients) -> Cutting:
    """Patches of 4 x 4 outputs need 36 products instead of 144, between transforms that are kernels of their own."""
    reached = within_power(
        limits.simt_flop_per_s * np.exp(coefficients["winograd.apart"]), limits.simt_power_flop_per_s, coefficients
    )
    return replace(
        plain,
        reached_flop_per_s=np.broadcast_to(reached, plain.loss.shape),
        start_up=np.full_like(plain.start_up, np.exp(coefficients["k_overhead.simt"])),
        loss=np.full_like(plain.loss, coefficients["winograd.apart_loss"]),
        lone=np.full_like(plain.lone, np.exp(coefficients["lone.simt"])),
        tiling=np.full_like(plain.tiling, TILING["winograd_apart"]),
    )
