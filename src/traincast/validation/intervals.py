"""The spread that a forecast would give each measured row, so that coverage can be counted."""

from __future__ import annotations

import numpy as np

from traincast.forecasting.spread import WAITING_LOG_SD, WORKING_LOG_SD
from traincast.kernels.coefficients import ERROR_GROUP, Coefficients, Fitted
from traincast.kernels.refit.block import Block
from traincast.kernels.refit.spread import group_shares, situation_of
from traincast.trace.graph import Floats


def log_sd_of(block: Block, fitted: Fitted) -> Floats:
    """Of a lone op what its kind of kernel has; of a whole step as `forecasting` does it."""
    if block.n_dispatched is None:
        each = np.zeros(block.n_rows)
        each[block.row] = fitted.kernel_log_sd[ERROR_GROUP[block.kernels.work]]
        return each
    return _step_log_sd(block, fitted.coefficients, fitted.step_log_sd)


def _step_log_sd(block: Block, coefficients: Coefficients, by_situation: dict[str, Floats]) -> Floats:
    """Groups of work err each on their own, by their share of the step; the machine adds its own spread."""
    work_s = block.kernel_seconds(coefficients) * block.count
    device_s = np.bincount(block.row, weights=work_s, minlength=block.n_rows)
    step_s = block.predict(coefficients)
    busy = np.minimum(device_s / step_s, 1.0)
    of_ops = busy * np.sqrt((group_shares(block, coefficients) ** 2) @ by_situation[situation_of(block)] ** 2)
    machine = (1.0 - busy) * WAITING_LOG_SD + busy * WORKING_LOG_SD
    return np.hypot(of_ops, machine)
