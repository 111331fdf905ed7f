"""One's own prices: a CSV file with an offer or a device a line, the price of an hour, and the day of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from traincast.errors import FileFormatError, InputError
from traincast.hardware.catalog import find_device
from traincast.hardware.link_table import find_link, link_inside
from traincast.hardware.machines import Machine, all_machines, machine_named
from traincast.hardware.price_day import price_day
from traincast.report.small_files import csv_lines, read_text

OWN = "own"  # the provider of machines that no table lists
_COLUMNS = ("offer", "device", "n_devices", "usd_per_hour", "spot_usd_per_hour", "date", "network", "provider")
_RIGHT = "columns are offer or device, usd_per_hour and date (2026-11-16), and optionally " + ", ".join(
    name for name in _COLUMNS if name not in ("offer", "device", "usd_per_hour", "date")
)


def read_prices(path: str | Path, *, devices_file: str | Path | None = None) -> tuple[Machine, ...]:
    """Every line an offer. A price is of the whole machine; a device without a number is a machine of one."""
    found = [_offer(row, where, devices_file) for where, row in _rows(Path(path))]
    if not found:
        raise FileFormatError(f"'{path}' has no prices: {_RIGHT}.")
    names = [offer.name for offer in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise FileFormatError(f"'{path}' has two prices of '{twice}': keep one.")
    return tuple(found)


def _rows(path: Path) -> Iterable[tuple[str, Mapping[str, str]]]:
    file = f"Price file '{path}'"
    lines = csv_lines(read_text(path, file), file)
    header = [cell.strip().lower() for cell in next(lines, (0, []))[1]]
    _check_header(header, path)
    for number, cells in lines:
        where = f"'{path}', line {number}"
        if len(cells) != len(header):
            raise FileFormatError(f"{where} has {len(cells)} cells where the header has {len(header)}.")
        yield where, {name: cell.strip() for name, cell in zip(header, cells, strict=True)}


def _check_header(header: list[str], path: Path) -> None:
    unknown = [name for name in header if name not in _COLUMNS]
    if unknown:
        raise FileFormatError(f"'{path}' has a column '{unknown[0]}' that is not known: {_RIGHT}.")
    if not {"offer", "device"} & set(header) or not {"usd_per_hour", "spot_usd_per_hour"} & set(header):
        raise FileFormatError(f"'{path}' is not a price file: {_RIGHT}.")
    if "date" not in header:
        raise FileFormatError(f"'{path}' has no column date: a price needs the date when it was looked up. {_RIGHT}.")


def _offer(row: Mapping[str, str], where: str, devices_file: str | Path | None) -> Machine:
    price, spot = _price(row, "usd_per_hour", where), _price(row, "spot_usd_per_hour", where)
    if price is None and spot is None:
        raise FileFormatError(f"{where} has no price: usd_per_hour is empty.")
    day = price_day(row["date"], f"{where}: date")
    name = row.get("offer", "")
    known = machine_named(name) if name else None
    if known is None and not row.get("device", ""):
        raise FileFormatError(
            f"{where}: there is no offer named '{name}'; give its device, and n_devices if it has several."
        )
    try:
        machine = _own(row, where, devices_file) if known is None else _known(known, row, where, devices_file)
    except InputError as error:
        raise FileFormatError(f"{where}: {error}") from None
    return replace(machine, price_usd_per_hour=price, spot_usd_per_hour=spot, price_date=day, source=where)


def _known(machine: Machine, row: Mapping[str, str], where: str, devices_file: str | Path | None) -> Machine:
    """A machine of the table is what it is; only its network may be told anew."""
    device, count = row.get("device", ""), row.get("n_devices", "")
    is_other = device and find_device(device, devices_file=devices_file).name != machine.device
    if is_other or count not in ("", str(machine.n_devices)):
        has = f"{machine.n_devices} x {machine.device}"
        raise FileFormatError(
            f"{where}: '{machine.name}' has {has}; leave device and n_devices empty, or name another."
        )
    network = find_link(row["network"]) if row.get("network") else machine.network
    return replace(machine, network=network, is_retired=False)


def _own(row: Mapping[str, str], where: str, devices_file: str | Path | None) -> Machine:
    count = row.get("n_devices", "") or "1"
    if not count.isdecimal() or not 1 <= int(count) <= 1024:
        raise FileFormatError(f"{where}: n_devices is '{count}', not a whole number from 1.")
    found = find_device(row["device"], devices_file=devices_file)
    return Machine(
        name=row.get("offer", "") or (found.name if int(count) == 1 else f"{count}x{found.name}"),
        provider=_provider(row.get("provider", "") or OWN),
        device=found.name,
        n_devices=int(count),
        inside=link_inside(found, int(count)),
        network=find_link(row["network"]) if row.get("network") else None,
        price_usd_per_hour=None,
        price_date="",
        region="",
        source=where,
        notes="",
    )


def _provider(name: str) -> str:
    """As the table writes it: 'aws' is AWS, and not a provider beside it."""
    return {one.provider.lower(): one.provider for one in all_machines()}.get(name.lower(), name)


def _price(row: Mapping[str, str], column: str, where: str) -> float | None:
    text = row.get(column, "")
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise FileFormatError(f"{where}: {column} is '{text}', not a number of US dollars.") from None
    if not 0 < value < math.inf:
        raise FileFormatError(f"{where}: {column} should be above 0, not {text}.")
    return value
