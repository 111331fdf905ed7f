"""The workers of one start of an elastic job, as tasks on a Ray cluster: one CPU each, on the nodes decided on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from traincast.launch.elastic_job import ElasticJob
from traincast.launch.elastic_worker import FAILED, FINISHED, LOST, STOPPED, Place, work
from traincast.scheduling.decision import Placement


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Crew:
    """Tasks by rank. They end together: see `outcome`."""

    placement: Placement
    attempt: int
    since_s: float
    tasks: tuple[Any, ...]

    @property
    def n_workers(self) -> int:
        return len(self.tasks)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a crew ended, and why."""

    how: str
    why: str = ""


def start_tasks(
    ray: Any, job: ElasticJob, placement: Placement, nodes: Sequence[str], *, folder: str, attempt: int
) -> tuple[Any, ...]:
    """One a device. A process works for one start alone: what a lost team left in it does no harm to the next."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    remote = ray.remote(max_calls=1, max_retries=0)(work)
    places = [nodes[node] for node, n in placement for _ in range(n)]
    return tuple(
        remote.options(
            num_cpus=1,
            scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False),
        ).remote(job, Place(folder=folder, rank=rank, n_workers=len(places), attempt=attempt))
        for rank, node in enumerate(places)
    )


def outcome(ray: Any, crew: Crew) -> Ended | None:
    """None while they work. As soon as one is lost or fails, or the first has finished, the others are ended."""
    ready, _ = ray.wait(list(crew.tasks), num_returns=crew.n_workers, timeout=0)
    ended = {crew.tasks.index(task): _of_one(ray, task) for task in ready}
    by_how = {one.how: one for one in ended.values()}
    if 0 in ended and ended[0].how == FINISHED:
        found = ended[0]
    elif FAILED in by_how or LOST in by_how:
        found = by_how.get(FAILED) or by_how[LOST]
    elif len(ended) == crew.n_workers:
        found = Ended(STOPPED)
    else:
        return None
    dismiss(ray, crew)
    return found


def dismiss(ray: Any, crew: Crew) -> None:
    """Kill those that still work."""
    _, working = ray.wait(list(crew.tasks), num_returns=crew.n_workers, timeout=0)
    for task in working:
        ray.cancel(task, force=True)


def _of_one(ray: Any, task: Any) -> Ended:
    try:
        return Ended(*ray.get(task))
    except ray.exceptions.RayTaskError as error:  # not a death but an exception: it would come again
        return Ended(FAILED, str(error).strip().splitlines()[-1])
    except ray.exceptions.RayError as error:
        return Ended(LOST, f"A worker died ({type(error).__name__}).")
