"""New prices for the table:  python -m traincast.hardware.refresh_prices FILE... --date DAY [--out FILE | --write]

Reads catalogue files that you downloaded: SkyPilot's (vms.csv of a provider: InstanceType, AcceleratorName,
AcceleratorCount, Price, SpotPrice, Region) and gpuhunt's (instance_name, location, price, gpu_count, spot). Of every
machine that data/machines.csv has a price of, the price in its own region is taken; where a catalogue has several of
one (zones), the median. Prints or writes a file that `traincast plan --prices` reads; --write puts the prices into the
package's own table instead. SkyPilot lists Google's machines without their GPUs: these prices are left as they are.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import math
import re
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from traincast.errors import FileFormatError, InputError, TraincastError
from traincast.report.files import write_file
from traincast.report.small_files import read_text

TABLE = Path(__file__).parents[1] / "data" / "machines.csv"
_SKYPILOT = {"InstanceType", "Price", "SpotPrice", "Region"}
_GPUHUNT = {"instance_name", "location", "price", "spot"}
_HEADER = ("offer", "usd_per_hour", "spot_usd_per_hour", "date")


@dataclass(slots=True)
class Found:
    """Prices of one machine in one region, as often as they are listed."""

    on_demand: list[float] = field(default_factory=list)
    spot: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Whose it is, and prices by machine and region or zone."""

    maker: str
    prices: Mapping[tuple[str, str], Found]

    def of(self, offer: Mapping[str, str]) -> list[Found]:
        """In the offer's region, or a zone of it; a provider with one price for all regions has none."""
        if self.maker == "SkyPilot" and offer["provider"] == "GCP":
            return []
        place = ".*" if offer["region"] == "US" else re.escape(offer["region"]) + "-?[a-z]?"
        return [one for (name, at), one in self.prices.items() if name == offer["name"] and re.fullmatch(place, at)]


def read_catalogue(path: str | Path) -> Catalogue:
    """Of SkyPilot or gpuhunt, by its columns."""
    text = read_text(path, f"The catalogue '{path}'")
    reader = csv.DictReader(io.StringIO(text))
    columns = set(reader.fieldnames or ())
    if columns >= _SKYPILOT:
        maker, listed = "SkyPilot", _skypilot(reader)
    elif columns >= _GPUHUNT:
        maker, listed = "gpuhunt", _gpuhunt(reader)
    else:
        raise FileFormatError(
            f"'{path}' is neither SkyPilot's catalogue (columns {', '.join(sorted(_SKYPILOT))}) nor gpuhunt's "
            f"({', '.join(sorted(_GPUHUNT))})."
        )
    found: dict[tuple[str, str], Found] = {}
    for name, region, price, is_spot in listed:
        one = found.setdefault((name, region), Found())
        (one.spot if is_spot else one.on_demand).append(price)
    return Catalogue(maker, found)


def _skypilot(reader: csv.DictReader[str]) -> Iterator[tuple[str, str, float, bool]]:
    """A line a zone; a column a price. TPUs and bare accelerators have no machine."""
    for row in reader:
        for column, is_spot in (("Price", False), ("SpotPrice", True)):
            price = _number(row[column])
            if row["InstanceType"] and price is not None:
                yield row["InstanceType"], row["Region"], price, is_spot


def _gpuhunt(reader: csv.DictReader[str]) -> Iterator[tuple[str, str, float, bool]]:
    """A line a price; `spot` says which."""
    for row in reader:
        price = _number(row["price"])
        if row["instance_name"] and price is not None:
            yield row["instance_name"], row["location"], price, row["spot"].strip().lower() == "true"


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 < value < math.inf else None


def new_prices(
    offers: Sequence[Mapping[str, str]], catalogues: Sequence[Catalogue]
) -> dict[str, tuple[float | None, float | None]]:
    """On demand and spot, by offer, for those that a catalogue has."""
    found: dict[str, tuple[float | None, float | None]] = {}
    for offer in offers:
        own = [one for catalogue in catalogues for one in catalogue.of(offer)]
        on_demand = [price for one in own for price in one.on_demand]
        spot = [price for one in own for price in one.spot]
        if on_demand or spot:
            found[offer["name"]] = _median(on_demand), _spot(_median(on_demand), _median(spot))
    return found


def _median(prices: list[float]) -> float | None:
    return round(statistics.median(prices), 4) if prices else None


def _spot(on_demand: float | None, spot: float | None) -> float | None:
    """A catalogue that repeats the price on demand has no price of spot machines."""
    return None if spot == on_demand else spot


def _rows() -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(TABLE.read_text(encoding="utf-8"), newline="")))


def _write_table(prices: Mapping[str, tuple[float | None, float | None]], day: str) -> None:
    rows = _rows()
    for row in rows:
        on_demand, spot = prices.get(row["name"], (None, None))
        if on_demand is not None and row["price_usd_per_hour"]:
            row["price_usd_per_hour"], row["price_date"] = f"{on_demand:g}", day
            row["spot_usd_per_hour"] = "" if spot is None else f"{spot:g}"
    page = io.StringIO()
    writer = csv.DictWriter(page, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    _say(f"Wrote {write_file(TABLE, page.getvalue())}\n")


def price_file(prices: Mapping[str, tuple[float | None, float | None]], day: str) -> str:
    """What `--prices` reads."""
    page = io.StringIO()
    writer = csv.writer(page, lineterminator="\n")
    writer.writerow(_HEADER)
    for name, (on_demand, spot) in prices.items():
        writer.writerow([name, "" if on_demand is None else on_demand, "" if spot is None else spot, day])
    return page.getvalue()


def _say(text: str) -> None:
    sys.stdout.write(text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Reads, and prints or writes."""
    parser = argparse.ArgumentParser(prog="python -m traincast.hardware.refresh_prices", description=__doc__)
    parser.add_argument("files", nargs="+", metavar="FILE", help="catalogue files of SkyPilot or gpuhunt")
    parser.add_argument("--date", required=True, help="the day of the catalogue, such as 2026-11-16")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--out", metavar="FILE", help="write a file for --prices (default: print it)")
    where.add_argument("--write", action="store_true", help="write the package's own table")
    options = parser.parse_args(arguments)
    try:
        return _run(options)
    except TraincastError as error:
        sys.stderr.write(f"Error: {error}\n")
        return 2


def _run(options: argparse.Namespace) -> int:
    try:
        day = datetime.date.fromisoformat(options.date).isoformat()
    except ValueError:
        raise InputError(f"--date '{options.date}' is not a day such as 2026-11-16.") from None
    offers = [row for row in _rows() if row["price_date"]]  # the others are not for rent
    prices = new_prices(offers, [read_catalogue(path) for path in options.files])
    if not prices:
        raise InputError("None of the offers is in these catalogues.")
    if options.write:
        _write_table(prices, day)
    elif options.out:
        _say(f"Wrote {write_file(Path(options.out), price_file(prices, day))}\n")
    else:
        _say(price_file(prices, day))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
