"""Clusters in words: '4xT4', '2x4xT4@50Gb/s', '2xp3.16xlarge', '3 of p3.8xlarge', or the path of a file."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from traincast.errors import InputError, UnknownDeviceError
from traincast.hardware.catalog import all_devices, find_device, matching_devices
from traincast.hardware.cluster import Cluster
from traincast.hardware.host import THIS_MACHINE
from traincast.hardware.link_table import find_link, find_link_inside, link_inside
from traincast.hardware.machines import close_machines, machine_named
from traincast.hardware.place_text import PlaceText, read_place, split_part, whole_number
from traincast.hardware.this_machine import read_shared_profile
from traincast.hardware.usual_nodes import is_more_than_a_node, usual_nodes

if TYPE_CHECKING:
    from pathlib import Path

    from traincast.hardware.device import Device
    from traincast.hardware.link import Link
    from traincast.hardware.machines import Machine


def find_cluster(text: str, *, devices_file: str | Path | None = None, link: str | None = None) -> Cluster:
    """The cluster that the words mean; `link` replaces what joins the devices of a node.

    The link between nodes is part of the words, after an @. A device file adds devices to name, or replaces them.
    """
    words = text.strip()
    inside = None if link is None else find_link_inside(link)
    part = split_part(words)
    if part is not None:
        n_devices = whole_number(part[0], "devices", words)
        return find_cluster(part[1], devices_file=devices_file, link=link).take(n_devices)
    place = read_place(words)
    if place.is_file:
        from traincast.hardware.cluster_file import read_cluster_file

        return read_cluster_file(place.name, devices_file=devices_file, inside=inside)
    place = place.named(lambda name: machine_named(name) is not None)
    machine = machine_named(place.name)
    counts = _counts(place, words, of_machines=machine is not None)
    between = None if place.link is None else find_link(place.link)
    if place.name.lower() == THIS_MACHINE:
        device, joined = read_shared_profile(counts[-1] if counts else 1)
        return _of_devices(words, device, counts, inside or joined, between)
    if machine is None:
        return _of_devices(words, _device(place.name, devices_file), counts, inside, between)
    cluster = _of_machines(words, machine, counts, between, devices_file)
    return cluster if inside is None else replace(cluster, inside=inside)


def _counts(place: PlaceText, text: str, *, of_machines: bool) -> tuple[int, ...]:
    """The numbers before a name from the left: of nodes, of devices, or of nodes and the devices of each."""
    if not place.name:
        raise InputError(f"'{text}' names no device: write 'T4', '4xT4' or '2x4xT4@50Gb/s'.")
    n = len(place.counts)
    if n > 2:
        raise InputError(f"'{text}' has {n} numbers: write nodes x devices a node, as in '2x4xT4@50Gb/s'.")
    kinds = ("nodes", "devices a node") if n == 2 else ("nodes" if of_machines else "devices",)
    return tuple(whole_number(digits, kind, text) for digits, kind in zip(place.counts, kinds, strict=False))


def _of_devices(
    text: str, device: Device, counts: tuple[int, ...], inside: Link | None, between: Link | None
) -> Cluster:
    n_devices = counts[-1] if counts else 1
    n_nodes = counts[0] if len(counts) == 2 else 1
    assumption = ""
    if len(counts) == 1 and is_more_than_a_node(device, n_devices):
        usual = usual_nodes(text, device, n_devices, between)
        n_devices, n_nodes = usual.node_size, usual.n_nodes
        between, assumption = usual.between, usual.assumption
    elif len(counts) < 2 and between is not None:
        raise InputError(
            f"'{text}' is one node, and @ names the link between nodes: write nodes x devices a node, "
            f"as in '2x{n_devices}x{device.name}@{between.name}'."
        )
    if n_nodes > 1 and between is None:
        raise InputError(
            f"'{text}' has {n_nodes} nodes: name the link between them after an @, as in '{text}@50Gb/s' "
            f"or '{text}@InfiniBand HDR'."
        )
    return Cluster(
        device=device,
        placement=(n_devices,) * n_nodes,
        inside=inside or link_inside(device, n_devices),
        between=between if n_nodes > 1 else None,
        name=text,
        devices_per_node=n_devices,
        n_nodes_max=n_nodes,
        assumption=assumption,
    )


def _of_machines(
    text: str, machine: Machine, counts: tuple[int, ...], between: Link | None, devices_file: str | Path | None
) -> Cluster:
    if len(counts) == 2:
        raise InputError(
            f"'{text}': {machine.name} is a whole machine of {machine.n_devices}: write '{counts[0]}x{machine.name}', "
            f"or '{counts[0] * counts[1]} of {counts[0]}x{machine.name}' to use some of its devices."
        )
    own = machine if between is None else replace(machine, network=between)
    return replace(own.cluster(counts[0] if counts else 1, devices_file=devices_file), name=text)


def _device(name: str, devices_file: str | Path | None) -> Device:
    try:
        return find_device(name, devices_file=devices_file)
    except UnknownDeviceError:
        devices = all_devices(devices_file)
        if matching_devices(devices, text=name):  # part of a device's name: that answer is the better one
            raise
        close = close_machines(name, (device.name for device in devices))
        raise UnknownDeviceError(
            f"No device or machine named '{name}'.{close} 'traincast devices' lists all "
            f"{len(devices)} devices; --devices FILE adds your own."
        ) from None
