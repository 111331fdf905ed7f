"""What a kilowatt-hour of a place's electricity emits."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

from traincast.errors import InputError, close_names
from traincast.report.small_files import shipped_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Grams of CO2 (and of what warms like it) for a kilowatt-hour, averaged over a year."""

    name: str
    g_per_kwh: float
    location: str = ""
    year: int | None = None
    source: str = ""
    aliases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not math.isfinite(self.g_per_kwh) or self.g_per_kwh < 0:
            raise InputError(f"A grid's CO2 intensity should be at least 0 g/kWh, not {self.g_per_kwh}.")


@lru_cache(maxsize=1)
def all_grids() -> tuple[Grid, ...]:
    """The table that ships with traincast, in its own order."""
    return tuple(
        Grid(
            name=row["name"],
            g_per_kwh=float(row["g_per_kwh"]),
            location=row["location"],
            year=int(row["year"]),
            source=row["source"],
            aliases=tuple(alias for alias in row["aliases"].split(";") if alias),
        )
        for row in shipped_rows("grid_factors.csv")
    )


def find_grid(region: str) -> Grid:
    """Of a country or a cloud's region. Dashes matter: us-east-1 (AWS) and us-east1 (GCP) are different places."""
    found = grid_named(region)
    if found is None:
        close = close_names(region, (name for grid in all_grids() for name in (grid.name, *grid.aliases)))
        raise InputError(
            f"No region named '{region}' among {len(all_grids())} grids.{close} Or give its grams of CO2 per kWh "
            "yourself."
        )
    return found


def grid_named(region: str) -> Grid | None:
    """As `find_grid`, but None for a name that is not in the table."""
    wanted = region.strip().lower()
    for grid in all_grids():
        if wanted in (name.lower() for name in (grid.name, *grid.aliases)):
            return grid
    return None
