"""Least squares on logarithms: measured rows by block, and the priors, which hold what the rows are silent about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.coefficients import NAMES, PRIORS, Coefficients, prior_coefficients
from traincast.kernels.refit.block import Block, residuals
from traincast.kernels.refit.processes import at_once
from traincast.kernels.refit.reach import moved_works, reaching
from traincast.kernels.work import Work
from traincast.trace.graph import Floats

_SCALE = 0.1  # residuals beyond this count linearly: outliers must not lead
_PRIOR_ROWS = 100.0  # a prior counts like this many rows that are off by the scale
_STEP = 1e-4  # of a coefficient, for differences
_STILL = 0.01  # standard deviations of a prior: a fit that moves by less has arrived
_MEANS = np.array([PRIORS[name].mean for name in NAMES])
_SDS = np.array([PRIORS[name].sd for name in NAMES])


@dataclass(frozen=True, eq=False)
class Problem:
    """Blocks of rows with the number of independent rows that each counts for, as one vector of errors."""

    blocks: tuple[Block, ...]
    weights: tuple[float, ...]
    n_processes: int = 1

    @cached_property
    def _scales(self) -> Floats:
        parts = [np.full(b.n_rows, np.sqrt(w / b.n_rows)) for b, w in zip(self.blocks, self.weights, strict=True)]
        return np.concatenate(parts)

    def errors(self, point: Floats) -> Floats:
        """One entry a row, then one a prior."""
        coefficients = as_coefficients(point)
        rows = np.concatenate([_robust(residuals(block, coefficients)) for block in self.blocks])
        prior = np.sqrt(_PRIOR_ROWS) * _SCALE * (point - _MEANS) / _SDS
        return np.concatenate([self._scales * rows, prior])

    def jacobian(self, point: Floats) -> Floats:
        """By differences, block by block, with the coefficients that can move a block."""
        rows, start = np.zeros((len(self._scales) + len(point), len(point))), 0
        for slopes in at_once(lambda block: _slopes(block, point), self.blocks, self.n_processes):
            rows[start : start + len(slopes)] = slopes
            start += len(slopes)
        rows[:start] *= self._scales[:, None]
        rows[start:] = np.diag(np.sqrt(_PRIOR_ROWS) * _SCALE / _SDS)
        return rows


def _slopes(block: Block, point: Floats) -> Floats:
    """Of the errors of a block's rows: of its kernels, only those are timed again that a coefficient can move."""
    once_s = block.kernel_seconds(as_coefficients(point))
    before = _robust(np.log(block.measured_s(once_s) / block.observed_s))
    slopes = np.zeros((block.n_rows, len(point)))
    parts: dict[tuple[Work, ...], tuple[NDArray[np.bool_], Block]] = {}
    for number in reaching(block):
        works = moved_works(NAMES[number])
        if works not in parts:
            chosen = np.isin(block.kernels.work, works)
            parts[works] = (chosen, block.with_kernels(chosen))
        chosen, part = parts[works]
        moved = point.copy()
        moved[number] += _STEP
        seconds = once_s.copy()
        seconds[chosen] = part.kernel_seconds(as_coefficients(moved))
        slopes[:, number] = (_robust(np.log(block.measured_s(seconds) / block.observed_s)) - before) / _STEP
    return slopes


def as_coefficients(point: Floats) -> Coefficients:
    return Coefficients(dict(zip(NAMES, point.tolist(), strict=True)))


def as_point(coefficients: Coefficients) -> Floats:
    return np.array([coefficients[name] for name in NAMES])


def fit(problem: Problem, *, start: Coefficients | None = None, n_steps: int = 20) -> Coefficients:
    """The coefficients that explain all rows best."""
    from scipy.optimize import least_squares

    begin = as_point(start or prior_coefficients())
    found = least_squares(
        problem.errors, begin, jac=problem.jacobian, x_scale=_SDS, max_nfev=n_steps, xtol=1e-4, ftol=1e-5
    )
    return as_coefficients(found.x)


def fit_without(
    problem: Problem, fitted: Coefficients, jacobian: Floats, left_out: Sequence[NDArray[np.bool_]], *, n_steps: int = 4
) -> Coefficients:
    """The fit without some rows of each block, found from the fit with all of them.

    Leaving out one GPU or family moves the optimum a little: Gauss-Newton steps with the Jacobian of the full fit get
    there for the price of a few evaluations, where a fit from the start takes minutes. `benchmarks/accuracy.py`
    compares some with full refits.
    """
    kept = np.concatenate([~rows for rows in left_out] + [np.ones(len(NAMES), dtype=bool)])
    slopes = jacobian[kept] * _SDS
    normal = slopes.T @ slopes  # well conditioned: every coefficient has its prior in it
    point = as_point(fitted)
    for _ in range(n_steps):
        step = np.linalg.solve(normal, -slopes.T @ problem.errors(point)[kept])
        point = point + np.clip(step, -1.0, 1.0) * _SDS
        if np.abs(step).max() < _STILL:
            break
    return as_coefficients(point)


def _robust(errors: Floats) -> Floats:
    """The square root of the pseudo-Huber loss, with its sign: quadratic near zero, linear far away."""
    loss = 2.0 * (np.sqrt(1.0 + (errors / _SCALE) ** 2) - 1.0)
    return _SCALE * np.sign(errors) * np.sqrt(loss)
