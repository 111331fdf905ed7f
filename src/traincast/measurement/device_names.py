"""Names of the devices that steps can be measured on. Needs no torch."""

from __future__ import annotations

import re

from traincast.errors import InputError


def check_device_name(device: str) -> str:
    """The device, if it may be on some machine."""
    if isinstance(device, str) and (device == "cpu" or re.fullmatch(r"cuda(:\d+)?", device)):
        return device
    raise InputError(f"Steps can be measured on 'cpu', 'cuda' or 'cuda:1', not on '{device}'.")
