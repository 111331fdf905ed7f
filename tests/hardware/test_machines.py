"""Machines that can be rented or bought: every row, and figures that providers print."""

import csv
import datetime
from pathlib import Path

import pytest

import traincast
from traincast.errors import InputError
from traincast.hardware.catalog import find_device
from traincast.hardware.device_table import name_key
from traincast.hardware.machines import all_machines, find_machine, find_single_device

DATA = Path(traincast.__file__).parent / "data"
ROWS = list(csv.DictReader((DATA / "machines.csv").read_text(encoding="utf-8").splitlines()))
MACHINES = {machine.name: machine for machine in all_machines()}


def test_there_are_167_machines_of_five_providers_and_one_maker():
    assert len(MACHINES) == len(ROWS) == 167
    makers = {machine.provider for machine in MACHINES.values()}
    assert makers == {"AWS", "GCP", "Azure", "Lambda", "RunPod", "NVIDIA"}


def test_no_name_or_alias_means_two_machines():
    keys = [name_key(name) for machine in MACHINES.values() for name in (machine.name, *machine.aliases)]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_row_has_a_source_and_a_price_with_region_and_day_or_none_of_them(row):
    assert row["source"].strip()
    assert datetime.date.fromisoformat(row["accessed"]) >= datetime.date(2026, 1, 1)
    has_price = bool(row["price_usd_per_hour"] or row["spot_usd_per_hour"])
    assert {bool(row["price_date"]), bool(row["region"])} == {has_price}
    if row["price_date"]:
        assert datetime.date(2022, 1, 1) < datetime.date.fromisoformat(row["price_date"]) < datetime.date(2026, 11, 16)


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_every_machine_is_a_cluster_of_one_node_at_its_own_price(machine):
    cluster = machine.cluster()
    assert cluster.device is find_device(machine.device)
    assert (cluster.placement, cluster.between) == ((machine.n_devices,), None)
    assert (cluster.name, cluster.price_usd_per_hour) == (machine.name, machine.price_usd_per_hour)
    assert 1 <= machine.n_devices <= 16


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_no_machine_has_more_nvlink_than_its_device(machine):
    if machine.inside.name.startswith("NV"):
        both_directions = 2 * machine.inside.bytes_per_s
        assert both_directions <= find_device(machine.device).nvlink_bytes_per_s
    else:
        assert machine.inside.name.startswith(("PCIe", "Infinity Fabric"))


@pytest.mark.parametrize("machine", MACHINES.values(), ids=lambda machine: machine.name)
def test_prices_of_a_device_hour_are_plausible(machine):
    if machine.price_usd_per_hour is not None:
        assert 0.2 < machine.price_usd_per_hour / machine.n_devices < 15


@pytest.mark.parametrize(
    ("name", "device", "n", "inside", "gb_per_s", "network_gbit", "price"),
    [
        ("p2.8xlarge", "K80-die", 8, "PCIe3 x16", 15.754, 10, 7.2),
        ("p3.8xlarge", "V100-SXM2-16GB", 4, "NVLink2", 100, 10, 12.24),
        ("p3.16xlarge", "V100-SXM2-16GB", 8, "NVLink2", 150, 25, 24.48),
        ("p3dn.24xlarge", "V100-SXM2-32GB", 8, "NVLink2", 150, 100, 31.212),
        ("p4d.24xlarge", "A100-SXM4-40GB", 8, "NVSwitch2", 300, 400, 21.9576),
        ("p5.48xlarge", "H100-SXM5-80GB", 8, "NVSwitch3", 450, 3200, 55.04),
        ("g4dn.12xlarge", "T4", 4, "PCIe3 x8", 7.877, 50, 3.912),
        ("g5.48xlarge", "A10G", 8, "PCIe4 x8", 15.754, 100, 16.288),
        ("a2-highgpu-8g", "A100-SXM4-40GB", 8, "NVSwitch2", 300, 100, 29.3871),
        ("a3-highgpu-8g", "H100-SXM5-80GB", 8, "NVSwitch3", 450, 800, 87.8325),
        ("ND40rs_v2", "V100-SXM2-32GB", 8, "NVLink2", 150, 100, 22.032),
        ("Standard_ND96asr_v4", "A100-SXM4-40GB", 8, "NVSwitch2", 300, 1600, 27.197),
        ("Standard_ND96isr_H100_v5", "H100-SXM5-80GB", 8, "NVSwitch3", 450, 3200, 98.32),
        ("DGX-1-V100-16GB", "V100-SXM2-16GB", 8, "NVLink2", 150, 400, None),
        ("DGX-2", "V100-SXM2-32GB", 16, "NVSwitch1", 150, 800, None),
        ("dgx a100", "A100-SXM4-80GB", 8, "NVSwitch2", 300, 1600, None),
        ("dgx-h100", "H100-SXM5-80GB", 8, "NVSwitch3", 450, 3200, None),
    ],
)
def test_figures_that_providers_print(name, device, n, inside, gb_per_s, network_gbit, price):
    machine = find_machine(name)
    assert (machine.device, machine.n_devices, machine.inside.name) == (device, n, inside)
    assert machine.inside.bytes_per_s == gb_per_s * 1e9
    assert machine.network.bytes_per_s * 8 / 1e9 == network_gbit
    assert machine.price_usd_per_hour == price


