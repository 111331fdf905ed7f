"""Who talks to whom: groups of devices that share a replica, or the same part of all replicas."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traincast.scaling.hierarchy import Network
from traincast.scaling.split import ModelSplit
from traincast.trace.graph import Ints


def replica_network(network: Network, split: ModelSplit) -> Network:
    """Where the peers of one device sit, which hold the same weights: in each replica and each part of a context."""
    parts = split.tensor * np.arange(split.context)
    replicas = split.n_devices * np.arange(network.n_devices // split.n_devices)
    return group_network(network, (replicas[:, None] + parts).ravel())


def context_network(network: Network, split: ModelSplit) -> Network:
    """Where those sit that share a sequence."""
    return group_network(network, split.tensor * np.arange(split.context))


def tensor_network(network: Network, split: ModelSplit) -> Network:
    """Those that share every block: inside one node."""
    return replace(network, between=None, placement=(split.tensor,))


def first_of(network: Network, n: int) -> Network:
    """The first n devices, node by node."""
    return group_network(network, np.arange(n))


def one_of_each(network: Network, n: int) -> Network:
    """One device of every n."""
    return group_network(network, np.arange(0, network.n_devices, n))


def group_network(network: Network, members: Ints) -> Network:
    """The network of these devices, while all others of their nodes are in groups of their own that do the same.

    The port of a node is shared by all groups that have a member in it.
    """
    node_of = np.repeat(np.arange(network.n_nodes), network.placement)[members]
    placement = tuple(np.unique(node_of, return_counts=True)[1].tolist())
    between = network.between
    if between is not None:
        n_groups = max(network.n_inside // max(placement), 1)
        between = replace(between, bytes_per_s=np.asarray(between.bytes_per_s) / n_groups)
    return replace(network, between=between, placement=placement)
