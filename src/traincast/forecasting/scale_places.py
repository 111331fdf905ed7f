"""Where N devices are, for each N that is asked about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from traincast.errors import InputError
from traincast.hardware.cluster import Cluster, check_count
from traincast.hardware.cluster_text import find_cluster
from traincast.hardware.host import THIS_MACHINE
from traincast.hardware.machines import machine_named
from traincast.hardware.place_text import read_place
from traincast.hardware.run_place import find_place

if TYPE_CHECKING:
    from pathlib import Path

_USUAL_COUNTS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """One cluster for each number of devices in `counts`, and for one device to compare with."""

    name: str  # in the user's words
    counts: tuple[int, ...]  # ascending
    by_count: dict[int, Cluster]
    warnings: tuple[str, ...] = field(default=())


def find_places(
    on: str | Cluster,
    counts: Sequence[int] | None = None,
    *,
    link: str | None = None,
    devices_file: str | Path | None = None,
) -> Places:
    """A device has neighbours in its node, up to eight, and then further nodes; a cluster is filled in order.

    Without counts: 1, 2, 4 ... up to what the cluster holds, or 8 of a device. `link` replaces the link inside a node.
    """
    if not isinstance(on, str):
        if link is not None:
            raise InputError("A Cluster has its links: make it with another one, or give its name to replace a link.")
        return _part_of(on, on.name, counts)
    words = on.strip()
    warnings: tuple[str, ...] = ()
    if words.lower() == THIS_MACHINE:
        place = find_place(words, devices_file=devices_file)
        words, warnings = place.device.name, place.warnings
    elif _says_more_than_a_device(words):
        return _part_of(find_cluster(words, devices_file=devices_file, link=link), words, counts)
    name = find_cluster(words, devices_file=devices_file, link=link).device.name
    found = _checked(_USUAL_COUNTS if counts is None else counts)
    by_count = {n: find_cluster(f"{n}x{name}", devices_file=devices_file, link=link) for n in {1, *found}}
    return Places(
        name=name,
        counts=found,
        by_count=by_count,
        warnings=(*warnings, *_assumed(by_count[found[-1]])),
    )


def _part_of(cluster: Cluster, name: str, counts: Sequence[int] | None) -> Places:
    if counts is None:
        n_all = cluster.n_devices
        counts = [2**power for power in range(n_all.bit_length()) if 2**power < n_all] + [n_all]
    found = _checked(counts)
    by_count = {n: cluster.take(n) for n in sorted({1, *found})}
    return Places(name=name, counts=found, by_count=by_count, warnings=_assumed(cluster))


def _assumed(cluster: Cluster) -> tuple[str, ...]:
    return (cluster.assumption,) if cluster.assumption else ()


def _checked(counts: Sequence[int]) -> tuple[int, ...]:
    if not len(counts):
        raise InputError("Scaling needs at least one number of devices, such as 1,2,4,8.")
    for n in counts:
        check_count(n, "A number of devices")
    return tuple(sorted({int(n) for n in counts}))


def _says_more_than_a_device(words: str) -> bool:
    """A number, a link, a file or the name of a machine."""
    return not read_place(words).is_name or machine_named(words) is not None
