"""What a collective costs on a flat network: every process has one port, and all ports are alike.

The model is alpha-beta-gamma (Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
MPICH", 2005). A message of m bytes takes latency_s + m / bytes_per_s; adding m bytes to m others takes
m / reduce_bytes_per_s; a port sends and receives at once. Nothing overlaps, except where a function says *pipelined*:
there the pieces are so fine that a hop costs its latency once and the bytes flow through all hops together.

N is the whole vector (n_bytes), P the number of processes (n), h = ceil(log2 P). One process alone costs nothing.
Every argument may be an array; they broadcast.

A wire may be driven by a library with several protocols: few bytes go by one that is quick to start, many by one that
fills the link. Every collective then takes the fastest, and what a device moves within its own memory is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from traincast.errors import InputError, close_names
from traincast.trace.graph import Floats, Ints

Number = float | Floats | Ints
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True)
class Protocol:
    """One way in which a library moves bytes over a wire."""

    start_s: float  # once per collective
    hop_s: float  # per message on the critical path
    share: float  # of the wire's rate


@dataclass(frozen=True, eq=False, slots=True)
class Wire:
    """The port of one process: rates are per direction, and both directions work at once."""

    latency_s: Number
    bytes_per_s: Number
    reduce_bytes_per_s: Number = np.inf
    protocols: tuple[Protocol, ...] = ()  # none: a message takes latency_s, and bytes flow at the whole rate
    copy_bytes_per_s: float = np.inf  # at which a device moves its own part within its memory
    switch: Protocol | None = None  # an all-reduce that the switch adds up
    peer_s: float | None = None  # of each further partner of an all-to-all; None: a message each

    def __post_init__(self) -> None:
        latency_s, bytes_per_s, reduce_bytes_per_s = map(
            _numbers, (self.latency_s, self.bytes_per_s, self.reduce_bytes_per_s)
        )
        if not (np.isfinite(latency_s) & (latency_s >= 0)).all():
            raise InputError(f"A latency is a finite number of seconds, 0 or more, not {self.latency_s}.")
        if not (np.isfinite(bytes_per_s) & (bytes_per_s > 0)).all():
            raise InputError(f"A bandwidth is a finite number of bytes per second above 0, not {self.bytes_per_s}.")
        if not (reduce_bytes_per_s > 0).all():
            raise InputError(f"A rate of reduction is above 0 bytes per second, not {self.reduce_bytes_per_s}.")


@dataclass(frozen=True, eq=False, slots=True)
class Cost:
    """Seconds until the last process has finished, and what lies behind them.

    `bytes_sent` is what the process that sends most sends; `n_messages` counts the latencies on the critical path.
    """

    seconds: Floats
    bytes_sent: Floats
    n_messages: Floats

    def __add__(self, other: Cost) -> Cost:
        """One after the other. The one that sends most need not be the same in both: `bytes_sent` is then a bound."""
        return Cost(
            self.seconds + other.seconds, self.bytes_sent + other.bytes_sent, self.n_messages + other.n_messages
        )


def send(n_bytes: Number, wire: Wire) -> Cost:
    """One message from one process to another."""
    size, n = checked(n_bytes, 2)
    return cost(n, wire, n_messages=1.0, bytes_sent=size)


def ring_all_reduce(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """A reduce-scatter and an all-gather around the ring: 2(P-1) steps of N/P bytes, the fewest bytes possible.

    One collective: it starts once and works in place.
    """
    size, n = checked(n_bytes, n)
    sent = 2 * size * (n - 1) / n
    return cost(n, wire, n_messages=2 * (n - 1), bytes_sent=sent, reduced_bytes=sent / 2)


def ring_reduce_scatter(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """P-1 steps of N/P bytes, each added to what is there. N is what every process begins with."""
    size, n = checked(n_bytes, n)
    sent = size * (n - 1) / n
    return copying(size / n, wire, cost(n, wire, n_messages=n - 1, bytes_sent=sent, reduced_bytes=sent))


def ring_all_gather(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """P-1 steps of N/P bytes. N is what every process ends with."""
    size, n = checked(n_bytes, n)
    return copying(size / n, wire, cost(n, wire, n_messages=n - 1, bytes_sent=size * (n - 1) / n))


def switch_all_reduce(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """The switch adds up what all send and sends the sum to all: N bytes each way, at every P."""
    size, n = checked(n_bytes, n)
    if wire.switch is None:
        raise InputError("These devices are not joined by a switch that adds up.")
    return cost(n, replace(wire, protocols=(wire.switch,)), n_messages=0.0, bytes_sent=size)


def tree_all_reduce(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """Up a binomial tree and down again, the whole vector at each of 2h steps, as in PALEO (`comm.py`).

    The root sends h times on the way down; its largest child once up and h-1 times down.
    """
    size, n = checked(n_bytes, n)
    way = size * log2_ceil(n)
    return cost(n, wire, n_messages=2 * log2_ceil(n), bytes_sent=way, wire_bytes=2 * way, reduced_bytes=way)


def double_tree_all_reduce(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """Two binary trees with half the vector each, pipelined, as in NCCL: 2h latencies, 2N bytes.

    A process is a leaf of one tree (sends N/2) and inside the other (N/2 up, twice N/2 down). NCCL's own model counts
    2N at every P, and so does this; two processes would need N only.
    """
    size, n = checked(n_bytes, n)
    return cost(n, wire, n_messages=2 * log2_ceil(n), bytes_sent=2 * size, reduced_bytes=size)


def butterfly_all_reduce(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """Recursive halving, then doubling: 2 log2 P steps, the bytes of a ring.

    If P is no power of two, the r = P - Q processes above the largest power Q first give their vector to a partner
    and get the sum back at the end: two more steps of N, and the partner sends N more.
    """
    size, n = checked(n_bytes, n)
    power = 2.0 ** np.floor(np.log2(n))
    is_folded = n > power
    sent = 2 * size * (power - 1) / power
    return cost(
        n,
        wire,
        n_messages=2 * np.log2(power) + 2 * is_folded,
        bytes_sent=sent + size * is_folded,
        wire_bytes=sent + 2 * size * is_folded,
        reduced_bytes=sent / 2 + size * is_folded,
    )


def recursive_doubling_all_reduce(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """Partners at distance 1, 2, 4... swap whole vectors: log2 P steps of N, the fewest latencies.

    Two more steps of N if P is no power of two, as in the butterfly. PALEO calls this one butterfly.
    """
    size, n = checked(n_bytes, n)
    n_swaps = np.floor(np.log2(n))
    is_folded = n > 2.0**n_swaps
    return cost(
        n,
        wire,
        n_messages=n_swaps + 2 * is_folded,
        bytes_sent=size * (n_swaps + is_folded),
        wire_bytes=size * (n_swaps + 2 * is_folded),
        reduced_bytes=size * (n_swaps + is_folded),
    )


def master_all_reduce(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """All send to one, which adds up and sends back: P-1 messages of N in through its one port, P-1 out."""
    size, n = checked(n_bytes, n)
    through = size * (n - 1)
    return cost(n, wire, n_messages=2 * (n - 1), bytes_sent=through, wire_bytes=2 * through, reduced_bytes=through)


def tree_broadcast(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """Down a binomial tree: those who have it double at each of h steps. The root sends in all of them."""
    size, n = checked(n_bytes, n)
    return cost(n, wire, n_messages=log2_ceil(n), bytes_sent=size * log2_ceil(n))


def ring_broadcast(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """From each to the next, pipelined: P-1 latencies, N bytes."""
    size, n = checked(n_bytes, n)
    return cost(n, wire, n_messages=n - 1, bytes_sent=size)


def tree_reduce(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """The broadcast backwards. The root receives in all h steps and adds; everyone else sends N once."""
    size, n = checked(n_bytes, n)
    through = size * log2_ceil(n)
    return cost(n, wire, n_messages=log2_ceil(n), bytes_sent=size, wire_bytes=through, reduced_bytes=through)


def ring_reduce(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """From each to the next up to the root, pipelined: P-1 latencies, N bytes, N added by each on the way."""
    size, n = checked(n_bytes, n)
    return cost(n, wire, n_messages=n - 1, bytes_sent=size, reduced_bytes=size)


def scatter(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """The root keeps N/P and sends N/P to each of the others through its one port (DataParallel: the batch)."""
    size, n = checked(n_bytes, n)
    return cost(n, wire, n_messages=n - 1, bytes_sent=size * (n - 1) / n)


def gather(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """Each of the others sends its N/P through the root's one port (DataParallel: the outputs)."""
    size, n = checked(n_bytes, n)
    return cost(n, wire, n_messages=n - 1, bytes_sent=size / n, wire_bytes=size * (n - 1) / n)


