"""Times of the benchmarks, by phase, in several rounds: a disturbance that lasts a minute spoils only one of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from traincast.measurement.calibration.benchmarks import Benchmark
from traincast.measurement.runnable import Runnable
from traincast.measurement.stopwatch import stopwatch_for
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


def time_case(case: Case, *, device: str, budget_s: float) -> Timing:
    """As many steps as fit the budget, at least 3 and at most 40."""
    benchmark = case.benchmark
    runnable = Runnable(
        name=benchmark.name,
        module=benchmark.make(),
        make_inputs=benchmark.make_inputs,
        forward=lambda module, inputs: module(inputs),
        loss=benchmark.loss,
    )
    training = Training(runnable, optimizer=case.optimizer, device=device)
    inputs, stopwatch = training.inputs(case.batch_size), stopwatch_for(device)
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
        benchmark=benchmark.name,
        batch_size=case.batch_size,
        optimizer=case.optimizer,
        usual_s=dict(zip(names, seconds.median(0).values.tolist(), strict=True)),
        n_steps=len(rows),
    )


def time_all(
    chosen: list[Case], *, device: str, n_rounds: int, budget_s: float, on_progress: Callable[[int, int], None]
) -> Iterator[Timing]:
    """All cases, round after round."""
    n_all = n_rounds * len(chosen)
    for number in range(n_all):
        yield time_case(chosen[number % len(chosen)], device=device, budget_s=budget_s)
        on_progress(number + 1, n_all)
