"""Fitting library factors to layers timed alone, and how far they are off on GPUs that the fit did not see."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.coefficients import Coefficients
from traincast.kernels.library_factors import NAMES, PRIORS, SPREAD_GROUP, SPREAD_GROUPS, Factors
from traincast.kernels.refit.layer_calls import LayerCalls
from traincast.kernels.refit.layer_hosts import call_seconds, hosts_of, on_hosts
from traincast.lognormal import P90_SDS
from traincast.trace.graph import Floats

_PRIOR_ROWS = 20.0  # a prior counts like this many rows that are off by the scale of the loss
_SCALE, _PRIOR_SD = 0.1, 0.7
_N_EVALUATIONS = 8  # of a fit on given hosts, Jacobians not counted
_USUAL_LOG_SD, _HELD_SD = np.log(0.15), 0.5  # of the prior of a group's deviation
_MEANS = np.array([PRIORS[name] for name in NAMES])


@dataclass(frozen=True, eq=False, slots=True)
class Timed:
    """Calls that were timed, and the seconds of their kernels before any factor."""

    calls: LayerCalls
    kernel_s: Floats
    launch_s: float

    @staticmethod
    def of(calls: LayerCalls, coefficients: Coefficients) -> Timed:
        return Timed(calls, calls.block.kernel_seconds(coefficients), float(np.exp(coefficients["launch_s"])))

    def device_s(self, factors: Factors) -> Floats:
        return self.calls.with_library(self.kernel_s, factors, launch_s=self.launch_s)

    def fitted_rows(self, left_out: Collection[str]) -> NDArray[np.bool_]:
        """Neither rows that show hosts nor those of GPUs that are left out."""
        tags = self.calls.block.tags
        kept: NDArray[np.bool_] = ~tags["is_host"] & ~np.isin(tags["device"], list(left_out))
        return kept


@dataclass(frozen=True, eq=False, slots=True)
class Missed:
    """Logarithms of predicted over measured, and the shares of the predicted time by group of SPREAD_GROUPS."""

    errors: Floats
    shares: Floats
    device: NDArray[np.str_]

    def take(self, rows: NDArray[np.bool_]) -> Missed:
        return Missed(self.errors[rows], self.shares[rows], self.device[rows])

    @staticmethod
    def join(parts: Sequence[Missed]) -> Missed:
        return Missed(*(np.concatenate([getattr(part, name) for part in parts]) for name in Missed.__slots__))


def fit_factors(
    timed: Sequence[Timed], *, left_out: Collection[str] = (), start: Factors | None = None, n_rounds: int = 1
) -> Factors:
    """The factors that explain the rows of the other GPUs best.

    Hosts and factors need each other: each round finds the hosts under the factors so far, then better factors.
    """
    from scipy.optimize import least_squares

    point = _MEANS if start is None else _point(start)
    for _ in range(n_rounds):
        hosts = [on_hosts(each.calls, hosts_of(each.calls, each.device_s(_factors(point)))) for each in timed]

        def errors(moved: Floats, hosts: Sequence[tuple[Floats, Floats]] = hosts) -> Floats:
            parts = [
                _log_errors(each, each.device_s(_factors(moved)), host)[each.fitted_rows(left_out)]
                for each, host in zip(timed, hosts, strict=True)
            ]
            prior = np.sqrt(_PRIOR_ROWS) * _SCALE * (moved - _MEANS) / _PRIOR_SD
            return np.concatenate([*(_robust(part) for part in parts), prior])

        point = least_squares(errors, point, xtol=1e-3, ftol=1e-4, max_nfev=_N_EVALUATIONS).x
    return _factors(point)


def missed(timed: Timed, factors: Factors) -> Missed:
    """Of rows that do not show hosts, each machine with the host that these factors ask for."""
    device_s = timed.device_s(factors)
    host = on_hosts(timed.calls, hosts_of(timed.calls, device_s))
    errors = _log_errors(timed, device_s, host)
    shares = time_shares(timed.calls, device_s, np.exp(errors) * timed.calls.block.observed_s)
    scored = ~timed.calls.block.tags["is_host"]
    return Missed(errors, shares, timed.calls.block.tags["device"]).take(scored)


def time_shares(calls: LayerCalls, kernel_s: Floats, seconds: Floats) -> Floats:
    """One row a row, one column a group; the host has what the device leaves."""
    table = np.zeros((calls.block.n_rows, len(SPREAD_GROUPS)))
    np.add.at(table, (calls.block.row, SPREAD_GROUP[calls.traits.role]), kernel_s)
    table /= seconds[:, None]
    table[:, -1] = np.maximum(1.0 - table.sum(axis=1), 0.0)
    return table


def call_log_sd(shares: Floats, log_sd: Floats) -> Floats:
    """Of whole calls: groups err each on their own."""
    found: Floats = np.sqrt(shares**2 @ log_sd**2)
    return found


def spread_of(misses: Missed) -> Floats:
    """The deviation of each group under which the errors are most likely, widened so that p10 to p90 holds 80 %."""
    from scipy.optimize import minimize

    error, share = misses.errors, misses.shares
    clipped = np.clip(error, *np.quantile(error, (0.03, 0.97)))  # a few far outliers would widen everything

    def loss(point: Floats) -> float:
        variance = share**2 @ np.exp(2 * point)
        prior = 0.5 * (((point - _USUAL_LOG_SD) / _HELD_SD) ** 2).sum() / len(error)
        return float(np.mean(0.5 * np.log(variance) + 0.5 * clipped**2 / variance) + prior)

    found: Floats = np.exp(minimize(loss, np.full(share.shape[1], _USUAL_LOG_SD)).x)
    return found * np.quantile(np.abs(error) / call_log_sd(share, found), 0.8) / P90_SDS


def _log_errors(timed: Timed, device_s: Floats, host: tuple[Floats, Floats]) -> Floats:
    calls = timed.calls
    seconds = call_seconds(calls.op_seconds(device_s), calls.n_ops, *host)
    found: Floats = np.log(seconds / calls.block.observed_s)
    return found


def _factors(point: Floats) -> Factors:
    return Factors(dict(zip(NAMES, point.tolist(), strict=True)))


def _point(factors: Factors) -> Floats:
    return np.array([factors[name] for name in NAMES])


def _robust(errors: Floats) -> Floats:
    """As in `fit.py`, whose bytes are part of the key of stored fits: quadratic near zero, linear far away."""
    loss = 2.0 * (np.sqrt(1.0 + (errors / _SCALE) ** 2) - 1.0)
    found: Floats = _SCALE * np.sign(errors) * np.sqrt(loss)
    return found
