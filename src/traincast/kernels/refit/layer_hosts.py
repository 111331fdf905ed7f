"""The hosts behind layers timed alone: a call and the price of a dispatch, fitted on rows that are not scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traincast.kernels.refit.layer_calls import LayerCalls
from traincast.kernels.timeline import finish_times
from traincast.trace.graph import Floats

_SMALLEST = 0.2  # of the rows of each pass, by our time on the device: there the host is most of the time
_DISPATCHES_S = np.arange(0.0, 60e-6, 0.5e-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerHost:
    """What `session.run` costs on one machine, whatever it runs, and what each op adds before it can start."""

    machine: str
    n_rows: int
    call_s: float
    dispatch_s: float


def call_seconds(op_s: Floats, n_ops: Floats, call_s: Floats, dispatch_s: Floats) -> Floats:
    """The two timelines of host and device for many calls at once: one row a call, one entry an op.

    Calls have different numbers of ops. Those that a call does not have take no time on either timeline.
    """
    place = np.minimum(np.arange(1, op_s.shape[1] + 1), n_ops[:, None])
    finished_s: Floats = finish_times(call_s[:, None] + dispatch_s[:, None] * place, op_s)[:, -1]
    return finished_s


def fit_host(machine: str, op_s: Floats, n_ops: Floats, is_forward: NDArray[np.bool_], observed_s: Floats) -> LayerHost:
    """The host with the least mean absolute log error of the smallest calls.

    Every price of a dispatch asks for a call: the median of what is left of the times. Forward calls run a few ops
    and calls with backward many, which tells one from the other.
    """
    small = _smallest(op_s.sum(axis=1), is_forward)
    op_s, n_ops, observed_s = op_s[small], n_ops[small], observed_s[small]
    nothing = np.zeros(len(observed_s))
    best = (np.inf, 0.0, 0.0)
    for dispatch_s in _DISPATCHES_S.tolist():
        without_s = call_seconds(op_s, n_ops, nothing, nothing + dispatch_s)
        call_s = max(float(np.median(observed_s - without_s)), 0.0)
        error = float(np.mean(np.abs(np.log((without_s + call_s) / observed_s))))
        best = min(best, (error, call_s, dispatch_s))
    return LayerHost(machine=machine, n_rows=len(observed_s), call_s=best[1], dispatch_s=best[2])


def _smallest(device_s: Floats, is_forward: NDArray[np.bool_]) -> NDArray[np.bool_]:
    chosen = np.zeros(len(device_s), dtype=bool)
    for own in (is_forward, ~is_forward):
        if own.any():
            chosen |= own & (device_s <= np.quantile(device_s[own], _SMALLEST))
    return chosen


def hosts_of(calls: LayerCalls, kernel_s: Floats) -> list[LayerHost]:
    """One host a machine, from its rows of one batch size."""
    block, found = calls.block, []
    op_s, is_forward = calls.op_seconds(kernel_s), block.tags["part"] == "forward"
    for machine in dict.fromkeys(block.tags["machine"].tolist()):
        rows = (block.tags["machine"] == machine) & block.tags["is_host"]
        found.append(fit_host(machine, op_s[rows], calls.n_ops[rows], is_forward[rows], block.observed_s[rows]))
    return found


def on_hosts(calls: LayerCalls, hosts: Sequence[LayerHost]) -> tuple[Floats, Floats]:
    """Of every row the call and the dispatch of its machine."""
    known = {host.machine: host for host in hosts}
    machines = calls.block.tags["machine"].tolist()
    call_s = np.array([known[machine].call_s for machine in machines])
    return call_s, np.array([known[machine].dispatch_s for machine in machines])
