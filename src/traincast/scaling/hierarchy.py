"""Collectives over devices that sit in nodes: fast links inside a node, one network port a node between them.

*Flat* algorithms run through all devices as if there were no nodes. Their bytes flow at the rate of the slowest link,
and their seconds are those of that link; latencies are counted by the hops that a piece takes inside and between.
A ring in the order of the nodes leaves and enters each node once, so its port carries what one process sends:
2N(P-1)/P for an all-reduce.

*Hierarchical* ones finish a phase inside the nodes, then one between them, then one inside. With equally many devices
in every node, each device owns a shard: reduce-scatter inside, all-reduce of the shards between, all-gather inside.
Otherwise a leader in each node does the part between for all.

N is the whole vector, P the number of devices, K of nodes, g of devices in the largest node.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import numpy.typing as npt

from traincast.errors import InputError
from traincast.scaling import collectives as flat
from traincast.scaling.collectives import Cost, Number, Wire
from traincast.trace.graph import Floats


@dataclass(frozen=True, eq=False, slots=True)
class Network:
    """Devices in nodes: `placement` has the number of devices of every node, (4, 4) or (1, 3).

    `inside` is the port of a device, `between` that of a node, which its devices share. If `inside_is_shared`, the
    devices of a node also share one way inside (PCIe through a host bridge): all send at once in every phase, so each
    has bytes_per_s / g. That is simple and a little pessimistic where only some of them send.
    """

    inside: Wire
    between: Wire | None
    placement: tuple[int, ...]
    inside_is_shared: bool = False

    def __post_init__(self) -> None:
        if not self.placement or any(count < 1 or count != int(count) for count in self.placement):
            raise InputError(f"A placement is one number of devices a node, each 1 or more, not {self.placement}.")
        if self.between is None and self.n_nodes > 1:
            raise InputError(f"{self.n_nodes} nodes need a wire between them, and none was given.")

    @property
    def n_devices(self) -> int:
        return sum(self.placement)

    @property
    def n_nodes(self) -> int:
        return len(self.placement)

    @property
    def n_inside(self) -> int:
        """Devices of the largest node: the others wait for it."""
        return max(self.placement)

    @property
    def is_even(self) -> bool:
        return min(self.placement) == self.n_inside

    @property
    def inside_port(self) -> Wire:
        """What one device has of the links inside while its neighbours send too."""
        if not self.inside_is_shared:
            return self.inside
        return replace(self.inside, bytes_per_s=np.asarray(self.inside.bytes_per_s) / self.n_inside)

    @property
    def node_port(self) -> Wire:
        """The wire between, or the one inside where there is a single node and nothing is sent between."""
        return self.between or self.inside

    @property
    def shards_port(self) -> Wire:
        """The port of a node whose g devices use it together, each for its shard; each adds up its own."""
        port = self.node_port
        return replace(port, reduce_bytes_per_s=np.asarray(port.reduce_bytes_per_s) * self.n_inside)


@dataclass(frozen=True, eq=False, slots=True)
class NetworkCost:
    """Phases inside and between follow each other. `bytes_sent` of each part: by one process through that link."""

    algorithm: npt.NDArray[np.str_]
    inside: Cost
    between: Cost

    @property
    def seconds(self) -> Floats:
        return self.inside.seconds + self.between.seconds


Split = tuple[Cost, Cost]  # inside, between
Algorithm = Callable[[Number, Network], Split]


def all_reduce(n_bytes: Number, network: Network, algorithm: str = "best") -> NetworkCost:
    """By "ring", "double-tree" (flat), "hierarchical", or the fastest of them for each size ("best").

    "nccl" takes ring or double tree, as NCCL would: it has no hierarchical one. Inside one node also by "tree",
    "butterfly", "recursive-doubling" or "master": no library takes these for large gradients today, so "best" leaves
    them out.
    """
    if algorithm == "nccl":
        return _as_nccl_does(n_bytes, network)
    flat.named(algorithm, dict.fromkeys(("nccl", "best", *_ALL_REDUCE, *_IN_ONE_NODE)))
    return _choose(n_bytes, network, algorithm, _ALL_REDUCE if algorithm == "best" else _ALL_REDUCE | _IN_ONE_NODE)


def reduce_scatter(n_bytes: Number, network: Network, algorithm: str = "best") -> NetworkCost:
    """By "ring" (flat), "hierarchical", or the faster. N is what every device begins with."""
    return _choose(n_bytes, network, algorithm, _REDUCE_SCATTER)


def all_gather(n_bytes: Number, network: Network, algorithm: str = "best") -> NetworkCost:
    """By "ring" (flat), "hierarchical", or the faster. N is what every device ends with."""
    return _choose(n_bytes, network, algorithm, _ALL_GATHER)


def broadcast(n_bytes: Number, network: Network, algorithm: str = "best") -> NetworkCost:
    """By "ring" (flat, pipelined), "hierarchical", or the faster."""
    return _choose(n_bytes, network, algorithm, _BROADCAST)


def _as_nccl_does(n_bytes: Number, network: Network) -> NetworkCost:
    """The faster of ring and double tree by the latency that NCCL expects of a network, at what the wires cost.

    Inside one node with a switch that adds up, that is a third way.

    NCCL weighs both with constants of its own (`tuning.cc`), 14 us for a hop between nodes, whatever the network.
    """
    expected = network.between and replace(network.between, latency_s=_NCCL_LATENCY_S)
    names: tuple[str, ...] = _OF_NCCL
    if network.n_nodes == 1 and network.inside.switch is not None:
        names = (*names, "switch")
    known = {name: (_ALL_REDUCE | _BY_SWITCH)[name] for name in names}
    choice = _choose(n_bytes, replace(network, between=expected), "best", known).algorithm
    splits = [known[name](n_bytes, network) for name in names]
    chosen = np.argmax(np.stack([choice == name for name in names]), axis=0)
    parts = (flat.choose(chosen, [split[part] for split in splits]) for part in (0, 1))
    return NetworkCost(choice, *parts)


def _choose(n_bytes: Number, network: Network, algorithm: str, known: dict[str, Algorithm]) -> NetworkCost:
    names = tuple(known) if algorithm == "best" else (algorithm,)
    splits = [flat.named(name, known)(n_bytes, network) for name in names]
    chosen = np.argmin(np.stack([inside.seconds + between.seconds for inside, between in splits]), axis=0)
    parts = (flat.choose(chosen, [split[part] for split in splits]) for part in (0, 1))
    return NetworkCost(np.array(names)[chosen], *parts)


def _flat_ring(n_bytes: Number, network: Network, n_turns: int, *, is_reducing: bool) -> Split:
    """P-1 steps of N/P a turn, of which K-1 go between nodes (NCCL, `tuning.cc`)."""
    size, n = flat.checked(n_bytes, network.n_devices)
    n_between = n_turns * (network.n_nodes - 1)
    sent = n_turns * size * (n - 1) / n
    reduced = sent / n_turns if is_reducing else 0.0 * size
    copied = size / n if n_turns == 1 else 0.0 * size  # an all-reduce works in place
    inside, between = _flow(network, (n_turns * (network.n_devices - 1) - n_between, n_between), sent, reduced)
    return flat.copying(copied, network.inside, inside), between


def _flow(network: Network, n_messages: tuple[float, float], sent: Floats, reduced: Floats) -> Split:
    """Bytes at the rate of the slowest link, which takes the seconds; each link takes its own latencies."""
    n_inside, n_between = n_messages
    inside, between = network.inside_port, network.node_port
    if network.n_nodes > 1:  # the protocol has to suit the network: the plain latency of a hop holds
        inside = replace(inside, protocols=())
    is_inside = _is_inside_slower(network)
    return (
        flat.cost(
            np.asarray(float(network.n_inside)),
            inside,
            n_messages=n_inside,
            bytes_sent=sent,
            wire_bytes=np.where(is_inside, sent, 0.0),
            reduced_bytes=reduced,
        ),
        flat.cost(
            np.asarray(float(network.n_nodes)),
            between,
            n_messages=n_between,
            bytes_sent=sent,
            wire_bytes=np.where(is_inside, 0.0, sent),
            reduced_bytes=0.0 if network.n_inside > 1 else reduced,
        ),
    )


def _is_inside_slower(network: Network) -> npt.NDArray[np.bool_]:
    if 1 in (network.n_nodes, network.n_inside):
        return np.asarray(network.n_nodes == 1)
    return np.asarray(network.inside_port.bytes_per_s) <= np.asarray(network.node_port.bytes_per_s)


def _flat_double_tree(n_bytes: Number, network: Network) -> Split:
    """2N at the slowest link; the levels of a tree of nodes between, those of a tree of devices inside.

    NCCL has a chain inside a node: g-1 latencies where this has ceil(log2 g).
    """
    size, _ = flat.checked(n_bytes, network.n_devices)
    levels = [float(2 * np.ceil(np.log2(count))) for count in (network.n_inside, network.n_nodes)]
    return _flow(network, (levels[0], levels[1]), 2 * size, size)


def _hierarchical_all_reduce(n_bytes: Number, network: Network) -> Split:
    """Shards where nodes are even, else leaders. The part between is NCCL's choice of ring and double tree."""
    inside, g = network.inside_port, network.n_inside
    if network.is_even:
        _, between = flat.best_all_reduce(n_bytes, network.n_nodes, network.shards_port)
        return flat.ring_all_reduce(n_bytes, g, inside), _by_each(between, g)
    _, between = flat.best_all_reduce(n_bytes, network.n_nodes, network.node_port)
    return flat.ring_reduce(n_bytes, g, inside) + flat.ring_broadcast(n_bytes, g, inside), between


