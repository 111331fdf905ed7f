"""Prices from measured steps: non-negative least squares on relative errors.

Every row is a phase of a measured step, its columns are amounts of work, and the prices are what makes their sum the
measured time. Prices cannot be negative. Rows that are off by much count less, as a machine is sometimes busy with
something else. The spread comes from steps that the fit has not seen: a tenth of them is left out in turn. The same
benchmark at another batch size stays, as a model asks for no work that calibration does not price. What was measured
is a median over moments; a run has one moment, so how far moments are apart is added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traincast.errors import InputError
from traincast.lognormal import P90_SDS
from traincast.trace.graph import Floats

_ROUNDS = 5
_FOLDS = 10
_USUAL_ERROR = 0.1  # relative; rows that miss by more count less
_LEAST_SHARE = 0.02  # a phase that is this little of its step still counts so much


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class MeasuredPhase:
    """One phase of a measured step: what it asked for and how long it took."""

    benchmark: str
    step: str  # tells the steps of a benchmark apart: batch size and optimizer
    work: Mapping[str, float]  # amounts by price
    seconds: float
    weight: float = 1.0


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class FittedPrices:
    """Seconds for each unit of work, and the errors of steps that were left out of the fit."""

    price_s: Mapping[str, float]
    held_out_log_errors: Floats  # log of predicted over measured, one a step
    moment_log_sd: float = 0.0  # of a step at one moment around its median over the moments that were measured

    @property
    def log_sd(self) -> float:
        """Of a step that was left out, run at one moment: what the p10 and p90 of its errors tell, and the moment."""
        low, high = np.percentile(self.held_out_log_errors, [10, 90])
        return float(np.hypot((high - low) / (2 * P90_SDS), self.moment_log_sd))

    @property
    def mean_error(self) -> float:
        return float(np.abs(np.expm1(self.held_out_log_errors)).mean())


def moment_log_sd(times_s: Sequence[Sequence[float]]) -> float:
    """How far one moment's time of a step is from the median of its moments, beyond what that median varies itself.

    The median of n moments varies about as one of them over the square root of n; that part is in the errors of steps
    left out already. Of all steps, the usual one: a moment in which something else ran should not count.
    """
    spreads = [
        np.std(np.log(several), ddof=1) * np.sqrt(1 - 1 / len(several)) for several in times_s if len(several) > 1
    ]
    return float(np.median(spreads)) if spreads else 0.0


def fit_prices(phases: Sequence[MeasuredPhase], moment_log_sd: float = 0.0) -> FittedPrices:
    """The prices of all work that some phase asks for."""
    if not phases:
        raise InputError("There is nothing to fit prices on: no step was measured.")
    names = sorted({name for phase in phases for name in phase.work})
    amounts = np.array([[phase.work.get(name, 0.0) for name in names] for phase in phases])
    seconds = np.array([phase.seconds for phase in phases])
    steps = np.array([f"{phase.benchmark} {phase.step}" for phase in phases])
    _, number = np.unique(steps, return_inverse=True)
    step_s = np.bincount(number, weights=seconds)
    counted = np.array([phase.weight for phase in phases])
    weight = np.sqrt(counted * np.maximum(seconds / step_s[number], _LEAST_SHARE))
    predicted = np.full_like(seconds, np.nan)
    for fold in range(_FOLDS):
        out = number % _FOLDS == fold
        if out.any() and not out.all():
            predicted[out] = amounts[out] @ _solve(amounts[~out], seconds[~out], weight[~out])
    step_predicted = np.maximum(np.bincount(number, weights=predicted), 1e-9)
    errors = np.log(step_predicted / step_s)
    prices = _solve(amounts, seconds, weight)
    return FittedPrices(
        price_s=dict(zip(names, prices.tolist(), strict=True)),
        held_out_log_errors=errors[np.isfinite(errors)],
        moment_log_sd=moment_log_sd,
    )


def _solve(amounts: Floats, seconds: Floats, weight: Floats) -> Floats:
    from scipy.optimize import nnls

    relative = amounts / seconds[:, None]
    scale = relative.max(axis=0)
    scale[scale == 0] = 1.0
    relative /= scale
    trusted = weight
    for _ in range(_ROUNDS):
        found, _ = nnls(relative * trusted[:, None], trusted, maxiter=50 * len(scale))
        off = np.abs(relative @ found - 1.0)
        trusted = weight / np.sqrt(np.maximum(off / _USUAL_ERROR, 1.0))
    prices: Floats = found / scale
    return prices
