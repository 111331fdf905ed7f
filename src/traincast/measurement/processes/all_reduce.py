"""All-reduces of several sizes between all processes, timed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import replace

import torch

from traincast.errors import InputError
from traincast.measurement.processes.group import Group
from traincast.measurement.processes.link_fit import fit_link
from traincast.measurement.processes.link_result import AllReduceMeasurement, AllReduceRow
from traincast.measurement.processes.share import check_count
from traincast.measurement.statistics import summarise
from traincast.measurement.stopwatch import stopwatch_for
from traincast.records.environment import Environment, read_environment
from traincast.units import KIB

SIZES_BYTES = tuple(4 * KIB * 4**power for power in range(8))  # 4 KiB to 64 MiB
N_ROUNDS = 8
# A round of one size: enough calls to be read off a clock, not so many that a slow link takes minutes.
_ROUND_S, _MOST_CALLS, _SIZE_S = 0.02, 20, 3.0


def run_all_reduces(
    group: Group,
    *,
    sizes_bytes: Sequence[int] = SIZES_BYTES,
    n_rounds: int = N_ROUNDS,
    on_progress: Callable[[int, int], None] | None = None,
    on_round: Callable[[AllReduceMeasurement], None] | None = None,
) -> AllReduceMeasurement:
    """All sizes in every round, so that all see the same machine. Each process gets the same answer.

    `on_round` hears what is known after each round but the last.
    """
    check_count(group.n_processes)
    environment = read_environment(group.device)  # before the run, whose own load it would show otherwise
    tensors = [torch.zeros(n_bytes // 4, device=group.device) for n_bytes in sizes_bytes]
    plans = [_plan(group, tensor, n_rounds) for tensor in tensors]
    rounds_s: list[list[float]] = [[] for _ in sizes_bytes]
    for number in range(n_rounds):
        for tensor, (n_calls, most_rounds), taken_s in zip(tensors, plans, rounds_s, strict=True):
            if number < most_rounds:
                taken_s.append(mean_call_s(group, [tensor], n_calls))
        if on_progress is not None:
            on_progress(number + 1, n_rounds)
        of_all = group.gather(rounds_s)
        if on_round is not None and number + 1 < n_rounds:
            with contextlib.suppress(InputError):  # a few rounds may tell no bandwidth yet
                on_round(replace(_result(group, sizes_bytes, of_all, environment), is_partial=True))
    return _result(group, sizes_bytes, of_all, environment)


def _result(
    group: Group, sizes_bytes: Sequence[int], of_all: Sequence[Sequence[Sequence[float]]], environment: Environment
) -> AllReduceMeasurement:
    """From the rounds of all processes, by size; the slowest process counts."""
    slowest_s = [[max(each) for each in zip(*of_size, strict=True)] for of_size in zip(*of_all, strict=True)]
    return AllReduceMeasurement(
        n_processes=group.n_processes,
        backend=group.backend,
        rows=tuple(
            AllReduceRow(n_bytes=n_bytes, n_processes=group.n_processes, seconds=summarise(taken_s))
            for n_bytes, taken_s in zip(sizes_bytes, slowest_s, strict=True)
        ),
        link=fit_link(group.n_processes, sizes_bytes, slowest_s),
        environment=environment,
    )


def mean_call_s(group: Group, tensors: Sequence[torch.Tensor], n_calls: int) -> float:
    """Seconds to reduce these one after the other, the mean of `n_calls` without a pause; all start together."""
    stopwatch = stopwatch_for(group.device)
    group.barrier()
    stopwatch.mark()
    for _ in range(n_calls):
        for tensor in tensors:
            group.all_reduce(tensor)
    stopwatch.mark()
    return stopwatch.read()[0] / n_calls


def _plan(group: Group, tensor: torch.Tensor, n_rounds: int) -> tuple[int, int]:
    """Calls of a round, and how many rounds; agreed by all. The first call, which connects, is not counted."""
    group.all_reduce(tensor)
    call_s = max(group.gather(mean_call_s(group, [tensor], 1)))
    n_calls = max(1, min(_MOST_CALLS, int(_ROUND_S / call_s)))
    return n_calls, max(2, min(n_rounds, int(_SIZE_S / (call_s * n_calls))))
