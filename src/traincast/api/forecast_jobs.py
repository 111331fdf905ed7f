"""Jobs of a cluster whose seconds we forecast, for every placement that a policy may choose."""

from __future__ import annotations

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
            most = max(machines.n_devices_of(kind) for kind in machines.types)
            known[key] = ForecastProfile(
                name=model,
                max_devices=min(most, batch_size),
                kinds=machines.types,
                total_s=_Seconds(machines, *key).total_s,
            )
        return known[key]

    return forecast


@dataclass(frozen=True, eq=False, slots=True)
class _Seconds:
    """Of one training on any placement. Where a batch does not fit, it is shared by twice as many passes."""

    machines: Machines
    model: str
    batch_size: int
    n_samples: int
    n_epochs: int
    _known: dict[tuple[str, Shape], float] = field(default_factory=dict)

    def total_s(self, kind: str, shape: Shape) -> float:
        """The order of its nodes does not matter."""
        ordered = tuple(sorted(shape, reverse=True))
        if (kind, ordered) not in self._known:
            if not any(own == kind for own, _ in self._known):  # at first all that policies ask about, in one sweep
                most = min(self.machines.n_devices_of(kind), self.batch_size)
                self._work_out(kind, [self.machines.fewest_nodes(kind, n) for n in range(1, most + 1)])
            if (kind, ordered) not in self._known:
                self._work_out(kind, [ordered])
        return self._known[kind, ordered]

    def _work_out(self, kind: str, shapes: Sequence[Shape]) -> None:
        from traincast.api.forecasts import forecast_many
        from traincast.api.models import load_model

        cluster, trace = _cluster(self.machines, kind), load_model(self.model)
        left, n_passes = list(shapes), 1
        while left:
            asked = [shape for shape in left if sum(shape) * n_passes <= self.batch_size]
            if not asked:
                raise InputError(f"'{self.model}' does not fit on {kind}, whatever the passes that share its batch.")
            options = {"n_samples": self.n_samples, "n_epochs": self.n_epochs, "accumulation_steps": n_passes}
            places = [replace(cluster, placement=shape, name=f"{shape} of {cluster.name}") for shape in asked]
            answers = forecast_many(trace, places, [self.batch_size], **options).forecasts()
            for shape, answer in zip(asked, answers, strict=True):
                if answer.fits:
                    assert answer.total_s is not None
                    self._known[kind, shape] = answer.total_s
                    left.remove(shape)
            n_passes *= 2


def _cluster(machines: Machines, kind: str) -> Cluster:
    """All nodes of a type, as large as the largest: a placement says how many devices of each are used."""
    from traincast.hardware.cluster_text import find_cluster

    sizes, link = machines.node_sizes(kind), machines.link_of(kind)
    joined = f"@{link}" if link and len(sizes) > 1 else ""
    return find_cluster(f"{len(sizes)}x{sizes[0]}x{kind}{joined}")
