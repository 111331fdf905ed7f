"""What a device sustains, from its datasheet: products a second within its power, bytes a second, and its cache.

Energy decides more than the printed peak: large fp32 products draw 16 to 18 picojoule a flop on 7 to 16 nm boards,
so a 70 W T4 holds half of its peak while a 250 W V100 holds nearly all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.hardware.device import Device
from traincast.kernels.coefficients import Coefficients

Column = Any  # a number, or an array with one entry a kernel when many devices are evaluated at once

_REFERENCE_PROCESS_NM = 12.0
# No board below 7 nm was measured in fp32 by NVIDIA's kernels. TSMC says of its 5 nm process that it takes 30 % less
# power than its 7 nm one (tsmc.com, "5nm Technology", read 2026-11-16): an exponent of log(0.7) / log(5 / 7).
_SMALLEST_MEASURED_NM, _SMALLER_EXPONENT = 7.0, 1.06
_DOUBLINGS = 6  # 2^4 = 16: how suddenly the power limit sets in
_L2_BYTES_PER_CLOCK = 64.0
_VOLTA_KERNELS = ("Volta", "Turing")  # both run the library kernels named after Volta
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
    is_volta: Column  # Volta or Turing
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
            is_volta=float(device.arch in _VOLTA_KERNELS),
            has_inline_ecc=float(device.inline_ecc),
            has_fp32_matrix=device.fp32_matrix_flop_per_s is not None,
            is_amd=float(device.vendor == "AMD"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings:
    """What a device can do at most: peaks of its units, products a second that its power allows, memory, cache.

    Rates of matrix units are 0 where the device has none for the operand.
    """

    simt_flop_per_s: Column
    simt_power_flop_per_s: Column
    fp16_flop_per_s: Column
    bf16_flop_per_s: Column
    tf32_flop_per_s: Column
    matrix_power_flop_per_s: Column  # for 16-bit operands; tf32 takes twice the energy
    memory_bytes_per_s: Column
    l2_bytes_per_s: Column
    l2_tile_bytes_per_s: Column  # what tiles of products, which overlap with arithmetic, get of it
    l2_reach_bytes: Column
    n_sm: Column
    is_pascal: Column
    is_volta: Column

    def select(self, chosen: NDArray[Any]) -> Ceilings:
        """Of some of the kernels; those of one device serve all."""
        if np.ndim(self.n_sm) == 0:
            return self
        return Ceilings(**{name: np.asarray(getattr(self, name))[chosen] for name in self.__slots__})


def within_power(rate: Column, limit: Column) -> Column:
    """The smaller of a rate and what power allows, with a smooth turn: the 16th root of 1 + ratio^16."""
    ratio = rate / limit
    for _ in range(_DOUBLINGS):
        ratio = ratio * ratio
    root = 1.0 + ratio
    for _ in range(_DOUBLINGS):
        root = np.sqrt(root)
    return rate / root


def ceilings(figures: DeviceFigures, coefficients: Coefficients) -> Ceilings:
    """Datasheet figures and coefficients to ceilings."""
    measured_nm = np.maximum(figures.process_nm, _SMALLEST_MEASURED_NM)
    process = (measured_nm / _REFERENCE_PROCESS_NM) ** coefficients["energy_per_process"]
    process = process * (figures.process_nm / measured_nm) ** _SMALLER_EXPONENT
    matrix_power = figures.tdp_w / (np.exp(coefficients["energy_pj.matrix"]) * 1e-12 * process)
    # Where matrix units multiply fp32 too (AMD), a product takes as many times the energy of a 16-bit one as it is
    # slower.
    simt_power = np.where(
        figures.has_fp32_matrix,
        matrix_power * figures.simt_flop_per_s / np.maximum(figures.fp16_flop_per_s, 1.0),
        figures.tdp_w / (np.exp(coefficients["energy_pj.simt"]) * 1e-12 * process),
    )
    memory = (
        coefficients["dram"]
        + coefficients["dram.old_or_ecc"] * np.maximum(figures.is_pascal, figures.has_inline_ecc)
        + coefficients["dram.amd"] * figures.is_amd
    )
    l2 = figures.n_sm * figures.clock_hz * _L2_BYTES_PER_CLOCK
    return Ceilings(
        simt_flop_per_s=figures.simt_flop_per_s,
        simt_power_flop_per_s=simt_power,
        fp16_flop_per_s=figures.fp16_flop_per_s,
        bf16_flop_per_s=figures.bf16_flop_per_s,
        tf32_flop_per_s=figures.tf32_flop_per_s,
        matrix_power_flop_per_s=matrix_power,
        memory_bytes_per_s=figures.memory_bytes_per_s * np.exp(memory),
        l2_bytes_per_s=l2 * np.exp(coefficients["l2_rate.bytes"]),
        l2_tile_bytes_per_s=l2 * np.exp(coefficients["l2_rate.tiles"]),
        l2_reach_bytes=figures.l2_bytes * np.exp(coefficients["l2_reach"]),
        n_sm=figures.n_sm,
        is_pascal=figures.is_pascal,
        is_volta=figures.is_volta,
    )
