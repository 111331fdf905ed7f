"""Real data-parallel steps: every process runs its share, DistributedDataParallel reduces the gradients.

The four ways to run a step (see `ProcessesMeasurement`) take turns, a block each a round, so that all see the same
machine. All processes enter a block together; inside it nothing but the reduction itself synchronises them, as in
training. The first step of a block is not counted: DDP broadcasts buffers at the start of the step that follows a
reduced one, so that broadcast belongs to the block before.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch.nn.parallel import DistributedDataParallel

from traincast.errors import InputError
from traincast.measurement.failures import users_code
from traincast.measurement.measure import check_count_of
from traincast.measurement.processes.all_reduce import mean_call_s
from traincast.measurement.processes.group import Group, losses_told
from traincast.measurement.processes.link_fit import ring_bytes
from traincast.measurement.processes.result import ProcessesMeasurement
from traincast.measurement.processes.share import share_of
from traincast.measurement.remarks import on_load, on_losses
from traincast.measurement.runnable import Runnable
from traincast.measurement.statistics import summarise
from traincast.measurement.stopwatch import stopwatch_for
from traincast.measurement.training import PHASES, Training
from traincast.records.environment import Environment, read_environment
from traincast.units import MIB

N_ROUNDS = 6
N_WARM_UP = 3
_LARGE_BYTES = 16 * MIB
# Of each way, where the number of steps is not given: enough for a median, and the whole in about half a minute.
_FEWEST_STEPS, _MOST_STEPS, _STEPS_S = 12, 60, 4.0


def run_ddp(  # noqa: PLR0913  (the options of a measured step)
    group: Group,
    runnable: Runnable,
    *,
    batch_size: int,
    optimizer: str = "sgd",
    precision: str = "fp32",
    n_steps: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_round: Callable[[ProcessesMeasurement], None] | None = None,
) -> ProcessesMeasurement:
    """Steps of the global batch, `n_steps` or a few more of each way (None: as many as tell). All get the answer.

    `on_round` hears what is known after each round but the last.
    """
    share = share_of(batch_size, group.n_processes)
    check_count_of("steps", n_steps)
    if not any(weight.requires_grad for weight in runnable.module.parameters()):
        raise InputError(f"{runnable.name} has no trainable parameters, so its processes have nothing to exchange.")
    environment = read_environment(group.device)  # before the run, whose own load it would show otherwise
    with users_code(f"Preparing {runnable.name} and its batch"), losses_told():
        loop = Loop(group, runnable, share, optimizer=optimizer, precision=precision)
    warm_up_s = loop.run("step", N_WARM_UP).sum(axis=1)
    if n_steps is None:
        n_steps = _steps_that_tell(max(group.gather(float(warm_up_s.min()))))
    asked = {"model": runnable.name, "batch_size": batch_size, "optimizer": optimizer, "precision": precision}
    for number, found in enumerate(loop.rounds(math.ceil(n_steps / N_ROUNDS)), start=1):
        known = _result(found, loop, environment, asked)
        if on_progress is not None:
            on_progress(number, N_ROUNDS)
        if on_round is not None and number < N_ROUNDS:
            stopped = f"Stopped after {number} of {N_ROUNDS} rounds."
            on_round(replace(known, is_partial=True, warnings=(stopped, *known.warnings)))
    return known


class Loop:
    """One process's steps, in the four ways."""

    def __init__(self, group: Group, runnable: Runnable, n_samples: int, *, optimizer: str, precision: str) -> None:
        self.group, self._name = group, runnable.name
        self._training = Training(
            replace(runnable, forward=lambda _, inputs: runnable.forward(self._called, inputs)),
            optimizer=optimizer,
            precision=precision,
            device=group.device,
        )
        self._inputs = self._training.inputs(n_samples)
        self._bare = self._called = self._training.module
        self._wrapped = DistributedDataParallel(self._bare)
        self._stopwatch = stopwatch_for(group.device)
        self.losses: list[float] = []

    @property
    def bucket_bytes(self) -> tuple[int, ...]:
        """As DDP laid them out after its first step."""
        told = self._wrapped._get_ddp_logging_data()
        text = told.get("rebuilt_bucket_sizes") or told["bucket_sizes"]
        return tuple(int(part) for part in text.split(","))

    @property
    def has_buffers(self) -> bool:
        return any(True for _ in self._bare.buffers())

    def rounds(self, n_steps: int) -> Iterator[dict[str, list[Any]]]:
        """For each way, the seconds of the steps of each round by phase; and of the gradients' all-reduce.

        After each round, with those before.
        """
        found: dict[str, list[Any]] = {}
        gradients = [torch.zeros(n_bytes // 4, device=self.group.device) for n_bytes in self.bucket_bytes]
        large = torch.zeros(_LARGE_BYTES // 4, device=self.group.device)
        for _ in range(N_ROUNDS):
            for way in ("step", "compute", "crowded"):
                self.group.barrier()
                found.setdefault(way, []).append(self.run(way, 1 + n_steps)[1:])
            self.group.barrier()
            if self.group.is_first:
                found.setdefault("alone", []).append(self.run("alone", 1 + n_steps)[1:])
            found.setdefault("all_reduce", []).append(mean_call_s(self.group, gradients, 3))
            found.setdefault("large", []).append(mean_call_s(self.group, [large], 1))
            yield found

    def run(self, way: str, n_steps: int) -> Any:
        """Seconds, one row a step and one column a phase."""
        self._called = self._wrapped if way in ("step", "compute") else self._bare
        quietly = self._wrapped.no_sync() if way == "compute" else contextlib.nullcontext()
        with quietly:
            return np.array([self._step() for _ in range(n_steps)])

    def _step(self) -> list[float]:
        with users_code(f"Step {len(self.losses) + 1} of {self._name}"), losses_told():
            loss = self._training.step(self._inputs, self._stopwatch)
            taken_s = self._stopwatch.read()
            self.losses.append(float(loss))
        return taken_s


def _result(
    own: dict[str, list[Any]], loop: Loop, environment: Environment, asked: dict[str, Any]
) -> ProcessesMeasurement:
    """From the timings of all processes, told to all."""
    group = loop.group
    of_all = group.gather((own, on_losses(loop.losses, "step")))
    timings = [each for each, _ in of_all]
    # Mean over the processes: axes are then round, step, phase.
    phases = {way: np.mean([np.array(each[way]) for each in timings], axis=0) for way in ("step", "compute", "crowded")}
    phases["alone"] = np.array(timings[0]["alone"])
    steps = {way: found.sum(axis=2) for way, found in phases.items()}
    exposed = np.median(steps["step"], axis=1) - np.median(steps["compute"], axis=1)
    large_s = float(np.median(np.max([each["large"] for each in timings], axis=0)))
    return ProcessesMeasurement(
        **asked,
        n_processes=group.n_processes,
        n_local=group.n_local,
        device=group.device.partition(":")[0],
        backend=group.backend,
        n_threads=environment.n_threads,
        step=summarise(steps["step"].ravel()),
        compute=summarise(steps["compute"].ravel()),
        crowded=summarise(steps["crowded"].ravel()),
        alone=summarise(steps["alone"].ravel()),
        exposed=summarise(exposed),
        all_reduce=summarise(np.max([each["all_reduce"] for each in timings], axis=0)),
        phases={name: summarise(phases["step"][:, :, number].ravel()) for number, name in enumerate(PHASES)},
        bucket_bytes=loop.bucket_bytes,
        has_buffers=loop.has_buffers,
        peak_bus_bytes_per_s=ring_bytes(_LARGE_BYTES, group.n_processes) / large_s,
        environment=environment,
        warnings=_warnings([said for _, said in of_all], group.n_local, environment),
    )


def _warnings(of_losses: list[list[str]], n_local: int, environment: Environment) -> tuple[str, ...]:
    found = [f"Process {rank}: {said}" for rank, each in enumerate(of_losses) for said in each]
    found += on_load(environment)
    n_threads, n_cores = n_local * environment.n_threads, environment.n_cores
    if environment.device_kind == "cpu" and n_threads > n_cores:
        found.append(f"{n_threads} threads share {n_cores} cores: they compete for them.")
    return tuple(found)


def _steps_that_tell(step_s: float) -> int:
    return max(_FEWEST_STEPS, min(_MOST_STEPS, int(_STEPS_S / step_s)))
