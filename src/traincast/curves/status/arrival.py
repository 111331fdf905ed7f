"""From a curve and a pace to answers: when a run is good enough, when it ends, and what that costs."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from traincast.curves.curve import LEVELS, Curve, Floats, weighted_quantiles
from traincast.curves.status.settled import NOTHING_SETTLED, Settled
from traincast.errors import InputError
from traincast.estimate import Estimate
from traincast.lognormal import FIFTHS_SDS, p90_factor


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Seconds of a step, measured or forecast, and how sure they are."""

    step_s: float
    log_sd: float
    source: str
    usd_per_s: float | None = None

    def __post_init__(self) -> None:
        if not (self.step_s > 0 and np.isfinite(self.step_s)):
            raise InputError(f"A step should take more than 0 seconds, not {self.step_s}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """When a target is reached: steps from the start, and time and money from now."""

    target: float
    probability: float  # by the end of the run; without an end, ever
    steps: Estimate
    epochs: Estimate | None
    from_now_s: Estimate | None
    cost_usd: Estimate | None
    unit: str = "step"  # "epoch" where the log counts these: then `steps` are epochs too

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def arrival(
    curve: Curve,
    target: float,
    *,
    speed: Speed | None = None,
    settled: Settled = NOTHING_SETTLED,
    steps_per_epoch: float | None = None,
    unit: str = "step",
) -> Arrival:
    """The target, as every member of the curve and every likely pace sees it, as far as that is not settled."""
    reached = settled.bounded(curve.crossings(target))  # of every member, once: it takes longer than the fit
    steps = Estimate(*curve.quantiles_of(reached).tolist())
    from_now = None if speed is None else _seconds_until(curve, reached, speed)
    cost = None if from_now is None or speed is None or speed.usd_per_s is None else from_now.times(speed.usd_per_s)
    return Arrival(
        target=target,
        probability=curve.share_within(reached),
        steps=steps,
        epochs=steps if unit == "epoch" else steps.times(1.0 / steps_per_epoch) if steps_per_epoch else None,
        from_now_s=from_now,
        cost_usd=cost,
        unit=unit,
    )


def never(target: float, unit: str = "step") -> Arrival:
    """Of a run that has diverged before it had a curve."""
    steps = Estimate(math.inf, math.inf, math.inf)
    return Arrival(target=target, probability=0.0, steps=steps, epochs=None, from_now_s=None, cost_usd=None, unit=unit)


def _seconds_until(curve: Curve, reached: Floats, speed: Speed) -> Estimate:
    """From the last logged step to the target: steps and pace vary on their own, so their distributions multiply."""
    steps = np.maximum(reached - curve.last_step, 0.0)
    paces_s = speed.step_s * np.exp(np.array(FIFTHS_SDS) * speed.log_sd)
    seconds = (steps[:, None] * paces_s[None, :]).ravel()
    weights = np.repeat(curve.weights, len(paces_s)) / len(paces_s)
    low, middle, high = weighted_quantiles(seconds[:, None], weights, LEVELS)[:, 0]
    return Estimate(float(low), float(middle), float(high))


def seconds_to_end(last_step: float, total_steps: float, speed: Speed) -> Estimate:
    """From the last logged step to the end of the run."""
    left_s = max(total_steps - last_step, 0.0) * speed.step_s
    spread = p90_factor(speed.log_sd)
    return Estimate(left_s / spread, left_s, left_s * spread)
