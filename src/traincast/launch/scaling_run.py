"""A scaling experiment under torchrun: one start for each number of devices, and what is done is not done again."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from traincast.errors import MeasurementError
from traincast.launch.torchrun import run_module
from traincast.recipes.scaling_experiment.result import read_run, write_failure
from traincast.recipes.scaling_experiment.settings import Cell, ScalingSettings

WORKER = "traincast.launch.scaling_worker"
# How long a process waits for another before it gives up: an epoch's input may take one of them a while.
TIMEOUT_S = 600.0
_POLL_S = 0.3
OnProgress = Callable[[int, int], None]  # runs done, all


def run_cells(
    settings: ScalingSettings, cells: Sequence[Cell], folder: Path, *, on_progress: OnProgress | None = None
) -> None:
    """Every cell has a file in the folder afterwards: what it took, or that memory ended."""
    with _told(cells, folder, on_progress or (lambda done, total: None)):
        for n_devices in dict.fromkeys(cell.n_devices for cell in cells):
            own = [cell for cell in cells if cell.n_devices == n_devices]
            left = [cell for cell in own if read_run(folder, cell) is None]
            if left:
                _start(settings, left, folder)


def _start(settings: ScalingSettings, cells: Sequence[Cell], folder: Path) -> None:
    """Smallest batch first. Where memory ends, larger batches are not tried."""
    task = {
        "settings": settings.to_dict(),
        "batch_sizes": [cell.batch_size for cell in cells],
        "folder": str(folder.resolve()),
        "timeout_s": TIMEOUT_S,
    }
    try:
        run_module(WORKER, [json.dumps(task)], n_processes=cells[0].n_devices, n_threads=settings.n_threads)
    except MeasurementError:
        failed = next((cell for cell in cells if isinstance(read_run(folder, cell), str)), None)
        if failed is None:
            raise
        for cell in cells:
            if read_run(folder, cell) is None:
                write_failure(folder, cell, f"Not tried: memory ended at {failed.batch_size:,} samples a device.")


@contextlib.contextmanager
def _told(cells: Sequence[Cell], folder: Path, tell: OnProgress) -> Iterator[None]:
    """The processes write a file for each run; who waits for them counts files."""
    is_over = threading.Event()

    def count() -> None:
        tell(sum(read_run(folder, cell) is not None for cell in cells), len(cells))

    def watch() -> None:
        while not is_over.wait(_POLL_S):
            count()

    count()
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
    count()
