"""Parameter servers: workers push gradients, servers update their share of the parameters, workers pull them.

W workers and P servers have one port each. The N bytes of parameters are divided evenly, so in one push a server
receives N/P from each of W workers through its one port, while a worker sends N through its own:

    push = pull = latency + max(N, W N / P) / bytes_per_s

Servers are on machines of their own; where they share a machine with workers, the port given here is what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from traincast.errors import InputError
from traincast.scaling.collectives import Number, Wire, checked
from traincast.trace.graph import Floats


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Servers:
    """Who takes part, and how fast a server updates.

    One update of a byte of parameters moves `n_passes` bytes through the server's memory: plain SGD on a sum that is
    there reads parameter and gradient and writes the parameter, 3. Adding up W gradients first is 3 more for each.
    """

    n_workers: Number
    n_servers: Number
    wire: Wire
    update_bytes_per_s: Number = np.inf
    n_passes: Number = 3.0

    def __post_init__(self) -> None:
        for what, count in (("workers", self.n_workers), ("servers", self.n_servers)):
            values = np.asarray(count, dtype=np.float64)
            if not (np.isfinite(values) & (values >= 1) & (values == np.floor(values))).all():
                raise InputError(f"The number of {what} should be a whole number of at least 1, not {count}.")
        if not (np.asarray(self.update_bytes_per_s) > 0).all():
            raise InputError(f"An update rate should be above 0 bytes per second, not {self.update_bytes_per_s}.")
        if not (np.isfinite(self.n_passes) & (np.asarray(self.n_passes) >= 0)).all():
            raise InputError(f"The passes per update should be a finite number of at least 0, not {self.n_passes}.")

    def update_s(self, n_bytes: Number) -> Floats:
        """A server's seconds to update its share once."""
        size, n_servers = checked(n_bytes, self.n_servers)
        return size / n_servers * np.asarray(self.n_passes) / np.asarray(self.update_bytes_per_s)


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class SynchronousCost:
    """One exchange: all push, the servers update, all pull."""

    push_s: Floats
    update_s: Floats
    pull_s: Floats
    worker_bytes_sent: Floats
    server_bytes_sent: Floats

    @property
    def seconds(self) -> Floats:
        return self.push_s + self.update_s + self.pull_s


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class AsynchronousCost:
    """The steady state of workers that wait for no other worker.

    `step_s` is what a step of one worker takes, its computing included, `alone_s` what it would with the servers to
    itself. They differ where the servers are saturated. `bound_by`: "worker", "link" or "update".
    """

    step_s: Floats
    alone_s: Floats
    bound_by: npt.NDArray[np.str_]

    @property
    def worker_steps_per_s(self) -> Floats:
        return 1.0 / self.step_s


def synchronous(n_bytes: Number, servers: Servers) -> SynchronousCost:
    """One exchange of N bytes; every worker begins and ends it together with the others."""
    size, n_servers = checked(n_bytes, servers.n_servers)
    n_workers = np.asarray(servers.n_workers, dtype=np.float64)
    at_server = size * n_workers / n_servers
    way_s = servers.wire.latency_s + np.maximum(size, at_server) / np.asarray(servers.wire.bytes_per_s)
    return SynchronousCost(
        push_s=way_s,
        update_s=servers.update_s(size),
        pull_s=way_s,
        worker_bytes_sent=size,
        server_bytes_sent=at_server,
    )


def asynchronous(n_bytes: Number, servers: Servers, *, compute_s: Number) -> AsynchronousCost:
    """A worker computes, pushes, has its gradient applied and pulls, and none of it overlaps.

    Alone, its own port bounds the exchange: N each way. Of W workers at a rate of r steps a second, a server receives
    (and sends) r W N / P bytes a second, and updates its share r W times. Neither can exceed the server's own rate:
    until one of them does, workers do not feel each other; then they queue, and share what the servers can do.
    """
    size, n_servers = checked(n_bytes, servers.n_servers)
    compute = np.asarray(compute_s, dtype=np.float64)
    if not (np.isfinite(compute) & (compute > 0)).all():
        raise InputError(f"A worker's compute time should be finite and above 0 s, not {compute_s}.")
    n_workers = np.asarray(servers.n_workers, dtype=np.float64)
    bytes_per_s = np.asarray(servers.wire.bytes_per_s, dtype=np.float64)
    update_s = servers.update_s(size)
    alone_s = compute + 2 * (np.asarray(servers.wire.latency_s) + size / bytes_per_s) + update_s
    link_s = n_workers * size / n_servers / bytes_per_s
    bounds_s = np.stack(np.broadcast_arrays(alone_s, link_s, n_workers * update_s))
    return AsynchronousCost(
        step_s=bounds_s.max(axis=0),
        alone_s=bounds_s[0],
        bound_by=np.array(["worker", "link", "update"])[bounds_s.argmax(axis=0)],
    )
