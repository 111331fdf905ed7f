"""Jobs of a cluster whose seconds we forecast, for every placement that a policy may choose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from traincast.errors import InputError

if TYPE_CHECKING:
    from traincast.hardware.cluster import Cluster
    from traincast.scheduling.jobs_file import Forecaster
    from traincast.scheduling.machines import Machines
    from traincast.scheduling.measured_steps import Shape
    from traincast.scheduling.profile import ForecastProfile


def forecaster(machines: Machines) -> Forecaster:
    """Profiles of trainings on these machines, each made once."""
    known: dict[tuple[str, int, int, int], ForecastProfile] = {}

    def forecast(model: str, batch_size: int, n_samples: int, n_epochs: int) -> ForecastProfile:
        from traincast.scheduling.profile import ForecastProfile

        key = (model, batch_size, n_samples, n_epochs)
        if key not in known:
            seconds = _Seconds(machines, *key)
            kinds, most = seconds.room()
            known[key] = ForecastProfile(name=model, max_devices=most, kinds=kinds, total_s=seconds.total_s)
        return known[key]

    return forecast


@dataclass(frozen=True, eq=False, slots=True)
class _Seconds:
    """Of one training on any placement.

    Where a batch does not fit, twice as many passes share it, down to one sample of each device a pass. Where they
    cannot share it evenly, each counts as the fullest.
    """

    machines: Machines
    model: str
    batch_size: int
    n_samples: int
    n_epochs: int
    _known: dict[tuple[str, Shape], float] = field(default_factory=dict)

    def room(self) -> tuple[tuple[str, ...], int]:
        """Types of device that it fits on, and how many it can use: all of them, or else as many as it fits on.

        What one device holds may be too much for each of two, which also hold what they tell each other.
        """
        there = {kind: min(self.machines.n_devices_of(kind), self.batch_size) for kind in self.machines.types}
        fitting = {kind: self._most(kind, n) for kind, n in there.items()}
        whole = {kind: n for kind, n in fitting.items() if n == there[kind]}
        most = max((whole or fitting).values())
        if not most:
            kinds = " or ".join(self.machines.types)
            raise InputError(f"'{self.model}' does not fit on {kinds}, even with one sample at a time.")
        return tuple(whole or (kind for kind, n in fitting.items() if n == most)), most

    def total_s(self, kind: str, shape: Shape) -> float:
        """The order of its nodes does not matter."""
        ordered = tuple(sorted(shape, reverse=True))
        if (kind, ordered) not in self._known:
            self._work_out(kind, [ordered])
        return self._known[kind, ordered]

    def _most(self, kind: str, n_devices: int) -> int:
        """So many of them it fits on. All that policies ask about is worked out in one sweep."""
        shapes = [self.machines.fewest_nodes(kind, n) for n in range(1, n_devices + 1)]
        self._work_out(kind, shapes)
        return next((n for n, shape in enumerate(shapes) if not math.isfinite(self._known[kind, shape])), n_devices)

    def _work_out(self, kind: str, shapes: Sequence[Shape]) -> None:
        """Endless where a batch does not fit, however many passes share it."""
        from traincast.api.forecasts import forecast_many
        from traincast.api.models import load_model

        cluster, trace = _cluster(self.machines, kind), load_model(self.model)
        n_steps = -(-self.n_samples // self.batch_size) * self.n_epochs
        left, n_passes = list(shapes), 1
        while left:
            for (n_own, batch_size), asked in self._alike(left, n_passes).items():
                places = [replace(cluster, placement=shape, name=f"{shape} of {cluster.name}") for shape in asked]
                answers = forecast_many(trace, places, [batch_size], accumulation_steps=n_own).forecasts()
                for shape, answer in zip(asked, answers, strict=True):
                    if answer.fits or answer.question.micro_batch_size == 1:
                        self._known[kind, shape] = answer.step_s * n_steps if answer.fits else math.inf
                        left.remove(shape)
            n_passes *= 2

    def _alike(self, shapes: Sequence[Shape], n_passes: int) -> dict[tuple[int, int], list[Shape]]:
        """Placements by their number of passes and the batch that these share evenly."""
        found: dict[tuple[int, int], list[Shape]] = {}
        for shape in shapes:
            n_own = min(n_passes, -(-self.batch_size // sum(shape)))
            share = max(-(-self.batch_size // n_own), sum(shape))
            found.setdefault((n_own, n_own * share), []).append(shape)
        return found


def _cluster(machines: Machines, kind: str) -> Cluster:
    """All nodes of a type, as large as the largest: a placement says how many devices of each are used."""
    from traincast.hardware.cluster_text import find_cluster

    sizes, link = machines.node_sizes(kind), machines.link_of(kind)
    joined = f"@{link}" if link and len(sizes) > 1 else ""
    return find_cluster(f"{len(sizes)}x{sizes[0]}x{kind}{joined}")
