"""Training with parameter servers, as a strategy: workers push gradients and pull weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from traincast.scaling.collectives import Wire
from traincast.scaling.hierarchy import Network
from traincast.scaling.local_step import LocalStep, ParallelStep
from traincast.scaling.parameter_server import Servers, asynchronous, synchronous
from traincast.scaling.strategies import alone

# A server adds and updates in the memory of a host, at about what two channels of a server's CPU copy.
_SERVER_BYTES_PER_S = 20e9


def parameter_servers(step: LocalStep, network: Network, *, n_servers: int, is_synchronous: bool) -> ParallelStep:
    """Workers are the devices; servers have machines of their own behind links like the workers'.

    Asynchronous workers wait for none but the servers: the step is that of one worker, and gradients are old.
    """
    n_bytes = step.gradients.total_bytes
    if not n_bytes:
        return alone(step)
    servers = Servers(
        n_workers=network.n_devices,
        n_servers=n_servers,
        wire=_wire(network),
        update_bytes_per_s=_SERVER_BYTES_PER_S,
    )
    one = alone(step)
    one = replace(one, optimizer_s=np.zeros_like(one.optimizer_s), update_fraction=0.0)  # the servers update
    if is_synchronous:
        exposed_s = np.full(len(step.batch_sizes), float(synchronous(n_bytes, servers).seconds))
    else:
        exposed_s = asynchronous(n_bytes, servers, compute_s=one.compute_s).step_s - one.compute_s
    return replace(
        one,
        exposed_s=exposed_s,
        communication_s=exposed_s,
        bytes_sent=np.full(len(step.batch_sizes), n_bytes),
    )


def _wire(network: Network) -> Wire:
    """Through the network where there is one; inside a single node over its own links."""
    if network.n_nodes == 1 and network.between is None:
        return network.inside
    port = network.node_port
    # The devices of a node share its port.
    return Wire(port.latency_s, np.asarray(port.bytes_per_s) / network.n_inside)
