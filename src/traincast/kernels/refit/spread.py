"""How sure a prediction is: standard deviations of log errors on rows that the fit did not see.

A step's error is that of its kinds of work, which err each on their own, by their shares of the time, and that of the
machine. The deviations by kind are those under which the held-out errors are most likely; a last factor makes p10 to
p90 hold eight of ten rows, because tails are heavier than a normal distribution's. That factor is found apart for each
situation: rows of a generation that the fit has not seen are off further than those of another card of one that it has,
and these further than other models on the very card, or at least not less: each situation has sets of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traincast.kernels.coefficients import ERROR_GROUP, ERROR_GROUPS, SITUATIONS, Coefficients
from traincast.kernels.refit.block import Block
from traincast.lognormal import P90_SDS
from traincast.trace.graph import Floats

MACHINE_LOG_SD = 0.076  # between machines of one type: forecasting adds it by itself
_WIDENING = (0.3, 5.0)  # errors smaller than the machine's own spread still say little about the next machine


def group_shares(block: Block, coefficients: Coefficients) -> Floats:
    """One row a measured row, one column a group of ERROR_GROUPS: its share of the time."""
    seconds = block.kernel_seconds(coefficients) * block.count
    groups = ERROR_GROUP[block.kernels.work]
    table = np.zeros((block.n_rows, len(ERROR_GROUPS)))
    np.add.at(table, (block.row, groups), seconds)
    return table / table.sum(axis=1, keepdims=True)


def step_log_sds(
    errors: Sequence[Floats], shares: Sequence[Floats], weights: Sequence[float], situations: Sequence[str]
) -> dict[str, dict[str, float]]:
    """By situation, the deviation of each group in steps, most likely given held-out errors (logarithms) by set."""
    from scipy.optimize import minimize

    each = np.concatenate([np.full(len(e), w / len(e)) for e, w in zip(errors, weights, strict=True)])
    error, share = np.concatenate(errors), np.concatenate(shares)
    situation = np.repeat(situations, [len(e) for e in errors])
    clipped = np.clip(error, *np.quantile(error, (0.03, 0.97)))  # a few far outliers would widen everything

    def loss(point: Floats) -> float:
        variance = MACHINE_LOG_SD**2 + (share**2) @ np.exp(2 * point)
        return float(each @ (0.5 * np.log(variance) + 0.5 * clipped**2 / variance) + 0.02 * ((point + 2.3) ** 2).sum())

    found = np.exp(minimize(loss, np.full(share.shape[1], -2.3)).x)
    by_situation: dict[str, dict[str, float]] = {}
    least = 0.0  # what was measured further off is never surer, though other sets may judge it
    for name in SITUATIONS:
        rows = situation == name
        if rows.any():
            least = max(least, _widening(error[rows], share[rows], each[rows], found))
            by_situation[name] = dict(zip(ERROR_GROUPS, (least * found).tolist(), strict=True))
    return by_situation


def _widening(error: Floats, share: Floats, weight: Floats, log_sd: Floats) -> float:
    """By what factor the groups' deviations must grow so that p10 to p90, machine included, holds 80 % of the rows."""
    from scipy.optimize import brentq

    def excess(factor: float) -> float:
        reach = P90_SDS * np.sqrt(MACHINE_LOG_SD**2 + factor**2 * ((share**2) @ log_sd**2))
        return float(weight @ (np.abs(error) <= reach) / weight.sum()) - 0.8

    low, high = _WIDENING
    if excess(low) >= 0.0:
        return low
    return float(brentq(excess, low, high, xtol=1e-3)) if excess(high) > 0.0 else high


def kernel_log_sd(errors: Floats) -> float:
    """Of one lone kernel: eight of ten held-out errors are within p10 to p90."""
    return float(np.quantile(np.abs(errors), 0.8) / P90_SDS)
