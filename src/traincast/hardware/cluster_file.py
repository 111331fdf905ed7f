"""Clusters of users' own in TOML files: what their words cannot say, such as measured links and prices."""

from __future__ import annotations

import datetime
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traincast.errors import FileFormatError, InputError, close_names
from traincast.hardware.catalog import find_device
from traincast.hardware.cluster import Cluster
from traincast.hardware.link import Link
from traincast.hardware.link_table import find_link, find_link_inside, link_inside
from traincast.report.small_files import read_toml
from traincast.units import GIGA, MEGA

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_KINDS: dict[str, tuple[type, ...]] = {
    "text": (str,),
    "text or a date": (str, datetime.date),
    "a whole number": (int,),
    "a number": (int, float),
    "true or false": (bool,),
    "the name of a link, a rate or a table": (str, dict),
}
_CLUSTER = {
    "name": "text",
    "device": "text",
    "n_nodes": "a whole number",
    "devices_per_node": "a whole number",
    "inside": "the name of a link, a rate or a table",
    "between": "the name of a link, a rate or a table",
    "node_price_usd_per_hour": "a number",
    "price_source": "text",
    "price_date": "text or a date",
    "region": "text",
}
_LINK = {
    "name": "text",
    "gb_per_s": "a number",
    "latency_us": "a number",
    "achievable": "a number",
    "is_shared": "true or false",
    "source": "text",
    "notes": "text",
}


def read_cluster_file(
    path: str | Path, *, devices_file: str | Path | None = None, inside: Link | None = None
) -> Cluster:
    """One cluster; `inside` replaces the link that the file names between the devices of a node.

    Required are device and devices_per_node, and between where n_nodes is above 1. A link is a name or a rate, as in
    words, or a table of its own with gb_per_s (gigabytes, one direction), latency_us and achievable.
    """
    where = f"Cluster file '{path}'"
    content = read_toml(path, where)
    _check(content, _CLUSTER, ("device", "devices_per_node"), where)
    n_nodes, n_devices = content.get("n_nodes", 1), content["devices_per_node"]
    for key, n in (("n_nodes", n_nodes), ("devices_per_node", n_devices)):
        if not 1 <= n <= MEGA:
            raise FileFormatError(f"{where}: {key} should be from 1 to 1,000,000, not {n}.")
    price = content.get("node_price_usd_per_hour")
    if price is not None and price <= 0:
        raise FileFormatError(
            f"{where}: node_price_usd_per_hour should be above 0, not {price}; leave out what is unknown."
        )
    if n_nodes > 1 and "between" not in content:
        raise FileFormatError(f"{where}: between is missing, the link between its {n_nodes} nodes.")
    try:
        device = find_device(content["device"], devices_file=devices_file)
        own = _link(content["inside"], find_link_inside, f"{where}: inside") if "inside" in content else None
        between = _link(content["between"], find_link, f"{where}: between") if "between" in content else None
        return Cluster(
            device=device,
            placement=(n_devices,) * n_nodes,
            inside=inside or own or link_inside(device, n_devices),
            between=between if n_nodes > 1 else None,
            name=content.get("name", str(path)),
            devices_per_node=n_devices,
            n_nodes_max=n_nodes,
            node_price_usd_per_hour=price,
            price_source=content.get("price_source", ""),
            price_date=_day(content, where),
            region=content.get("region", ""),
        )
    except InputError as error:
        raise FileFormatError(f"{where}: {error}") from None


def _day(content: Mapping[str, Any], where: str) -> str:
    if "price_date" not in content:
        return ""
    from traincast.hardware.price_day import price_day

    return price_day(content["price_date"], f"{where}: price_date")


def _check(table: Mapping[str, Any], known: Mapping[str, str], required: tuple[str, ...], where: str) -> None:
    for key, value in table.items():
        if key not in known:
            close = close_names(key, known) or f" Known are {', '.join(known)}."
            raise FileFormatError(f"{where}: unknown key '{key}'.{close}")
        kind = known[key]
        if not isinstance(value, _KINDS[kind]) or (isinstance(value, bool) and kind != "true or false"):
            raise FileFormatError(f"{where}: {key} should be {kind}, not {value!r}.")
        if kind == "a number" and not _is_finite(table[key]):
            raise FileFormatError(f"{where}: {key} should be a finite number.")
    for key in required:
        if key not in table:
            raise FileFormatError(f"{where}: {key} is missing.")


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # whole numbers in TOML have no largest
        return False


def _link(value: str | dict[str, Any], find: Callable[[str], Link], where: str) -> Link:
    if isinstance(value, str):
        return find(value)
    _check(value, _LINK, ("gb_per_s", "latency_us", "achievable"), where)
    return Link(
        name=value.get("name", f"{value['gb_per_s']:g} GB/s"),
        bytes_per_s=value["gb_per_s"] * GIGA,
        latency_s=value["latency_us"] / MEGA,
        achievable=value["achievable"],
        is_shared=value.get("is_shared", False),
        source=value.get("source", ""),
        notes=value.get("notes", ""),
    )
