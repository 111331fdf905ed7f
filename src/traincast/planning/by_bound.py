"""The seconds of a step by what they are spent on: what a remedy could at most take away."""

from __future__ import annotations

from traincast.forecasting.forecast import Forecast

BOUNDS = ("compute", "memory", "host", "communication", "input")


def seconds_by_bound(forecast: Forecast) -> dict[str, float]:
    """They add up to the step. 'host' is where the device waits for it; in a pipeline also for other stages."""
    compute_fraction = forecast.compute_s / forecast.device_s if forecast.device_s else 0.0
    outside_s = forecast.exposed_communication_s + forecast.input_wait_s
    device_s = min(forecast.device_s, forecast.step_s - outside_s)
    return {
        "compute": device_s * compute_fraction,
        "memory": device_s * (1 - compute_fraction),
        "host": forecast.step_s - outside_s - device_s,
        "communication": forecast.exposed_communication_s,
        "input": forecast.input_wait_s,
    }
