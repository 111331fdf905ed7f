"""Steps whose gradients are reduced, beside the same steps of as many processes that do not meet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from traincast.calibration.benchmarks import Benchmark
from traincast.calibration.timing import Effort
from traincast.measurement.processes.ddp import N_WARM_UP, Loop
from traincast.measurement.processes.group import Group

_FEWEST_STEPS, _MOST_STEPS = 4, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class DdpTiming:
    """One network: the usual seconds of a step of all processes, and what it reduced."""

    benchmark: str
    batch_size: int  # of one process
    crowded_s: float  # without reducing, mean of the processes
    step_s: float
    bucket_bytes: tuple[int, ...]
    has_buffers: bool

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> DdpTiming:
        return cls(**{**data, "bucket_bytes": tuple(data["bucket_bytes"])})


def time_ddp_steps(group: Group, effort: Effort) -> tuple[DdpTiming, ...]:
    """The networks among the benchmarks at each of their batch sizes. All processes get the answer."""
    torch.manual_seed(0)
    return tuple(
        _time(group, benchmark, batch_size, effort)
        for benchmark in effort.benchmarks()
        if benchmark.is_network
        for batch_size in benchmark.batch_sizes
    )


def _time(group: Group, benchmark: Benchmark, batch_size: int, effort: Effort) -> DdpTiming:
    loop = Loop(group, benchmark.runnable(), batch_size, optimizer="sgd", precision="fp32")
    once_s = max(group.gather(float(loop.run("step", N_WARM_UP).sum(axis=1).min())))
    n_steps = int(np.clip(effort.budget_s / once_s, _FEWEST_STEPS, _MOST_STEPS))
    found: dict[str, list[float]] = {"step": [], "crowded": []}
    for _ in range(effort.n_rounds):
        for way, seconds in found.items():
            group.barrier()
            # The first step of a block still pays for the block before it.
            seconds.extend(loop.run(way, 1 + n_steps)[1:].sum(axis=1).tolist())
    of_all = group.gather(found)
    usual = {way: float(np.median(np.mean([each[way] for each in of_all], axis=0))) for way in found}
    return DdpTiming(
        benchmark=benchmark.name,
        batch_size=batch_size,
        crowded_s=usual["crowded"],
        step_s=usual["step"],
        bucket_bytes=loop.bucket_bytes,
        has_buffers=loop.has_buffers,
    )
