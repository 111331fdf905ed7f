"""What can be rented: machines with a price, on demand or spot, and how often spot machines are taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from traincast.errors import InputError, ParameterError, close_names
from traincast.hardware.catalog import find_device
from traincast.hardware.device_table import name_key
from traincast.hardware.machines import Machine, all_machines, machine_named
from traincast.hardware.place_text import read_place, whole_number
from traincast.report.small_files import shipped_rows


@lru_cache(maxsize=1)
def all_offers() -> tuple[Machine, ...]:
    """Those of the table of machines that have a price."""
    return tuple(
        one for one in all_machines() if one.price_usd_per_hour is not None or one.spot_usd_per_hour is not None
    )


@lru_cache(maxsize=1)
def interruptions_per_day() -> Mapping[str, float]:
    """How often a provider takes a spot machine back: an assumption, by provider."""
    return {row["provider"]: float(row["per_day"]) for row in shipped_rows("interruptions.csv")}


def offers_of(offers: Iterable[Machine], providers: Sequence[str]) -> tuple[Machine, ...]:
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


def offers_on(offers: Iterable[Machine], places: Sequence[str]) -> tuple[Machine, ...]:
    """Those with these devices ('8xT4': eight of them in a machine), or machines of these names; without any, all."""
    listed = tuple(offers)
    if not places:
        return listed
    wanted = {offer.name for place in places for offer in _offers_at(listed, place)}
    return tuple(offer for offer in listed if offer.name in wanted)


def _offers_at(offers: Sequence[Machine], text: str) -> list[Machine]:
    place = read_place(text).named(lambda name: machine_named(name) is not None)
    if not place.name or place.parts or place.is_file or place.link is not None or len(place.counts) > 1:
        raise ParameterError("on", text, "give a device (T4), a number of them (8xT4) or a machine (p3.16xlarge)")
    key = name_key(place.name)
    machines = [offer for offer in offers if key in map(name_key, (offer.name, *offer.aliases))]
    if machines and not place.counts:
        return machines
    device = find_device(place.name).name
    n_devices = {whole_number(digits, "devices", text) for digits in place.counts}
    found = [one for one in offers if one.device == device and (not n_devices or one.n_devices in n_devices)]
    if not found:
        sold = sorted({one.n_devices for one in offers if one.device == device})
        sizes = f" Machines are offered with {', '.join(map(str, sold))} of them." if sold else ""
        raise InputError(f"None of the {len(offers)} offers compared has {text}.{sizes}")
    return found


def replaced(offers: Iterable[Machine], own: Iterable[Machine]) -> tuple[Machine, ...]:
    """One's own prices in the place of those with the same name, and what is new behind them."""
    named = {offer.name: offer for offer in offers}
    return tuple((named | {offer.name: offer for offer in own}).values())
