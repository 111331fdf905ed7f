"""Thousands of layers or single ops, timed unattended on this machine or on a Ray cluster, into one store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from traincast.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from traincast.measurement.campaign import Progress, Run, Task

WHAT = ("layers", "ops")


def bench(
    what: str,
    store: str | Path,
    *,
    n_rows: int = 2000,
    seed: int = 0,
    device: str = "cpu",
    campaign: str | None = None,
    on_ray: str | None = None,
    cpus_per_task: int | None = None,
    retry_failed: bool = False,
    on_progress: Callable[[Progress], None] | None = None,
) -> Progress:
    """Time `n_rows` random layers or ops and store each as it is done; what is stored already is not done again.

    The same seed draws the same rows, and more rows begin with the fewer: a second call resumes or extends the first.
    `on_ray` is the address of a Ray cluster ("local" starts one), where a task gets a GPU, or all CPUs of a node
    unless `cpus_per_task` says how many.
    """
    if what not in WHAT:
        raise InputError(f"There is no benchmark of '{what}': choose {' or '.join(WHAT)}.")
    from traincast.launch.ray_campaign import check_division, ray_cluster, run_on_ray

    check_division(on_ray, device, cpus_per_task)
    run, tasks = _work(what, n_rows, seed, device, is_here=on_ray is None)
    from traincast.measurement.campaign import run_campaign
    from traincast.measurement.store import Store

    name = campaign or what
    with Store(store) as opened:
        if on_ray is None:
            return run_campaign(tasks, run, opened, campaign=name, on_progress=on_progress, retry_failed=retry_failed)
        from traincast.measurement.work_list import WorkList

        work = WorkList(tasks, opened, campaign=name, retry_failed=retry_failed)
        with ray_cluster(on_ray) as ray:
            return run_on_ray(ray, work, run, device=device, cpus_per_task=cpus_per_task, on_progress=on_progress)


def _work(what: str, n_rows: int, seed: int, device: str, *, is_here: bool) -> tuple[Run, list[Task]]:
    from traincast.measurement.layer_tasks import layer_tasks
    from traincast.measurement.op_tasks import op_tasks

    try:
        from traincast.measurement.layer_bench import run_layer
        from traincast.measurement.op_bench import run_op
        from traincast.measurement.training import check_device, check_device_name
    except ImportError as error:
        raise MissingExtraError("A benchmark", extra="torch") from error
    (check_device if is_here else check_device_name)(device)
    if what == "layers":
        return run_layer, layer_tasks(n_rows, seed, device=device)
    return run_op, op_tasks(n_rows, seed, device=device)
