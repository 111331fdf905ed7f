"""What can be rented: machines with their prices, on demand and spot, and the day of these."""

from __future__ import annotations

import csv
import importlib.resources
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from traincast.errors import InputError, close_names
from traincast.hardware.catalog import find_device
from traincast.hardware.link import Link
from traincast.hardware.link_table import find_link, link_inside
from traincast.hardware.machines import Machine, machine_named
from traincast.units import GIGA


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A machine to rent. Its `price_usd_per_hour` is on demand; both prices are of the whole machine."""

    machine: Machine
    spot_usd_per_hour: float | None = None
    n_cpus: int | None = None
    is_retired: bool = False  # newer catalogues do not list it any more

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def provider(self) -> str:
        return self.machine.provider

    @property
    def n_devices(self) -> int:
        return self.machine.n_devices

    def usd_per_hour(self, *, is_spot: bool) -> float | None:
        return self.spot_usd_per_hour if is_spot else self.machine.price_usd_per_hour


@lru_cache(maxsize=1)
def all_offers() -> tuple[Offer, ...]:
    """The table that ships with traincast, in its own order."""
    return tuple(_offer(row) for row in csv.DictReader(io.StringIO(_table("offers.csv"), newline="")))


@lru_cache(maxsize=1)
def interruptions_per_day() -> Mapping[str, float]:
    """How often a provider takes a spot machine back: an assumption, by provider."""
    return {row["provider"]: float(row["per_day"]) for row in csv.DictReader(io.StringIO(_table("interruptions.csv")))}


def offers_of(offers: Iterable[Offer], providers: Sequence[str]) -> tuple[Offer, ...]:
    """Those of these providers; without any, all of them. Case does not matter."""
    listed = tuple(offers)
    if not providers:
        return listed
    known = list(dict.fromkeys(offer.provider for offer in listed))
    by_key = {name.lower(): name for name in known}
    wanted = []
    for name in providers:
        if name.strip().lower() not in by_key:
            hint = close_names(name, known)
            raise InputError(f"No offers of a provider named '{name}'.{hint} Known: {', '.join(known)}.")
        wanted.append(by_key[name.strip().lower()])
    return tuple(offer for offer in listed if offer.provider in wanted)


def replaced(offers: Iterable[Offer], own: Iterable[Offer]) -> tuple[Offer, ...]:
    """One's own prices in the place of those with the same name, and what is new behind them."""
    named = {offer.name: offer for offer in offers}
    return tuple((named | {offer.name: offer for offer in own}).values())


def _table(name: str) -> str:
    return importlib.resources.files("traincast").joinpath(f"data/{name}").read_text(encoding="utf-8")


def _offer(row: Mapping[str, str]) -> Offer:
    price = float(row["price_usd_per_hour"]) if row["price_usd_per_hour"] else None
    known = machine_named(row["name"])
    if known is None:
        machine = Machine(
            name=row["name"],
            provider=row["provider"],
            device=row["device"],
            n_devices=int(row["n_devices"]),
            inside=_inside(row),
            network=find_link(row["network"]) if row["network"] else None,
            price_usd_per_hour=price,
            price_date=row["price_date"],
            region=row["region"],
            source=row["source"],
            notes=row["notes"],
        )
    else:  # its links are told once, in the table of machines
        machine = replace(known, price_usd_per_hour=price, price_date=row["price_date"], region=row["region"])
    return Offer(
        machine=machine,
        spot_usd_per_hour=float(row["spot_usd_per_hour"]) if row["spot_usd_per_hour"] else None,
        n_cpus=int(row["vcpus"]),
        is_retired=row["retired"] == "1",
    )


def _inside(row: Mapping[str, str]) -> Link:
    if not row["inside"]:
        return link_inside(find_device(row["device"]), int(row["n_devices"]))
    link = find_link(row["inside"])
    if row["nvlink_gb_per_s"]:
        return replace(link, bytes_per_s=float(row["nvlink_gb_per_s"]) * GIGA / 2)  # printed for both directions
    return link
