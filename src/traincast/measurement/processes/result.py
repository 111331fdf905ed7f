"""What a step of several processes took, and where the time went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from traincast.measurement.processes.link_fit import ring_bytes
from traincast.measurement.statistics import Summary
from traincast.records.environment import Environment

_DERIVED = (
    "step_s",
    "compute_s",
    "crowded_s",
    "alone_s",
    "exposed_s",
    "all_reduce_s",
    "samples_per_s",
    "gradient_bytes",
    "bus_bytes_per_s",
    "bandwidth_utilisation_fraction",
    "scaling_efficiency_fraction",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesMeasurement:
    """A synchronous data-parallel step, beside the same passes with ever less between the processes.

    step        with the gradients reduced: what training does. Mean of all processes, step by step: they end together,
                so in the long run all take the same.
    compute     the same passes of the wrapped model without reducing (`no_sync`), all processes at once
    crowded     the same passes of the bare model, all processes at once
    alone       the same passes of the bare model by the first process, while the others wait
    exposed     step minus compute, round by round: communication that backward does not hide, waiting for the
                slowest process and the broadcast of buffers (batch norm) with it
    all_reduce  the buckets of gradients reduced one after the other, with nothing beside them
    """

    model: str
    n_processes: int
    n_local: int  # of them on the machine of the first
    batch_size: int  # of all processes together
    optimizer: str
    precision: str
    device: str
    backend: str
    n_threads: int  # of each process
    step: Summary
    compute: Summary
    crowded: Summary
    alone: Summary
    exposed: Summary
    all_reduce: Summary
    phases: Mapping[str, Summary]
    bucket_bytes: tuple[int, ...]  # in the order in which they are reduced
    has_buffers: bool  # such as the statistics of batch norm, which the first process sends to all before each step
    peak_bus_bytes_per_s: float  # of one large message, in the same run
    environment: Environment
    warnings: tuple[str, ...] = ()
    is_partial: bool = False  # it was stopped before all rounds were made

    @property
    def step_s(self) -> float:
        return self.step.median

    @property
    def compute_s(self) -> float:
        return self.compute.median

    @property
    def crowded_s(self) -> float:
        return self.crowded.median

    @property
    def alone_s(self) -> float:
        return self.alone.median

    @property
    def exposed_s(self) -> float:
        return self.exposed.median

    @property
    def all_reduce_s(self) -> float:
        return self.all_reduce.median

    @property
    def gradient_bytes(self) -> int:
        return sum(self.bucket_bytes)

    @property
    def samples_per_s(self) -> float:
        return self.batch_size / self.step_s

    @property
    def bus_bytes_per_s(self) -> float:
        """Of the gradients alone: what a process sends, over the time."""
        return ring_bytes(self.gradient_bytes, self.n_processes) / self.all_reduce_s

    @property
    def bandwidth_utilisation_fraction(self) -> float:
        """Of what a large message reaches: below 1 where buckets are small and wait for latency."""
        return self.bus_bytes_per_s / self.peak_bus_bytes_per_s

    @property
    def scaling_efficiency_fraction(self) -> float:
        """Of n times the samples per second that one process alone reaches with its share."""
        return self.alone_s / self.step_s

    def to_dict(self) -> dict[str, Any]:
        """Fields and what follows from them, in base units."""
        derived = {name: getattr(self, name) for name in _DERIVED}
        return {**asdict(self), **derived}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ProcessesMeasurement:
        fields = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        for name in ("step", "compute", "crowded", "alone", "exposed", "all_reduce"):
            fields[name] = Summary.from_dict(fields[name])
        fields["phases"] = {name: Summary.from_dict(each) for name, each in fields["phases"].items()}
        fields["bucket_bytes"] = tuple(fields["bucket_bytes"])
        fields["environment"] = Environment.from_dict(fields["environment"])
        fields["warnings"] = tuple(fields["warnings"])
        return cls(**fields)
