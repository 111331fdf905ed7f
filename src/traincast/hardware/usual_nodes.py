"""Nodes for a plain number of devices: '64xH100-SXM5-80GB' is no single node, and somebody has to say what it is.

A node is taken to have eight, as SXM boards and servers for PCIe cards do, or what one NVLink domain joins where that
is more (72 in a rack of GB200). What joins nodes is what joins the machines with as many of that device in the
table: the fastest such network, because that is what clusters of them are built with.
"""

from __future__ import annotations

from dataclasses import dataclass

from traincast.errors import InputError
from traincast.hardware.device import Device
from traincast.hardware.link import Link
from traincast.hardware.machines import all_machines
from traincast.units import GIGA

_BOARD = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class UsualNodes:
    """How many nodes of how many devices, what joins them, and the sentence that says so."""

    n_nodes: int
    node_size: int
    between: Link
    assumption: str


def is_more_than_a_node(device: Device, n_devices: int) -> bool:
    """Processes on a CPU share one machine, however many they are."""
    return device.kind != "cpu" and n_devices > _largest_node(device)


def _largest_node(device: Device) -> int:
    return max(_BOARD, device.nvlink_domain or 0)


def _node_size(device: Device, n_devices: int) -> int:
    """A board, or as much of a rack as divides the devices evenly: 64 of 72 for 512."""
    largest = _largest_node(device)
    if largest == _BOARD:
        return _BOARD
    return max((n for n in range(largest // 2, largest + 1) if n_devices % n == 0), default=largest)


def usual_nodes(text: str, device: Device, n_devices: int, between: Link | None) -> UsualNodes:
    """For more devices than a node holds; `between` is the link that was named, if one was."""
    size = _node_size(device, n_devices)
    if n_devices % size:
        less = n_devices - n_devices % size
        even = max(n for n in range(1, size) if n_devices % n == 0)
        raise InputError(
            f"'{text}': {n_devices:,} devices do not fill nodes of {size}. Ask for {less:,} or {less + size:,}, or "
            f"write nodes x devices a node @ link, as in '{n_devices // even}x{even}x{device.name}@100Gb/s', or "
            f"'1x{n_devices}x{device.name}' for one large node."
        )
    n_nodes, source = n_devices // size, "as named"
    if between is None:
        between, source = _joined(text, device, n_devices, size)
    rate = f"{between.bytes_per_s * 8 / GIGA:g}Gb/s"
    # A plain rate from 100 Gb/s on means RDMA, so that TCP has to be named.
    written = between.name.replace(" ", "-") if between.name.startswith("Ethernet") else rate
    return UsualNodes(
        n_nodes=n_nodes,
        node_size=size,
        between=between,
        assumption=(
            f"'{text}' is taken for {n_nodes:,} nodes of {size} devices, joined by {between.name} ({source}: {rate} a "
            "node and direction). To say otherwise, write nodes x devices a node @ link, as in "
            f"'{n_nodes}x{size}x{device.name}@{written}', or '1x{n_devices}x{device.name}' for one large node."
        ),
    )


def _joined(text: str, device: Device, n_devices: int, size: int) -> tuple[Link, str]:
    """The fastest network of a machine with as many of these as a node has, and which machine that is."""
    machines = [each for each in all_machines() if each.device == device.name and each.n_devices == size]
    joined = [(each.network, each) for each in machines if each.network is not None]
    if not joined:
        raise InputError(
            f"'{text}' is more than a node of {size}, and what joins nodes of {device.name} is not known: write nodes "
            f"x devices a node @ link, as in '{n_devices // size}x{size}x{device.name}@100Gb/s', or "
            f"'1x{n_devices}x{device.name}' for one large node."
        )
    # Of equals the one that the maker of the device sells.
    link, machine = max(joined, key=lambda each: (each[0].sustained_bytes_per_s, each[1].provider == "NVIDIA"))
    return link, f"as a {machine.name} has"
