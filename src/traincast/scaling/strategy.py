"""The ways to train on many devices by the words that users write for them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from traincast.errors import InputError, close_names
from traincast.hardware.cluster import Cluster
from traincast.hardware.link import Link
from traincast.scaling.collectives import Wire
from traincast.scaling.hierarchy import Network
from traincast.scaling.local_step import LocalStep, ParallelStep
from traincast.scaling.nvlink import fabric_wire, is_fabric
from traincast.scaling.servers import parameter_servers
from traincast.scaling.sharded import sharded
from traincast.scaling.stragglers import SPREAD, waiting_s
from traincast.scaling.strategies import ddp, dp, mirrored

_STAGES = {"zero1": 1, "zero2": 2, "zero3": 3, "fsdp": 3}
_NAMES = ("ddp", "dp", "mirrored", "ps:P", "ps-async:P", *_STAGES)
_SERVERS = re.compile(r"(?P<kind>ps|ps-async):(?P<n>[0-9]{1,6})")


@dataclass(frozen=True, slots=True)
class Strategy:
    """One of them. `n_servers` is of parameter servers, `stage` of ZeRO (0: nothing is sharded)."""

    name: str
    kind: str  # "ddp" | "dp" | "mirrored" | "ps" | "ps-async" | "sharded"
    n_servers: int = 0
    stage: int = 0
    algorithm: str = "nccl"  # of an all-reduce

    @property
    def is_one_process(self) -> bool:
        """One process drives all devices: it cannot span nodes."""
        return self.kind in ("dp", "mirrored")

    @property
    def is_synchronous(self) -> bool:
        return self.kind != "ps-async"


DDP = Strategy("ddp", "ddp")


def find_strategy(text: str, *, algorithm: str = "nccl") -> Strategy:
    """'ddp', 'dp', 'mirrored', 'ps:2', 'ps-async:2', 'zero1', 'zero2', 'zero3' or 'fsdp'."""
    name = text.strip().lower()
    if name in _STAGES:
        return Strategy(name, "sharded", stage=_STAGES[name])
    if name in ("ddp", "dp", "mirrored"):
        return Strategy(name, name, algorithm=algorithm)
    servers = _SERVERS.fullmatch(name)
    if servers and int(servers["n"]) >= 1:
        return Strategy(name, servers["kind"], n_servers=int(servers["n"]))
    hint = close_names(name, _NAMES)
    raise InputError(f"No strategy named '{text}'.{hint} Known: {', '.join(_NAMES)} (P: parameter servers, 1 or more).")


def network_of(cluster: Cluster) -> Network:
    """The links of the devices in use, at the rates that collectives reach."""
    between = None if cluster.n_nodes == 1 or cluster.between is None else _wire(cluster.between)
    inside = cluster.inside
    is_direct = cluster.device.kind == "gpu" and is_fabric(inside)
    port = fabric_wire(inside, cluster.device) if is_direct else _wire(inside)
    return Network(port, between, cluster.placement)


def _wire(link: Link) -> Wire:
    return Wire(link.latency_s, link.sustained_bytes_per_s)


def parallel_step(
    strategy: Strategy,
    step: LocalStep,
    network: Network,
    *,
    spread: float = SPREAD,
    waiting_fraction: float | None = None,
) -> ParallelStep:
    """The step of all devices. Its arrays have one entry a batch size of one device.

    `spread` is between the seconds of equal devices: all wait for the slowest, time in which links have nothing to do,
    but that only working together costs. Where that waiting was measured, it is the share `waiting_fraction`.
    """
    if strategy.is_one_process and network.n_nodes > 1:
        raise InputError(
            f"The strategy '{strategy.name}' is one process and cannot span {network.n_nodes} nodes: take 'ddp'."
        )
    if not strategy.is_synchronous:
        return parameter_servers(step, network, n_servers=strategy.n_servers, is_synchronous=False)
    found = _synchronous(strategy, step, network)
    if waiting_fraction is None:
        waited_s = waiting_s(network.n_devices, found.compute_s, spread)
    else:
        waited_s = waiting_fraction * found.compute_s
    return replace(found, exposed_s=found.exposed_s + waited_s)


def _synchronous(strategy: Strategy, step: LocalStep, network: Network) -> ParallelStep:
    if strategy.kind == "ps":
        return parameter_servers(step, network, n_servers=strategy.n_servers, is_synchronous=True)
    if strategy.kind == "sharded":
        return sharded(step, network, stage=strategy.stage)
    if strategy.kind == "dp":
        return dp(step, network)
    reduce = ddp if strategy.kind == "ddp" else mirrored
    return reduce(step, network, algorithm=strategy.algorithm)
