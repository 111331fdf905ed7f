"""The table that ships: every row, and figures that can be checked against a datasheet."""

import csv
import datetime
import subprocess
import sys
from pathlib import Path

import pytest

import traincast
from traincast.errors import InputError
from traincast.hardware.catalog import all_devices, find_device
from traincast.hardware.device import PRECISIONS
from traincast.hardware.device_table import name_key

DATA = Path(traincast.__file__).parent / "data"
ROWS = list(csv.DictReader((DATA / "devices.csv").read_text(encoding="utf-8").splitlines()))
DEVICES = {device.name: device for device in all_devices()}
NAMES = sorted(DEVICES)
WITHOUT_TENSOR_FIGURES = (
    "RTX-2070-MaxQ",
    "RTX-2080-MaxQ",
    "RTX-2080-Super-MaxQ",
    "RTX-3080-Laptop",
    "RTX-PRO-6000-MaxQ",
)


def test_there_are_58_gpus_and_one_cpu():
    assert len(DEVICES) == len(ROWS) == 59
    assert [device.name for device in DEVICES.values() if device.kind == "cpu"] == ["generic-cpu"]


def test_no_name_or_alias_means_two_devices():
    owner = {}
    for device in DEVICES.values():
        for key in {name_key(name) for name in (device.name, *device.aliases)}:
            assert owner.setdefault(key, device.name) == device.name


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_row_has_a_source_and_the_day_it_was_read(row):
    assert row["source"].strip()
    assert datetime.date.fromisoformat(row["accessed"]) >= datetime.date(2026, 1, 1)
    assert row["vendor"]
    assert row["arch"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_row_gives_the_sizes_that_a_forecast_cannot_do_without(row):
    assert float(row["memory_gib"]) > 0
    assert float(row["memory_gb_per_s"]) > 0
    assert int(row["n_sm"]) > 0


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_TENSOR_FIGURES])
@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_other_device_has_sensible_peaks(name, precision):
    device = DEVICES[name]
    assert device.peak_flop_per_s(precision) >= device.fp32_flop_per_s
    assert 1 < device.ridge_flop_per_byte(precision) < 1000


@pytest.mark.parametrize("name", WITHOUT_TENSOR_FIGURES)
def test_a_device_whose_tensor_rate_is_not_known_says_so(name):
    with pytest.raises(InputError, match=f"The fp16 rate of '{name}' is not known"):
        DEVICES[name].peak("amp-fp16")


def test_only_two_laptop_parts_lack_an_fp32_figure():
    unknown = [name for name in NAMES if DEVICES[name].fp32_flop_per_s is None]
    assert unknown == ["RTX-2080-Super-MaxQ", "RTX-3080-Laptop"]


@pytest.mark.parametrize(
    ("name", "fp32", "fp16", "gb_per_s", "gib"),
    [
        ("T4", 8.1, 65, 320, 16),
        ("V100-SXM2-16GB", 15.7, 125, 900, 16),
        ("A100-SXM4-80GB", 19.5, 312, 2039, 80),
        ("H100-SXM5-80GB", 66.9, 989.4, 3350, 80),
        ("RTX-3090", 35.6, 71.2, 936, 24),
    ],
)
def test_figures_of_well_known_datasheets(name, fp32, fp16, gb_per_s, gib):
    device = DEVICES[name]
    assert device.peak_flop_per_s("fp32") == pytest.approx(fp32 * 1e12)
    assert device.peak_flop_per_s("amp-fp16") == pytest.approx(fp16 * 1e12)
    assert device.memory_bytes_per_s == gb_per_s * 1e9
    assert device.memory_bytes == gib * 2**30


def test_a_t4_needs_25_flop_per_byte_in_fp32_to_be_bound_by_compute():
    assert DEVICES["T4"].ridge_flop_per_byte("fp32") == pytest.approx(8.1e12 / 320e9)


@pytest.mark.parametrize(
    ("name", "precision", "used"),
    [
        ("T4", "amp-bf16", "fp32"),
        ("V100-PCIe-32GB", "tf32", "fp32"),
        ("P100-PCIe-16GB", "amp-fp16", "fp32"),
        ("A100-PCIe-40GB", "tf32", "tf32"),
        ("generic-cpu", "bf16", "fp32"),
    ],
)
def test_older_chips_fall_back_where_they_have_no_units(name, precision, used):
    assert DEVICES[name].peak(precision).used == used


def test_amd_products_run_on_matrix_units_in_fp32_too():
    assert DEVICES["MI100"].peak_flop_per_s("fp32") == 46.1e12


def test_boards_with_two_dies_are_listed_by_die():
    assert (DEVICES["K80-die"].memory_bytes, DEVICES["K80-die"].tdp_w) == (12 * 2**30, 150)


def test_the_generic_cpu_is_computed_as_its_notes_say():
    cpu = find_device("generic-cpu")
    assert cpu.fp32_flop_per_s == 8 * 3.0e9 * 32
    assert cpu.memory_bytes_per_s == 2 * 8 * 3.2e9
    assert "generic figure" in cpu.notes


def test_every_column_is_explained_beside_the_table():
    text = (DATA / "README.md").read_text(encoding="utf-8")
    self_evident = {"vendor", "arch", "year", "pcie_gen"}
    explained = text.replace("`tf32_dense_`, `fp16_dense_`", "`tf32_dense_tflop_per_s`, `fp16_dense_tflop_per_s`")
    assert [column for column in ROWS[0] if f"`{column}`" not in explained and column not in self_evident] == []


def test_the_table_is_read_without_heavy_packages():
    code = (
        "import sys; from traincast.hardware.catalog import find_device; find_device('t4');"
        "print([m for m in ('numpy', 'scipy', 'pydantic', 'torch', 'plotly', 'rich') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
