"""The benchmarks in several processes at once: beside another, a process has less of caches, memory and clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from traincast.calibration.ddp_steps import DdpTiming, time_ddp_steps
from traincast.calibration.timing import Effort, Timing, time_case
from traincast.measurement.processes.group import Group


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherTimings:
    """Mean timings of the processes, and steps in which they reduced gradients."""

    n_processes: int
    n_threads: int
    timings: tuple[Timing, ...]
    reduced: tuple[DdpTiming, ...]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TogetherTimings:
        return cls(
            n_processes=data["n_processes"],
            n_threads=data["n_threads"],
            timings=tuple(Timing(**timing) for timing in data["timings"]),
            reduced=tuple(DdpTiming.from_dict(timing) for timing in data["reduced"]),
        )


def run_together(
    group: Group, effort: Effort, *, on_progress: Callable[[int, int], None] | None = None
) -> TogetherTimings:
    """All processes run the same benchmark at the same time, one after the other; then networks, reducing gradients."""
    torch.manual_seed(0)
    found, chosen = [], effort.n_rounds * effort.cases()
    for number, case in enumerate(chosen, start=1):
        group.barrier()
        found.append(_mean(group.gather(time_case(case, budget_s=effort.budget_s))))
        if on_progress is not None:
            on_progress(number, len(chosen))
    reduced = time_ddp_steps(group, effort)
    return TogetherTimings(
        n_processes=group.n_processes, n_threads=torch.get_num_threads(), timings=tuple(found), reduced=reduced
    )


def _mean(timings: list[Timing]) -> Timing:
    first = timings[0]
    return Timing(
        benchmark=first.benchmark,
        batch_size=first.batch_size,
        optimizer=first.optimizer,
        usual_s={phase: sum(one.usual_s[phase] for one in timings) / len(timings) for phase in first.usual_s},
        n_steps=sum(one.n_steps for one in timings),
    )
