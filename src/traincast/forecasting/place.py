"""Where a run is to take place: one device by the words that users write for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.hardware.host import THIS_MACHINE

if TYPE_CHECKING:
    from pathlib import Path

    from traincast.hardware.device import Device

_GENERIC = "generic-cpu"
_COUNTED = re.compile(r"(?P<n>\d+)\s*x\s*(?P<rest>.+)", re.IGNORECASE)


def find_place(on: str, *, devices_file: str | Path | None = None) -> tuple[Device, tuple[str, ...]]:
    """The device of 'T4', '1xT4' or 'this-machine', and what had to be assumed for it."""
    if on.strip().lower() == THIS_MACHINE:
        device = find_device(_GENERIC, devices_file=devices_file)
        return device, (f"This machine was not calibrated: its figures are those of {device.name}, a guess.",)
    counted = _COUNTED.fullmatch(on.strip())
    if counted is None:
        return find_device(on, devices_file=devices_file), ()
    if int(counted["n"]) != 1 or _COUNTED.fullmatch(counted["rest"]) or "@" in counted["rest"]:
        raise InputError(
            f"'{on}' is not one device: a forecast is for one, and many come with 'traincast scale', "
            "which is not built yet."
        )
    return find_device(counted["rest"], devices_file=devices_file), ()
