"""What a few lines reach on the same rows: the roofline, and simple fits that never see the row's GPU or family."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.kernels.refit.block import Block
from traincast.kernels.work import FIRST_BYTES
from traincast.trace.graph import Floats

Fit = Callable[[NDArray[np.bool_]], Floats]  # rows to learn from -> seconds of all rows


def ideal_seconds(block: Block) -> tuple[Floats, Floats]:
    """Every kernel's flop at the peak of its operands and its bytes at full bandwidth, once, in seconds."""
    rates = np.array([_rates(name, tf32=block.tf32) for name in block.devices])[block.device]
    sixteen = np.where(block.kernels.is_bf16, rates[:, 2], rates[:, 1])
    is_fp8 = (block.kernels.item == 1) & (block.kernels.work < FIRST_BYTES)  # masks have one byte, too
    flop_per_s = np.select([is_fp8, block.kernels.item == 2], [rates[:, 3], sixteen], rates[:, 0])
    return block.kernels.sizes["flop"] / flop_per_s, block.kernels.sizes["bytes"] / rates[:, 4]


def _rates(name: str, *, tf32: bool) -> tuple[float, ...]:
    """Peaks with operands of four bytes, in fp16, bf16 and fp8, and bytes a second; not a number where not known."""
    device = find_device(name)

    def peak(precision: str) -> float:
        try:
            return device.peak_flop_per_s(precision)
        except InputError:
            return np.nan

    fp8 = device.fp8_flop_per_s or np.nan
    return peak("tf32" if tf32 else "fp32"), peak("amp-fp16"), peak("bf16"), fp8, device.memory_bytes_per_s


def summed(block: Block, by_kernel: Floats) -> Floats:
    """Seconds of every row."""
    total: Floats = np.bincount(block.row, weights=by_kernel * block.count, minlength=block.n_rows).astype(float)
    return total


def with_floor(block: Block, device_s: Floats) -> Floats:
    """What a call of a lone op adds, in the way of `Block.predict`; nothing for whole models."""
    power = block.floor_power
    seconds: Floats = (device_s**power + block.floor_s**power) ** (1 / power)
    return seconds


def without_floor(block: Block) -> Floats:
    """What was measured, less that; at least a little."""
    power = block.floor_power
    rest: Floats = np.maximum(block.observed_s**power - block.floor_s**power, (0.05 * block.observed_s) ** power)
    return rest ** (1 / power)


def left_out_fits(units: NDArray[Any], learn: NDArray[np.bool_], fit: Fit) -> Floats:
    """Every row from the fit to the rows of other units; not a number where there is no other."""
    predicted = np.full(len(units), np.nan)
    for unit in np.unique(units):
        own = units == unit
        if (learn & ~own).any():
            predicted[own] = fit(learn & ~own)[own]
    return predicted


def scaled_fit(base_s: Floats, observed_s: Floats) -> Fit:
    """One factor: the median of measured over predicted."""
    usable = np.isfinite(base_s) & (base_s > 0)

    def fit(rows: NDArray[np.bool_]) -> Floats:
        chosen = rows & usable
        return base_s * np.median(observed_s[chosen] / base_s[chosen]) if chosen.any() else base_s * np.nan

    return fit


def two_rates_fit(compute_s: Floats, memory_s: Floats, observed_s: Floats) -> Fit:
    """Two factors, neither negative, with the least squares of relative errors: c1 x flop + c2 x bytes."""
    from scipy.optimize import nnls

    columns = np.stack([compute_s, memory_s], axis=1)
    usable = np.isfinite(columns).all(axis=1)

    def fit(rows: NDArray[np.bool_]) -> Floats:
        chosen = rows & usable
        factors, _ = nnls(columns[chosen] / observed_s[chosen, None], np.ones(int(chosen.sum())))
        seconds: Floats = columns @ factors
        return np.where(seconds > 0, seconds, np.nan)

    return fit


def paleo_fit(scaled_s: Floats, update_s: Floats, observed_s: Floats) -> Fit:
    """The PPP of `kernels.paleo.fit_ppp`: the median over steps, at most 1."""
    usable = np.isfinite(scaled_s) & (scaled_s > 0) & (update_s < observed_s)

    def fit(rows: NDArray[np.bool_]) -> Floats:
        chosen = rows & usable
        each = np.log(scaled_s[chosen] / (observed_s[chosen] - update_s[chosen]))
        ppp = min(float(np.exp(np.median(each))), 1.0)
        return scaled_s / ppp + update_s

    return fit
