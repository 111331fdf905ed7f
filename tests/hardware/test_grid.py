"""The table of grids: every row can be trusted and found."""

import csv
import importlib.resources
from datetime import date

import pytest

from traincast.errors import InputError
from traincast.hardware.grid import Grid, all_grids, find_grid, grid_named
from traincast.hardware.machines import all_machines


def test_every_row_has_a_figure_a_source_and_a_date():
    text = importlib.resources.files("traincast").joinpath("data/grid_factors.csv").read_text(encoding="utf-8")
    for row in csv.DictReader(text.splitlines()):
        assert 0 < float(row["g_per_kwh"]) < 1000, row["name"]
        assert 2000 <= int(row["year"]) <= date.fromisoformat(row["accessed"]).year
        assert row["source"]
        assert row["location"]


def test_no_two_rows_share_a_name():
    names = [name.lower() for grid in all_grids() for name in (grid.name, *grid.aliases)]
    assert len(set(names)) == len(names)


def test_a_dash_tells_two_clouds_apart():
    assert find_grid("us-east-1").location == "Northern Virginia"
    assert find_grid("us-east1").location == "South Carolina"
    assert find_grid(" GERMANY ") == find_grid("de")


def test_the_regions_of_most_priced_machines_are_known():
    regions = {machine.region for machine in all_machines() if machine.provider in ("AWS", "GCP") and machine.region}
    assert all(grid_named(region) for region in regions)


def test_an_unknown_region_names_the_nearest():
    with pytest.raises(InputError, match=r"No region named 'us-east-l'.*us-east-1.*CO2 per kWh yourself"):
        find_grid("us-east-l")
    assert grid_named("nowhere") is None


@pytest.mark.parametrize("grams", [-1.0, float("nan"), float("inf")])
def test_a_grid_emits_no_less_than_nothing(grams):
    with pytest.raises(InputError, match="CO2 intensity should be at least 0"):
        Grid(name="mine", g_per_kwh=grams)
