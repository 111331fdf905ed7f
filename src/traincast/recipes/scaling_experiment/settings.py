"""Which epochs are trained: batch sizes x devices, in both definitions of scaling.

A batch size b is taken twice. In weak scaling it is that of each device, so N devices share a batch of N b. In strong
scaling it is that of all devices together, so each has b/N. On one device the two are the same run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from traincast.errors import InputError
from traincast.recipes.engine.settings import check_whole, settings_like
from traincast.recipes.usual import SCALING_DEVICES, SCALING_EPOCHS, SCRATCH

GROWTH = 4  # from one batch size to the next, where they go on until memory or data end
FILE = "settings.json"


@dataclass(frozen=True, slots=True, order=True)
class Cell:
    """One run: so many devices, and so many samples for each of them in a step."""

    n_devices: int
    batch_size: int

    @property
    def global_batch_size(self) -> int:
        return self.n_devices * self.batch_size

    @property
    def name(self) -> str:
        return f"{self.n_devices}x{self.batch_size}"

    def n_steps(self, n_samples: int) -> int:
        """Of an epoch; the last one has what is left over."""
        return -(-n_samples // self.global_batch_size)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingSettings:
    """All that decides what is run. On a CPU a device is a process with `n_threads`, the same for every number."""

    model: str
    data: str
    batch_sizes: tuple[int, ...]
    n_devices: tuple[int, ...] = SCALING_DEVICES
    n_threads: int
    n_epochs: int = SCALING_EPOCHS  # the first is not counted
    n_samples: int | None = None  # of the training data; None: all of them
    image_side: int | None = None  # None: as the data are
    optimizer: str = SCRATCH.optimizer
    learning_rate: float = SCRATCH.learning_rate
    precision: str = "fp32"
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("batch_sizes", "n_devices"):
            values = getattr(self, name)
            if not values or list(values) != sorted(set(values)) or values[0] < 1:
                raise InputError(f"{name} should be whole numbers from 1, each once and rising, not {list(values)}.")
        if self.n_devices[0] != 1:
            raise InputError(
                f"Speedups are relative to one device: start the numbers of devices with 1, not {self.n_devices[0]}."
            )
        if self.n_epochs < 2:
            raise InputError(f"The first epoch is not counted, so {self.n_epochs} leaves none: train at least 2.")
        if self.device not in ("cpu", "cuda"):
            raise InputError(f"Several processes run on 'cpu' or on 'cuda' (one GPU each), not on '{self.device}'.")
        check_whole("n_threads", self.n_threads, at_least=1)
        names = ("n_epochs", "optimizer", "learning_rate", "precision", "device", "seed")
        settings_like(SCRATCH, **{name: getattr(self, name) for name in names})  # raises where one cannot be

    def cells(self, n_samples: int) -> tuple[Cell, ...]:
        """Runs of both definitions whose epoch has a full step, by devices and batch size."""
        weak = {Cell(n, batch) for n in self.n_devices for batch in self.batch_sizes}
        strong = {Cell(n, batch // n) for n in self.n_devices for batch in self.batch_sizes if batch % n == 0}
        return tuple(sorted(cell for cell in weak | strong if cell.global_batch_size <= n_samples))

    def left_out(self, n_samples: int) -> tuple[Cell, ...]:
        """Runs of weak scaling for which the data are too few to fill one step."""
        asked = (Cell(n, batch) for n in self.n_devices for batch in self.batch_sizes)
        return tuple(sorted(cell for cell in asked if cell.global_batch_size > n_samples))

    def undivided(self) -> tuple[tuple[int, int], ...]:
        """Numbers of devices and batches of strong scaling that cannot be divided among so many."""
        return tuple((n, batch) for n in self.n_devices for batch in self.batch_sizes if batch % n)

    def to_dict(self) -> dict[str, Any]:
        return json.loads(json.dumps(asdict(self)))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ScalingSettings:
        lists = {name: tuple(data[name]) for name in ("batch_sizes", "n_devices")}
        return cls(**{**data, **lists})
