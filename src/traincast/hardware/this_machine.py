"""Profiles of the user's own machine: device files with one device each, written by `traincast calibrate`.

Its CPU, one of several processes that share it, and its GPU have a file each: one never takes the place of another.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from traincast.errors import InputError
from traincast.hardware.host import THIS_MACHINE

if TYPE_CHECKING:
    from traincast.hardware.device import Device
    from traincast.hardware.link import Link

THIS_GPU = "this-gpu"


def settings_folder() -> Path:
    """Where traincast keeps what it knows of this machine: TRAINCAST_HOME, or ~/.config/traincast."""
    home = os.environ.get("TRAINCAST_HOME")
    return Path(home) if home else Path.home() / ".config" / "traincast"


def profile_path(n_processes: int = 1, *, of_gpu: bool = False) -> Path:
    """Where the profile is kept: that of the CPU, of one of several processes that share it, or of the GPU."""
    name = THIS_GPU if of_gpu else THIS_MACHINE if n_processes == 1 else f"{THIS_MACHINE}-{n_processes}"
    return settings_folder() / f"{name}.toml"


def read_profile(n_processes: int = 1, *, of_gpu: bool = False) -> Device | None:
    """The device that this machine was found to be; None where it was never calibrated."""
    from traincast.hardware.device_table import read_device_file

    path = profile_path(n_processes, of_gpu=of_gpu)
    try:
        is_there = path.exists()
    except OSError as error:  # a folder that may not be entered
        raise InputError(f"The profile '{path}' cannot be reached: {error.strerror}; set TRAINCAST_HOME.") from None
    return read_device_file(path)[0] if is_there else None


def read_cpu_profile() -> Device:
    """The CPU of this machine, as it was measured."""
    device = read_profile()
    if device is None:
        raise InputError(
            "This machine has not been calibrated: run 'traincast calibrate' first (two minutes), or name "
            "'generic-cpu'."
        )
    return device


def read_gpu_profile() -> Device:
    """The GPU of this machine, as it was measured."""
    device = read_profile(of_gpu=True)
    if device is None:
        raise InputError(
            "The GPU of this machine has not been calibrated: run 'traincast calibrate --device cuda' first."
        )
    return device


def read_shared_profile(n_processes: int) -> tuple[Device, Link]:
    """One of several processes, each with its share of the cores, and what joins them."""
    from traincast.hardware.link import Link

    device = read_profile(n_processes)
    if device is None or device.link_bytes_per_s is None:
        raise InputError(
            f"This machine has not been calibrated with {n_processes} processes: run 'traincast calibrate "
            f"--processes {n_processes}' first."
        )
    link = Link(
        name=f"between {n_processes} processes",
        bytes_per_s=device.link_bytes_per_s,
        latency_s=device.link_latency_s or 0.0,
        achievable=1.0,
        source=device.source,
    )
    return device, link


def check_profiles() -> None:
    """Whether a profile can be kept: told before minutes of benchmarks."""
    from traincast.report.files import check_writable

    _make_folder()
    check_writable(profile_path())


def write_profile(device: Device, n_processes: int = 1) -> Path:
    """In place of an earlier one of the same, whole or not at all."""
    from traincast.hardware.device_table import device_toml
    from traincast.report.files import write_file

    _make_folder()
    return write_file(profile_path(n_processes, of_gpu=device.kind == "gpu"), device_toml(device))


def write_host(device: Device) -> Path:
    """What this machine's CPU spends on the calls of ops, as the host profile 'this-machine' of forecasts for a GPU."""
    from traincast.hardware.host import profile_path as host_path
    from traincast.report.files import write_file

    price_s = dict(device.prices)
    seconds = {
        "forward_dispatch_s": price_s.get("call.forward", 0.0) + price_s.get("call.module", 0.0),
        "backward_dispatch_s": price_s.get("call.backward", 0.0),
        "optimizer_dispatch_s": price_s.get("call.optimizer", 0.0),
        "view_dispatch_s": price_s.get("call.view", 0.0),
        "call_s": sum(price for work, price in price_s.items() if work.startswith("phase.")),
    }
    texts = {
        "source": device.source,
        "notes": "Calls of small ops on CPU tensors; a launch on a GPU costs about as much.",
    }
    lines = [f"{name} = {value!r}" for name, value in seconds.items()]
    lines += [f"{name} = {json.dumps(text, ensure_ascii=False)}" for name, text in texts.items()]
    _make_folder()
    return write_file(host_path(), "\n".join(lines) + "\n")


def _make_folder() -> None:
    folder = settings_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"The folder '{folder}' cannot be made: {error.strerror}; set TRAINCAST_HOME.") from None
