"""A step with and without reducing gradients, in turns, so that both see the same machine."""

from __future__ import annotations

import numpy as np
import torch

from traincast.measurement.processes.all_reduce import mean_call_s
from traincast.measurement.processes.ddp import Loop
from traincast.measurement.processes.group import Group
from traincast.measurement.processes.link_fit import ring_bytes
from traincast.measurement.runnable import Runnable
from traincast.recipes.scaling_experiment.result import Split
from traincast.recipes.scaling_experiment.settings import Cell, ScalingSettings
from traincast.units import MIB

N_ROUNDS = 4
_WAYS = ("step", "compute")
_LARGE_BYTES = 16 * MIB
# Steps of a round and way, besides the first, which is not counted (`processes/ddp.py`): as many as fit, at least one.
_BUDGET_S, _MOST_STEPS = 2.0, 8


def measure_split(group: Group, runnable: Runnable, settings: ScalingSettings, cell: Cell) -> Split:
    """What reducing adds to a step of this cell, and at which rate the gradients pass. All get the answer."""
    loop = Loop(group, runnable, cell.batch_size, optimizer=settings.optimizer, precision=settings.precision)
    first_s = max(group.gather(float(loop.run("step", 2)[1].sum())))
    n_steps = max(1, min(_MOST_STEPS, int(_BUDGET_S / (len(_WAYS) * N_ROUNDS * first_s))))
    gradients = [torch.zeros(n_bytes // 4, device=group.device) for n_bytes in loop.bucket_bytes]
    large = torch.zeros(_LARGE_BYTES // 4, device=group.device)
    own: dict[str, list[float]] = {name: [] for name in (*_WAYS, "all_reduce", "large")}
    for _ in range(N_ROUNDS):
        for way in _WAYS:
            group.barrier()
            own[way].append(float(np.median(loop.run(way, 1 + n_steps)[1:].sum(axis=1))))
        own["all_reduce"].append(mean_call_s(group, gradients, 3))
        own["large"].append(mean_call_s(group, [large], 1))
    return joined(group.gather(own), bucket_bytes=loop.bucket_bytes)


def joined(of_all: list[dict[str, list[float]]], *, bucket_bytes: tuple[int, ...]) -> Split:
    """Rounds of all processes: they end a step together, so steps are their mean; a message lasts until the slowest."""
    step_s, compute_s = (np.mean([each[way] for each in of_all], axis=0) for way in _WAYS)
    all_reduce_s, large_s = (np.max([each[name] for each in of_all], axis=0) for name in ("all_reduce", "large"))
    return Split(
        step_s=float(np.median(step_s)),
        compute_s=float(np.median(compute_s)),
        exposed_s=float(np.median(step_s - compute_s)),
        all_reduce_s=float(np.median(all_reduce_s)),
        gradient_bytes=sum(bucket_bytes),
        n_buckets=len(bucket_bytes),
        peak_bus_bytes_per_s=ring_bytes(_LARGE_BYTES, len(of_all)) / float(np.median(large_s)),
    )
