"""What a device sustains, from its datasheet: products a second within its power, bytes a second, and its cache.

Energy decides more than the printed peak: large fp32 products draw 16 to 18 picojoule a flop on 7 to 16 nm boards,
so a 70 W T4 holds half of its peak while a 250 W V100 holds nearly all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from traincast.hardware.device import Device
from traincast.kernels.coefficients import Coefficients

Column = Any  # a number, or an array with one entry a kernel when many devices are evaluated at once

_REFERENCE_PROCESS_NM = 12.0
_CAP_SHARPNESS = 16.0  # how sudden the power limit sets in
_L2_BYTES_PER_CLOCK = 64.0
_OLD_ARCHITECTURES = ("Kepler", "Maxwell", "Pascal")
# Stand-ins for figures that a user's device file may leave out; the forecast then says that it guesses.
_DEFAULT_CLOCK_HZ, _DEFAULT_L2_BYTES, _DEFAULT_PROCESS_NM = 1.5e9, 6 * 2**20, 8.0
_FLOP_PER_CLOCK_AND_SM = 256.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFigures:
    """The datasheet figures that prediction reads, with nothing missing."""

    simt_flop_per_s: Column
    fp16_flop_per_s: Column  # 0: no matrix units for it
    bf16_flop_per_s: Column
    tf32_flop_per_s: Column
    memory_bytes_per_s: Column
    l2_bytes: Column
    n_sm: Column
    clock_hz: Column
    tdp_w: Column  # infinite: no limit known
    process_nm: Column
    is_pascal: Column  # Pascal or older
    has_inline_ecc: Column
    has_fp32_matrix: Column  # fp32 products run on matrix units
    is_amd: Column

    @staticmethod
    def of(device: Device) -> DeviceFigures:
        simt = device.peak_flop_per_s("fp32")
        clock = device.boost_clock_hz or _DEFAULT_CLOCK_HZ
        return DeviceFigures(
            simt_flop_per_s=simt,
            fp16_flop_per_s=device.fp16_flop_per_s or 0.0,
            bf16_flop_per_s=device.bf16_flop_per_s or 0.0,
            tf32_flop_per_s=device.tf32_flop_per_s or 0.0,
            memory_bytes_per_s=device.memory_bytes_per_s,
            l2_bytes=float(device.l2_bytes or _DEFAULT_L2_BYTES),
            n_sm=float(device.n_sm or max(1.0, round(simt / (clock * _FLOP_PER_CLOCK_AND_SM)))),
            clock_hz=clock,
            tdp_w=device.tdp_w or np.inf,
            process_nm=device.process_nm or _DEFAULT_PROCESS_NM,
            is_pascal=float(device.arch in _OLD_ARCHITECTURES),
            has_inline_ecc=float(device.inline_ecc),
            has_fp32_matrix=device.fp32_matrix_flop_per_s is not None,
            is_amd=float(device.vendor == "AMD"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """Sustained rates. `matrix_flop_per_s` by operand: fp16, bf16 and tf32; 0 where the device has no such units."""

    simt_flop_per_s: Column
    fp16_flop_per_s: Column
    bf16_flop_per_s: Column
    tf32_flop_per_s: Column
    memory_bytes_per_s: Column
    l2_bytes_per_s: Column
    l2_tile_bytes_per_s: Column  # what tiles of products, which overlap with arithmetic, get of it
    l2_reach_bytes: Column
    n_sm: Column
    is_pascal: Column


def ceilings(figures: DeviceFigures, coefficients: Coefficients) -> Ceilings:
    """Datasheet figures and coefficients to sustained rates."""
    process = (figures.process_nm / _REFERENCE_PROCESS_NM) ** coefficients["energy_per_process"]

    def capped(peak: Column, energy: str, times: Column = 1.0) -> Column:
        limit = figures.tdp_w / (np.exp(coefficients[energy]) * 1e-12 * process * times)
        return peak * (1.0 + (peak / limit) ** _CAP_SHARPNESS) ** (-1.0 / _CAP_SHARPNESS)

    memory = (
        coefficients["dram"]
        + coefficients["dram.old_or_ecc"] * np.maximum(figures.is_pascal, figures.has_inline_ecc)
        + coefficients["dram.amd"] * figures.is_amd
    )
    # Where matrix units multiply fp32 too (AMD), a product takes as many times the energy of a 16-bit one as it is
    # slower.
    width = np.where(figures.has_fp32_matrix, figures.fp16_flop_per_s / figures.simt_flop_per_s, 1.0)
    simt = np.where(
        figures.has_fp32_matrix,
        capped(figures.simt_flop_per_s, "energy_pj.matrix", width),
        capped(figures.simt_flop_per_s, "energy_pj.simt"),
    )
    l2 = figures.n_sm * figures.clock_hz * _L2_BYTES_PER_CLOCK
    return Ceilings(
        simt_flop_per_s=simt * np.exp(coefficients["pascal"] * figures.is_pascal),
        fp16_flop_per_s=capped(figures.fp16_flop_per_s, "energy_pj.matrix"),
        bf16_flop_per_s=capped(figures.bf16_flop_per_s, "energy_pj.matrix"),
        # A tf32 product costs about twice a 16-bit one, as the datasheet rates say.
        tf32_flop_per_s=0.5 * capped(2.0 * figures.tf32_flop_per_s, "energy_pj.matrix"),
        memory_bytes_per_s=figures.memory_bytes_per_s * np.exp(memory),
        l2_bytes_per_s=l2 * np.exp(coefficients["l2_rate.bytes"]),
        l2_tile_bytes_per_s=l2 * np.exp(coefficients["l2_rate.tiles"]),
        l2_reach_bytes=figures.l2_bytes * np.exp(coefficients["l2_reach"]),
        n_sm=figures.n_sm,
        is_pascal=figures.is_pascal,
    )
