"""The host behind measured steps: nobody wrote down its seconds, so a few steps at one batch size must tell them.

A call is over before the first op is dispatched, so a step is `call_s` plus what dispatch and device make of it without
a call: linear in `call_s`. The price of a dispatch is told by steps with different numbers of ops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traincast.errors import InputError
from traincast.hardware.host import Host
from traincast.kernels.method import OpTimes
from traincast.kernels.timeline import step_timeline
from traincast.trace.graph import Floats, Graph

_SLOWEST_DISPATCH_S = 1e-3


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class TimedStep:
    """A step at one batch size: what it runs, how long its ops take on the device, and what a clock said."""

    graph: Graph
    times: OpTimes
    measured_s: float


def uniform_host(name: str, *, call_s: float, dispatch_s: float) -> Host:
    """A host for which all ops cost the same and views nothing, as with graphs that are known before they run."""
    return Host(
        name=name,
        forward_dispatch_s=dispatch_s,
        backward_dispatch_s=dispatch_s,
        optimizer_dispatch_s=dispatch_s,
        view_dispatch_s=0.0,
        call_s=call_s,
    )


def fit_call(steps: Sequence[TimedStep], *, dispatch_s: float, name: str = "fitted") -> Host:
    """The host with this price of a dispatch whose steps have the right mean."""
    call_s = float(np.mean(_left_over(steps, dispatch_s)))
    if call_s < 0:
        raise InputError("These steps are shorter than dispatch and device alone: no call fits them.")
    return uniform_host(name, call_s=call_s, dispatch_s=dispatch_s)


def fit_call_and_dispatch(steps: Sequence[TimedStep], *, name: str = "fitted") -> Host:
    """The host with the smallest squared error, from steps with different numbers of ops."""
    from scipy.optimize import minimize_scalar

    if len({step.graph.n_ops for step in steps}) < 2:
        raise InputError("Steps with the same number of ops cannot tell a call from dispatches: give two models.")
    found = minimize_scalar(
        lambda dispatch_s: float(np.var(_left_over(steps, dispatch_s))) * 1e6,
        bounds=(0.0, _SLOWEST_DISPATCH_S),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return fit_call(steps, dispatch_s=float(found.x), name=name)


def predicted_s(steps: Sequence[TimedStep], host: Host) -> Floats:
    """Seconds of the steps on a host."""
    return np.array([float(step_timeline(step.graph, step.times, host).step_s[0]) for step in steps])


def _left_over(steps: Sequence[TimedStep], dispatch_s: float) -> Floats:
    """What a call would have to take for each step."""
    host = uniform_host("without a call", call_s=0.0, dispatch_s=dispatch_s)
    measured_s = np.array([step.measured_s for step in steps])
    return measured_s - predicted_s(steps, host)


def fit_floors(n_ops: Floats, seconds: Floats) -> tuple[float, float]:
    """Call and dispatch, in seconds, behind steps so small that the device is done with each op before the next comes.

    Such a step takes a call and its dispatches. Medians of the slopes between all pairs, and of what they leave
    (Theil and Sen): one odd step in four changes nothing.
    """
    first, second = np.triu_indices(len(n_ops), k=1)
    apart = n_ops[first] != n_ops[second]
    if not apart.any():
        raise InputError("Steps with the same number of ops cannot tell a call from dispatches.")
    slopes = (seconds[second] - seconds[first])[apart] / (n_ops[second] - n_ops[first])[apart]
    dispatch_s = float(np.median(slopes))
    return float(np.median(seconds - dispatch_s * n_ops)), dispatch_s
