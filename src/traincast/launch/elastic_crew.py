"""The workers of one start of an elastic job, as tasks on a Ray cluster: one CPU each, on the nodes decided on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from traincast.errors import InputError
from traincast.launch.elastic_job import ElasticJob
from traincast.launch.elastic_worker import FAILED, FINISHED, LOST, STOPPED, WorkerRank, work
from traincast.scheduling.decision import Placement
from traincast.scheduling.machines import Machines

KIND = "CPU"


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Crew:
    """Tasks by rank. They end together: see `outcome`."""

    placement: Placement
    attempt: int
    since_s: float
    tasks: tuple[Any, ...]

    @property
    def n_workers(self) -> int:
        return sum(n for _, n in self.placement)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a crew ended, and why."""

    how: str
    why: str = ""


class Cluster(Protocol):
    """Where crews work. Nodes keep their numbers for as long as the scheduler lives."""

    @property
    def machines(self) -> Machines: ...

    def are_alive(self) -> list[bool]:
        """Of each node."""

    def start(self, job: ElasticJob, placement: Placement, *, folder: str, attempt: int) -> tuple[Any, ...]:
        """Tasks by rank, one a device."""

    def outcome(self, crew: Crew) -> Ended | None:
        """None while they work. As soon as one is lost or fails, or the first has finished, the others are ended."""

    def dismiss(self, crew: Crew) -> None:
        """End those that still work."""


class RayCluster:
    """The nodes of a Ray cluster that are alive now, with a device for each CPU. They are ours alone: CPUs that others
    use are not left out.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        found = [(str(node["NodeID"]), int(node["Resources"].get("CPU", 0))) for node in ray.nodes() if node["Alive"]]
        found = [(name, n_cpus) for name, n_cpus in found if n_cpus]
        if not found:
            raise InputError("No node of this Ray cluster has a CPU to train on.")
        self._nodes = [name for name, _ in found]
        counts = tuple(n_cpus for _, n_cpus in found)
        text = "+".join(f"1x{n}x{KIND}" for n in counts)
        self.machines = Machines(devices=counts, kinds=(KIND,) * len(counts), name=text)

    def are_alive(self) -> list[bool]:
        alive = {str(node["NodeID"]) for node in self._ray.nodes() if node["Alive"]}
        return [name in alive for name in self._nodes]

    def start(self, job: ElasticJob, placement: Placement, *, folder: str, attempt: int) -> tuple[Any, ...]:
        """A process works for one start alone: what a lost team left in it does no harm to the next."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        remote = self._ray.remote(max_calls=1, max_retries=0)(work)
        places = [self._nodes[node] for node, n in placement for _ in range(n)]
        return tuple(
            remote.options(
                num_cpus=1,
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
            ).remote(job, WorkerRank(folder=folder, rank=rank, n_workers=len(places), attempt=attempt))
            for rank, node in enumerate(places)
        )

    def outcome(self, crew: Crew) -> Ended | None:
        ready, _ = self._wait(crew)
        ended = {crew.tasks.index(task): self._of_one(task) for task in ready}
        found = _of_all(ended, crew.n_workers)
        if found is not None:
            self.dismiss(crew)
        return found

    def dismiss(self, crew: Crew) -> None:
        _, working = self._wait(crew)
        for task in working:
            self._ray.cancel(task, force=True)

    def _wait(self, crew: Crew) -> tuple[Sequence[Any], Sequence[Any]]:
        ready, working = self._ray.wait(list(crew.tasks), num_returns=crew.n_workers, timeout=0)
        return ready, working

    def _of_one(self, task: Any) -> Ended:
        exceptions = self._ray.exceptions
        try:
            return Ended(*self._ray.get(task))
        except exceptions.RayTaskError as error:  # not a death but an exception: it would come again
            return Ended(FAILED, str(error).strip().splitlines()[-1])
        except exceptions.RayError as error:
            return Ended(LOST, f"A worker died ({type(error).__name__}).")


def _of_all(ended: dict[int, Ended], n_workers: int) -> Ended | None:
    """By rank, of those that ended."""
    by_how = {one.how: one for one in ended.values()}
    if 0 in ended and ended[0].how == FINISHED:
        return ended[0]
    if FAILED in by_how or LOST in by_how:
        return by_how.get(FAILED) or by_how[LOST]
    return Ended(STOPPED) if len(ended) == n_workers else None