def test_two_v100_of_a_cube_mesh_have_two_links_and_four_have_four_each():
    two, four, eight = (
        find_machine(name).inside.bytes_per_s / 25e9
        for name in ("n1-standard-16+2xV100", "n1-standard-32+4xV100", "n1-standard-96+8xV100")
    )
    assert (two, four, eight) == (2, 4, 6)


def test_a_network_that_bursts_counts_with_what_it_sustains():
    xlarge = find_machine("g4dn.xlarge")
    assert xlarge.network.bytes_per_s * 8 == 5e9
    assert xlarge.notes == "network: 5 Gb/s sustained; bursts to 25"


def test_several_machines_are_joined_by_their_network_and_cost_several_times_as_much():
    cluster = find_machine("P3.16xlarge").cluster(3)
    assert (cluster.placement, cluster.n_nodes_max, cluster.name) == ((8, 8, 8), 3, "3xp3.16xlarge")
    assert cluster.between.name == "Ethernet 25 Gb/s"
    assert cluster.price_usd_per_hour == pytest.approx(3 * 24.48)
    assert (cluster.price_date, cluster.region) == ("2026-03-31", "us-east-1")
    assert cluster.price_source.startswith("SkyPilot catalogue")


def test_a_machine_without_a_price_has_no_source_of_it():
    cluster = find_machine("dgx-h100").cluster(2)
    assert (cluster.price_usd_per_hour, cluster.price_source, cluster.price_date) == (None, "", "")


def test_a_network_that_is_not_known_is_asked_for():
    with pytest.raises(InputError) as caught:
        find_machine("gpu_8x_a100").cluster(2)
    assert str(caught.value) == (
        "The network of 'gpu_8x_a100' is not known: name it after an @, as in '2xgpu_8x_a100@50Gb/s'."
    )


def test_a_machine_that_is_only_rented_as_spot_has_no_price_on_demand():
    machine = find_machine("p5e.48xlarge")
    assert (machine.usd_per_hour(is_spot=False), machine.usd_per_hour(is_spot=True)) == (None, 25.1918)
    cluster = machine.cluster()
    assert (cluster.price_usd_per_hour, cluster.price_source, cluster.price_date) == (None, "", "")


@pytest.mark.parametrize("n_nodes", [0, -1, 1.5, True])
def test_a_number_of_machines_that_cannot_be(n_nodes):
    with pytest.raises(InputError) as caught:
        find_machine("DGX-2").cluster(n_nodes)
    assert str(caught.value) == (
        f"'DGX-2': the number of machines should be a whole number, at least 1, not {n_nodes!r}."
    )


@pytest.mark.parametrize(
    ("name", "close"),
    [
        ("p3.16xlrge", " Close names: p3.16xlarge, p2.16xlarge, g3.16xlarge."),
        ("dgx-1", " Close names: DGX-1-V100-16GB, DGX-1-V100-32GB."),
        ("a2-highgpu", " Close names: a2-highgpu-1g, a2-highgpu-2g, a2-highgpu-4g."),
        ("abacus", ""),
        ("", ""),
    ],
)
def test_an_unknown_machine_is_answered_with_close_names(name, close):
    with pytest.raises(InputError) as caught:
        find_machine(name)
    assert str(caught.value) == f"No machine named '{name}'.{close} The table of machines has 167 names."


def test_a_question_about_one_device_takes_a_machine_that_has_one():
    assert find_single_device("1x_RTX5090_SECURE") is find_single_device("rtx5090") is find_device("RTX-5090")
    with pytest.raises(InputError) as caught:
        find_single_device("8x_H200-SXM_SECURE")
    assert str(caught.value) == (
        "'8x_H200-SXM_SECURE' has 8 devices, but this question is about a single one: name 'H200-SXM'."
    )


def test_every_column_is_explained_beside_the_table():
    text = (DATA / "README.md").read_text(encoding="utf-8")
    section = text.split("## machines.csv")[1].split("\n## ")[0]
    assert [column for column in ROWS[0] if f"`{column}`" not in section] == []


def test_several_devices_are_none_for_a_question_about_one():
    with pytest.raises(InputError, match="'8xT4' is 8 devices, but this question is about a single one: name 'T4'"):
        find_single_device("8xT4")