def _hierarchical_reduce_scatter(n_bytes: Number, network: Network) -> Split:
    inside, g = network.inside_port, network.n_inside
    if network.is_even:
        between = flat.ring_reduce_scatter(n_bytes, network.n_nodes, network.shards_port)
        return flat.ring_reduce_scatter(n_bytes, g, inside), _by_each(between, g)
    own = _largest_share(n_bytes, network)
    between = flat.ring_reduce_scatter(own * network.n_nodes, network.n_nodes, network.node_port)
    return flat.ring_reduce(n_bytes, g, inside) + flat.scatter(own, g, inside), between


def _hierarchical_all_gather(n_bytes: Number, network: Network) -> Split:
    inside, g = network.inside_port, network.n_inside
    if network.is_even:
        between = flat.ring_all_gather(n_bytes, network.n_nodes, network.node_port)
        return flat.ring_all_gather(n_bytes, g, inside), _by_each(between, g)
    own = _largest_share(n_bytes, network)
    between = flat.ring_all_gather(own * network.n_nodes, network.n_nodes, network.node_port)
    return flat.gather(own, g, inside) + flat.ring_broadcast(n_bytes, g, inside), between


def _by_each(of_node: Cost, n_shards: int) -> Cost:
    """Shards leave through the node's one port together: the time of the whole, a part of the bytes by each."""
    return replace(of_node, bytes_sent=of_node.bytes_sent / n_shards)


