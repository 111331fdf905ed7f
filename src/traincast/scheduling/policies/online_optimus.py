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
from traincast.scheduling.decision import EVERY_TIME, Decision, Placement, State
from traincast.scheduling.observations import Monitor, NoisyMonitor, Observed, servers_profile
from traincast.scheduling.placing import nodes_of, only_kind

TRIALS = ((1, 1), (1, 2), (2, 1), (2, 4), (4, 4), (1, 4), (4, 2))
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

    name: str = "optimus-online"
    adapts_batch: bool = False
    monitor: Monitor = field(default_factory=NoisyMonitor)
    _models: dict[int, _Models] = field(default_factory=dict)

    def decide(self, state: State) -> Decision:
        kind = only_kind(state, self.name)
        n_places = sum(state.capacity)
        jobs = list(state.active)[: n_places // 2]
        remaining, speeds = {}, {}
        for job in jobs:
            models = self._learn(state, job)
            profile = servers_profile(state, job)
            fitted = fit_speed(models.points, mode=profile.speed.mode, batch_size=profile.speed.batch_size)
            speeds[job] = fitted.model
            remaining[job] = self._remaining(state, job, models)
        most = {job: state.n_most(job, kind) for job in jobs}
        counts = marginal_gains(remaining, speeds, most, n_places)
        placements = place_evenly(state, {job: sum(pair) for job, pair in counts.items()}, nodes_of(state, kind))
        return Decision(placements, {job: counts[job][0] for job in placements})

    def wakes_s(self, state: State) -> float:
        return EVERY_TIME

    def _learn(self, state: State, job: int) -> _Models:
        models = self._models.get(job)
        if models is None:
            trials = [self.monitor.trial(state, job, p, w) for p, w in TRIALS]
            models = self._models[job] = _Models()
            for seen in trials:
                models.add(seen)
        if job in state.placed:
            models.add(self.monitor.look(state, job))
        return models

    def _remaining(self, state: State, job: int, models: _Models) -> float:
        """Steps until the target loss, by the fitted curve; what the target's owner expects until there is one."""
        profile = servers_profile(state, job)
        done = models.losses[-1][0]
        if len({step for step, _ in models.losses}) < _FEWEST_LOSSES:
            return max(profile.expected_steps - done, 1.0)
        return max(steps_to_loss(models.losses, profile.target_loss, profile.expected_steps) - done, 1.0)


def steps_to_loss(losses: Sequence[tuple[float, float]], target: float, expected: float) -> float:
    """Where the fitted curve reaches the target; the expected number where it never does."""
    from traincast.convergence.curves.optimus_solver import least_squares

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


def place_evenly(state: State, counts: Mapping[int, int], nodes: Sequence[int]) -> dict[int, Placement]:
    """Who has as many places as before stays; then small jobs first, each on the fewest nodes, as evenly as can be."""
    placements: dict[int, Placement] = {}
    free = list(state.free)
    for job, placement in state.placed.items():
        if counts.get(job) == state.held[job]:
            placements[job] = placement
        else:
            for node, n in placement:
                free[node] += n
    for job in sorted((job for job in counts if job not in placements), key=counts.__getitem__):
        placements[job] = evenly_on_fewest(free, counts[job], nodes)
    return placements


def evenly_on_fewest(free: list[int], n_places: int, nodes: Sequence[int]) -> Placement:
    """The smallest number of nodes that can hold them, the emptiest; takes the places from `free`."""
    order = sorted(nodes, key=lambda node: -free[node])
    n_nodes, held = 0, 0
    while held < n_places:
        held += free[order[n_nodes]]
        n_nodes += 1
        if n_nodes == len(order) and held < n_places:
            raise InputError(f"{n_places} places are asked for and {held} are free.")
    taken = []
    missing = n_places
    for position, node in enumerate(reversed(order[:n_nodes])):  # the fullest first: what it lacks the others give
        n = min(free[node], missing // (n_nodes - position))
        free[node] -= n
        missing -= n
        taken.append((node, n))
    assert missing == 0
    return tuple((node, n) for node, n in taken if n)
