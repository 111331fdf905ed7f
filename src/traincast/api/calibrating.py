"""Calibration: benchmarks of `measurement`, prices of `kernels`, a profile of `hardware`, joined here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from traincast.api.machine_profile import cpu_profile, gpu_profile, shared_profile
from traincast.errors import InputError, MeasurementError, MissingExtraError
from traincast.hardware.host import THIS_MACHINE
from traincast.hardware.this_machine import THIS_GPU
from traincast.options import measure as o
from traincast.options.question import question

if TYPE_CHECKING:
    from pathlib import Path

    from traincast.calibration.gpu import GpuFigures
    from traincast.calibration.timing import Case, Effort, Timing
    from traincast.hardware.device import Device
    from traincast.kernels.cpu.fit import FittedPrices

_NETWORK_WEIGHT = 2.0  # a network is more like what will be asked for than layers of one kind
Progress = Callable[[int, int], None]
Work = dict[str, dict[str, float]]  # amounts by phase and price


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Calibration:
    """What this machine was found to be, where that is kept, and how well it foretells steps that it was not fitted on.

    `mean_error` is that of the benchmarks' own steps, each predicted from the others; None for a GPU, which is told by
    its `figures` and our predictor.
    """

    device: Device
    path: Path | None
    mean_error: float | None
    n_steps: int
    seconds: float
    n_processes: int = 1
    figures: GpuFigures | None = None
    timings: tuple[Timing, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def on(self) -> str:
        """The place of a forecast that means this profile."""
        if self.device.kind == "gpu":
            return THIS_GPU
        return THIS_MACHINE if self.n_processes == 1 else f"{self.n_processes}x{THIS_MACHINE}"

    @property
    def fp32_flop_per_s(self) -> float | None:
        """As measured; a listed GPU keeps that of its datasheet in `device`."""
        return self.device.fp32_flop_per_s if self.figures is None else self.figures.flop_per_s["fp32"]

    @property
    def memory_bytes_per_s(self) -> float:
        """As measured."""
        return self.device.memory_bytes_per_s if self.figures is None else self.figures.memory_bytes_per_s

    def to_dict(self) -> dict[str, Any]:
        """What --json prints."""
        device = self.device
        return {
            "name": device.name,
            "on": self.on,
            "path": None if self.path is None else str(self.path),
            "fp32_flop_per_s": self.fp32_flop_per_s,
            "memory_bytes_per_s": self.memory_bytes_per_s,
            "cache_bytes": device.l2_bytes,
            "n_cores": device.n_sm,
            "price_s": dict(device.prices),
            "price_log_sd": device.price_log_sd,
            "mean_error": self.mean_error,
            "n_steps": self.n_steps,
            "seconds": self.seconds,
            "source": device.source,
            "notes": device.notes,
            "warnings": list(self.warnings),
        }

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook
        from traincast.units import show_bytes_per_s, show_duration, show_flop_per_s, show_percent

        rate = self.fp32_flop_per_s
        rows = [
            ("fp32", None if rate is None else show_flop_per_s(rate)),
            ("memory", show_bytes_per_s(self.memory_bytes_per_s)),
            ("error on steps not fitted", None if self.mean_error is None else show_percent(self.mean_error)),
            ("took", f"{show_duration(self.seconds)}, {self.n_steps:,} steps"),
            ("kept in", None if self.path is None else str(self.path)),
        ]
        return to_notebook(f"Calibration of {self.device.name}", rows, notes=self.warnings)


@question
def calibrate(
    device: o.TorchDevice = "cpu",
    *,
    n_processes: o.CalibratedProcesses = 1,
    save: bool = True,
    on_progress: Progress | None = None,
) -> Calibration:
    """Runs the benchmarks that pin this machine down and keeps their result as its profile.

    From then on `on="this-machine"` means it. Takes about two minutes on a CPU, on which nothing else should run.
    With `n_processes`, as many run side by side, each with its share of the cores, and the link between them is
    measured: `on="2xthis-machine"` means that. "cuda" measures a GPU, which has a profile of its own: `on="this-gpu"`.
    `save=False` leaves an earlier profile alone. A profile that cannot be written raises a MeasurementError with the
    calibration as its `partial`.
    """
    try:
        import torch  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("Calibrating this machine", extra="torch") from error
    from traincast.hardware.this_machine import check_profiles
    from traincast.measurement.failures import users_code
    from traincast.measurement.remarks import on_load
    from traincast.measurement.training import check_device, is_cuda
    from traincast.records.environment import read_environment

    if is_cuda(check_device(device)) and n_processes > 1:
        raise InputError(
            "Processes that share this machine are calibrated on its CPU: give cuda, or several processes."
        )
    if save:
        check_profiles()
    warnings = on_load(read_environment("cpu"))  # before the run, whose own load it would show otherwise
    start_s = time.monotonic()
    with users_code("Calibrating"):  # our own, but memory may end in it as in any other
        found = _of_gpu(device) if is_cuda(device) else _of_cpu(n_processes, on_progress)
    found = replace(found, seconds=time.monotonic() - start_s, warnings=warnings)
    return _kept(found) if save else found


def _kept(found: Calibration) -> Calibration:
    from traincast.hardware.this_machine import write_host, write_profile

    try:
        path = write_profile(found.device, found.n_processes)
        if found.on == THIS_MACHINE:
            write_host(found.device)
    except InputError as error:
        raise MeasurementError(f"The profile was not kept. {error}", partial=found) from error
    return replace(found, path=path)


def _of_gpu(device: str) -> Calibration:
    import torch

    from traincast.calibration.gpu import measure_gpu

    figures = measure_gpu(device, torch)
    return Calibration(device=gpu_profile(figures), figures=figures, path=None, mean_error=None, n_steps=0, seconds=0.0)


def _of_cpu(n_processes: int, on_progress: Progress | None) -> Calibration:
    from traincast.calibration import timing

    run = partial(_shared, n_processes) if n_processes > 1 else _alone
    timings, fitted, device = run(timing.FULL, on_progress)
    return Calibration(
        device=device,
        path=None,
        mean_error=fitted.mean_error,
        n_steps=len(fitted.held_out_log_errors),
        seconds=0.0,
        n_processes=n_processes,
        timings=tuple(timings),
    )


def _alone(effort: Effort, on_progress: Progress | None) -> tuple[Sequence[Timing], FittedPrices, Device]:
    import torch

    from traincast.calibration.timing import time_all

    torch.manual_seed(0)
    timings = list(time_all(effort, on_progress=on_progress or (lambda n_done, n_all: None)))
    fitted = fit_timings(effort.cases(), timings)
    return timings, fitted, cpu_profile(fitted)


def _shared(
    n_processes: int, effort: Effort, on_progress: Progress | None
) -> tuple[Sequence[Timing], FittedPrices, Device]:
    from traincast.api.processes import time_together
    from traincast.calibration.ddp_fit import fit_ddp

    found = time_together(effort.to_dict(), n_processes=n_processes, on_progress=on_progress)
    fitted = fit_timings(effort.cases(), found.timings)
    device = shared_profile(cpu_profile(fitted), fit_ddp(n_processes, found.reduced), n_processes, found.n_threads)
    return found.timings, fitted, device


def fit_timings(chosen: Sequence[Case], timings: Sequence[Timing]) -> FittedPrices:
    """Prices that explain the timings: of each case and phase, the median of its rounds' usual seconds."""
    import numpy as np

    from traincast.kernels.cpu.fit import MeasuredPhase, fit_prices, moment_log_sd

    works = work_of_cases(chosen)
    rounds: dict[tuple[str, str], list[Timing]] = {}
    for timing in timings:
        rounds.setdefault(_key(timing), []).append(timing)
    weights = {case.benchmark.name: _NETWORK_WEIGHT if case.benchmark.is_network else 1.0 for case in chosen}
    rows = [
        MeasuredPhase(
            benchmark=key[0],
            step=key[1],
            work=amounts,
            seconds=float(np.median([timing.usual_s[phase] for timing in several])),
            weight=weights[key[0]],
        )
        for key, several in rounds.items()
        for phase, amounts in works[key].items()
        if amounts
    ]
    between_rounds = moment_log_sd([[timing.usual_s["step"] for timing in several] for several in rounds.values()])
    return fit_prices([row for row in rows if row.seconds > 0], between_rounds)


