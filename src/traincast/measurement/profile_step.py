"""Our own steps under torch.profiler: what one step does, by kind of work, on the device at hand."""

from __future__ import annotations

import json
import os
import statistics
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from traincast.measurement.failures import users_code
from traincast.measurement.measure import check_batch_size, check_count_of
from traincast.measurement.remarks import on_noise
from traincast.measurement.runnable import Runnable
from traincast.measurement.statistics import summarise
from traincast.measurement.stopwatch import Stopwatch, stopwatch_for
from traincast.measurement.training import PHASES, Training, check_device
from traincast.records.environment import read_environment
from traincast.records.imports.kineto import profiled_run
from traincast.records.imports.phases import OUR_MARK, STEP_MARK
from traincast.records.profiled_run import ProfiledRun, Work

_N_WARM_UP = 2
_SOURCE = "a profile of this machine"


def profile_step(
    runnable: Runnable,
    *,
    batch_size: int,
    optimizer: str = "sgd",
    precision: str = "fp32",
    device: str = "cpu",
    n_steps: int = 7,
) -> ProfiledRun:
    """`n_steps` steps under the profiler, and as many timed without it, half before and half after.

    The profiler makes every op a little slower, which is felt in steps of many small ops. So the phases are those
    without it, and the profile tells what the device worked in them; the rest is the host's.
    """
    check_batch_size(batch_size)
    check_count_of("steps", n_steps)
    check_device(device)
    environment = read_environment(device)  # before the run, whose own load it would show otherwise
    with users_code(f"A step of {runnable.name} at batch {batch_size:,}"):
        training = Training(runnable, optimizer=optimizer, precision=precision, device=device)
        inputs = training.inputs(batch_size)
        stopwatch = stopwatch_for(device)
        before = [_timed(training, inputs, stopwatch) for _ in range(_N_WARM_UP + n_steps // 2)]
        events = _profile(training, inputs, n_steps)
        after = [_timed(training, inputs, stopwatch) for _ in range(n_steps - n_steps // 2)]
    if training.device.type == "cpu":
        events = _only_median_step(events)
    run = replace(profiled_run(events, source=_SOURCE), n_steps=n_steps)
    timed = [*before[_N_WARM_UP:], *after]
    noise = on_noise(summarise([sum(step) for step in timed]), environment)
    run = replace(run, notes=(*run.notes, *noise))
    return as_timed(run, {phase: statistics.median(step[at] for step in timed) for at, phase in enumerate(PHASES)})


def as_timed(run: ProfiledRun, phases_s: Mapping[str, float]) -> ProfiledRun:
    """The profile within phases that were timed without the profiler."""
    step_s = sum(phases_s.values())
    work: Work = {
        phase: {kind: seconds * _factor(run, phase, phases_s) for kind, seconds in kinds.items()}
        for phase, kinds in run.work.items()
    }
    slower = run.step_s / step_s - 1 if step_s else 0.0
    notes = run.notes
    if slower > 0.1:
        notes = (*notes, f"Steps were {100 * slower:.0f} % slower under the profiler; phases are timed without it.")
    return replace(run, step_s=step_s, phases=dict(phases_s), work=work, notes=notes)


def _factor(run: ProfiledRun, phase: str, phases_s: Mapping[str, float]) -> float:
    """What makes the work of a profiled phase that of the timed one.

    Where the phase took longer under the profiler, that is first its own cost, which falls on the host between ops;
    what is more than all of the host's is noise, and shortens the ops alike. Where it took less, all of it is noise.
    """
    work_s, profiled_s = sum(run.work[phase].values()), run.phases.get(phase, 0.0)
    timed_s = phases_s.get(phase, profiled_s)
    if not work_s or not profiled_s:
        return 1.0
    return timed_s / profiled_s if timed_s > profiled_s else min(1.0, timed_s / work_s)


class _Marker:
    """A stopwatch that writes each phase into the profile instead of timing it."""

    def __init__(self) -> None:
        self._phases = iter(PHASES)
        self._open: Any = None

    def mark(self) -> None:
        if self._open is not None:
            self._open.__exit__(None, None, None)
        phase = next(self._phases, None)
        self._open = None if phase is None else record_function(f"{OUR_MARK}{phase}")
        if self._open is not None:
            self._open.__enter__()

    def read(self) -> list[float]:
        return []

    def synchronize(self) -> None:
        """Marks are no times."""


def _timed(training: Training, inputs: Any, stopwatch: Stopwatch) -> list[float]:
    stopwatch.synchronize()
    training.step(inputs, stopwatch)
    return stopwatch.read()


def _profile(training: Training, inputs: Any, n_steps: int) -> list[dict[str, Any]]:
    """The events of so many steps."""
    os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # it tells the terminal when it starts and stops
    on_cuda = training.device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_cuda else [])]
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")  # torch warns of its own defaults
        with profile(activities=activities, record_shapes=True) as profiler:
            for number in range(n_steps):
                with record_function(f"{STEP_MARK}#{number}"):
                    training.step(inputs, _Marker())
            if on_cuda:
                torch.cuda.synchronize(training.device)
        file = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(file))
        events: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["traceEvents"]
    return events


def _only_median_step(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without the marks of the other steps: one that was disturbed does not spoil the mean."""
    marks = [event for event in events if event.get("ph") == "X" and str(event.get("name")).startswith(STEP_MARK)]
    median = sorted(marks, key=lambda mark: mark["dur"])[len(marks) // 2]
    others = {id(mark) for mark in marks if mark is not median}
    return [event for event in events if id(event) not in others]