def all_to_all(n_bytes: Number, n: Number, wire: Wire) -> Cost:
    """Every process sends a different N/P to every other: one after the other, or all at once where a library does so.

    All at once, one message is on the critical path, and each further partner costs the sender `peer_s`.
    """
    size, n = checked(n_bytes, n)
    sent = size * (n - 1) / n
    if wire.peer_s is None:
        return cost(n, wire, n_messages=n - 1, bytes_sent=sent)
    last = max(wire.protocols, key=lambda protocol: protocol.share)
    partners = replace(wire, protocols=(replace(last, hop_s=wire.peer_s),))
    return copying(size / n, wire, cost(n, partners, n_messages=n - 1, bytes_sent=sent))


AllReduce = Callable[[Number, Number, Wire], Cost]

ALL_REDUCE: dict[str, AllReduce] = {
    "ring": ring_all_reduce,
    "tree": tree_all_reduce,
    "double-tree": double_tree_all_reduce,
    "butterfly": butterfly_all_reduce,
    "recursive-doubling": recursive_doubling_all_reduce,
    "master": master_all_reduce,
}


def all_reduce(n_bytes: Number, n: Number, wire: Wire, *, algorithm: str) -> Cost:
    """By the algorithm of that name in `ALL_REDUCE`."""
    return named(algorithm, ALL_REDUCE)(n_bytes, n, wire)


