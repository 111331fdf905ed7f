"""How long the parts of a job take on a placement.

A job goes through segments (the epochs of a training; a plain job has one). On one placement each segment has constant
speed, so the seconds until any point of the job are a line with corners at the segments' ends, and both "where is the
job after t seconds?" and "when does it end?" are answered exactly, without stepping.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.scaling.optimus import SpeedModel
from traincast.scheduling.applications import Application
from traincast.scheduling.machines import consolidated
from traincast.scheduling.measured_steps import Shape

Floats = NDArray[np.float64]


class Profile(Protocol):
    """What a job's speed depends on."""

    @property
    def name(self) -> str: ...

    @property
    def max_devices(self) -> int:
        """More would not be used."""

    @property
    def kinds(self) -> tuple[str, ...] | None:
        """Types of device it can run on; None: any."""

    def segment_s(self, shape: Shape, kind: str, n_servers: int) -> Floats:
        """Seconds of each segment on a placement."""


@dataclass(frozen=True, slots=True)
class TrainingProfile:
    """A training from measured tables, at the submitted batch; with batch None each epoch takes its fastest."""

    application: Application
    batch: int | None

    @property
    def name(self) -> str:
        return self.application.name

    @property
    def max_devices(self) -> int:
        most = self.application.max_batch if self.batch is None else self.batch
        return min(self.application.max_devices, max(most // self.application.min_local_batch, 1))

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.application.steps)

    def segment_s(self, shape: Shape, kind: str, n_servers: int) -> Floats:
        return self.application.epoch_s(shape, kind, self.batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountProfile:
    """Seconds by the number of devices, from 1 on: a forecast's, or of a stated speed-up. Placement does not matter,
    except that each node beyond the fewest possible adds `spread_fraction` of the time.
    """

    name: str
    seconds: Mapping[str, tuple[float, ...]]  # by type of device
    is_any_kind: bool = False  # the types' names do not matter: the first entry holds for all
    spread_fraction: float = 0.0
    node_size: int = 1_000_000

    def __post_init__(self) -> None:
        times = [second for one in self.seconds.values() for second in one]
        if not times or not all(0 < second < np.inf for second in times):
            raise InputError(f"'{self.name}' needs seconds above 0 for each number of devices, not {times[:5]}.")

    @property
    def max_devices(self) -> int:
        return max(len(one) for one in self.seconds.values())

    @property
    def kinds(self) -> tuple[str, ...] | None:
        return None if self.is_any_kind else tuple(self.seconds)

    def segment_s(self, shape: Shape, kind: str, n_servers: int) -> Floats:
        times = next(iter(self.seconds.values())) if self.is_any_kind else self.seconds[kind]
        n_devices = sum(shape)
        n_more = len(shape) - len(consolidated(n_devices, self.node_size))
        return np.array([times[min(n_devices, len(times)) - 1] * (1 + self.spread_fraction * max(n_more, 0))])


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersProfile:
    """A training with parameter servers, at the speed of Optimus' Equation 4. Servers take places like workers do.

    Its loss falls as 1 / (b0 k + b1) + b2 over steps k, and it is done at the target loss.
    """

    name: str
    speed: SpeedModel
    loss: tuple[float, float, float]  # b0, b1, b2
    target_loss: float
    expected_steps: float  # what its owner says before anything is seen
    max_devices: int
    kinds: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        b0, b1, b2 = self.loss
        if not (b0 > 0 and b1 > 0 and b2 < self.target_loss < 1 / b1 + b2):
            raise InputError(f"'{self.name}': a loss of {self.loss} does not fall to {self.target_loss:g}.")

    @property
    def n_steps(self) -> float:
        """Until the target."""
        b0, b1, b2 = self.loss
        return (1 / (self.target_loss - b2) - b1) / b0

    def loss_at(self, n_steps: float) -> float:
        b0, b1, b2 = self.loss
        return 1 / (b0 * n_steps + b1) + b2

    def segment_s(self, shape: Shape, kind: str, n_servers: int) -> Floats:
        """With 0 servers given, the best split of the places."""
        n_places = sum(shape)
        if n_places < 2:
            return np.array([np.inf])
        servers = np.arange(1, n_places) if n_servers == 0 else np.array([n_servers])
        return np.array([self.n_steps / self.speed.steps_per_s(servers, n_places - servers).max()])


def plain_profile(
    name: str, seconds: float, n_devices: int, *, max_devices: int | None = None, exponent: float = 1.0
) -> CountProfile:
    """So many seconds on `n_devices`; the speed grows with (number of devices) ** exponent, up to `max_devices`."""
    counts = np.arange(1, (max_devices or n_devices) + 1)
    times = seconds * (n_devices / counts) ** exponent
    return CountProfile(name=name, seconds={"any": tuple(times.tolist())}, is_any_kind=True)
