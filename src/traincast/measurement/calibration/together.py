"""The benchmarks in several processes at once: beside another, a process has less of caches, memory and clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch

from traincast.measurement.calibration.benchmarks import all_benchmarks
from traincast.measurement.calibration.timing import Timing, cases, time_case
from traincast.measurement.processes.all_reduce import run_all_reduces
from traincast.measurement.processes.group import Group
from traincast.measurement.processes.link_result import AllReduceMeasurement


@dataclass(frozen=True, slots=True, kw_only=True)
class TogetherTimings:
    """Timings of one of the processes, the mean of all, and the link between them."""

    n_processes: int
    n_threads: int
    timings: tuple[Timing, ...]
    link: AllReduceMeasurement

    @property
    def link_latency_s(self) -> float:
        return self.link.link.latency_s.median

    @property
    def link_bytes_per_s(self) -> float:
        """With what it takes to copy gradients into buckets and out again, for each byte that a ring sends."""
        n = self.n_processes
        copied = n / (n - 1)  # bytes in and out for each byte sent: 2 N against 2 N (n - 1) / n
        return 1.0 / (1.0 / self.link.link.bytes_per_s.median + copied / self.link.copy_bytes_per_s)

    def to_dict(self) -> dict[str, Any]:
        return {
            "n_processes": self.n_processes,
            "n_threads": self.n_threads,
            "timings": [asdict(timing) for timing in self.timings],
            "link": self.link.to_dict(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TogetherTimings:
        return cls(
            n_processes=data["n_processes"],
            n_threads=data["n_threads"],
            timings=tuple(Timing(**timing) for timing in data["timings"]),
            link=AllReduceMeasurement.from_dict(data["link"]),
        )


def run_together(group: Group, *, n_rounds: int, budget_s: float) -> TogetherTimings:
    """All processes run the same benchmark at the same time, one after the other."""
    torch.manual_seed(0)
    found = []
    for case in n_rounds * cases(all_benchmarks()):
        group.barrier()
        found.append(_mean(group.gather(time_case(case, device="cpu", budget_s=budget_s))))
    link = run_all_reduces(group)
    return TogetherTimings(
        n_processes=group.n_processes, n_threads=torch.get_num_threads(), timings=tuple(found), link=link
    )


def _mean(timings: list[Timing]) -> Timing:
    first = timings[0]
    return Timing(
        benchmark=first.benchmark,
        batch_size=first.batch_size,
        optimizer=first.optimizer,
        quickest_s={phase: sum(one.quickest_s[phase] for one in timings) / len(timings) for phase in first.quickest_s},
        usual_s={phase: sum(one.usual_s[phase] for one in timings) / len(timings) for phase in first.usual_s},
        n_steps=sum(one.n_steps for one in timings),
    )
