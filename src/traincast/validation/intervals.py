"""The spread that a forecast would give each measured row, so that coverage can be counted."""

from __future__ import annotations

import numpy as np

from traincast.forecasting.spread import WAITING_LOG_SD, WORKING_LOG_SD
from traincast.kernels.coefficients import ERROR_GROUP, Fitted
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.spread import group_shares, situation_of
from traincast.trace.graph import Floats


def log_sd_of(block: Block, fitted: Fitted) -> Floats:
    """Of a lone op what its kind of kernel has; of a whole step as `forecasting` does it."""
    if block.n_dispatched is None:
        each = np.zeros(block.n_rows)
        each[block.row] = fitted.kernel_log_sd[ERROR_GROUP[block.kernels.work]]
        return each
    return step_log_sd_of(block, fitted, block.predict(fitted.coefficients))


def step_log_sd_of(block: Block, fitted: Fitted, step_s: Floats) -> Floats:
    """Groups of work err each on their own, by their share of the step; the machine adds its own spread."""
    work_s = block.kernel_seconds(fitted.coefficients) * block.count
    device_s = np.bincount(block.row, weights=work_s, minlength=block.n_rows)
    busy = np.minimum(device_s / step_s, 1.0)
    shares, by_group = group_shares(block, fitted.coefficients), fitted.step_log_sd[situation_of(block)]
    of_ops = busy * np.sqrt((shares**2) @ by_group**2)
    machine = (1.0 - busy) * WAITING_LOG_SD + busy * WORKING_LOG_SD
    return np.hypot(of_ops, machine)
