"""The seconds of a step by what they are spent on: what a remedy could at most take away."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from traincast.trace.graph import Floats

BOUNDS = ("compute", "memory", "host", "pipeline", "communication", "input")


def seconds_by_bound(
    busy_s: Floats, device_s: Floats, compute_s: Floats, *, bubble_s: Floats, exposed_s: Floats, input_wait_s: Floats
) -> dict[str, Floats]:
    """They add up to the step, with `busy_s` its forward, loss, backward and update.

    'host' is where the device waits for it, 'pipeline' where a stage waits for others. `device_s` and `compute_s` are
    what the device works, and what of that more FLOP/s would shrink.
    """
    worked_s = np.minimum(device_s, busy_s - bubble_s)
    compute_fraction = np.divide(compute_s, device_s, out=np.zeros_like(device_s), where=device_s > 0)
    return {
        "compute": worked_s * compute_fraction,
        "memory": worked_s * (1 - compute_fraction),
        "host": busy_s - bubble_s - worked_s,
        "pipeline": bubble_s,
        "communication": exposed_s,
        "input": input_wait_s,
    }


def largest_bounds(bound_s: Mapping[str, Floats]) -> list[str]:
    """What most of each step is spent on."""
    return [BOUNDS[place] for place in np.argmax([bound_s[name] for name in BOUNDS], axis=0).tolist()]
