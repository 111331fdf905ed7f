"""Thousands of layers or single ops, timed unattended on this machine or on a Ray cluster, into one store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import MissingExtraError
from traincast.options import measure as o
from traincast.options.cluster import MaybeRayCluster
from traincast.options.question import question

if TYPE_CHECKING:
    from traincast.records.campaign import Progress, Run, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchRun:
    """How far a campaign is. Ctrl-C stops it; the same question again does the rest."""

    what: str
    store: Path
    campaign: str
    progress: Progress
    was_stopped: bool = False

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        return {"store": str(self.store), "campaign": self.campaign, **asdict(self.progress)}


@question
def bench(
    what: o.Benchmarks,
    store: o.StoreToWrite,
    *,
    n_rows: o.NRows = 2000,
    seed: o.RowsSeed = 0,
    device: o.TorchDevice = "cpu",
    campaign: o.Campaign = None,
    on_ray: MaybeRayCluster = None,
    cpus_per_task: o.CpusPerTask = None,
    retry_failed: o.RetryFailed = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> BenchRun:
    """Time `n_rows` random layers or ops and store each as it is done; what is stored already is not done again.

    The same seed draws the same rows, and more rows begin with the fewer: a second call resumes or extends the first.
    `on_ray` is the address of a Ray cluster ("local" starts one), where a task gets a GPU, or all CPUs of a node
    unless `cpus_per_task` says how many.
    """
    from traincast.launch.ray_campaign import check_division
    from traincast.records.store import Store

    check_division(on_ray, device, cpus_per_task)
    run, tasks = _work(what, n_rows, seed, device, is_here=on_ray is None)
    name, heard, was_stopped = campaign or what, _Latest(on_progress), False
    with Store(store) as opened:
        how: dict[str, Any] = {"campaign": name, "retry_failed": retry_failed}
        try:
            if on_ray is None:
                from traincast.records.campaign import run_campaign

                progress = run_campaign(tasks, run, opened, on_progress=heard, **how)
            else:
                from traincast.launch.ray_campaign import ray_cluster, run_on_ray
                from traincast.records.work_list import WorkList

                work = WorkList(tasks, opened, **how)
                with ray_cluster(on_ray) as ray:
                    progress = run_on_ray(ray, work, run, device=device, cpus_per_task=cpus_per_task, on_progress=heard)
        except KeyboardInterrupt:
            if heard.latest is None:
                raise
            progress, was_stopped = heard.latest, True
    return BenchRun(what=what, store=Path(store), campaign=name, progress=progress, was_stopped=was_stopped)


class _Latest:
    """How far it was when it was stopped."""

    def __init__(self, on_progress: Callable[[Progress], None] | None) -> None:
        self._tell = on_progress
        self.latest: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        self.latest = progress
        if self._tell is not None:
            self._tell(progress)


def _work(what: str, n_rows: int, seed: int, device: str, *, is_here: bool) -> tuple[Run, list[Task]]:
    from traincast.microbenchmarks.layer_tasks import layer_tasks
    from traincast.microbenchmarks.op_tasks import op_tasks

    try:
        from traincast.measurement.device_names import check_device_name
        from traincast.measurement.training import check_device
        from traincast.microbenchmarks.layer_bench import run_layer
        from traincast.microbenchmarks.op_bench import run_op
    except ImportError as error:
        raise MissingExtraError("A benchmark", extra="torch") from error
    (check_device if is_here else check_device_name)(device)
    if what == "layers":
        return run_layer, layer_tasks(n_rows, seed, device=device)
    return run_op, op_tasks(n_rows, seed, device=device)
