"""Finding a device by the names that people give it.

`T4`, `rtx3090` and `Tesla V100-SXM2-16GB` each mean one device. `v100` could mean four, with up to twice the
memory, and is refused with their names: a forecast for the wrong one would look just as good.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import combinations
from typing import TYPE_CHECKING

from traincast.errors import UnknownDeviceError, close_names
from traincast.hardware.device_table import builtin_devices, name_key, name_parts, read_device_file
from traincast.hardware.this_machine import THIS_GPU, read_gpu_profile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from traincast.hardware.device import Device

# Words that drivers and shops put before a name, and those that ours begin with but people leave out (3090).
_VENDOR_WORDS = ("nvidia", "amd", "tesla", "geforce", "instinct", "google", "cloud", "aws", "intel", "habana", "apple")
_SERIES_WORDS = ("quadro", "rtx", "gtx")
# Parts that tell apart versions of one product and may be left out where only one version is known. Others
# (MaxQ, Laptop, Super, Ti) tell apart products, and the one without them need not be in the table.
_SOCKET = re.compile(r"sxm\d+")  # people leave out which one
_VERSION = re.compile(r"pcie|sxm\d*|nvl|\d+gb|die|gcd|ada|blackwell|server|workstation|edition")


def all_devices(devices_file: str | Path | None = None) -> tuple[Device, ...]:
    """Every known device; those of a user's file come first and replace built-in ones of the same name."""
    if devices_file is None:
        return builtin_devices()
    own = read_device_file(devices_file)
    replaced = {name_key(device.name) for device in own}
    return own + tuple(device for device in builtin_devices() if name_key(device.name) not in replaced)


def find_device(name: str, *, devices_file: str | Path | None = None) -> Device:
    """The one device that `name` can mean; case, spaces, dashes and underscores do not matter.

    'this-gpu' is what `traincast calibrate --device cuda` found.
    """
    if name_key(name) == name_key(THIS_GPU):
        return read_gpu_profile()
    return _find_builtin(name) if devices_file is None else _find(name, all_devices(devices_file))


@lru_cache(maxsize=256)
def _find_builtin(name: str) -> Device:
    return _find(name, builtin_devices())


def _find(name: str, devices: tuple[Device, ...]) -> Device:
    for device in devices:
        if name_key(name) in (name_key(own) for own in (device.name, *device.aliases)):
            return device
    asked = "".join(_after(_VENDOR_WORDS, name_parts(name)))
    found = [device for device in devices if asked in _short_names(device)]
    if len(found) == 1:
        return found[0]
    if found:
        *most, last = (device.name for device in found)
        raise UnknownDeviceError(f"'{name}' could mean {', '.join(most)} or {last}: name one of them.")
    close = close_names(name, (device.name for device in devices))
    raise UnknownDeviceError(
        f"No device named '{name}'.{close} 'traincast devices' lists all {len(devices)}; add your own in a device file."
    )


def names_a_device(name: str) -> bool:
    """Whether a name means a device of ours, or several of one kind: 'A100' is in four forms."""
    asked = "".join(_after(_VENDOR_WORDS, name_parts(name)))
    return any(
        asked in (name_key(device.name), *map(name_key, device.aliases), *_short_names(device))
        for device in builtin_devices()
    )


def matching_devices(
    devices: Iterable[Device],
    *,
    text: str = "",
    vendor: str | None = None,
    arch: str | None = None,
    min_memory_bytes: float = 0,
) -> tuple[Device, ...]:
    """Those whose name or an alias contains `text`, of that vendor and architecture, with enough memory."""
    return tuple(
        device
        for device in devices
        if any(name_key(text) in name_key(name) for name in (device.name, *device.aliases))
        and (vendor is None or name_key(vendor) == name_key(device.vendor))
        and (arch is None or name_key(arch) == name_key(device.arch))
        and device.memory_bytes >= min_memory_bytes
    )


def _after(words: Sequence[str], parts: Sequence[str]) -> Sequence[str]:
    """The parts after any leading words; at least one part stays."""
    while len(parts) > 1 and parts[0] in words:
        parts = parts[1:]
    return parts


def _short_names(device: Device) -> Iterator[str]:
    """Keys of what people call it for short: 'A100-80GB' for 'A100-PCIe-80GB', '3090' for 'RTX-3090'."""
    for name in (device.name, *device.aliases):
        parts = _after(_VENDOR_WORDS, name_parts(name))
        n_series_words = len(parts) - len(_after(_SERIES_WORDS, parts))
        for start in range(n_series_words + 1):
            yield from _without_versions(parts[start:])


def _without_versions(parts: Sequence[str]) -> Iterator[str]:
    """The parts as one key, with every choice of versions left out, and with sockets that do not say which."""
    versions = [i for i in range(1, len(parts)) if _VERSION.fullmatch(parts[i])]
    for n_left_out in range(len(versions) + 1):
        for left_out in combinations(versions, n_left_out):
            short = [part for i, part in enumerate(parts) if i not in left_out]
            yield "".join(short)
            yield "".join(_SOCKET.sub("sxm", part) for part in short)
