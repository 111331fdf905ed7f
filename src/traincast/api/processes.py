"""Several processes on this machine, or this process as one of several that torchrun started on many."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from traincast.errors import MissingExtraError

if TYPE_CHECKING:
    from traincast.calibration.together import TogetherTimings
    from traincast.measurement.processes.link_result import AllReduceMeasurement
    from traincast.measurement.processes.result import ProcessesMeasurement

WORKER = "traincast.api.process_worker"
# How long a process waits for another before it gives up: longer than any step that is worth measuring here.
TIMEOUT_S = 300.0
OnProgress = Callable[[int, int], None]


def measure_processes(
    model: str,
    batch_size: int,
    *,
    n_processes: int | None = None,
    optimizer: str = "sgd",
    precision: str = "fp32",
    device: str = "cpu",
    n_steps: int | None = None,
    timeout_s: float = TIMEOUT_S,
    options: Mapping[str, int | str] | None = None,
    on_progress: OnProgress | None = None,
    on_round: Callable[[ProcessesMeasurement], None] | None = None,
) -> ProcessesMeasurement:
    """Real data-parallel steps of a model: a zoo name (with its `options`) or "file.py:factory".

    `batch_size` is of all processes together. With `n_processes`, torchrun starts them here, with an equal share of the
    cores each, and Ctrl-C ends them with the rounds that were made until then. With None, this process is one of those
    that the user's torchrun started, and `on_round` hears what is known after each round.
    """
    _need_torch()
    from traincast.measurement.measure import check_count_of
    from traincast.measurement.processes.result import ProcessesMeasurement
    from traincast.measurement.processes.share import share_of

    check_count_of("steps", n_steps)
    if n_processes is not None:
        share_of(batch_size, n_processes)
        task = {
            "kind": "steps",
            "model": model,
            "batch_size": batch_size,
            "optimizer": optimizer,
            "precision": precision,
            "device": device,
            "n_steps": n_steps,
            "timeout_s": timeout_s,
            "options": dict(options or {}),
        }
        return ProcessesMeasurement.from_dict(_launch(task, n_processes, on_progress))
    from traincast.api.runnables import runnable_of
    from traincast.measurement.processes.ddp import run_ddp
    from traincast.measurement.processes.group import join, losses_told

    group = join(device, timeout_s=timeout_s)
    with losses_told():
        return run_ddp(
            group,
            runnable_of(model, **(options or {})),
            batch_size=batch_size,
            optimizer=optimizer,
            precision=precision,
            n_steps=n_steps,
            on_progress=on_progress,
            on_round=on_round,
        )


def measure_all_reduce(
    *,
    n_processes: int | None = None,
    device: str = "cpu",
    timeout_s: float = TIMEOUT_S,
    on_progress: OnProgress | None = None,
    on_round: Callable[[AllReduceMeasurement], None] | None = None,
) -> AllReduceMeasurement:
    """The link between the processes: all-reduces from 4 KiB to 64 MiB, and the latency and bandwidth behind them.

    Processes, Ctrl-C and `on_round` are those of `measure_processes`.
    """
    from traincast.measurement.processes.link_result import AllReduceMeasurement
    from traincast.measurement.processes.share import check_count

    _need_torch()
    if n_processes is not None:
        check_count(n_processes)
        task = {"kind": "all-reduce", "device": device, "timeout_s": timeout_s}
        return AllReduceMeasurement.from_dict(_launch(task, n_processes, on_progress))
    from traincast.measurement.processes.all_reduce import run_all_reduces
    from traincast.measurement.processes.group import join, losses_told

    with losses_told():
        return run_all_reduces(join(device, timeout_s=timeout_s), on_progress=on_progress, on_round=on_round)


def time_together(
    effort: Mapping[str, Any],
    *,
    n_processes: int | None = None,
    timeout_s: float = TIMEOUT_S,
    on_progress: OnProgress | None = None,
) -> TogetherTimings:
    """The benchmarks of calibration in several processes at once, each with its share of the cores; and their link.

    `effort` is an `Effort` as JSON has it.
    """
    from traincast.calibration.timing import Effort
    from traincast.calibration.together import TogetherTimings, run_together
    from traincast.measurement.processes.share import check_count

    if n_processes is not None:
        check_count(n_processes)
        task = {"kind": "benchmarks", "effort": dict(effort), "timeout_s": timeout_s}
        return TogetherTimings.from_dict(_launch(task, n_processes, on_progress))
    from traincast.measurement.processes.group import join, losses_told

    with losses_told():
        return run_together(join("cpu", timeout_s=timeout_s), Effort.from_dict(effort), on_progress=on_progress)


def run_task(
    task: dict[str, Any], *, on_progress: OnProgress | None, on_partial: Callable[[dict[str, Any]], None] | None
) -> dict[str, Any]:
    """What `_launch` asked for, in one of the processes that it started."""
    asked = {**task, "on_progress": on_progress}
    run = {"steps": measure_processes, "all-reduce": measure_all_reduce, "benchmarks": time_together}[asked.pop("kind")]
    if on_partial is not None and run is not time_together:  # half of a calibration is of no use
        asked["on_round"] = lambda known: on_partial(known.to_dict())
    return run(**asked).to_dict()  # type: ignore[operator]  # one of three functions with arguments of their own


def _launch(task: dict[str, Any], n_processes: int, on_progress: OnProgress | None) -> dict[str, Any]:
    from traincast.launch.torchrun import run_module
    from traincast.measurement.processes.share import threads_of
    from traincast.records.environment import n_usable_cores

    n_threads = threads_of(n_usable_cores(), n_processes)
    return run_module(WORKER, [json.dumps(task)], n_processes=n_processes, n_threads=n_threads, on_progress=on_progress)


def _need_torch() -> None:
    if find_spec("torch") is None:
        raise MissingExtraError("Measuring several processes", extra="torch")
