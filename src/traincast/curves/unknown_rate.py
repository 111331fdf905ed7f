"""What runs of other sources tell of the end of a run whose learning rate nobody tells: few numbers, fitted.

`python -m lab.refit.curves --data DIR` fits them again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# What the spread of laws, the noise and the distance are raised by, before their logarithms are taken.
LEAST_SD, LEAST_NOISE = 1e-3, 1e-3
_FULL = 0.4  # of a run still to come: from here on all of the fall is
_LATE = 1.3
_MOST_SD = 3.0  # of a logarithm: ten times as much tells no more


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A standard deviation: the product of powers of the laws' own spread, the noise and the distance."""

    intercept: float
    per_log_sd: float
    per_log_noise: float
    per_log_horizon: float

    def sd(self, sd: Floats, noise: float, horizon: Floats) -> Floats:
        log_sd = (
            self.intercept
            + self.per_log_sd * np.log(sd + LEAST_SD)
            + self.per_log_noise * np.log(noise + LEAST_NOISE)
            + self.per_log_horizon * np.log(np.maximum(horizon, 1e-3))
        )
        return np.asarray(np.minimum(np.exp(log_sd), _MOST_SD))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownRate:
    """How far below its laws a run ends in the median, and how far it may be off that, to either side."""

    loss_fall: float  # at most, and no more than `loss_part` of what the path still falls
    loss_part: float
    error_fall: float  # of a share of errors that jumps about a lot
    error_noise: float  # at which half of that is to be expected
    below: Scale
    above: Scale

    def fall(self, noise: float, *, to_come: float, moves: float, is_error: bool) -> float:
        """Of the logarithm, at the end of the run.

        `to_come` is the part of the run that is not over, `moves` how far the logarithm of the path goes until then.
        """
        square = noise**2
        whole = min(to_come / _FULL, 1.0) ** _LATE
        if is_error:
            return float(self.error_fall * square / (square + self.error_noise**2) * whole)
        return float(min(self.loss_fall * whole, self.loss_part * abs(moves)))
