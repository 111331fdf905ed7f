"""The table that ships: every row, and figures that can be checked against a datasheet."""

import csv
import datetime
import re
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
    "Gaudi-2",
)


def test_there_are_74_gpus_11_accelerators_and_one_cpu():
    assert len(DEVICES) == len(ROWS) == 86
    assert [device.kind for device in DEVICES.values()].count("accelerator") == 11
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
    assert int(row["n_sm"] or row["kind"] == "accelerator") > 0  # matrix engines of TPUs are no multiprocessors


WITH_FALLBACK = [name for name in PRECISIONS if name != "fp8"]  # which a device has or has not


@pytest.mark.parametrize("name", [name for name in NAMES if name not in WITHOUT_TENSOR_FIGURES])
@pytest.mark.parametrize("precision", WITH_FALLBACK)
def test_every_other_device_has_sensible_peaks(name, precision):
    device = DEVICES[name]
    assert device.peak_flop_per_s(precision) >= (device.fp32_flop_per_s or 0)
    assert 1 < device.ridge_flop_per_byte(precision) < 1000


@pytest.mark.parametrize("name", WITHOUT_TENSOR_FIGURES)
def test_a_device_whose_tensor_rate_is_not_known_says_so(name):
    with pytest.raises(InputError, match=f"The fp16 rate of '{name}' is not known"):
        DEVICES[name].peak("amp-fp16")


def test_only_two_laptop_parts_lack_an_fp32_figure():
    unknown = [name for name in NAMES if not (DEVICES[name].fp32_flop_per_s or DEVICES[name].fp32_matrix_flop_per_s)]
    assert unknown == ["RTX-2080-Super-MaxQ", "RTX-3080-Laptop"]


@pytest.mark.parametrize("name", ["TPU-v4", "TPU-v5e", "TPU-v5p", "TPU-v6e"])
def test_a_tpu_multiplies_fp32_in_six_passes_of_bf16(name):
    device = DEVICES[name]
    assert 6 * device.peak_flop_per_s("fp32") == pytest.approx(device.peak_flop_per_s("bf16"), rel=2e-3)
    assert device.peak("amp-fp16").is_fallback


@pytest.mark.parametrize(
    ("name", "n_engines", "clock_hz"), [("Gaudi-2", 2, 1650e6), ("Gaudi-3", 8, 1750e6), ("TPU-v4", 2, 1050e6)]
)
def test_matrix_engines_of_accelerators_give_the_printed_rate(name, n_engines, clock_hz):
    """Squares of 256 multiply-adds; the four of 128 that a core of a TPU v4 has are one such."""
    assert DEVICES[name].bf16_flop_per_s == pytest.approx(n_engines * 256 * 256 * 2 * clock_hz, rel=2e-3)


@pytest.mark.parametrize(
    ("name", "fp32", "fp16", "gb_per_s", "gib"),
    [
        ("T4", 8.1, 65, 320, 16),
        ("V100-SXM2-16GB", 15.7, 125, 900, 16),
        ("A100-SXM4-80GB", 19.5, 312, 2039, 80),
        ("H100-SXM5-80GB", 66.9, 989.4, 3350, 80),
        ("RTX-3090", 35.6, 71.2, 936, 24),
        ("H20-SXM5-96GB", 39.5, 148, 4000, 96),
        ("GB200", 80, 2500, 7928, 186),
        ("MI355X", 157.3, 2516.6, 8000, 288),
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


WITH_CLOCK = [
    device for device in DEVICES.values() if device.fp32_flop_per_s and device.boost_clock_hz and device.kind == "gpu"
]


@pytest.mark.parametrize("device", WITH_CLOCK, ids=lambda device: device.name)
def test_the_vector_rate_is_twice_the_cores_times_the_clock(device):
    """A multiprocessor has 192 cores (Kepler), 64 (P100, Volta, Turing, A100, CDNA 1 and 2) or 128."""
    cores = device.fp32_flop_per_s / (2 * device.n_sm * device.boost_clock_hz)
    assert any(cores == pytest.approx(known, rel=0.008) for known in (64, 128, 192))


@pytest.mark.parametrize("device", DEVICES.values(), ids=lambda device: device.name)
def test_every_row_says_its_memory_its_die_and_what_its_links_join(device):
    assert re.fullmatch(r"HBM(2|2e|3|3e)|GDDR(5|5X|6|6X|7)|DDR4|LPDDR5X?", device.memory_kind or "LPDDR5")
    assert (device.memory_kind and device.die) or device.kind != "gpu"
    if device.vendor == "NVIDIA":
        assert (device.nvlink_generation is not None) == (device.nvlink_bytes_per_s != 0)
    if device.nvlink_domain is not None:
        assert device.nvlink_bytes_per_s
        assert device.nvlink_domain in (2, 4, 8, 16, 72)


@pytest.mark.parametrize(
    ("name", "fp8", "fp4"),
    [
        ("A100-SXM4-80GB", 0, 0),
        ("H100-SXM5-80GB", 1978.9, 0),
        ("L40S", 733, 0),
        ("RTX-4090", 330.3, 0),  # 660.6 with fp16 accumulation
        ("RTX-5090", 419, 1676),  # 838 with fp16 accumulation
        ("B200", 4500, 9000),
        ("MI300X", 2614.9, 0),
    ],
)
def test_fp8_and_fp4_are_dense_and_accumulate_in_fp32(name, fp8, fp4):
    device = DEVICES[name]
    assert (device.fp8_flop_per_s, device.fp4_flop_per_s) == (fp8 * 1e12, fp4 * 1e12)


def test_the_memory_of_a_b200_is_as_wide_as_its_driver_says():
    assert DEVICES["B200"].memory_bytes_per_s == pytest.approx(7680 / 8 * 2 * 3996e6, rel=1e-3)


def test_boards_with_several_dies_are_listed_by_die():
    assert (DEVICES["K80-die"].memory_bytes, DEVICES["K80-die"].tdp_w) == (12 * 2**30, 150)
    assert (DEVICES["A16-die"].memory_bytes, DEVICES["A16-die"].tdp_w) == (16 * 2**30, 62.5)


def test_the_generic_cpu_is_computed_as_its_notes_say():
    cpu = find_device("generic-cpu")
    assert cpu.fp32_flop_per_s == 8 * 3.0e9 * 32
    assert cpu.memory_bytes_per_s == 2 * 8 * 3.2e9
    assert "generic figure" in cpu.notes


def test_every_column_is_explained_beside_the_table():
    text = (DATA / "README.md").read_text(encoding="utf-8")
    self_evident = {"vendor", "arch", "year", "pcie_gen"}
    explained = re.sub(r"`(\w+_dense)_`", r"`\1_tflop_per_s`", text)
    assert [column for column in ROWS[0] if f"`{column}`" not in explained and column not in self_evident] == []


def test_the_table_is_read_without_heavy_packages():
    code = (
        "import sys; from traincast.hardware.catalog import find_device; find_device('t4');"
        "print([m for m in ('numpy', 'scipy', 'pydantic', 'torch', 'plotly', 'rich') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
