"""How long the parts of a job take on a placement.

A job goes through segments (the epochs of a training; a plain job has one). On one placement each segment has constant
speed, so the seconds until any point of the job are a line with corners at the segments' ends, and both "where is the
job after t seconds?" and "when does it end?" are answered exactly, without stepping.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from traincast.errors import InputError
from traincast.scaling.optimus import SpeedModel
from traincast.scheduling.applications import Application
from traincast.scheduling.measured_steps import Shape
from traincast.scheduling.values import is_number, is_whole, told

Floats = NDArray[np.float64]


class Profile(Protocol):
    """What a job's speed depends on."""

    @property
    def name(self) -> str: ...

    @property
    def min_devices(self) -> int:
        """With fewer it does not run."""

    @property
    def max_devices(self) -> int:
        """More would not be used."""

    @property
    def kinds(self) -> tuple[str, ...] | None:
        """Types of device it can run on; None: any."""

    def segment_s(self, shape: Shape, kind: str, n_servers: int) -> Floats:
        """Seconds of each segment on a placement. Of its places `n_servers` are parameter servers (0: not said)."""


@dataclass(frozen=True, slots=True)
class TrainingProfile:
    """A training from measured tables, at the submitted batch; with batch None each epoch takes its fastest."""

    application: Application
    batch: int | None
    min_devices: int = 1

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
class PlainProfile:
    """So many seconds on so many devices of any type; the speed grows with (number of devices) ** exponent.

    Where the devices are does not matter.
    """

    name: str
    seconds: float
    n_devices: int
    max_devices: int
    exponent: float = 1.0
    min_devices: int = 1
    kinds: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if not (is_number(self.seconds) and self.seconds > 0):
            raise InputError(f"'{self.name}' needs seconds above 0, not {told(self.seconds)}.")
        counts = (self.n_devices, self.max_devices)
        if not all(is_whole(n) and n >= 1 for n in counts):
            raise InputError(f"'{self.name}' needs whole numbers of devices from 1, not {counts}.")
        if not (is_number(self.exponent) and 0 <= self.exponent <= 1):
            raise InputError(f"'{self.name}' needs an exponent from 0 to 1, not {told(self.exponent)}.")

    def segment_s(self, shape: Shape, kind: str, n_servers: int) -> Floats:
        n = min(sum(shape), self.max_devices)
        return np.array([self.seconds * (self.n_devices / n) ** self.exponent])


def plain_profile(
    name: str, seconds: float, n_devices: int, *, max_devices: int | None = None, exponent: float = 1.0
) -> PlainProfile:
    """So many seconds on `n_devices`; it can use up to `max_devices` (None: no more than these)."""
    return PlainProfile(
        name=name,
        seconds=seconds,
        n_devices=n_devices,
        max_devices=n_devices if max_devices is None else max_devices,
        exponent=exponent,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CountProfile:
    """Seconds by the number of devices, from 1 on. Where they are does not matter."""

    name: str
    seconds: Mapping[str, tuple[float, ...]]  # by type of device
    min_devices: int = 1

    def __post_init__(self) -> None:
        times = [second for one in self.seconds.values() for second in one]
        if not times or not all(0 < second < np.inf for second in times):
            raise InputError(f"'{self.name}' needs seconds above 0 for each number of devices, not {times[:5]}.")

    @property
    def max_devices(self) -> int:
        return max(len(one) for one in self.seconds.values())

    @property
    def kinds(self) -> tuple[str, ...]:
        return tuple(self.seconds)

    def segment_s(self, shape: Shape, kind: str, n_servers: int) -> Floats:
        times = self.seconds[kind]
        return np.array([times[min(sum(shape), len(times)) - 1]])


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class ForecastProfile:
    """A training whose seconds are forecast for each placement: devices on more nodes than needed wait for the link."""

    name: str
    max_devices: int
    kinds: tuple[str, ...]
    total_s: Callable[[str, Shape], float]  # of the whole run, by type of device and devices on each node
    min_devices: int = 1

    def segment_s(self, shape: Shape, kind: str, n_servers: int) -> Floats:
        return np.array([self.total_s(kind, shape)])


@dataclass(frozen=True, slots=True, kw_only=True)
class ServersProfile:
    """A training with parameter servers, at the speed of Optimus' Equation 4. Servers take places like workers do.

    Its loss falls as 1 / (b0 k + b1) + b2 over steps k, and it is done at the target loss. A policy that knows nothing
    of servers gives it places, and they are split as its owner asked: in the same ratio, at least one of each.
    """

    name: str
    speed: SpeedModel
    loss: tuple[float, float, float]  # b0, b1, b2
    target_loss: float
    expected_steps: float  # what its owner says before anything is seen
    max_devices: int
    asked: tuple[int, int] = (1, 1)  # servers and workers
    kinds: tuple[str, ...] | None = None
    min_devices: int = 2

    def __post_init__(self) -> None:
        b0, b1, b2 = self.loss
        if not (b0 > 0 and b1 > 0 and b2 < self.target_loss < 1 / b1 + b2):
            raise InputError(f"'{self.name}': a loss of {self.loss} does not fall to {self.target_loss:g}.")
        if not 0 < self.expected_steps < np.inf:
            raise InputError(f"'{self.name}': the expected steps should be above 0, not {self.expected_steps:g}.")
        if min(self.asked) < 1 or sum(self.asked) > self.max_devices:
            raise InputError(
                f"'{self.name}' asks for {self.asked[0]} servers and {self.asked[1]} workers: at least one of each, "
                f"and together at most {self.max_devices}."
            )

    @property
    def n_steps(self) -> float:
        """Until the target."""
        b0, b1, b2 = self.loss
        return (1 / (self.target_loss - b2) - b1) / b0

    def loss_at(self, n_steps: float) -> float:
        b0, b1, b2 = self.loss
        return 1 / (b0 * n_steps + b1) + b2

    def n_servers_of(self, n_places: int) -> int:
        """In the ratio that was asked for."""
        n = round(n_places * self.asked[0] / sum(self.asked))
        return min(max(n, 1), n_places - 1)

    def segment_s(self, shape: Shape, kind: str, n_servers: int) -> Floats:
        n_places = sum(shape)
        servers = n_servers or self.n_servers_of(n_places)
        return np.array([self.n_steps / float(self.speed.steps_per_s(servers, n_places - servers))])