def _key(timed: Timing) -> tuple[str, str]:
    return timed.benchmark, f"{timed.batch_size} {timed.optimizer}"


def work_of_cases(chosen: Sequence[Case]) -> dict[tuple[str, str], Work]:
    """What every phase of every case asks for, from a capture of its module."""
    import numpy as np

    from traincast.api.models import capture
    from traincast.kernels.cpu.work import cpu_work
    from traincast.measurement.training import PHASES
    from traincast.trace.lowering.lower import lower
    from traincast.trace.settings import Settings

    traces: dict[str, Any] = {}
    found = {}
    for case in chosen:
        benchmark = case.benchmark
        if benchmark.name not in traces:
            traces[benchmark.name] = capture(benchmark.make(), benchmark.make_inputs, loss=benchmark.loss)
        graph = lower(traces[benchmark.name], target="cpu", settings=Settings("fp32", case.optimizer))
        terms = cpu_work(graph, np.array([case.batch_size]))
        totals = terms.totals(graph.op_phase, len(PHASES))
        found[benchmark.name, f"{case.batch_size} {case.optimizer}"] = {
            phase: {price: float(amount) for price, amount in zip(terms.prices, row, strict=True) if amount > 0}
            for phase, row in zip(PHASES, totals, strict=True)
        }
    return found
