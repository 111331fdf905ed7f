"""What can be rented: machines with a price, on demand or spot, and how often spot machines are taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from traincast.errors import InputError, close_names
from traincast.hardware.machines import Machine, all_machines
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


def replaced(offers: Iterable[Machine], own: Iterable[Machine]) -> tuple[Machine, ...]:
    """One's own prices in the place of those with the same name, and what is new behind them."""
    named = {offer.name: offer for offer in offers}
    return tuple((named | {offer.name: offer for offer in own}).values())
