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
    """Each job's forecasts are off by constant log-normal factors: one for its remaining work (`work_sigmas`, by job),
    and one for its speed at each number of devices of each type (`speed_sigma`). The job itself is not changed: only
    what policies see.
    """

    work_sigmas: Sequence[float]
    speed_sigma: float = 0.0
    seed: int = 0
    _work: Floats = field(init=False)
    _speed: dict[tuple[int, int], Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        sigmas = np.asarray(self.work_sigmas, dtype=float)
        for what, wrong in (("work", sigmas[~((sigmas >= 0) & (sigmas < np.inf))]), ("speed", self._wrong_speed())):
            if len(wrong):
                raise InputError(
                    f"The error of forecast {what} is a standard deviation and should be at least 0, not {wrong[0]:g}."
                )
        draws = np.random.default_rng((self.seed, 0)).normal(0.0, 1.0, len(sigmas))
        object.__setattr__(self, "_work", np.exp(sigmas * draws))

    def _wrong_speed(self) -> list[float]:
        return [] if 0 <= self.speed_sigma < np.inf else [self.speed_sigma]

    def factor(self, job: int, n_devices: int, kind_number: int = 0) -> float:
        """Forecast over true seconds, with so many devices of the first, second, ... type."""
        work = float(self._work[job])
        return work * float(self._speeds(job, n_devices + 1, kind_number)[n_devices]) if self.speed_sigma else work

    def apply(self, job: int, seconds: Floats, kind_number: int = 0) -> Floats:
        """What is forecast where so many seconds, by number of devices, are true."""
        if self.speed_sigma:
            seconds = seconds * self._speeds(job, len(seconds), kind_number)
        return seconds * self._work[job]

    def _speeds(self, job: int, n_counts: int, kind_number: int) -> Floats:
        """One for each number of devices from 0 on; more of them begin with the same."""
        known = self._speed.get((job, kind_number))
        if known is None or len(known) < n_counts:
            drawn_from = (self.seed, 1, job, kind_number) if kind_number else (self.seed, 1, job)
            draws = np.random.default_rng(drawn_from).normal(0.0, self.speed_sigma, n_counts)
            known = self._speed[job, kind_number] = np.exp(draws)
        return known[:n_counts]
