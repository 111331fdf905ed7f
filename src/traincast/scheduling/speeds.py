"""Seconds of every profile on every placement and count, worked out once and kept."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.scheduling.machines import Machines
from traincast.scheduling.measured_steps import Shape
from traincast.scheduling.profile import Profile

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, slots=True)
class Speeds:
    """Looks profiles up on one cluster. Profiles are told apart by identity: share them between equal jobs."""

    machines: Machines
    _curves: dict[tuple[int, Shape, str, int], list[float]] = field(default_factory=dict)
    _tables: dict[tuple[int, str], Floats] = field(default_factory=dict)
    _most: dict[tuple[int, str], int] = field(default_factory=dict)
    _kinds: dict[int, tuple[str, ...]] = field(default_factory=dict)
    _kept: list[Profile] = field(default_factory=list)  # so that an identity is not used again

    def ends_s(self, profile: Profile, shape: Shape, kind: str, n_servers: int = 0) -> list[float]:
        """Seconds from the start until each segment begins, and in the last place until the job ends."""
        key = (id(profile), shape, kind, n_servers)
        found = self._curves.get(key)
        if found is None:
            self._kept.append(profile)
            found = [0.0, *np.cumsum(self._segments_s(profile, shape, kind, n_servers)).tolist()]
            self._curves[key] = found
        return found

    def table_s(self, profile: Profile, kind: str) -> Floats:
        """The same for 0, 1, 2, ... devices on the fewest nodes: a row each. Where it does not run a row is 0 and means
        nothing.
        """
        key = (id(profile), kind)
        found = self._tables.get(key)
        if found is None:
            self._kept.append(profile)
            counts = range(profile.min_devices, self.most(profile, kind) + 1)
            rows = [np.cumsum(self._segments_s(profile, self.machines.fewest_nodes(kind, n), kind, 0)) for n in counts]
            found = np.zeros((counts.stop, len(rows[0]) + 1))
            found[counts.start :, 1:] = rows
            self._tables[key] = found
        return found

    def _segments_s(self, profile: Profile, shape: Shape, kind: str, n_servers: int) -> Floats:
        seconds = profile.segment_s(shape, kind, n_servers)
        if not ((seconds > 0) & (seconds < np.inf)).all():
            wrong = seconds[~((seconds > 0) & (seconds < np.inf))][0]
            raise InputError(f"'{profile.name}' takes {wrong} s on {shape}: it should be finite and above 0.")
        return seconds

    def most(self, profile: Profile, kind: str) -> int:
        """Devices that the job can use of those that are there."""
        key = (id(profile), kind)
        found = self._most.get(key)
        if found is None:
            self._kept.append(profile)
            found = self._most[key] = min(profile.max_devices, self.machines.n_devices_of(kind))
        return found

    def kinds(self, profile: Profile) -> tuple[str, ...]:
        """Types of device that are there and that it can run on."""
        found = self._kinds.get(id(profile))
        if found is None:
            self._kept.append(profile)
            found = self._kinds[id(profile)] = tuple(
                kind
                for kind in self.machines.types
                if (profile.kinds is None or kind in profile.kinds)
                and self.machines.n_devices_of(kind) >= profile.min_devices
            )
        return found


def after(ends_s: list[float], position: float) -> float:
    """Seconds until a position: whole segments and a fraction of one."""
    n_segments = len(ends_s) - 1
    whole = min(int(position), n_segments - 1)
    return ends_s[whole] + (position - whole) * (ends_s[whole + 1] - ends_s[whole])