def best_all_reduce(
    n_bytes: Number, n: Number, wire: Wire, *, among: Iterable[str] = ("ring", "double-tree")
) -> tuple[npt.NDArray[np.str_], Cost]:
    """The fastest of them, element by element, with its name. NCCL chooses so, between the two of the default.

    Where two are equally fast, the one named first is taken.
    """
    names = tuple(among)
    if not names:
        raise InputError(f"There is nothing to choose among; known algorithms: {', '.join(ALL_REDUCE)}.")
    costs = [named(name, ALL_REDUCE)(n_bytes, n, wire) for name in names]
    chosen = np.argmin(np.stack([each.seconds for each in costs]), axis=0)
    return np.array(names)[chosen], choose(chosen, costs)


def named(name: str, known: dict[str, Item]) -> Item:
    """The item of that name, or an error that lists the names there are."""
    if name not in known:
        raise InputError(f"No algorithm named '{name}'.{close_names(name, known)} Known: {', '.join(known)}.")
    return known[name]


def choose(chosen: npt.NDArray[np.intp], costs: list[Cost]) -> Cost:
    """Element by element, the cost with the chosen number."""
    index = np.asarray(chosen)[None]
    return Cost(
        *(
            np.take_along_axis(np.stack([getattr(each, part) for each in costs]), index, axis=0)[0]
            for part in ("seconds", "bytes_sent", "n_messages")
        )
    )


def log2_ceil(n: Floats) -> Floats:
    """Steps after which one has become n or more by doubling."""
    return np.ceil(np.log2(n))


def checked(n_bytes: Number, n: Number) -> tuple[Floats, Floats]:
    """Both as floats, or an error."""
    size, count = _numbers(n_bytes), _numbers(n)
    if not (np.isfinite(size) & (size >= 0)).all():
        raise InputError(f"A message has a finite number of bytes, 0 or more, not {n_bytes}.")
    if not (np.isfinite(count) & (count >= 1) & (count == np.floor(count))).all():
        raise InputError(f"A collective has a whole number of processes, 1 or more, not {n}.")
    return size, count


def cost(
    n: Floats,
    wire: Wire,
    *,
    n_messages: float | Floats,
    bytes_sent: Floats,
    wire_bytes: Floats | None = None,
    reduced_bytes: float | Floats = 0.0,
) -> Cost:
    """Seconds from counts; `wire_bytes` pass the busiest port one after the other, by default what it sends."""
    through = bytes_sent if wire_bytes is None else wire_bytes
    seconds = _carry_s(wire, n_messages, through) + reduced_bytes / _numbers(wire.reduce_bytes_per_s)
    parts = np.broadcast_arrays(seconds, bytes_sent, n_messages, n)
    return Cost(*(np.where(parts[-1] > 1, part, 0.0)[()] for part in parts[:-1]))


def copying(n_bytes: Floats, wire: Wire, exchange: Cost) -> Cost:
    """An exchange, and the part that a device moves within its own memory; one process alone leaves it in place."""
    own_s = np.where(exchange.n_messages > 0, n_bytes / wire.copy_bytes_per_s, 0.0)
    return replace(exchange, seconds=(exchange.seconds + own_s)[()])


def _carry_s(wire: Wire, n_messages: float | Floats, through: Floats) -> Floats:
    """Messages and bytes over the wire, by its fastest protocol."""
    rate = _numbers(wire.bytes_per_s)
    if not wire.protocols:
        return n_messages * _numbers(wire.latency_s) + through / rate
    ways = [each.start_s + n_messages * each.hop_s + through / (each.share * rate) for each in wire.protocols]
    return np.min(np.stack(np.broadcast_arrays(*ways)), axis=0)


def _numbers(value: Number) -> Floats:
    return np.asarray(value, dtype=np.float64)
