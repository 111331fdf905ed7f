"""What a device sustains, from its datasheet: products a second within its power, bytes a second, and its cache.

Power decides more than the printed peak. Arithmetic gets what idling and the memory leave of the board's limit. Where
that is not enough for the peak, clock and voltage fall together, so that a flop gets cheaper: the rate falls about as
the square root of the power that is missing, not in proportion to it.
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
_DOUBLINGS = 6  # 2^6 = 64: how suddenly the power limit sets in
# Of a board's power, what leakage, fans and regulators draw, and the memory while products run: two guesses. The long
# wires of GDDR draw nearly as much when they carry nothing, about 7.5 pJ a bit against 4 of stacked memory (general
# knowledge, not looked up). The second guess was made with the fp32 rows of T4 in view.
_IDLE_FRACTION, _IDLE_FRACTION_WITH_GDDR = 0.15, 0.30
_L2_BYTES_PER_CLOCK = 64.0
_VOLTA_KERNELS = ("Volta", "Turing")  # both run the library kernels named after Volta
_OLD_ARCHITECTURES = ("Kepler", "Maxwell", "Pascal")
# 16-bit flop a clock and processor. Units wider than Ampere's come with clusters of processors that load the edges of
# their tiles together: else the cache could not feed them.
_AMPERE_WIDTH, _HOPPER_WIDTH = 2048.0, 4096.0
# Stand-ins for figures that a user's device file may leave out; the forecast then says that it guesses.
_DEFAULT_CLOCK_HZ, _DEFAULT_L2_BYTES, _DEFAULT_PROCESS_NM = 1.5e9, 6 * 2**20, 8.0
_FLOP_PER_CLOCK_AND_SM = 256.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFigures:
    """The datasheet figures that prediction reads, with nothing missing."""

    simt_flop_per_s: Column
    fp8_flop_per_s: Column  # 0: no matrix units for it
    fp16_flop_per_s: Column
    bf16_flop_per_s: Column
    tf32_flop_per_s: Column
    memory_bytes_per_s: Column
    l2_bytes: Column
    n_sm: Column
    clock_hz: Column
    peak_clock_hz: Column  # at which the rates of matrix units hold
    tdp_w: Column  # infinite: no limit known
    idle_fraction: Column  # of it, not to be had for arithmetic
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
        has_gddr = device.memory_kind.startswith("GDDR")
        return DeviceFigures(
            simt_flop_per_s=simt,
            fp8_flop_per_s=device.fp8_flop_per_s or 0.0,
            fp16_flop_per_s=device.fp16_flop_per_s or 0.0,
            bf16_flop_per_s=device.bf16_flop_per_s or 0.0,
            tf32_flop_per_s=device.tf32_flop_per_s or 0.0,
            memory_bytes_per_s=device.memory_bytes_per_s,
            l2_bytes=float(device.l2_bytes or _DEFAULT_L2_BYTES),
            n_sm=float(device.n_sm or max(1.0, round(simt / (clock * _FLOP_PER_CLOCK_AND_SM)))),
            clock_hz=clock,
            peak_clock_hz=device.peak_clock_hz or clock,
            tdp_w=device.tdp_w or np.inf,
            idle_fraction=_IDLE_FRACTION_WITH_GDDR if has_gddr else _IDLE_FRACTION,
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
    fp8_flop_per_s: Column
    fp16_flop_per_s: Column
    bf16_flop_per_s: Column
    tf32_flop_per_s: Column
    matrix_power_flop_per_s: Column  # for 16-bit operands; tf32 takes twice the energy, fp8 half of it
    matrix_width: Column  # flop a clock and processor, of 16-bit operands
    old_instructions: Column  # share of the peak that kernels written for Ampere reach
    needs_tuned_attention: Column  # PyTorch has no kernels of its own worth taking and calls the vendor's
    memory_bytes_per_s: Column
    l2_bytes_per_s: Column
    l2_tile_bytes_per_s: Column  # what tiles of products, which overlap with arithmetic, get of it
    l2_matrix_tile_bytes_per_s: Column  # the same on matrix units
    l2_reach_bytes: Column
    n_sm: Column
    clocks_per_s: Column  # of all processors together
    is_pascal: Column
    is_volta: Column
    is_amd: Column

    def select(self, chosen: NDArray[Any]) -> Ceilings:
        """Of some of the kernels; those of one device serve all."""
        if np.ndim(self.n_sm) == 0:
            return self
        return Ceilings(**{name: np.asarray(getattr(self, name))[chosen] for name in self.__slots__})


def at_most(rate: Column, limit: Column) -> Column:
    """The smaller of the two, with a smooth turn: the 64th root of 1 + ratio^64."""
    return rate / _turn(rate / limit)


def within_power(rate: Column, limit: Column, coefficients: Coefficients) -> Column:
    """The rate that is left where `limit` is what the power would feed at full clock and voltage."""
    return rate * _turn(rate / limit) ** -np.exp(-coefficients["power_per_rate"])


def _turn(ratio: Column) -> Column:
    """1 below a ratio of 1, the ratio above."""
    power = np.minimum(ratio, 1e4)
    for _ in range(_DOUBLINGS):
        power = power * power
    root = 1.0 + power
    for _ in range(_DOUBLINGS):
        root = np.sqrt(root)
    return root


def ceilings(figures: DeviceFigures, coefficients: Coefficients) -> Ceilings:
    """Datasheet figures and coefficients to ceilings."""
    process = (figures.process_nm / _REFERENCE_PROCESS_NM) ** coefficients["energy_per_process"]
    left_w = (1.0 - figures.idle_fraction) * figures.tdp_w
    matrix_power = left_w / (np.exp(coefficients["energy_pj.matrix"]) * 1e-12 * process)
    matrix_peak = np.maximum(figures.fp16_flop_per_s, figures.bf16_flop_per_s)
    # Where matrix units multiply fp32 too (AMD), a product takes as many times the energy of a 16-bit one as it is
    # slower.
    simt_power = np.where(
        figures.has_fp32_matrix,
        matrix_power * figures.simt_flop_per_s / np.maximum(figures.fp16_flop_per_s, 1.0),
        left_w / (np.exp(coefficients["energy_pj.simt"]) * 1e-12 * process),
    )
    memory = (
        coefficients["dram"]
        + coefficients["dram.old_or_ecc"] * np.maximum(figures.is_pascal, figures.has_inline_ecc)
        + coefficients["dram.amd"] * figures.is_amd
    )
    width = np.maximum(matrix_peak / (figures.n_sm * figures.peak_clock_hz), 128.0)
    shared = np.maximum(width / _AMPERE_WIDTH, 1.0)
    l2 = figures.n_sm * figures.clock_hz * _L2_BYTES_PER_CLOCK
    return Ceilings(
        simt_flop_per_s=figures.simt_flop_per_s,
        simt_power_flop_per_s=simt_power,
        fp8_flop_per_s=figures.fp8_flop_per_s,
        fp16_flop_per_s=figures.fp16_flop_per_s,
        bf16_flop_per_s=figures.bf16_flop_per_s,
        tf32_flop_per_s=figures.tf32_flop_per_s,
        matrix_power_flop_per_s=matrix_power,
        matrix_width=width,
        old_instructions=np.minimum(np.exp(coefficients["old_instructions"]) * _HOPPER_WIDTH / width, 1.0),
        needs_tuned_attention=width > 1.5 * _HOPPER_WIDTH,
        memory_bytes_per_s=figures.memory_bytes_per_s * np.exp(memory),
        l2_bytes_per_s=l2 * np.exp(coefficients["l2_rate.bytes"]),
        l2_tile_bytes_per_s=l2 * np.exp(coefficients["l2_rate.tiles"]),
        l2_matrix_tile_bytes_per_s=l2 * np.exp(coefficients["l2_rate.matrix_tiles"]) * shared,
        l2_reach_bytes=figures.l2_bytes * np.exp(coefficients["l2_reach"]),
        n_sm=figures.n_sm,
        clocks_per_s=figures.n_sm * figures.clock_hz,
        is_pascal=figures.is_pascal,
        is_volta=figures.is_volta,
        is_amd=figures.is_amd,
    )
