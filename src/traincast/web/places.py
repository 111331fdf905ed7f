"""Places that a request may name: devices and machines of the tables, counted and joined; never a file.

The engine also reads cluster files and this machine's own profile. Neither is for whoever reaches the page, so the
words are taken apart here and only what the tables know is handed on.
"""

from __future__ import annotations

import re

from traincast.errors import InputError, UnknownDeviceError, close_names

_WORDS = re.compile(
    r"(?:(?P<first>[0-9]{1,4})\s*x\s*)?(?:(?P<second>[0-9]{1,4})\s*x\s*)?"
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9 ._+-]*)(?:@(?P<link>[A-Za-z0-9 ./+-]+))?"
)
_MOST_DEVICES = 512
_MACHINES_TO_SCALE = 8


def place_of(text: str) -> str:
    """The same place in words that are safe to hand on."""
    found = _WORDS.fullmatch(text)
    if found is None:
        raise InputError(f"'{text}' is no place: write 'T4', '4xT4', '2x4xT4@50Gb/s' or the name of a machine.")
    counts = [int(found[part]) for part in ("first", "second") if found[part]]
    total = 1
    for count in counts:
        total *= count
    name, n_each = _known(found["name"].strip())
    if not 1 <= total * n_each <= _MOST_DEVICES:
        raise InputError(f"'{text}' has {total * n_each:,} devices: the page answers from 1 to {_MOST_DEVICES}.")
    link = "" if found["link"] is None else f"@{_link(found['link'].strip())}"
    return f"{''.join(f'{count}x' for count in counts)}{name}{link}"


def device_of(text: str) -> str:
    """A single device; of a machine, the device that it is made of."""
    from traincast.forecasting.place import find_place

    return find_place(place_of(text)).device.name


def place_to_scale(text: str) -> str:
    """The place itself, or several of a machine with a single device: alone there is nothing to scale."""
    from traincast.forecasting.place import find_place
    from traincast.hardware.machines import machine_named

    words = place_of(text)
    machine = machine_named(words)
    if machine is None or machine.n_devices > 1:
        return words
    return find_place(words).device.name if machine.network is None else f"{_MACHINES_TO_SCALE}x{words}"


def _known(name: str) -> tuple[str, int]:
    """The table's own name, and the devices that it stands for."""
    from traincast.hardware.catalog import all_devices, find_device
    from traincast.hardware.machines import all_machines, machine_named

    machine = machine_named(name)
    if machine is not None:
        return machine.name, machine.n_devices
    try:
        return find_device(name).name, 1
    except UnknownDeviceError as error:
        if not str(error).startswith("No device"):  # it could mean several, and the error names them
            raise
    names = [device.name for device in all_devices()] + [machine.name for machine in all_machines()]
    raise UnknownDeviceError(f"No device or machine named '{name}'.{close_names(name, names)} /api/devices lists all.")


def _link(text: str) -> str:
    from traincast.hardware.link_table import find_link

    find_link(text)
    return text
