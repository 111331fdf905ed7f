"""Seconds of every profile on every placement and count, worked out once and kept."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.scheduling.machines import Machines, consolidated
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
    _kept: list[Profile] = field(default_factory=list)  # so that an identity is not used again

    def ends_s(self, profile: Profile, shape: Shape, kind: str, n_servers: int = 0) -> list[float]:
        """Seconds from the start until each segment begins, and in the last place until the job ends."""
        key = (id(profile), shape, kind, n_servers)
        found = self._curves.get(key)
        if found is None:
            self._kept.append(profile)
            found = [0.0, *np.cumsum(profile.segment_s(shape, kind, n_servers)).tolist()]
            if not 0 < found[-1] < np.inf:
                raise InputError(f"'{profile.name}' takes {found[-1]} s on {shape}: it should be finite and above 0.")
            self._curves[key] = found
        return found

    def table_s(self, profile: Profile, kind: str) -> Floats:
        """The same for 0, 1, 2, ... devices on the fewest nodes: a row each. That of none is 0 and means nothing."""
        key = (id(profile), kind)
        found = self._tables.get(key)
        if found is None:
            size = self.machines.node_size(kind)
            most = self.most(profile, kind)
            rows = [self._row(profile, n, size, kind) for n in range(1, most + 1)]
            found = np.vstack([np.zeros(len(rows[0])), *rows])
            self._tables[key] = found
        return found

    def _row(self, profile: Profile, n_devices: int, size: int, kind: str) -> Floats:
        self._kept.append(profile)
        return np.concatenate([[0.0], np.cumsum(profile.segment_s(consolidated(n_devices, size), kind, 0))])

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
        allowed = profile.kinds
        return tuple(kind for kind in self.machines.types if allowed is None or kind in allowed)


def after(ends_s: list[float], position: float) -> float:
    """Seconds until a position: whole segments and a fraction of one."""
    n_segments = len(ends_s) - 1
    whole = min(int(position), n_segments - 1)
    return ends_s[whole] + (position - whole) * (ends_s[whole + 1] - ends_s[whole])
