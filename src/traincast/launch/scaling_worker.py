"""One of the processes of a scaling experiment: `torchrun ... -m traincast.launch.scaling_worker TASK`."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from traincast.launch.torchrun import end_with_launcher, report_error, report_result


def main() -> None:
    """Trains the cells of the task (JSON) one after the other; each result goes to the folder as it comes."""
    end_with_launcher()
    rank = int(os.environ["RANK"])
    from traincast.measurement.processes.group import is_loss_of_another, leave

    try:
        _run(json.loads(sys.argv[1]))
    except Exception as error:  # whatever it was is told to the launcher, and ends this process as it would have
        report_error(error, rank=rank, is_consequence=is_loss_of_another(error))
        raise
    if rank == 0:
        report_result({})
    leave()


def _run(task: dict[str, Any]) -> None:
    from traincast.errors import MemoryEndedError
    from traincast.measurement.failures import is_out_of_memory, one_line
    from traincast.measurement.processes.group import join
    from traincast.recipes.data.load import load_dataset
    from traincast.recipes.scaling_experiment.epochs import run_cell
    from traincast.recipes.scaling_experiment.result import write_failure, write_run
    from traincast.recipes.scaling_experiment.settings import Cell, ScalingSettings

    settings, folder = ScalingSettings.from_dict(task["settings"]), Path(task["folder"])
    group = join(settings.device, timeout_s=task["timeout_s"])
    data = load_dataset(settings.data, image_side=settings.image_side)
    for batch_size in task["batch_sizes"]:
        cell = Cell(group.n_processes, batch_size)
        try:
            run = run_cell(group, settings, cell, data, log_folder=folder)
        except (RuntimeError, MemoryError, MemoryEndedError) as error:
            if isinstance(error, MemoryEndedError) or is_out_of_memory(error):
                write_failure(folder, cell, f"Out of memory ({one_line(error)}).")
            raise
        if group.is_first:
            write_run(folder, run)
        group.barrier()


if __name__ == "__main__":
    main()
