"""What NCCL makes of NVLink: three protocols, sums in the switch, and a copy of one's own part.

NCCL moves few bytes by protocols that need no barrier (LL, LL128) and many by one that fills the link (Simple). What
each costs to start and per hop is from its own tables; how far a device keeps to them is fitted on collectives of
A100, H100, H200 and GB200 (`python -m lab.refit.collectives --data DIR`, docs/collectives.md). RCCL has the same three.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from traincast.hardware.device import Device
from traincast.hardware.link import Link
from traincast.scaling.collectives import Protocol, Wire

# NVIDIA/nccl src/graph/tuning.cc, ring: start of a collective, and a hop over NVLink. As in v2.28.7, by public copies
# of the file (read 2026-11-20); the older 01afd20 starts LL with 3.6 and LL128 with 10 us.
_LL_S, _LL128_S, _SIMPLE_S = (6.6e-6, 0.6e-6), (14.0e-6, 1.9e-6), (8.4e-6, 3.4e-6)
_LL128_SHARE = 120 / 128  # eight bytes of each 128 are a flag

_FABRICS = ("NVLink", "NVSwitch", "Infinity Fabric")
_SWITCHED = ("NVLink4", "NVLink5", "NVSwitch3", "NVSwitch4")  # from the third switch on it adds up


@dataclass(frozen=True, slots=True)
class Fitted:
    """How far measured collectives keep to NCCL's own tables, and what these leave out."""

    hop: float = 1.90  # over NCCL's seconds of a hop
    simple: float = 0.938  # over the rate that NCCL expects of a link
    ll: float = 0.443  # of that again
    switch_s: float = 86e-6  # until the switch adds up
    switch: float = 0.657  # of the rate that NCCL expects
    copy: float = 0.268  # of a device's memory bandwidth, for its own part
    peer_s: float = 0.42e-6  # each further partner of an all-to-all


def is_fabric(link: Link) -> bool:
    """Whether it joins the memories of devices directly, so that these protocols drive it."""
    return link.name.startswith(_FABRICS)


def fabric_wire(link: Link, device: Device, fitted: Fitted | None = None) -> Wire:
    """The port of one device on such a link."""
    of = fitted or Fitted()
    simple = Protocol(_SIMPLE_S[0], of.hop * _SIMPLE_S[1], of.simple)
    ll128 = Protocol(_LL128_S[0], of.hop * _LL128_S[1], of.simple * _LL128_SHARE)
    ll = Protocol(_LL_S[0], of.hop * _LL_S[1], of.simple * of.ll)
    adds_up = link.name.startswith(_SWITCHED)
    return replace(
        Wire(link.latency_s, link.sustained_bytes_per_s),
        protocols=(simple, ll128, ll),
        copy_bytes_per_s=of.copy * device.memory_bytes_per_s,
        switch=Protocol(of.switch_s, 0.0, of.switch) if adds_up else None,
        peer_s=of.peer_s,
    )