def _largest_share(n_bytes: Number, network: Network) -> Floats:
    """What the largest node has of the vector. Every step of a ring of leaders lasts as long as its share does."""
    size, n = flat.checked(n_bytes, network.n_devices)
    return size * network.n_inside / n


def _hierarchical_broadcast(n_bytes: Number, network: Network) -> Split:
    """Among the leaders, then inside every node; pipelined each, but not from one into the other."""
    return (
        flat.ring_broadcast(n_bytes, network.n_inside, network.inside_port),
        flat.ring_broadcast(n_bytes, network.n_nodes, network.node_port),
    )


def _flat_broadcast(n_bytes: Number, network: Network) -> Split:
    size, _ = flat.checked(n_bytes, network.n_devices)
    n_between = network.n_nodes - 1
    return _flow(network, (network.n_devices - 1 - n_between, n_between), size, 0.0 * size)


def _in_one_node(name: str, collective: flat.AllReduce, n_bytes: Number, network: Network) -> Split:
    """A flat algorithm of that name, for devices that all sit in one node."""
    if network.n_nodes > 1:
        raise InputError(
            f"The all-reduce '{name}' is known inside one node only, not over {network.n_nodes}: take "
            f"{', '.join(_ALL_REDUCE)} or best."
        )
    inside = collective(n_bytes, network.n_devices, network.inside_port)
    return inside, Cost(*(np.zeros_like(part) for part in (inside.seconds, inside.bytes_sent, inside.n_messages)))


_ALL_REDUCE: dict[str, Algorithm] = {
    "ring": lambda n_bytes, network: _flat_ring(n_bytes, network, 2, is_reducing=True),
    "double-tree": _flat_double_tree,
    "hierarchical": _hierarchical_all_reduce,
}
_OF_NCCL = ("ring", "double-tree")
_NCCL_LATENCY_S = 14e-6
_IN_ONE_NODE = {
    name: partial(_in_one_node, name, each) for name, each in flat.ALL_REDUCE.items() if name not in _ALL_REDUCE
}
_BY_SWITCH = {"switch": partial(_in_one_node, "switch", flat.switch_all_reduce)}
_REDUCE_SCATTER: dict[str, Algorithm] = {
    "ring": lambda n_bytes, network: _flat_ring(n_bytes, network, 1, is_reducing=True),
    "hierarchical": _hierarchical_reduce_scatter,
}
_ALL_GATHER: dict[str, Algorithm] = {
    "ring": lambda n_bytes, network: _flat_ring(n_bytes, network, 1, is_reducing=False),
    "hierarchical": _hierarchical_all_gather,
}
_BROADCAST: dict[str, Algorithm] = {"ring": _flat_broadcast, "hierarchical": _hierarchical_broadcast}
