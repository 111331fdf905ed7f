"""A collection of training runs as a campaign: here one after the other, or on a Ray cluster side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from traincast.launch.ray_campaign import check_division, ray_cluster, run_on_ray
from traincast.recipes.collection import CAMPAIGN, COMMON_FILE, Grid, runner
from traincast.recipes.kept_settings import keep_settings
from traincast.records.campaign import OnProgress, Run, run_campaign
from traincast.records.store import Store
from traincast.records.work_list import Progress, Task, WorkList

STORE = "runs.db"


def run_collection(  # noqa: PLR0913  (what to train, where, how, and who is told)
    grid: Grid,
    folder: Path,
    *,
    on_ray: str | None = None,
    cpus_per_task: int | None = None,
    retry_failed: bool = False,
    download: bool = False,
    on_progress: OnProgress | None = None,
) -> Progress:
    """Train what is not trained yet. Records are in the folder's store, logs in a folder for each run.

    On several machines the folder must be one that all of them see.
    """
    check_division(on_ray, "cpu", cpus_per_task)
    keep_settings(folder / COMMON_FILE, grid.common)
    run = runner(folder, download=download)
    with Store(folder / STORE) as store:
        if on_ray is not None:
            return _on_ray(grid, run, store, on_ray, cpus_per_task, retry_failed, on_progress)
        return run_campaign(
            grid.tasks(), run, store, campaign=CAMPAIGN, on_progress=on_progress, retry_failed=retry_failed
        )


def _on_ray(  # noqa: PLR0913  (what to run, where, on how much of it, and who is told)
    grid: Grid,
    run: Run,
    store: Store,
    address: str,
    cpus_per_task: int | None,
    retry_failed: bool,
    on_progress: OnProgress | None,
) -> Progress:
    """One list a device: whoever trains on GPUs wants slots with one."""
    by_device = {
        device: WorkList(_on(device, grid), store, campaign=CAMPAIGN, retry_failed=retry_failed)
        for device in grid.devices
    }

    def tell(_: Progress) -> None:
        if on_progress is not None:
            on_progress(_sum([work.progress for work in by_device.values()]))

    with ray_cluster(address) as ray:
        for device, work in by_device.items():
            run_on_ray(ray, work, run, device=device, cpus_per_task=cpus_per_task, on_progress=tell)
    return _sum([work.progress for work in by_device.values()])


def _on(device: str, grid: Grid) -> list[Task]:
    return [task for task in grid.tasks() if task.settings["device"] == device]


def _sum(parts: Sequence[Progress]) -> Progress:
    names = Progress.__dataclass_fields__
    return Progress(**{name: sum(getattr(part, name) for part in parts) for name in names})
