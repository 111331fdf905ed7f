"""Where a run is to take place, by the words that users write for it: one device, or a cluster."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from traincast.errors import UnknownDeviceError
from traincast.hardware.catalog import find_device
from traincast.hardware.host import THIS_MACHINE
from traincast.hardware.place_text import read_place
from traincast.hardware.this_machine import read_profile

if TYPE_CHECKING:
    from pathlib import Path

    from traincast.hardware.cluster import Cluster
    from traincast.hardware.device import Device

_GENERIC = "generic-cpu"


@dataclass(frozen=True, slots=True)
class RunPlace:
    """A device, the cluster that it is part of (None: it is alone), and what had to be assumed."""

    device: Device
    cluster: Cluster | None = None
    warnings: tuple[str, ...] = ()


def find_place(on: str | Cluster, *, devices_file: str | Path | None = None) -> RunPlace:
    """Of 'T4', '4xT4', '2x4xT4@50Gb/s', the name of a machine, a TOML file, a Cluster or 'this-machine'."""
    if not isinstance(on, str):
        return _of_cluster(on)
    words = on.strip()
    if words.lower() == THIS_MACHINE:
        calibrated = read_profile()
        if calibrated is not None:
            return RunPlace(calibrated)
        device = find_device(_GENERIC, devices_file=devices_file)
        assumed = (
            f"This machine was not calibrated ('traincast calibrate' takes two minutes): its figures are those of "
            f"{device.name}, a guess."
        )
        return RunPlace(device, warnings=(assumed,))
    text = read_place(words)
    if text.name and replace(text, counts=()).is_name and text.counts in ((), ("1",)):
        try:
            return RunPlace(find_device(text.name, devices_file=devices_file))
        except UnknownDeviceError:
            pass  # a machine, a file, or a name that only the table of machines can answer
    from traincast.hardware.cluster_text import find_cluster

    return _of_cluster(find_cluster(words, devices_file=devices_file))


def _of_cluster(cluster: Cluster) -> RunPlace:
    return RunPlace(cluster.device, cluster, warnings=(cluster.assumption,) if cluster.assumption else ())
