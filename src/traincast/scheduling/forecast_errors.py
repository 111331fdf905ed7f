"""Forecasts that are wrong on purpose: what is accuracy worth?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class ForecastErrors:
    """Each job's forecasts are off by constant log-normal factors: one for its remaining work (`work_sigma`), and one
    for its speed at each number of devices (`speed_sigma`). The job itself is not changed: only what policies see.
    """

    n_jobs: int
    seed: int = 0
    work_sigma: float = 0.0
    speed_sigma: float = 0.0
    _work: Floats = field(init=False)
    _speed: dict[int, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, sigma in (("work", self.work_sigma), ("speed", self.speed_sigma)):
            if not 0 <= sigma < np.inf:
                raise InputError(f"An error of forecast {what} is a standard deviation, 0 or more, not {sigma:g}.")
        draws = np.random.default_rng((self.seed, 0)).normal(0.0, 1.0, self.n_jobs)
        object.__setattr__(self, "_work", np.exp(self.work_sigma * draws))

    def factors(self, jobs: Sequence[int], counts: Sequence[int]) -> Floats:
        """Forecast over true seconds, for each job with its number of devices."""
        factors = self._work[np.asarray(jobs, dtype=int)]
        if self.speed_sigma:
            factors = factors * [self._speeds(job, n + 1)[n] for job, n in zip(jobs, counts, strict=True)]
        return factors

    def apply(self, job: int, seconds: Floats) -> Floats:
        """What is forecast where so many seconds, by number of devices, are true."""
        if self.speed_sigma:
            seconds = seconds * self._speeds(job, len(seconds))
        return seconds * self._work[job] if self.work_sigma else seconds

    def _speeds(self, job: int, n_counts: int) -> Floats:
        """One for each number of devices from 0 on; more of them begin with the same."""
        known = self._speed.get(job)
        if known is None or len(known) < n_counts:
            draws = np.random.default_rng((self.seed, 1, job)).normal(0.0, self.speed_sigma, n_counts)
            known = self._speed[job] = np.exp(draws)
        return known[:n_counts]
