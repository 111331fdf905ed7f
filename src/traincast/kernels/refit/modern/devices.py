"""Names of devices as the files write them, and the device table's own."""

from __future__ import annotations

from traincast.errors import InputError
from traincast.hardware.catalog import find_device

# Only where a file's name means one row of the table. "A100 SXM" of both memory sizes have the same units; what was
# timed there fits in either, and the 80 GB board's bandwidth is the one of the machines named in the sources.
_SAME = {
    "H200-SXM5-141GB": "H200-SXM",
    "NVIDIA B200 SXM": "B200",
    "NVIDIA A100 SXM": "A100-SXM4-80GB",
    "A100-SXM4": "A100-SXM4-80GB",
}


def known_device(name: str) -> str | None:
    """The table's name; None while the table has no such device, or several that it could be."""
    for each in (name, _SAME.get(name, name)):
        try:
            return find_device(each).name
        except InputError:
            continue
    return None
