"""Machines that can be rented or bought, by the names that their makers gave them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from traincast.errors import InputError, close_names
from traincast.hardware.catalog import find_device
from traincast.hardware.cluster import Cluster, check_count
from traincast.hardware.device_table import name_key
from traincast.hardware.host import THIS_MACHINE
from traincast.hardware.link_table import find_link, link_inside
from traincast.hardware.place_text import read_place
from traincast.hardware.this_machine import read_cpu_profile
from traincast.report.small_files import shipped_rows
from traincast.units import GIGA

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from traincast.hardware.device import Device
    from traincast.hardware.link import Link


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One node as a provider or maker describes it. Prices are of the whole machine; what is not known is None."""

    name: str
    provider: str
    device: str  # a name of the device table
    n_devices: int
    inside: Link
    network: Link | None
    price_usd_per_hour: float | None  # on demand
    price_date: str
    region: str
    source: str
    notes: str
    aliases: tuple[str, ...] = ()
    spot_usd_per_hour: float | None = None
    n_cpus: int | None = None
    is_retired: bool = False  # newer catalogues do not list it any more

    def usd_per_hour(self, *, is_spot: bool) -> float | None:
        return self.spot_usd_per_hour if is_spot else self.price_usd_per_hour

    def cluster(self, n_nodes: int = 1, *, devices_file: str | Path | None = None) -> Cluster:
        """So many of this machine, joined by its own network, with every device used."""
        check_count(n_nodes, f"'{self.name}': the number of machines")
        if n_nodes > 1 and self.network is None:
            raise InputError(
                f"The network of '{self.name}' is not known: name it after an @, as in '{n_nodes}x{self.name}@50Gb/s'."
            )
        return Cluster(
            device=find_device(self.device, devices_file=devices_file),
            placement=(self.n_devices,) * n_nodes,
            inside=self.inside,
            between=self.network if n_nodes > 1 else None,
            name=self.name if n_nodes == 1 else f"{n_nodes}x{self.name}",
            devices_per_node=self.n_devices,
            n_nodes_max=n_nodes,
            node_price_usd_per_hour=self.price_usd_per_hour,
            price_source=self.source if self.price_usd_per_hour is not None else "",
            price_date=self.price_date if self.price_usd_per_hour is not None else "",
            region=self.region,
        )


@lru_cache(maxsize=1)
def all_machines() -> tuple[Machine, ...]:
    """The table that ships with traincast, in its own order."""
    return tuple(map(_machine_at, range(len(_rows()))))


def matching_machines(text: str) -> tuple[Machine, ...]:
    """Those whose name, an alias, provider or device contains the text."""
    return tuple(
        machine
        for machine in all_machines()
        if any(
            name_key(text) in name_key(part)
            for part in (machine.name, *machine.aliases, machine.provider, machine.device)
        )
    )


def find_machine(name: str) -> Machine:
    """The machine of that name or alias; case, spaces, dashes and underscores do not matter."""
    found = machine_named(name)
    if found is None:
        close = close_machines(name)
        raise InputError(f"No machine named '{name}'.{close} The table of machines has {len(all_machines())} names.")
    return found


def close_machines(name: str, others: Iterable[str] = ()) -> str:
    """A sentence with names that begin like this one, or else with the nearest; `others` are further names to try."""
    names = [machine.name for machine in all_machines()]
    begin = [known for known in names if name_key(name) and name_key(known).startswith(name_key(name))]
    return f" Close names: {', '.join(begin[:3])}." if begin else close_names(name, (*others, *names))


def machine_named(name: str) -> Machine | None:
    """As `find_machine`, but None for a name that no machine has."""
    n = _index().get(name_key(name))
    return None if n is None else _machine_at(n)


def find_single_device(name: str, *, devices_file: str | Path | None = None) -> Device:
    """The device of that name, or that of a machine which has one: for questions about one device."""
    if name_key(name) == name_key(THIS_MACHINE):
        return read_cpu_profile()
    machine = machine_named(name)
    if machine is None:
        _check_one(name)
        return find_device(name, devices_file=devices_file)
    if machine.n_devices > 1:
        raise InputError(
            f"'{name}' has {machine.n_devices} devices, but this question is about a single one: name "
            f"'{machine.device}'."
        )
    return find_device(machine.device, devices_file=devices_file)


def _check_one(name: str) -> None:
    place = read_place(name)
    numbers = place.parts[:1] or place.counts
    if place.name and numbers not in ((), ("1",)):
        raise InputError(
            f"'{name}' is {' x '.join(numbers)} devices, but this question is about a single one: name '{place.name}'."
        )


@lru_cache(maxsize=1)
def _rows() -> tuple[dict[str, str], ...]:
    return shipped_rows("machines.csv")


@lru_cache(maxsize=1)
def _index() -> dict[str, int]:
    """The row of each name and alias: to find one machine, the others need not be made."""
    return {name_key(name): n for n, row in enumerate(_rows()) for name in (row["name"], *_aliases(row))}


@cache
def _machine_at(n: int) -> Machine:
    return _machine(_rows()[n])


def _aliases(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(alias for alias in row["aliases"].split(";") if alias)


def _machine(row: Mapping[str, str]) -> Machine:
    return Machine(
        name=row["name"],
        aliases=_aliases(row),
        provider=row["provider"],
        device=row["device"],
        n_devices=int(row["n_devices"]),
        inside=_inside(row),
        network=find_link(row["network"]) if row["network"] else None,
        price_usd_per_hour=float(row["price_usd_per_hour"]) if row["price_usd_per_hour"] else None,
        price_date=row["price_date"],
        region=row["region"],
        source=row["source"],
        notes=row["notes"],
        spot_usd_per_hour=float(row["spot_usd_per_hour"]) if row["spot_usd_per_hour"] else None,
        n_cpus=int(row["vcpus"]) if row["vcpus"] else None,
        is_retired=row["retired"] == "1",
    )


def _inside(row: Mapping[str, str]) -> Link:
    if not row["inside"]:
        return link_inside(find_device(row["device"]), int(row["n_devices"]))
    link = find_link(row["inside"])
    if row["nvlink_gb_per_s"]:
        return replace(link, bytes_per_s=float(row["nvlink_gb_per_s"]) * GIGA / 2)  # printed for both directions
    return link
