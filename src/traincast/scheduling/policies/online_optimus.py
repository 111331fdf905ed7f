"""Optimus as it was built: workers and parameter servers, from models that are fitted while jobs run.

Remaining steps Q: the loss is fitted by l(k) = 1/(b0 k + b1) + b2 and followed to the target loss. Speed f(p, w):
Equation 4 of the paper (`scaling/optimus.py`), fitted to a few trial runs before the job starts and to what it shows
afterwards. Every job starts with one worker and one server; then, again and again, the largest of

    Q/f(p, w) - Q/f(p, w+1)   and   Q/f(p, w) - Q/f(p+1, w)

gets one more place. Jobs with few places come first and are put on the fewest nodes, evenly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from traincast.errors import InputError
from traincast.scaling.optimus import SpeedModel, SpeedPoint, fit_speed
from traincast.scheduling.decision import EVERY_TIME, Decision, State
from traincast.scheduling.observations import Monitor, NoisyMonitor, Observed, servers_profile
from traincast.scheduling.placing import only_kind, place_evenly

NAME = "optimus-online"
TRIALS = ((1, 1), (1, 2), (2, 1), (2, 4), (4, 4), (1, 4), (4, 2))  # servers and workers
MOST_FITS = 25_000  # of the two models of a job: half a minute
_FEWEST_PLACES = 4  # with fewer there are not as many ways to try as the speed has coefficients
_FEWEST_LOSSES = 6
_MOST_LOSSES = 200  # that a fit needs: of more, every so many-th


@dataclass(slots=True)
class _Models:
    """What is known of one job."""

    seconds: dict[tuple[int, int], tuple[float, int]] = field(default_factory=dict)  # of a step, summed, and how many
    losses: list[tuple[float, float]] = field(default_factory=list)

    def add(self, seen: Observed) -> None:
        pair = (seen.n_servers, seen.n_workers)
        before, n = self.seconds.get(pair, (0.0, 0))
        self.seconds[pair] = (before + 1 / seen.steps_per_s, n + 1)
        self.losses.append((seen.n_steps, seen.loss))

    @property
    def points(self) -> list[SpeedPoint]:
        """One for each setting that was seen: the mean of its steps."""
        return [
            SpeedPoint(n_servers=p, n_workers=w, steps_per_s=n / total) for (p, w), (total, n) in self.seconds.items()
        ]


@dataclass(eq=False, slots=True)
class OnlineOptimus:
    """Marginal gain over workers and servers, with models refitted at each decision."""

    name: str = NAME
    adapts_batch: bool = False
    is_random: bool = True
    most_fits: int = MOST_FITS
    monitor: Monitor = field(default_factory=NoisyMonitor)
    _models: dict[int, _Models] = field(default_factory=dict)
    _n_fits: int = 0

    def fresh(self, seed: int) -> OnlineOptimus:
        return OnlineOptimus(most_fits=self.most_fits, monitor=self.monitor.fresh(seed))

    def decide(self, state: State) -> Decision:
        kind = only_kind(state, self.name)
        n_places = sum(state.capacity)
        jobs = list(state.active)[: n_places // 2]
        self._count(len(jobs), state.now_s)
        remaining, speeds = {}, {}
        for job in jobs:
            models = self._learn(state, job)
            profile = servers_profile(state, job)
            fitted = fit_speed(models.points, mode=profile.speed.mode, batch_size=profile.speed.batch_size)
            speeds[job] = fitted.model
            remaining[job] = self._remaining(state, job, models)
        most = {job: state.n_most(job, kind) for job in jobs}
        counts = marginal_gains(remaining, speeds, most, n_places)
        placements = place_evenly(state, {job: (kind, sum(pair)) for job, pair in counts.items()})
        return Decision(placements, {job: counts[job][0] for job in placements})

    def wakes_s(self, state: State) -> float:
        return EVERY_TIME

    def _count(self, n_fits: int, now_s: float) -> None:
        self._n_fits += n_fits
        if self._n_fits > self.most_fits:
            raise InputError(
                f"After {now_s:,.0f} s '{self.name}' had fitted models of jobs more than {self.most_fits:,} times: a "
                "longer interval or shorter jobs would need fewer."
            )

    def _learn(self, state: State, job: int) -> _Models:
        models = self._models.get(job)
        if models is None:
            models = self._models[job] = _Models()
            for n_servers, n_workers in trials_on(state.machines.n_devices):
                models.add(self.monitor.trial(state, job, n_servers, n_workers))
        if job in state.placed:
            seen = self.monitor.look(state, job)
            if seen.n_steps > models.losses[-1][0]:  # else it is still restarting, and shows no speed
                models.add(seen)
        return models

    def _remaining(self, state: State, job: int, models: _Models) -> float:
        """Steps until the target loss, by the fitted curve; what the target's owner expects until there is one."""
        profile = servers_profile(state, job)
        done = models.losses[-1][0]
        if len({step for step, _ in models.losses[-_FEWEST_LOSSES:]}) < _FEWEST_LOSSES:  # they never fall
            return max(profile.expected_steps - done, 1.0)
        return max(steps_to_loss(models.losses, profile.target_loss, profile.expected_steps) - done, 1.0)


def trials_on(n_places: int) -> list[tuple[int, int]]:
    """Servers and workers of the trial runs: those of the paper's kind that fit, then others that do."""
    if n_places < _FEWEST_PLACES:
        raise InputError(f"'{NAME}' tries jobs on at least {_FEWEST_PLACES} places, and there are {n_places}.")
    fitting = [pair for pair in TRIALS if sum(pair) <= n_places]
    small = range(1, min(n_places, max(map(sum, TRIALS))))
    others = [(p, w) for p in small for w in small if p + w <= n_places and (p, w) not in TRIALS]
    return (fitting + others)[: len(TRIALS)]


def steps_to_loss(losses: Sequence[tuple[float, float]], target: float, expected: float) -> float:
    """Where the fitted curve reaches the target; the expected number where it never does."""
    from traincast.curves.optimus_solver import least_squares

    every = -(-len(losses) // _MOST_LOSSES)
    steps, values = np.array(losses[::every]).T
    fit = least_squares(steps, values)
    if fit.b0 <= 0 or target <= fit.b2:
        return expected
    return float(np.clip((1 / (target - fit.b2) - fit.b1) / fit.b0, 0.0, 10 * expected))


def marginal_gains(
    remaining: Mapping[int, float], speeds: Mapping[int, SpeedModel], most: Mapping[int, int], n_places: int
) -> dict[int, tuple[int, int]]:
    """Servers and workers of each job."""
    counts = dict.fromkeys(remaining, (1, 1))
    n_left = n_places - 2 * len(counts)
    best = {job: _best_step(remaining[job], speeds[job], counts[job], most[job]) for job in counts}
    while n_left > 0 and best:
        job = max(best, key=lambda one: best[one][0])
        gain, grown = best[job]
        if gain <= 0:
            break
        counts[job] = grown
        n_left -= 1
        best[job] = _best_step(remaining[job], speeds[job], grown, most[job])
    return counts


def _best_step(n_steps: float, speed: SpeedModel, now: tuple[int, int], most: int) -> tuple[float, tuple[int, int]]:
    """What one more worker or server gains, the better of the two."""
    p, w = now
    if p + w >= most:
        return 0.0, now
    before, worker, server = n_steps / speed.steps_per_s([p, p, p + 1], [w, w + 1, w])
    return max((float(before - worker), (p, w + 1)), (float(before - server), (p + 1, w)))
