"""One of several processes: `torchrun ... -m traincast.api.process_worker TASK`, as `measure_processes` starts it."""

from __future__ import annotations

import json
import os
import sys

from traincast.launch.torchrun import end_with_launcher, report_error, report_partial, report_progress, report_result


def main() -> None:
    """Does the task of the command line (JSON); the first process reports the answer, any other only its failure."""
    end_with_launcher()
    rank = int(os.environ["RANK"])
    from traincast.api.processes import run_task
    from traincast.measurement.processes.group import is_loss_of_another, leave

    try:
        answer = run_task(
            json.loads(sys.argv[1]),
            on_progress=report_progress if rank == 0 else None,
            on_partial=report_partial if rank == 0 else None,
        )
    except Exception as error:  # whatever it was is told to the launcher, and ends this process as it would have
        report_error(error, rank=rank, is_consequence=is_loss_of_another(error))
        raise
    if rank == 0:
        report_result(answer)
    leave()


if __name__ == "__main__":
    main()
