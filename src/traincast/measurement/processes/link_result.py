"""What all-reduces of several sizes took, and the link behind them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traincast.measurement.processes.link_fit import LinkFit, ring_bytes
from traincast.measurement.statistics import Summary
from traincast.records.environment import Environment


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduceRow:
    """One size. A round's seconds are the mean of its calls by the slowest process."""

    n_bytes: int
    n_processes: int
    seconds: Summary

    @property
    def bytes_per_s(self) -> float:
        """Algorithm bandwidth: the bytes of the vector over the time."""
        return self.n_bytes / self.seconds.median

    @property
    def bus_bytes_per_s(self) -> float:
        """Bus bandwidth: the bytes that a process must send over the time, which a link can be held against."""
        return ring_bytes(self.n_bytes, self.n_processes) / self.seconds.median


@dataclass(frozen=True, slots=True, kw_only=True)
class AllReduceMeasurement:
    """The link between n processes, as an all-reduce sees it."""

    n_processes: int
    backend: str
    rows: tuple[AllReduceRow, ...]
    link: LinkFit
    environment: Environment
    is_partial: bool = False  # it was stopped before all rounds were made

    def to_dict(self) -> dict[str, Any]:
        return {
            "n_processes": self.n_processes,
            "backend": self.backend,
            "all_reduces": [
                {
                    "n_bytes": row.n_bytes,
                    "seconds": row.seconds.to_dict(),
                    "bytes_per_s": row.bytes_per_s,
                    "bus_bytes_per_s": row.bus_bytes_per_s,
                }
                for row in self.rows
            ],
            "latency_s": self.link.latency_s.to_dict(),
            "link_bytes_per_s": self.link.bytes_per_s.to_dict(),
            "environment": self.environment.to_dict(),
            "is_partial": self.is_partial,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> AllReduceMeasurement:
        n = int(data["n_processes"])
        return cls(
            n_processes=n,
            backend=data["backend"],
            rows=tuple(
                AllReduceRow(n_bytes=row["n_bytes"], n_processes=n, seconds=Summary.from_dict(row["seconds"]))
                for row in data["all_reduces"]
            ),
            link=LinkFit(
                n_processes=n,
                latency_s=Summary.from_dict(data["latency_s"]),
                bytes_per_s=Summary.from_dict(data["link_bytes_per_s"]),
            ),
            environment=Environment.from_dict(data["environment"]),
            is_partial=bool(data.get("is_partial", False)),
        )
