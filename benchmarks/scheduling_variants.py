"""Variants that explain differences: the published simulator's own rules, and policies with one idea taken out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.scheduling.applications import Application
from traincast.scheduling.decision import EVERY_TIME, NEVER, Decision, Policy, State
from traincast.scheduling.job import Job
from traincast.scheduling.live import Live
from traincast.scheduling.measured_steps import MeasuredSteps, Shape
from traincast.scheduling.placing import only_kind, place, place_tightly
from traincast.scheduling.policies.elastic import Elastic
from traincast.scheduling.policies.optimus import Optimus, marginal_gain, start_with_least
from traincast.scheduling.profile import Profile, TrainingProfile

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Triangulated:
    """A table whose gaps are filled by a Delaunay triangulation of (nodes, devices, local batch), as Pollux' are."""

    table: MeasuredSteps
    _interpolators: list[Any] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.table, name)

    def step_and_sync_s(self, shape: Shape, local_batch: Floats) -> tuple[Floats, Floats]:
        from scipy.interpolate import LinearNDInterpolator

        from traincast.scheduling.measured_steps import smallest_rotation

        if smallest_rotation(shape) in self.table.by_shape:
            return self.table.step_and_sync_s(shape, local_batch)
        if not self._interpolators:
            points, values = [], []
            for n_nodes, lines in self.table.by_count.items():
                for n_devices, line in lines.items():
                    points += [(n_nodes, n_devices, batch) for batch in line.batches]
                    values += line.times_s.T.tolist()
            self._interpolators.append(LinearNDInterpolator(np.array(points, float), np.array(values)))
        asked = np.array([(min(len(shape), 16), sum(shape), batch) for batch in local_batch], float)
        found = self._interpolators[0](asked).T
        return np.where(np.isnan(found), np.array(self.table.step_and_sync_s(shape, local_batch)), found)


@dataclass(frozen=True)
class WholeSeconds:
    """Epochs that end at whole seconds, as in the published simulator."""

    profile: TrainingProfile

    def __getattr__(self, name: str) -> Any:
        return getattr(self.profile, name)

    def segment_s(self, shape: Shape, kind: str, n_servers: int) -> Floats:
        return np.maximum(np.round(self.profile.segment_s(shape, kind, n_servers)), 0.5)


def published_rules(jobs: Sequence[Job]) -> list[Job]:
    """The same jobs with epochs of whole seconds and gaps filled by triangulation."""
    known: dict[int, Profile] = {}
    applications: dict[str, Application] = {}
    changed = []
    for job in jobs:
        profile = job.profile
        assert isinstance(profile, TrainingProfile)
        own = profile.application
        if own.name not in applications:
            tables = {kind: Triangulated(table) for kind, table in own.steps.items()}
            applications[own.name] = replace(own, steps=tables)  # type: ignore[arg-type]
        rounded = WholeSeconds(TrainingProfile(applications[own.name], profile.batch))
        known.setdefault(id(profile), rounded)  # type: ignore[arg-type]
        changed.append(replace(job, profile=known[id(profile)]))
    return changed


@dataclass(frozen=True)
class NextEpochOptimus:
    """Optimus that counts what remains from the next epoch on, as in the published simulator."""

    name: str = "optimus, from the next epoch"
    adapts_batch: bool = False
    is_random: bool = False

    def fresh(self, seed: int) -> NextEpochOptimus:
        return self

    def decide(self, state: State) -> Decision:
        kind = only_kind(state, self.name)
        n_devices = sum(state.capacity)
        counts = start_with_least(state, n_devices)
        remaining = {job: self._remaining(state, job, kind) for job in counts if state.n_most(job, kind) > 1}
        counts |= marginal_gain(remaining, n_devices - len(counts), dict.fromkeys(remaining, 1))
        return Decision(place(state, {job: (kind, counts[job]) for job in sorted(counts, key=counts.__getitem__)}))

    def wakes_s(self, state: State) -> float:
        return EVERY_TIME

    def _remaining(self, state: State, job: int, kind: str) -> Floats:
        assert isinstance(state, Live)
        table = state.speeds.table_s(state.jobs[job].profile, kind)
        following = int(state.position(job) + 1e-9) + 1
        left = table[:, -1] - table[:, following] if following < table.shape[1] - 1 else table[:, -1] * 1e-9
        return np.concatenate([[np.inf], left[1:]])


@dataclass(frozen=True)
class EventOptimus(Optimus):
    """Optimus that looks again only when a job comes or goes."""

    def wakes_s(self, state: State) -> float:
        return NEVER


@dataclass(frozen=True, kw_only=True)
class Variant(Elastic):
    """Ours with one idea taken out."""

    is_one_at_a_time: bool = False
    starts_all: bool = False
    wakes: float = NEVER

    def decide(self, state: State) -> Decision:
        if not (self.is_one_at_a_time or self.starts_all):
            return Elastic.decide(self, state)
        kind = only_kind(state, self.name)
        worth = {job: self.worth(state, job, kind) for job in state.active}
        counts = one_at_a_time(worth, sum(state.capacity), starts_all=self.starts_all)
        return Decision(place_tightly(state, {job: (kind, n) for job, n in counts.items() if n}))

    def wakes_s(self, state: State) -> float:
        return self.wakes


def one_at_a_time(worth: Mapping[int, Floats], n_devices: int, *, starts_all: bool) -> dict[int, int]:
    """The largest gain of one more device, again and again."""
    counts = dict.fromkeys(worth, 0)
    if starts_all:
        counts |= dict.fromkeys(list(worth)[:n_devices], 1)
    for _ in range(n_devices - sum(counts.values())):
        gains = {j: v[counts[j] + 1] - v[counts[j]] for j, v in worth.items() if counts[j] + 1 < len(v)}
        job = max(gains, key=gains.__getitem__, default=None)
        if job is None or gains[job] <= 0:
            break
        counts[job] += 1
    return counts


ABLATIONS: dict[str, Callable[[], Policy]] = {
    "Optimus": Optimus,
    "Optimus, asked only when a job comes or goes": EventOptimus,
    "ours": Elastic,
    "ours, one device at a time": lambda: Variant(is_one_at_a_time=True),
    "ours, one at a time and everyone starts with one": lambda: Variant(is_one_at_a_time=True, starts_all=True),
    "ours, all jobs count alike (shortness 0)": lambda: Elastic(shortness=0.0),
    "ours, only short jobs count (shortness 1)": lambda: Elastic(shortness=1.0),
    "ours, restarts not counted": lambda: Elastic(reluctance=0.0),
    "ours, asked every interval": lambda: Variant(wakes=EVERY_TIME),
}
