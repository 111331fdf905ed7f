"""Starts processes with torchrun (`torch.distributed.run`) on this machine, and never leaves one behind.

The workers end with this process, however it ends (see `child_process.py`; they call `end_with_launcher`).
torchrun alone would not do: it puts every worker into a session of its own, where no signal to our group arrives.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from traincast.child_process import end, end_with_parent, start_module
from traincast.errors import InputError, MeasurementError, TraincastError

RESULT, PARTIAL, PROGRESS = "result.json", "partial.json", "progress.json"
FOLDER_VARIABLE = "TRAINCAST_REPORT_FOLDER"
_LOOK_S = 0.5
# Closing the pipe ends the workers, and torchrun follows them: until one that does not is killed.
_PATIENCE_S = 10.0
_LONGEST = 300
# In the summary that torchrun prints of a worker that ended by a signal.
_KILLED = re.compile(r"rank\s*:\s*(\d+) \(local_rank[^)]*\)\s*exitcode\s*:\s*-(\d+)")


def run_module(
    module: str,
    arguments: Sequence[str],
    *,
    n_processes: int,
    n_threads: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """`python -m module arguments` in n processes; gives what the first of them reported with `report_result`.

    `on_progress` hears what it reported with `report_progress`, now and then. A process that fails ends them all; the
    reason is raised in one sentence. Ctrl-C ends them too, and gives what was last reported with `report_partial`, if
    anything was.
    """
    with tempfile.TemporaryDirectory(prefix="traincast-processes-") as name:
        folder = Path(name)
        log = folder / "torchrun.log"
        command = ("torch.distributed.run", "--standalone", "--max-restarts=0", f"--nproc-per-node={n_processes}")
        environment = {**os.environ, "OMP_NUM_THREADS": str(n_threads), FOLDER_VARIABLE: name}
        with log.open("wb") as stream:
            started = start_module(
                *(*command, "--module", module, *arguments),
                own_session=False,
                stdout=stream,
                stderr=subprocess.STDOUT,
                env=environment,
            )
            try:
                returned = _wait(started, folder / PROGRESS, on_progress)
            except KeyboardInterrupt:
                end(started, patience_s=_PATIENCE_S)
                if (folder / PARTIAL).is_file():
                    return json.loads((folder / PARTIAL).read_text(encoding="utf-8"))
                raise
            finally:
                end(started, patience_s=_PATIENCE_S)
        result = folder / RESULT
        if returned or not result.is_file():
            raise told_failure(folder, log.read_text(encoding="utf-8", errors="replace"), n_processes)
        return json.loads(result.read_text(encoding="utf-8"))


def _wait(torchrun: subprocess.Popen[bytes], told: Path, on_progress: Callable[[int, int], None] | None) -> int:
    """Looks twice a second, and not at all where nobody listens: the processes need the cores."""
    is_over = on_progress is None
    while not is_over:
        is_over = torchrun.poll() is not None
        if on_progress is not None and told.is_file():
            on_progress(*json.loads(told.read_text(encoding="utf-8")))
        time.sleep(0.0 if is_over else _LOOK_S)
    return torchrun.wait()


def report_result(result: dict[str, Any]) -> None:
    """Called by the first process: hands its answer to `run_module`. Without a launcher there is nobody to tell."""
    _write(RESULT, result)


def report_partial(result: dict[str, Any]) -> None:
    """Called by the first process: what its answer is so far, each time in the place of the one before."""
    _write(PARTIAL, result)


def report_progress(n_done: int, n_to_do: int) -> None:
    """Called by the first process, as often as it likes."""
    _write(PROGRESS, [n_done, n_to_do])


def report_error(error: BaseException, *, rank: int, is_consequence: bool) -> None:
    """Called by a process that fails. `is_consequence`: only because another one had failed before."""
    told = {
        "rank": rank,
        "message": str(error) if isinstance(error, TraincastError) else f"{type(error).__name__}: {error}",
        "is_input": isinstance(error, InputError),
        "is_consequence": is_consequence,
        "at_s": time.time(),
    }
    _write(f"error-{rank}.json", told)


def _write(name: str, data: dict[str, Any] | list[int]) -> None:
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder is not None:
        whole = Path(folder) / f"{name}.part"
        whole.write_text(json.dumps(data), encoding="utf-8")
        whole.rename(Path(folder) / name)  # what is read is never half a file


def end_with_launcher() -> None:
    """Called by a worker first: from now on it ends when `run_module` does."""
    if FOLDER_VARIABLE in os.environ:
        end_with_parent()


def told_failure(folder: Path, log: str, n_processes: int) -> TraincastError:
    """The first cause in time; a consequence only where no cause was told. What was asked wrongly is told as it is."""
    errors = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("error-*.json")]
    errors.sort(key=lambda error: (error["is_consequence"], error["at_s"]))
    if errors and errors[0]["is_input"]:
        return InputError(errors[0]["message"])
    if errors and not errors[0]["is_consequence"]:
        return MeasurementError(f"Process {errors[0]['rank']} of {n_processes}: {_one_line(errors[0]['message'])}")
    killed = _KILLED.search(log.rpartition("Root Cause")[2])
    if killed is not None:
        name = signal.Signals(int(killed[2])).name
        return MeasurementError(f"Process {killed[1]} of {n_processes} was killed ({name}); the others were stopped.")
    if errors:
        who = f"Process {errors[0]['rank']} of {n_processes}"
        return MeasurementError(f"{who} lost another process, which gave no reason: {_one_line(errors[0]['message'])}")
    lines = [line for line in log.splitlines() if line.strip()]
    return MeasurementError(
        f"torchrun ended without a result: {_one_line(lines[-1] if lines else 'it printed nothing')}"
    )


def _one_line(text: str) -> str:
    return f"{' '.join(text.split())[:_LONGEST].rstrip('. ')}."
