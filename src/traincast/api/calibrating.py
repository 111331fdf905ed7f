"""Calibration: benchmarks of `measurement`, prices of `kernels`, a profile of `hardware`, joined here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from traincast.errors import InputError, MissingExtraError, UnknownDeviceError

if TYPE_CHECKING:
    from pathlib import Path

    from traincast.hardware.device import Device
    from traincast.kernels.cpu.fit import FittedPrices
    from traincast.measurement.calibration.gpu import GpuFigures
    from traincast.measurement.calibration.timing import Case, Timing

_ROUNDS = 4
_BUDGET_S = 0.12  # of one case and round; all of them together stay under three minutes on a laptop's CPU
_NETWORK_WEIGHT = 2.0  # a network is more like what will be asked for than layers of one kind
Progress = Callable[[int, int], None]
Work = dict[str, dict[str, float]]  # amounts by phase and price


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Calibration:
    """What this machine was found to be, where that is kept, and how well it foretells steps that it was not fitted on.

    `mean_error` is that of the benchmarks' own steps, each predicted from the others; None for a GPU, which is told by
    its figures and our predictor.
    """

    device: Device
    path: Path | None
    mean_error: float | None
    n_steps: int
    seconds: float
    timings: tuple[Timing, ...] = ()
    warnings: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        device = self.device
        return {
            "name": device.name,
            "path": None if self.path is None else str(self.path),
            "fp32_flop_per_s": device.fp32_flop_per_s,
            "memory_bytes_per_s": device.memory_bytes_per_s,
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

        rate = self.device.fp32_flop_per_s
        rows = [
            ("fp32", None if rate is None else show_flop_per_s(rate)),
            ("memory", show_bytes_per_s(self.device.memory_bytes_per_s)),
            ("error on steps not fitted", None if self.mean_error is None else show_percent(self.mean_error)),
            ("took", f"{show_duration(self.seconds)}, {self.n_steps:,} steps"),
            ("kept in", None if self.path is None else str(self.path)),
        ]
        return to_notebook(f"Calibration of {self.device.name}", rows, notes=self.warnings)


def calibrate(
    device: str = "cpu", *, n_processes: int = 1, save: bool = True, on_progress: Progress | None = None
) -> Calibration:
    """Runs the benchmarks that pin this machine down and keeps their result as its profile.

    From then on `on="this-machine"` means it. Takes about two minutes on a CPU, on which nothing else should run;
    "cuda" measures a GPU in some seconds. With `n_processes`, as many run side by side, each with its share of the
    cores, and the link between them is measured: `on="2xthis-machine"` means that. `save=False` leaves an earlier
    profile alone.
    """
    try:
        import torch
    except ImportError as error:
        raise MissingExtraError("Calibrating this machine", extra="torch") from error
    from traincast.hardware.this_machine import write_host, write_profile
    from traincast.measurement.environment import read_environment
    from traincast.measurement.remarks import on_load
    from traincast.measurement.training import check_device

    if n_processes < 1:
        raise InputError(f"{n_processes} processes cannot be calibrated: give 1 or more.")
    warnings = on_load(read_environment("cpu"))  # before the run, whose own load it would show otherwise
    start_s, mean_error, n_steps = time.monotonic(), None, 0
    timings: Sequence[Timing] = ()
    if check_device(device).partition(":")[0] == "cuda":
        from traincast.measurement.calibration.gpu import measure_gpu

        found = gpu_profile(measure_gpu(device, torch))
    elif n_processes > 1:
        timings, fitted, found = _shared(n_processes)
        mean_error, n_steps = fitted.mean_error, len(fitted.held_out_log_errors)
    else:
        torch.manual_seed(0)
        timings, fitted = _measured_prices(device, on_progress or (lambda n_done, n_all: None))
        found, mean_error, n_steps = cpu_profile(fitted), fitted.mean_error, len(fitted.held_out_log_errors)
    path = write_profile(found, n_processes) if save else None
    if save and found.prices and n_processes == 1:
        write_host(found)
    return Calibration(
        device=found,
        path=path,
        mean_error=mean_error,
        n_steps=n_steps,
        seconds=time.monotonic() - start_s,
        timings=tuple(timings),
        warnings=warnings,
    )


def _measured_prices(device: str, tell: Progress) -> tuple[Sequence[Timing], FittedPrices]:
    from traincast.measurement.calibration.benchmarks import all_benchmarks
    from traincast.measurement.calibration.timing import cases, time_all

    chosen = cases(all_benchmarks())
    timings = list(time_all(chosen, device=device, n_rounds=_ROUNDS, budget_s=_BUDGET_S, on_progress=tell))
    return timings, fit_timings(chosen, timings)


def _shared(n_processes: int) -> tuple[Sequence[Timing], FittedPrices, Device]:
    from traincast.api.processes import time_together
    from traincast.measurement.calibration.benchmarks import all_benchmarks
    from traincast.measurement.calibration.timing import cases
    from traincast.measurement.processes.ddp_fit import fit_ddp

    found = time_together(n_processes=n_processes, n_rounds=_ROUNDS, budget_s=_BUDGET_S)
    fitted = fit_timings(cases(all_benchmarks()), found.timings)
    whole, together = cpu_profile(fitted), fit_ddp(n_processes, found.reduced)
    device = replace(
        whole,
        name=f"{whole.name}, one of {n_processes} processes",
        fp32_flop_per_s=(whole.fp32_flop_per_s or 0.0) / n_processes,
        memory_bytes=whole.memory_bytes // n_processes,
        memory_bytes_per_s=whole.memory_bytes_per_s / n_processes,
        n_sm=found.n_threads,
        link_bytes_per_s=together.bytes_per_s,
        link_latency_s=together.latency_s,
        waiting_fraction=together.waiting_fraction,
        source=f"{_made_by()}, {n_processes} processes of {found.n_threads} threads",
    )
    return found.timings, fitted, device


def fit_timings(chosen: Sequence[Case], timings: Sequence[Timing]) -> FittedPrices:
    """Prices that explain the timings: of each case and phase, the median of its rounds' usual seconds."""
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


