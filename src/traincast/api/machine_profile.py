"""What was measured of a machine, as a device: its CPU, one of several processes that share it, or its GPU."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from traincast.errors import UnknownDeviceError
from traincast.units import show_things

if TYPE_CHECKING:
    from traincast.calibration.ddp_fit import DdpFit
    from traincast.calibration.gpu import GpuFigures
    from traincast.hardware.device import Device
    from traincast.kernels.cpu.fit import FittedPrices


def cpu_profile(fitted: FittedPrices) -> Device:
    """The machine as a device: what it is, and what it was measured to do."""
    from traincast.calibration.machine_rates import read_machine
    from traincast.hardware.device import Device
    from traincast.records.environment import read_environment

    machine, environment = read_machine(), read_environment("cpu")
    price_s, clock_mhz = fitted.price_s, environment.clocks.get("cpu_mhz")
    n_steps = len(fitted.held_out_log_errors)
    threads = show_things(environment.n_threads, "thread")
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
        source=f"{_made_by()}, torch {environment.versions['torch']}, {threads}, {n_steps} steps",
        notes="Measured in fp32 on CPU tensors; fp32 is what large matrix products sustain.",
    )


def shared_profile(whole: Device, together: DdpFit, n_processes: int, n_threads: int) -> Device:
    """One of several processes, each with its share of what the CPU has; `whole` has the prices that they measured."""
    return replace(
        whole,
        name=f"{whole.name}, one of {n_processes} processes",
        fp32_flop_per_s=(whole.fp32_flop_per_s or 0.0) / n_processes,
        memory_bytes=whole.memory_bytes // n_processes,
        memory_bytes_per_s=whole.memory_bytes_per_s / n_processes,
        n_sm=n_threads,
        link_bytes_per_s=together.bytes_per_s,
        link_latency_s=together.latency_s,
        waiting_fraction=together.waiting_fraction,
        source=f"{_made_by()}, {n_processes} processes of {show_things(n_threads, 'thread')}",
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
