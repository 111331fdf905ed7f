"""Many devices, where they sit and what joins them."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from traincast.errors import InputError
from traincast.hardware.place_text import split_part

if TYPE_CHECKING:
    from traincast.hardware.device import Device
    from traincast.hardware.link import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Equal nodes of equal devices, and how many devices of each node a run uses.

    `between` is None exactly where there is one node to use; with `take` a run may use one node of several, and the
    link stays. A price is of a whole node: a device left idle is paid for all the same.
    """

    device: Device
    placement: tuple[int, ...]  # devices used in each node
    inside: Link  # between devices of a node
    between: Link | None  # between nodes; None: one node
    name: str  # as the user wrote it, or of the preset; "3 of ..." where a part is used
    devices_per_node: int  # that a node could use
    n_nodes_max: int
    node_price_usd_per_hour: float | None = None  # of a whole node, on demand; None: not known
    price_source: str = ""
    price_date: str = ""
    region: str = ""
    assumption: str = ""  # a sentence, where the words left open how many nodes there are and what joins them

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InputError("A cluster needs a name.")
        for field in ("devices_per_node", "n_nodes_max"):
            check_count(getattr(self, field), f"Cluster '{self.name}': {field}")
        if not 1 <= len(self.placement) <= self.n_nodes_max:
            n = len(self.placement)
            raise InputError(f"Cluster '{self.name}': placement names {n} nodes where there are {self.n_nodes_max}.")
        for n in self.placement:
            check_count(n, f"Cluster '{self.name}': each number in placement")
            if n > self.devices_per_node:
                raise InputError(
                    f"Cluster '{self.name}': placement puts {n} devices in a node of {self.devices_per_node}."
                )
        if (self.between is None) != (self.n_nodes_max == 1):
            wrong = "several nodes need a" if self.between is None else "one node has no"
            raise InputError(f"Cluster '{self.name}': {wrong} link between nodes.")
        price = self.node_price_usd_per_hour
        if price is not None and (not math.isfinite(price) or price <= 0):
            raise InputError(
                f"Cluster '{self.name}': node_price_usd_per_hour should be above 0 (None: not known), not {price}."
            )

    @property
    def n_devices(self) -> int:
        """Devices in use."""
        return sum(self.placement)

    @property
    def n_nodes(self) -> int:
        """Nodes in use."""
        return len(self.placement)

    @property
    def price_usd_per_hour(self) -> float | None:
        """Of all nodes in use; None where it is not known."""
        return None if self.node_price_usd_per_hour is None else self.n_nodes * self.node_price_usd_per_hour

    def take(self, n_devices: int) -> Cluster:
        """The same machines with so many devices used: one node is filled after the other."""
        check_count(n_devices, f"'{self.name}': the number of devices to take")
        n_all = self.n_nodes_max * self.devices_per_node
        whole = self._whole_name(n_all)
        if n_devices > n_all:
            nodes = f"{self.n_nodes_max} nodes of {self.devices_per_node}" if self.n_nodes_max > 1 else "one node"
            raise InputError(f"'{whole}' holds {n_all} device{'s' * (n_all > 1)} ({nodes}), not {n_devices}.")
        n_full, rest = divmod(int(n_devices), self.devices_per_node)
        placement = (self.devices_per_node,) * n_full + ((rest,) if rest else ())
        return replace(self, placement=placement, name=whole if n_devices == n_all else f"{n_devices} of {whole}")

    def _whole_name(self, n_all: int) -> str:
        part = split_part(self.name)
        is_part = part is not None and part[0] == str(self.n_devices) and self.n_devices < n_all
        return part[1] if part and is_part else self.name


def check_count(n: object, what: str) -> None:
    """A whole number from 1, or a sentence that says so."""
    if isinstance(n, bool) or not isinstance(n, numbers.Integral) or n < 1:
        raise InputError(f"{what} should be a whole number, at least 1, not {n!r}.")
