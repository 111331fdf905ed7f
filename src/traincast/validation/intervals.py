"""The spread that a forecast would give each measured row, so that coverage can be counted."""

from __future__ import annotations

import numpy as np

from traincast.forecasting.spread import WAITING_LOG_SD, WORKING_LOG_SD
from traincast.hardware.catalog import find_device
from traincast.kernels.coefficients import (
    ERROR_GROUP,
    NEW_GENERATION,
    SAME_GENERATION,
    SAME_GPU,
    Fitted,
)
from traincast.kernels.domain import situation_of
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.spread import group_shares
from traincast.trace.graph import Floats


def log_sd_of(block: Block, fitted: Fitted, left_out: str = "nothing") -> Floats:
    """Of a lone op what its kind of kernel has; of a whole step as `forecasting` does it."""
    if block.n_dispatched is None:
        each = np.zeros(block.n_rows)
        each[block.row] = fitted.kernel_log_sd[ERROR_GROUP[block.kernels.work]]
        return each
    return step_log_sd_of(block, fitted, block.predict(fitted.coefficients), left_out)


def step_log_sd_of(block: Block, fitted: Fitted, step_s: Floats, left_out: str = "nothing") -> Floats:
    """Groups of work err each on their own, by their share of the step; the machine adds its own spread."""
    work_s = block.kernel_seconds(fitted.coefficients) * block.count
    device_s = np.bincount(block.row, weights=work_s, minlength=block.n_rows)
    busy = np.minimum(device_s / step_s, 1.0)
    by_group = np.stack([fitted.step_log_sd[situation] for situation in situations(block, fitted, left_out)])
    of_ops = busy * np.sqrt((group_shares(block, fitted.coefficients) ** 2 * by_group**2).sum(axis=1))
    machine = (1.0 - busy) * WAITING_LOG_SD + busy * WORKING_LOG_SD
    return np.hypot(of_ops, machine)


def situations(block: Block, fitted: Fitted, left_out: str) -> list[str]:
    """How near a fit without what is left out came to the device of each row."""
    by_device = {str(name): _situation(str(name), fitted, left_out) for name in np.unique(block.tags["device"])}
    return [by_device[str(name)] for name in block.tags["device"]]


def _situation(name: str, fitted: Fitted, left_out: str) -> str:
    device = find_device(name)
    if left_out == "generation":
        return NEW_GENERATION
    if left_out != "GPU":
        return situation_of(device) if left_out == "nothing" else SAME_GPU
    others = [find_device(other) for other in fitted.provenance["devices"] if other != device.name]
    return SAME_GENERATION if any(other.arch == device.arch for other in others) else NEW_GENERATION
