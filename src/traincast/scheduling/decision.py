"""What a policy sees and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from traincast.scheduling.job import Job
from traincast.scheduling.machines import Machines

Floats = NDArray[np.float64]
Placement = tuple[tuple[int, int], ...]  # (node, devices there)
EVERY_TIME = 0.0
NEVER = np.inf


@dataclass(frozen=True, slots=True)
class Decision:
    """Where each job runs from now on; who is not named waits. `servers` of its places are parameter servers."""

    placements: Mapping[int, Placement]
    servers: Mapping[int, int] = field(default_factory=dict)


class State(Protocol):
    """The cluster at one moment, as a policy sees it. Jobs are numbers, in the order of submission."""

    @property
    def now_s(self) -> float: ...

    @property
    def machines(self) -> Machines: ...

    @property
    def capacity(self) -> Sequence[int]:
        """Devices of each node that work now."""

    @property
    def free(self) -> Sequence[int]:
        """Of these, those that nobody has."""

    @property
    def jobs(self) -> Sequence[Job]: ...

    @property
    def active(self) -> Mapping[int, None]:
        """Submitted and not finished."""

    @property
    def placed(self) -> Mapping[int, Placement]:
        """Running now."""

    @property
    def held(self) -> Mapping[int, int]:
        """How many devices each of these has."""

    @property
    def servers(self) -> Mapping[int, int]:
        """How many of those are parameter servers, where any are."""

    @property
    def n_starts(self) -> Sequence[int]:
        """How often each job was given devices."""

    def position(self, job: int) -> float:
        """Segments done, with the fraction of the current one."""

    def kinds(self, job: int) -> tuple[str, ...]:
        """Types of device that are there and that it can run on."""

    def n_least(self, job: int) -> int:
        """Devices without which it does not run."""

    def n_most(self, job: int, kind: str) -> int:
        """Devices of a type that it can use."""

    def whole_s(self, job: int, kind: str) -> Floats:
        """Forecast seconds of the whole job with 0, 1, 2, ... devices of a type; infinite where it does not run."""

    def remaining_s(self, job: int, kind: str) -> Floats:
        """Forecast seconds until the end with 0, 1, 2, ... devices of a type; infinite where it does not run."""

    def segment_s(self, job: int, kind: str) -> Floats:
        """Forecast seconds of the segment it is in with 0, 1, 2, ... devices; infinite where it does not run."""

    def requested_s(self, jobs: Sequence[int]) -> Floats:
        """Forecast seconds until the end with the devices that were asked for."""

    def attained_device_s(self, jobs: Sequence[int]) -> Floats:
        """Devices times seconds that each has had."""


class Foreseeable(State, Protocol):
    """A simulated cluster: it is known how it goes on."""

    @property
    def even_until_s(self) -> float:
        """Until when each that runs keeps its pace: the next end of a restart or a segment. Infinite: nobody runs."""

    def later(self, at_s: float) -> State:
        """The same cluster at that moment, where no job and no node comes or goes before."""


class Policy(Protocol):
    """Divides the cluster. It is asked at each interval in which something may change.

    What a policy remembers belongs to one run: each begins with `fresh`, so that one object may serve many.
    """

    @property
    def name(self) -> str: ...

    @property
    def adapts_batch(self) -> bool:
        """Whether it may choose the batch of a job that allows it."""

    @property
    def is_random(self) -> bool:
        """Whether its answers depend on the seed: it works with observations that carry noise."""

    def fresh(self, seed: int) -> Policy:
        """The same rules with nothing remembered."""

    def decide(self, state: State) -> Decision:
        """Who runs where from now on."""

    def wakes_s(self, state: State) -> float:
        """When the answer may change though no job comes or goes: EVERY_TIME, NEVER, or a moment."""


@runtime_checkable
class Fitting(Protocol):
    """A policy that fits models of each job at each decision, which takes it milliseconds."""

    @property
    def most_fits(self) -> int:
        """After so many it gives up."""


@runtime_checkable
class Foresighted(Protocol):
    """A policy that can be asked at each interval, and says for how long there is no need to."""

    def keeps_until_s(self, state: Foreseeable) -> float:
        """Before this moment the answer is the one just given, where no job and no node comes or goes."""
