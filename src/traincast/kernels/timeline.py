"""A step is two timelines: the host dispatches ops, the device runs each once it has arrived and its turn has come.

With H_i the time at which the host has dispatched op i, s_i its seconds on the device and D_i = s_0 + ... + s_i, op i
ends at F_i = max(H_i, F_(i-1)) + s_i. Unrolled, F_i = D_i + max over j <= i of (H_j - D_(j-1)): the device starts anew
at the op j for which it last had to wait. That needs a cumulative sum and a running maximum and no loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.hardware.host import Host
from traincast.kernels.method import OpTimes
from traincast.trace.graph import Floats, Graph, Ints, Phase
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.structure import once_per_structure

_HOST_ONLY = (OpKind.VIEW, OpKind.ALLOCATION)
_FORWARD, _BACKWARD, _OPTIMIZER, _VIEW = range(4)  # what a dispatch costs, in the order of `dispatch_s`


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class StepTimeline:
    """Seconds of a step at several batch sizes: every array has one entry a batch size.

    `forward_s` to `optimizer_s` add up to the step. `host_s` and `device_s` are what each timeline works;
    `compute_s` and `memory_s` divide the device's, and `update_` is the part of the update. `op_log_sd` is what the
    errors of its ops make of the step's.
    `finished_s` has one column an op: when it ends, counted from the start of its pass.
    """

    forward_s: Floats
    loss_s: Floats
    backward_s: Floats
    optimizer_s: Floats
    host_s: Floats
    device_s: Floats
    compute_s: Floats
    update_device_s: Floats
    update_compute_s: Floats
    op_log_sd: Floats
    finished_s: Floats

    @property
    def step_s(self) -> Floats:
        return self.forward_s + self.loss_s + self.backward_s + self.optimizer_s

    @property
    def memory_s(self) -> Floats:
        return self.device_s - self.compute_s

    @property
    def waiting_fraction(self) -> Floats:
        """Share of the step in which the device has nothing to do."""
        step_s = self.step_s
        idle_s = np.maximum(step_s - self.device_s, 0.0)
        return np.divide(idle_s, step_s, out=np.zeros_like(step_s), where=step_s > 0)


def finish_times(dispatched_s: Floats, seconds: Floats) -> Floats:
    """When each op has ended, with `dispatched_s` the time of its dispatch. Both along the last axis."""
    worked_s = np.zeros((*seconds.shape[:-1], seconds.shape[-1] + 1))
    np.cumsum(seconds, axis=-1, out=worked_s[..., 1:])
    started_s = np.maximum.accumulate(dispatched_s - worked_s[..., :-1], axis=-1)
    return worked_s[..., 1:] + started_s


def step_timeline(
    graph: Graph, times: OpTimes, host: Host, *, n_micro_steps: int = 1, is_synchronous: bool = False
) -> StepTimeline:
    """The step that these op times make on that host.

    `n_micro_steps` forward and backward passes come before one update, each as long as the first. On a CPU, host and
    device are one (`is_synchronous`): an op is dispatched when the one before has ended.
    """
    ops = _ops(graph)
    is_update = graph.op_phase == Phase.OPTIMIZER
    repeats = np.where(is_update, 1.0, float(n_micro_steps))
    if times.dispatch_s is None:
        dispatch_s, call_s = _dispatch_s(host)[ops.dispatch], host.call_s
        uncertain_s = times.seconds
    else:
        dispatch_s, call_s = times.dispatch_s, 0.0  # what a step costs beside its ops is in its first ones
        uncertain_s = times.seconds + dispatch_s  # prices of one fit: off together
    dispatched_s = call_s + np.cumsum(dispatch_s)
    if is_synchronous:
        finished_s = dispatched_s + np.cumsum(times.seconds, axis=1)
    else:
        finished_s = finish_times(dispatched_s, times.seconds)
    phase_s = _phase_seconds(finished_s, ops)
    phase_s[:, : Phase.OPTIMIZER] *= n_micro_steps
    step_s = phase_s.sum(axis=1)
    spread_s = _sums_by_group(uncertain_s * (times.log_sd * repeats), times.error_group)
    return StepTimeline(
        forward_s=phase_s[:, Phase.FORWARD],
        loss_s=phase_s[:, Phase.LOSS],
        backward_s=phase_s[:, Phase.BACKWARD],
        optimizer_s=phase_s[:, Phase.OPTIMIZER],
        host_s=np.full(len(step_s), n_micro_steps * call_s + dispatch_s @ repeats),
        device_s=times.seconds @ repeats,
        compute_s=times.compute_s @ repeats,
        update_device_s=times.seconds @ is_update,
        update_compute_s=times.compute_s @ is_update,
        op_log_sd=_share(np.sqrt((spread_s * spread_s).sum(axis=1)), step_s),
        finished_s=finished_s,
    )


def forward_dispatch_s(graph: Graph, host: Host) -> float:
    """What the host spends on dispatching one forward pass."""
    seconds = _dispatch_s(host)[_ops(graph).dispatch]
    return float(seconds[(graph.op_phase == Phase.FORWARD) | (graph.op_phase == Phase.LOSS)].sum())


@dataclass(frozen=True, eq=False, slots=True)
class _Ops:
    """What does not depend on times: found once a graph."""

    dispatch: Ints  # which of the host's prices an op has
    block_end: Ints  # last op of every run of ops of one phase
    is_block_of: Floats  # one row a run, one column a phase


@once_per_structure
def _ops(graph: Graph) -> _Ops:
    kinds = op_kinds(graph)
    dispatch = np.array([_FORWARD, _FORWARD, _BACKWARD, _OPTIMIZER])[graph.op_phase]
    dispatch[graph.op_recomputed == 1] = _FORWARD  # checkpointed modules run from Python again
    dispatch[np.array([kind in _HOST_ONLY for kind in kinds], dtype=bool)] = _VIEW
    block_end = np.flatnonzero(np.diff(graph.op_phase, append=-1))
    return _Ops(dispatch, block_end, np.eye(len(Phase))[graph.op_phase[block_end]])


def _dispatch_s(host: Host) -> Floats:
    return np.array(
        [host.forward_dispatch_s, host.backward_dispatch_s, host.optimizer_dispatch_s, host.view_dispatch_s]
    )


def _phase_seconds(finished_s: Floats, ops: _Ops) -> Floats:
    """One row a batch size, one column a phase: from the end of the run of ops before to the end of its own.

    Phases follow each other in every step that we have seen; where one comes back, its runs are added.
    """
    seconds: Floats = finished_s[:, ops.block_end]
    seconds[:, 1:] -= seconds[:, :-1].copy()
    return seconds @ ops.is_block_of


def _sums_by_group(values: Floats, group: Ints) -> Floats:
    """One row as before, one column a group."""
    n_groups = int(group.max(initial=0)) + 1
    cell = group + n_groups * np.arange(len(values))[:, None]
    sums: Floats = np.bincount(cell.ravel(), weights=values.ravel(), minlength=len(values) * n_groups).astype(float)
    return sums.reshape(-1, n_groups)


def _share(part: Floats, whole: Floats) -> Floats:
    return np.divide(part, whole, out=np.zeros_like(whole), where=whole > 0)
