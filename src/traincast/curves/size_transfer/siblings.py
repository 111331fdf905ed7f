"""A quantity of a model that has not run, from its siblings: a line over log depth, as far as they agree on one.

    log y = mean + offset(family) + (slope + own slope(family)) * log depth + own(model) + run

All terms but the mean are normal around 0. How far families, slopes and models differ is not known with a handful of
models, so nothing is fixed: their standard deviations have half-normal priors and are integrated over a grid. A family
of one model thus takes about half of the others' slope, is drawn towards their level, and gets a wide interval.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
# Prior scales of the standard deviations, in natural logarithms: families a factor e apart, a factor e more for e times
# the depth (in common, and a family's own), and models that are off their family's line by a factor 1.35.
SCALES = (1.0, 1.0, 1.0, 0.3)
_GRID = np.geomspace(0.03, 3.0, 9)  # times the scale
_FLAT = 25.0  # variance of the mean, around that of the siblings: a factor of 150 either way
_AT_ONCE = 1024  # points of the grid whose matrices are held together


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Siblings:
    """One value for each run: its logarithm, its model (a number), and each model's log depth and family."""

    log_values: Floats
    model_of: NDArray[np.int64]
    log_depths: Floats  # by model
    families: tuple[str, ...]  # by model
    scales: tuple[float, ...] = SCALES

    @property
    def run_variance(self) -> float:
        """Of runs of one model around its mean, pooled over models; 0 where no model ran twice."""
        counts = np.bincount(self.model_of)
        n_spare = int((counts - 1).sum())
        around = self.log_values - self._means()[self.model_of]
        return float((around**2).sum() / n_spare) if n_spare else 0.0

    def draws(self, log_depth: float, family: str, *, n_draws: int, seed: int) -> Floats:
        """Of the logarithm that one run of another model will show."""
        weights, means, variances = self._conditionals(log_depth, family)
        rng = np.random.default_rng(seed)
        chosen = rng.choice(len(weights), size=n_draws, p=weights)
        return means[chosen] + np.sqrt(variances[chosen]) * rng.standard_normal(n_draws)

    def _means(self) -> Floats:
        return np.bincount(self.model_of, self.log_values) / np.bincount(self.model_of)

    def _conditionals(self, log_depth: float, family: str) -> tuple[Floats, Floats, Floats]:
        """At each point of the grid: its weight, and the mean and variance of the value asked for."""
        values = self._means()
        centre = values.mean()
        noise = np.diag(self.run_variance / np.bincount(self.model_of))
        parts = _covariances(self.log_depths, self.families, log_depth, family)
        deviations = np.array(list(itertools.product(*(_GRID * scale for scale in self.scales))))
        # A half-normal density, times the width of a cell of a geometric grid.
        log_weights = -0.5 * ((deviations / self.scales) ** 2).sum(axis=1) + np.log(deviations).sum(axis=1)
        means, variances = np.empty(len(deviations)), np.empty(len(deviations))
        for start in range(0, len(deviations), _AT_ONCE):
            some = slice(start, start + _AT_ONCE)
            joint = np.tensordot(deviations[some] ** 2, parts, axes=1) + _FLAT
            fit, mean, variance = _condition(joint, noise, values - centre)
            log_weights[some] += fit
            means[some] = mean + centre
            variances[some] = variance + self.run_variance
        weights = np.exp(log_weights - log_weights.max())
        return weights / weights.sum(), means, variances


def _covariances(log_depths: Floats, families: Sequence[str], log_depth: float, family: str) -> Floats:
    """Of the models and, last, the one asked for: one matrix for each standard deviation, to be scaled by its square.

    Depth counts from the mean of the siblings, so that slopes and offsets are about the middle of what was seen.
    """
    depths = np.append(log_depths, log_depth) - log_depths.mean()
    names = np.array([*families, family])
    is_same = (names[:, None] == names[None, :]).astype(float)
    together = np.outer(depths, depths)
    return np.stack([is_same, together, together * is_same, np.eye(len(depths))])


def _condition(joint: Floats, noise: Floats, values: Floats) -> tuple[Floats, Floats, Floats]:
    """Log likelihood of the values, and the last one's mean and variance given them: one of each for every matrix."""
    known = joint[:, :-1, :-1] + noise
    cross = joint[:, -1, :-1]
    right = np.stack([np.broadcast_to(values, cross.shape), cross], axis=-1)
    solved = np.linalg.solve(known, right)
    log_likelihood = -0.5 * (solved[:, :, 0] @ values) - 0.5 * np.linalg.slogdet(known)[1]
    mean = np.einsum("gi,gi->g", cross, solved[:, :, 0])
    variance = joint[:, -1, -1] - np.einsum("gi,gi->g", cross, solved[:, :, 1])
    return log_likelihood, mean, np.maximum(variance, 0.0)
