"""One link: what carries data between devices of a node, or between nodes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from traincast.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """A rate in one direction, the delay of a message, and the share of the rate that large collectives reach.

    Datasheets print NVLink with both directions added up; here it is one direction, as for PCIe and networks. The start
    of a collective (about 8 microseconds in NCCL) is no property of a link and is not part of the latency.
    """

    name: str
    bytes_per_s: float  # nominal, one direction: of one device (inside a node), of one node (between nodes)
    latency_s: float  # of one message
    achievable: float  # share of the nominal rate that large collectives reach
    is_shared: bool = False  # transfers of several devices of a node meet on it: a PCIe tree, a node's network
    source: str = ""
    notes: str = ""

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("A link needs a name.")
        if not math.isfinite(self.bytes_per_s) or self.bytes_per_s <= 0:
            raise InputError(f"Link '{self.name}': bytes_per_s should be above 0, not {self.bytes_per_s}.")
        if not math.isfinite(self.latency_s) or self.latency_s < 0:
            raise InputError(f"Link '{self.name}': latency_s should be 0 or more, not {self.latency_s}.")
        if not 0 < self.achievable <= 1:
            raise InputError(f"Link '{self.name}': achievable should be above 0 and at most 1, not {self.achievable}.")

    @property
    def is_tcp(self) -> bool:
        """Ethernet without remote access to memory: what passes is a number of flows."""
        return self.name.startswith("Ethernet") or "Ethernet with TCP" in self.notes

    @property
    def sustained_bytes_per_s(self) -> float:
        """What large collectives reach, one direction."""
        return self.achievable * self.bytes_per_s
