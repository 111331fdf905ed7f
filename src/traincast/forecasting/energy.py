"""What a run draws and emits: the power limit of its devices times how far they use it. An estimate, and a wide one."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from traincast.errors import InputError
from traincast.estimate import Estimate
from traincast.hardware.grid import Grid
from traincast.lognormal import P90_SDS

if TYPE_CHECKING:
    from traincast.forecasting.forecast import Forecast

# A node of eight H100 drew 76 % of its rating in heavy training (Newkirk et al. 2025, arXiv 2506.14551) and at most
# 83 % of it (Latif et al. 2024, arXiv 2412.08602). Estimates from the rating alone were off by 27 to 37 % there.
WORKING_FRACTION = 0.8
# A device that waits within a step keeps its clocks up. A guess: idle cards draw 10 to 15 %.
WAITING_FRACTION = 0.25
POWER_LOG_SD = 0.25

J_PER_KWH = 3.6e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Mean power, with what the site adds, and energy and CO2 of the run (None where length or grid is not known)."""

    power_w: Estimate
    pue: float  # what the site draws for each joule of the devices
    total_j: Estimate | None
    grid: Grid | None
    co2_kg: Estimate | None


def energy_of(forecast: Forecast, *, grid: Grid | None = None, pue: float = 1.0) -> Energy | None:
    """None where the power limit of the device is not known. Devices alone, unless `pue` says what comes on top."""
    if not (math.isfinite(pue) and pue >= 1):
        raise InputError(f"A site draws at least what its devices do: pue is a number of at least 1, not {pue}.")
    power_w = mean_power_w(forecast)
    if power_w is None:
        return None
    power = _spread(pue * power_w, 0.0, 0.0)
    total_s, total_j = forecast.total_s, None
    if total_s:
        low, high = (math.log(end / total_s) for end in forecast.interval("total_s"))
        total_j = _spread(power.p50 * total_s, low, high)
    co2_kg = None if total_j is None or grid is None else total_j.times(grid.g_per_kwh / 1000 / J_PER_KWH)
    return Energy(power_w=power, pue=pue, total_j=total_j, grid=grid, co2_kg=co2_kg)


def mean_power_w(forecast: Forecast) -> float | None:
    """Of all devices of the run: so much of the limit while they work, so much while they wait."""
    question = forecast.question
    if question.device.tdp_w is None:
        return None
    working = min(forecast.device_s / forecast.step_s, 1.0) if forecast.step_s else 0.0
    drawn = WAITING_FRACTION + (WORKING_FRACTION - WAITING_FRACTION) * working
    return question.n_devices * question.device.tdp_w * drawn


def _spread(value: float, low_log: float, high_log: float) -> Estimate:
    """p10 and p90 from the spread of the time (logarithms of its ends over its middle) and of the power."""
    own = P90_SDS * POWER_LOG_SD
    return Estimate(value * math.exp(-math.hypot(low_log, own)), value, value * math.exp(math.hypot(high_log, own)))
