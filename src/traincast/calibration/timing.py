"""Times of the benchmarks, by phase, in several rounds: a disturbance that lasts a minute spoils only one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from traincast.calibration.benchmarks import Benchmark, all_benchmarks
from traincast.measurement.stopwatch import CpuStopwatch
from traincast.measurement.training import PHASES, Training

_WARM_UP_STEPS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """One benchmark at one batch size: usual seconds of each phase and of the whole step."""

    benchmark: str
    batch_size: int
    optimizer: str
    usual_s: dict[str, float]
    n_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much is run: so many rounds of cases, each for about `budget_s`, of all benchmarks or of those named.

    As it is, all of it takes less than three minutes on a laptop's CPU.
    """

    n_rounds: int = 4
    budget_s: float = 0.12
    names: tuple[str, ...] | None = None

    def benchmarks(self) -> list[Benchmark]:
        return [each for each in all_benchmarks() if self.names is None or each.name in self.names]

    def cases(self) -> list[Case]:
        return cases(self.benchmarks())

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Effort:
        names = data["names"]
        return cls(**{**data, "names": None if names is None else tuple(names)})


FULL = Effort()


@dataclass(frozen=True, slots=True)
class Case:
    benchmark: Benchmark
    batch_size: int
    optimizer: str


def cases(benchmarks: list[Benchmark]) -> list[Case]:
    """Every benchmark at each of its batch sizes; other optimizers at the first of them only."""
    return [
        Case(benchmark, batch_size, optimizer)
        for benchmark in benchmarks
        for batch_size in benchmark.batch_sizes
        for optimizer in (benchmark.optimizers if batch_size == benchmark.batch_sizes[0] else benchmark.optimizers[:1])
    ]


def time_case(case: Case, *, budget_s: float) -> Timing:
    """As many steps as fit the budget, at least 3 and at most 40."""
    training = Training(case.benchmark.runnable(), optimizer=case.optimizer)
    inputs, stopwatch = training.inputs(case.batch_size), CpuStopwatch()
    for _ in range(_WARM_UP_STEPS):
        training.step(inputs, stopwatch)
        stopwatch.read()
    rows: list[list[float]] = []
    start_s = time.perf_counter()
    while len(rows) < 3 or (len(rows) < 40 and time.perf_counter() - start_s < budget_s):
        training.step(inputs, stopwatch)
        rows.append(stopwatch.read())
    seconds = torch.tensor(rows, dtype=torch.float64)
    seconds = torch.cat([seconds, seconds.sum(1, keepdim=True)], 1)
    names = (*PHASES, "step")
    return Timing(
        benchmark=case.benchmark.name,
        batch_size=case.batch_size,
        optimizer=case.optimizer,
        usual_s=dict(zip(names, seconds.median(0).values.tolist(), strict=True)),
        n_steps=len(rows),
    )


def time_all(effort: Effort, *, on_progress: Callable[[int, int], None]) -> Iterator[Timing]:
    """All cases on the CPU, round after round."""
    chosen = effort.n_rounds * effort.cases()
    for number, case in enumerate(chosen, start=1):
        yield time_case(case, budget_s=effort.budget_s)
        on_progress(number, len(chosen))
