"""The links of the public runs: what is known of them without looking at the rows, and fits where nothing is known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lab.accuracy.distributed.rows import ParallelRow, Steps
from traincast.hardware.catalog import find_device
from traincast.hardware.cluster_text import find_cluster
from traincast.hardware.link import Link
from traincast.hardware.link_table import find_link, link_inside
from traincast.hardware.machines import find_machine
from traincast.scaling.collectives import Wire
from traincast.scaling.hierarchy import Network
from traincast.scaling.stragglers import SPREAD
from traincast.scaling.strategy import network_of
from traincast.trace.graph import Floats

Links = Callable[[ParallelRow], Network]
_N_EVALUATIONS, _FIRST_STEP = 150, 0.4
_POLLUX_MACHINE = "g4dn.12xlarge"
# "Bandwidth for single-flow traffic is limited to 5 Gbps when instances are not in the same cluster placement group"
# (AWS, "Amazon EC2 instance network bandwidth", read 2026-11-16). A ring of NCCL over TCP has one flow from a node to
# the next unless it sees that the network is Amazon's, which the virtual network of a container hides.
SINGLE_FLOW = "5Gb/s"


def pollux_links(between: str) -> Links:
    """Inside as the machine's preset says, between nodes the link of this name."""
    inside = find_machine(_POLLUX_MACHINE).cluster().inside
    wires = [Wire(link.latency_s, link.sustained_bytes_per_s) for link in (inside, find_link(between))]
    return lambda row: Network(wires[0], wires[1], row.placement)


def pollux_fitted(point: Floats) -> Links:
    """From logarithms: rate between two nodes, between more, inside (GB/s), latency between (s)."""
    two, more, inside, latency = np.exp(point)
    return lambda row: Network(
        Wire(5.7e-6, inside * 1e9),
        Wire(latency, (two if len(row.placement) == 2 else more) * 1e9),
        row.placement,
    )


POLLUX_START = np.log([0.5, 0.5, 4.0, 60e-6])


def gavel_fitted(point: Floats) -> Links:
    """Nothing is known of the machines. From logarithms: K80 inside and between, P100 inside and between (GB/s)."""
    rates = dict(zip(("K80 inside", "K80 between", "P100 inside", "P100 between"), np.exp(point) * 1e9, strict=True))

    def links(row: ParallelRow) -> Network:
        gpu = row.tags["gpu"]
        inside, between = Wire(5.7e-6, rates[f"{gpu} inside"]), Wire(3e-5, rates[f"{gpu} between"])
        return Network(inside, between, row.placement)

    return links


GAVEL_START = np.log([4.0, 1.0, 4.0, 1.0])


def own_link(row: ParallelRow) -> Link:
    """What we say joins so many of these devices in one machine."""
    return link_inside(find_device(row.job.device), row.n_devices)


def own_links(row: ParallelRow) -> Network:
    """What we say of so many of these devices in one machine."""
    return network_of(find_cluster(f"1x{row.n_devices}x{row.job.device}"))


def example_links(point: Floats) -> Links:
    """Our links with other figures for GeForce cards: the logarithm of the rate of two (GB/s), and the exponent."""
    rate, exponent = float(np.exp(point[0])), float(point[1])

    def links(row: ParallelRow) -> Network:
        device = find_device(row.job.device)
        link = link_inside(device, row.n_devices)
        if "through the host" not in link.name:
            return own_links(row)
        reached = min(rate * 1e9 * (2 / row.n_devices) ** exponent, link_inside(device, 1).sustained_bytes_per_s)
        return Network(Wire(link.latency_s, reached), None, row.placement)

    return links


EXAMPLE_START = np.array([np.log(3.0), 0.5])


def fit_links(
    steps: Steps,
    make: Callable[[Floats], Links],
    start: Floats,
    rows: Sequence[int],
    *,
    of_efficiency: bool,
    spread: Callable[[Floats], float] = lambda _: SPREAD,
) -> Floats:
    """The point whose links leave the smallest mean absolute error on these rows: of log steps, or of efficiencies."""
    from scipy.optimize import minimize

    measured = [steps.rows[number] for number in rows]
    if of_efficiency:
        target = np.array([(row.one_device_s or np.nan) / row.step_s for row in measured])
    else:
        target = np.log([row.step_s for row in measured])

    def loss(point: Floats) -> float:
        found = steps.predict(make(point), rows, spread=spread(point))
        return float(np.abs((found.efficiency if of_efficiency else np.log(found.step_s)) - target).mean())

    # The method's own first steps are a share of the start, and nothing where that is 0.
    simplex = np.stack([start, *(start + _FIRST_STEP * axis for axis in np.eye(len(start)))])
    options: Any = {"maxfev": _N_EVALUATIONS, "xatol": 0.01, "fatol": 1e-4, "initial_simplex": simplex}
    point: Floats = minimize(loss, start, method="Nelder-Mead", options=options).x
    return point
