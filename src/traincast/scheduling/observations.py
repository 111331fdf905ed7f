"""What a scheduler sees of a running training: its speed and its loss, with noise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from traincast.errors import InputError
from traincast.scheduling.decision import State
from traincast.scheduling.profile import ServersProfile


@dataclass(frozen=True, slots=True)
class Observed:
    """Of one interval."""

    n_servers: int
    n_workers: int
    steps_per_s: float
    n_steps: float  # done so far
    loss: float


class Monitor(Protocol):
    """Where observations come from: simulated here, logs of real jobs elsewhere."""

    def fresh(self, seed: int) -> Monitor:
        """The same with nothing remembered."""

    def trial(self, state: State, job: int, n_servers: int, n_workers: int) -> Observed:
        """A short trial run before the job starts."""

    def look(self, state: State, job: int) -> Observed:
        """A job that runs now."""


@dataclass(eq=False, slots=True)
class NoisyMonitor:
    """The truth times log-normal noise; the same for the same seed and questions. A trial takes no time."""

    sigma: float = 0.05
    seed: int = 0
    _n_looks: int = 0

    def fresh(self, seed: int) -> NoisyMonitor:
        return NoisyMonitor(self.sigma, seed)

    def trial(self, state: State, job: int, n_servers: int, n_workers: int) -> Observed:
        profile = servers_profile(state, job)
        speed = float(profile.speed.steps_per_s(n_servers, n_workers)) / state.jobs[job].length
        n_steps = state.position(job) * profile.n_steps
        loss = profile.loss_at(n_steps)
        return Observed(n_servers, n_workers, speed * self._noise(job), n_steps, loss * self._noise(job))

    def look(self, state: State, job: int) -> Observed:
        n_servers = state.servers[job]
        return self.trial(state, job, n_servers, state.held[job] - n_servers)

    def _noise(self, job: int) -> float:
        self._n_looks += 1
        return float(np.exp(np.random.default_rng((self.seed, 3, job, self._n_looks)).normal(0.0, self.sigma)))


def servers_profile(state: State, job: int) -> ServersProfile:
    """Its profile, if it trains with parameter servers."""
    profile = state.jobs[job].profile
    if not isinstance(profile, ServersProfile):
        raise InputError(
            f"'optimus-online' schedules trainings with parameter servers, but job '{state.jobs[job].name}' has "
            "none: use 'optimus'."
        )
    return profile
