"""Places that a request may name: devices and machines of the tables, counted and joined; never a file.

The engine also reads cluster files and this machine's own profile. Neither is for whoever reaches the page, so the
words are taken apart here and only what the tables know is handed on.
"""

from __future__ import annotations

import math
from dataclasses import replace

from traincast.errors import InputError, UnknownDeviceError, close_names

_NAME = frozenset(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ._+-"
)  # letters of names in the tables
_MOST_DEVICES = 512
_MACHINES_TO_SCALE = 8


def place_of(text: str) -> str:
    """The same place in words that are safe to hand on."""
    from traincast.hardware.link_table import find_link
    from traincast.hardware.machines import machine_named
    from traincast.hardware.place_text import read_place, whole_number

    place = read_place(text).named(lambda name: machine_named(name) is not None)
    if not place.name or not set(place.name) <= _NAME or place.parts or len(place.counts) > 2:
        raise InputError(f"'{text}' is no place: write 'T4', '4xT4', '2x4xT4@50Gb/s' or the name of a machine.")
    counts = [whole_number(digits, "devices", text) for digits in place.counts]
    name, n_each = _known(place.name)
    n_devices = math.prod(counts) * n_each
    if n_devices > _MOST_DEVICES:
        raise InputError(f"'{text}' has {n_devices:,} devices: the page answers from 1 to {_MOST_DEVICES}.")
    if place.link is not None:
        find_link(place.link)  # raises for what is none
    return str(replace(place, name=name, counts=tuple(map(str, counts))))


def device_of(text: str) -> str:
    """A single device; of a machine, the device that it is made of."""
    from traincast.hardware.run_place import find_place

    return find_place(place_of(text)).device.name


def place_to_scale(text: str) -> str:
    """The place itself, or several of a machine with a single device: alone there is nothing to scale."""
    from traincast.hardware.machines import machine_named
    from traincast.hardware.run_place import find_place

    words = place_of(text)
    machine = machine_named(words)
    if machine is None or machine.n_devices > 1:
        return words
    return find_place(words).device.name if machine.network is None else f"{_MACHINES_TO_SCALE}x{words}"


def _known(name: str) -> tuple[str, int]:
    """The table's own name, and the devices that it stands for."""
    from traincast.hardware.catalog import all_devices, find_device
    from traincast.hardware.device_table import name_key
    from traincast.hardware.machines import all_machines, machine_named
    from traincast.hardware.this_machine import THIS_GPU

    machine = machine_named(name)
    if machine is not None:
        return machine.name, machine.n_devices
    try:
        if name_key(name) != name_key(THIS_GPU):  # a profile on this machine's disk
            return find_device(name).name, 1
    except UnknownDeviceError as error:
        if not str(error).startswith("No device"):  # it could mean several, and the error names them
            raise
    names = [device.name for device in all_devices()] + [machine.name for machine in all_machines()]
    raise UnknownDeviceError(f"No device or machine named '{name}'.{close_names(name, names)} /api/devices lists all.")