def cpu_profile(fitted: FittedPrices) -> Device:
    """The machine as a device: what it is, and what it was measured to do."""
    from traincast.hardware.device import Device
    from traincast.measurement.environment import read_environment
    from traincast.measurement.machine import read_machine

    machine, environment = read_machine(), read_environment("cpu")
    price_s, clock_mhz = fitted.price_s, environment.clocks.get("cpu_mhz")
    n_steps = len(fitted.held_out_log_errors)
    return Device(
        name=environment.device,
        kind="cpu",
        fp32_flop_per_s=machine.flop_per_s,
        tf32_flop_per_s=0.0,
        fp16_flop_per_s=0.0,
        bf16_flop_per_s=0.0,
        memory_bytes=machine.memory_bytes,
        memory_bytes_per_s=machine.memory_bytes_per_s,
        n_sm=environment.n_cores,
        l2_bytes=machine.cache_bytes,
        boost_clock_hz=clock_mhz * 1e6 if isinstance(clock_mhz, float) else None,
        prices=tuple(sorted({**price_s, "bytes.fresh": machine.fresh_byte_s}.items())),
        price_log_sd=fitted.log_sd,
        source=f"{_made_by()}, torch {environment.versions['torch']}, {environment.n_threads} threads, {n_steps} steps",
        notes="Measured in fp32 on CPU tensors; fp32 is what large matrix products sustain.",
    )


def gpu_profile(figures: GpuFigures) -> Device:
    """The card of the device table where it is listed; else one of measured figures."""
    from traincast.hardware.catalog import find_device
    from traincast.hardware.device import Device

    rates = figures.flop_per_s
    measured = ", ".join(f"{name} {rate / 1e12:.1f} Tflop/s" for name, rate in rates.items() if rate)
    notes = (
        f"Measured: {measured}; copies {figures.memory_bytes_per_s / 1e9:.0f} GB/s; "
        f"a kernel takes at least {figures.launch_s * 1e6:.1f} us."
    )
    try:
        return replace(find_device(figures.name), notes=notes, source=_made_by())
    except UnknownDeviceError:
        pass
    return Device(
        name=figures.name,
        fp32_flop_per_s=rates["fp32"],
        tf32_flop_per_s=rates["tf32"],
        fp16_flop_per_s=rates["fp16"],
        bf16_flop_per_s=rates["bf16"],
        memory_bytes=figures.memory_bytes,
        memory_bytes_per_s=figures.memory_bytes_per_s,
        n_sm=figures.n_sm,
        l2_bytes=figures.l2_bytes or None,
        boost_clock_hz=figures.clock_hz,
        source=_made_by(),
        notes=f"{notes} Rates are what was measured: a datasheet's are higher.",
    )


def _made_by() -> str:
    return f"traincast calibrate, {time.strftime('%Y-%m-%d %H:%M')}"
