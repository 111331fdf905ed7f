"""Times and costs are lognormal: what the deviation of their logarithm makes of p10, p90 and the chance of a limit."""

from __future__ import annotations

import math

P90_SDS = 1.2816  # a normal variable is below its mean plus this many standard deviations 9 times of 10
FIFTHS_SDS = (-P90_SDS, -0.5244, 0.0, 0.5244, P90_SDS)  # the middles of five equally likely parts of a normal one


def p90_factor(log_sd: float) -> float:
    """p90 over the median; p10 is as far below."""
    return math.exp(P90_SDS * log_sd)


def log_sd_of(p10: float, p90: float) -> float:
    """The deviation that has these ends."""
    return math.log(p90 / p10) / (2 * P90_SDS)


def chance_below(limit: float, median: float, log_sd: float) -> float:
    """That a variable with this median stays below the limit."""
    return 0.5 * (1 + math.erf(math.log(limit / median) / log_sd / math.sqrt(2)))
