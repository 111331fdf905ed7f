"""Standard normal errors for members: evenly spread and always the same, so that nothing depends on a seed."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def spread_out(n: int, step: float) -> Floats:
    """As many levels between 0 and 1: evenly spread, but not in order (an additive sequence)."""
    return np.mod((np.arange(n) + 0.5) * step, 1.0)


def normal_quantiles(levels: Floats) -> Floats:
    """Of a standard normal distribution, without SciPy: `statistics` has them one by one."""
    normal = NormalDist()
    return np.array([normal.inv_cdf(min(max(level, 1e-4), 1 - 1e-4)) for level in levels.tolist()])
