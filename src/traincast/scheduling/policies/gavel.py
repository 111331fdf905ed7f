"""Gavel (Narayanan et al., OSDI 2020): max-min fairness over several types of device, as shares of time.

X[m, k] is the fraction of time that job m spends on devices of type k, and T[m, k] its speed there. The policy solves

    maximise  min over m of  n[m] sum_k X[m, k] T[m, k] / T_equal[m]
    with      0 <= X,  sum_k X[m, k] <= 1,  sum_m n[m] X[m, k] <= devices of type k,

n[m] being the devices it asks for (who asks for more has less time) and T_equal its speed with time spread over types
as devices are. It is solved anew when a job comes or goes. Rounds bring X about: in each, jobs and types are taken by
what is owed to them, as long as devices last, and keep their devices until the round ends or they do. Owed is X[m, k]
times the time that went by, less the time had there. The paper takes the ratio of the two where this takes the
difference: a ratio puts newcomers, who have had nothing, first without end where they come in a steady stream.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traincast.scheduling.decision import Decision, State
from traincast.scheduling.placing import Grant, devices_of_types, place

Floats = NDArray[np.float64]
ROUND_S = 360.0  # six minutes, as in the paper


@dataclass(eq=False, slots=True)
class Gavel:
    """Max-min fairness of normalised speed."""

    name: str = "gavel"
    adapts_batch: bool = False
    is_random: bool = False
    round_s: float = ROUND_S
    _shares: dict[tuple[int, str], float] = field(default_factory=dict)
    _known: frozenset[int] = frozenset()
    _owed_s: dict[tuple[int, str], float] = field(default_factory=dict)
    _running: dict[int, str] = field(default_factory=dict)
    _since_s: float = 0.0
    _next_s: float = 0.0

    def fresh(self, seed: int) -> Gavel:
        return Gavel(round_s=self.round_s)

    def decide(self, state: State) -> Decision:
        self._count_time(state)
        if frozenset(state.active) != self._known:
            self._solve(state)
        if state.now_s >= self._next_s:
            self._next_s = state.now_s + self.round_s
            kept: dict[int, Grant] = {}
        else:  # who runs keeps its devices until the round ends; what came free is given out anew
            kept = {
                job: (kind, state.jobs[job].n_devices)
                for job, kind in self._running.items()
                if job in state.active and job in state.placed
            }
        grants = self._give_out(state, kept)
        self._running = {job: kind for job, (kind, _) in grants.items()}
        return Decision(place(state, grants))

    def wakes_s(self, state: State) -> float:
        return self._next_s

    def _count_time(self, state: State) -> None:
        gone_s = state.now_s - self._since_s
        for pair, share in self._shares.items():
            had = self._running.get(pair[0]) == pair[1]
            self._owed_s[pair] = self._owed_s.get(pair, 0.0) + (share - had) * gone_s
        self._since_s = state.now_s

    def _solve(self, state: State) -> None:
        jobs, kinds = list(state.active), state.machines.types
        speeds = np.array([[_speed(state, job, kind) for kind in kinds] for job in jobs])
        wanted = np.array([state.jobs[job].n_devices for job in jobs], dtype=float)
        there = np.array([state.machines.n_devices_of(kind) for kind in kinds], dtype=float)
        shares = max_min_shares(speeds, wanted, there)
        self._shares = {(job, kind): shares[m, k] for m, job in enumerate(jobs) for k, kind in enumerate(kinds)}
        self._known = frozenset(jobs)
        self._owed_s = {pair: owed for pair, owed in self._owed_s.items() if pair in self._shares}

    def _give_out(self, state: State, kept: Mapping[int, Grant]) -> dict[int, Grant]:
        """Largest priority first; a job is on one type at a time."""
        left = devices_of_types(state)
        grants = dict(kept)
        for kind, n in kept.values():
            left[kind] -= n
        order = sorted(self._shares, key=lambda pair: (-self._owed_s.get(pair, 0.0), -self._shares[pair]))
        due = [pair for pair in order if self._shares[pair] > 1e-6]
        for job, kind in (*due, *order):  # in the end, what is left over goes to who can use it
            n = state.jobs[job].n_devices
            if job not in grants and n <= left[kind] and _speed(state, job, kind) > 0:
                grants[job] = (kind, n)
                left[kind] -= n
        return grants


def _speed(state: State, job: int, kind: str) -> float:
    """Of the whole job in its requested size, by the forecast; 0 where it does not run or fit."""
    n = state.jobs[job].n_devices
    if kind not in state.kinds(job) or n > state.machines.n_devices_of(kind):
        return 0.0
    seconds = state.whole_s(job, kind)
    return 1 / float(seconds[min(n, len(seconds) - 1)])


def max_min_shares(speeds: Floats, wanted: Sequence[float] | Floats, there: Sequence[float] | Floats) -> Floats:
    """X of the linear programme: jobs x types."""
    from scipy.optimize import linprog

    n_jobs, n_kinds = speeds.shape
    devices, sizes = np.asarray(there, dtype=float), np.asarray(wanted, dtype=float)
    equal = speeds @ (devices / devices.sum())
    objective = np.zeros(n_jobs * n_kinds + 1)
    objective[-1] = -1.0
    worst = np.zeros((n_jobs, n_jobs * n_kinds + 1))
    whole = np.zeros((n_jobs, n_jobs * n_kinds + 1))
    used = np.zeros((n_kinds, n_jobs * n_kinds + 1))
    for m in range(n_jobs):
        own = slice(m * n_kinds, (m + 1) * n_kinds)
        worst[m, own] = -sizes[m] * speeds[m] / equal[m]
        worst[m, -1] = 1.0
        whole[m, own] = 1.0
        used[:, own] = np.diag(np.full(n_kinds, sizes[m]))
    bounds = [(0.0, 1.0 if speed > 0 else 0.0) for speed in speeds.ravel()] + [(0.0, None)]
    solved = linprog(
        objective,
        A_ub=np.vstack([worst, whole, used]),
        b_ub=np.concatenate([np.zeros(n_jobs), np.ones(n_jobs), devices]),
        bounds=bounds,
        method="highs",
    )
    assert solved.x is not None, "giving nobody anything is always possible"
    return np.asarray(solved.x[:-1].reshape(n_jobs, n_kinds))
