"""Links: the table that ships, and the words that name one."""

import csv
import datetime
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import traincast
from traincast.errors import InputError
from traincast.hardware.catalog import all_devices, find_device
from traincast.hardware.link import Link
from traincast.hardware.link_table import all_links, find_link, find_link_inside, link_inside

DATA = Path(traincast.__file__).parent / "data"
ROWS = list(csv.DictReader((DATA / "links.csv").read_text(encoding="utf-8").splitlines()))
LINKS = {link.name: link for link in all_links()}


def a_link(**changes):
    return Link(**{"name": "round", "bytes_per_s": 10e9, "latency_s": 1e-6, "achievable": 0.5, **changes})


def test_what_a_link_sustains_is_its_share_of_the_nominal_rate():
    assert a_link().sustained_bytes_per_s == 5e9


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("bytes_per_s", 0, "should be above 0, not 0."),
        ("bytes_per_s", -1.0, "should be above 0, not -1.0."),
        ("bytes_per_s", math.inf, "should be above 0, not inf."),
        ("bytes_per_s", math.nan, "should be above 0, not nan."),
        ("latency_s", -1e-6, "should be 0 or more, not -1e-06."),
        ("latency_s", math.nan, "should be 0 or more, not nan."),
        ("achievable", 0, "should be above 0 and at most 1, not 0."),
        ("achievable", 1.01, "should be above 0 and at most 1, not 1.01."),
        ("achievable", math.nan, "should be above 0 and at most 1, not nan."),
    ],
)
def test_a_link_that_cannot_be_is_refused(field, value, rule):
    with pytest.raises(InputError) as caught:
        a_link(**{field: value})
    assert str(caught.value) == f"Link 'round': {field} {rule}"


def test_a_link_needs_a_name():
    with pytest.raises(InputError, match=r"^A link needs a name\.$"):
        a_link(name=" ")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_every_row_says_where_latency_and_share_come_from(row):
    assert "NCCL" in row["source"] or row["source"].startswith("guess")
    assert datetime.date.fromisoformat(row["accessed"]) >= datetime.date(2026, 1, 1)
    assert row["notes"]
    assert (row["gb_per_s"] == "") != (row["gbit_per_s"] == "")
    assert row["is_shared"] in ("0", "1")


def test_no_two_links_have_one_name():
    assert len(LINKS) == len(ROWS) == 41
    assert all(find_link(name.lower().replace(" ", "-")) is link for name, link in LINKS.items())


@pytest.mark.parametrize(
    ("name", "gb_per_s"),
    [
        ("PCIe2 x16", 8),
        ("PCIe3 x16", 8 * 16 / 8 * 128 / 130),
        ("PCIe4 x8", 16 * 8 / 8 * 128 / 130),
        ("PCIe5 x16", 32 * 16 / 8 * 128 / 130),
        ("PCIe6 x16", 64 * 16 / 8 * 242 / 256),
        ("NVLink1", 4 * 20),
        ("NVLink2", 6 * 25),
        ("NVSwitch2", 12 * 25),
        ("NVSwitch3", 18 * 25),
        ("NVLink5", 18 * 50),
        ("Ethernet 10 Gb/s", 1.25),
        ("InfiniBand FDR", 56.25 * 64 / 66 / 8),
        ("InfiniBand HDR", 25),
    ],
)
def test_rates_in_one_direction_follow_from_lanes_and_line_codes(name, gb_per_s):
    assert find_link(name).bytes_per_s / 1e9 == pytest.approx(gb_per_s, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "gb_per_s"),
    [
        ("PCIe3 x16", 12.0),
        ("PCIe4 x16", 24.0),
        ("NVLink1", 4 * 18.0),
        ("NVLink2", 6 * 20.0),
        ("NVSwitch2", 12 * 20.0),
        ("NVSwitch3", 18 * 20.6),
        ("NVSwitch4", 18 * 40.1),
        ("InfiniBand EDR", 12.0),
    ],
)
def test_shares_are_what_nccl_expects_of_the_same_hardware(name, gb_per_s):
    assert find_link(name).sustained_bytes_per_s / 1e9 == pytest.approx(gb_per_s, rel=0.01)


def test_a_message_takes_longer_the_further_it_goes():
    nvlink, pcie, rdma, tcp = (
        find_link(name).latency_s for name in ("NVLink2", "PCIe3 x16", "InfiniBand EDR", "Ethernet 100 Gb/s")
    )
    assert (nvlink, pcie, rdma) == (3.4e-6, 5.7e-6, 14e-6)
    assert nvlink < pcie < rdma < tcp


def test_devices_share_pcie_and_networks_but_not_nvlink():
    private = {name for name, link in LINKS.items() if not link.is_shared}
    amd = {"Infinity Fabric MI300X", "Infinity Fabric MI355X"}
    assert {name.rstrip("12345") for name in private} == {"NVLink", "NVSwitch"} | amd


@pytest.mark.parametrize(
    ("text", "name", "bytes_per_s"),
    [
        ("50Gb/s", "50 Gb/s", 6.25e9),
        ("10 Gbit/s", "10 Gb/s", 1.25e9),
        ("25gbps", "25 Gb/s", 3.125e9),
        ("6GB/s", "6 GB/s", 6e9),
        ("6 GBps", "6 GB/s", 6e9),
        (" 100Mb/s ", "100 Mb/s", 12.5e6),
        ("1.6Tb/s", "1.6 Tb/s", 2e11),
        ("8xInfiniBand-HDR", "8x InfiniBand HDR", 2e11),
        ("4x efa 100 gb/s", "4x EFA 100 Gb/s", 5e10),
        ("1xInfiniBand HDR", "InfiniBand HDR", 2.5e10),
    ],
)
def test_words_for_a_link(text, name, bytes_per_s):
    link = find_link(text)
    assert link.name == name
    assert link.bytes_per_s == pytest.approx(bytes_per_s)


def test_a_small_b_is_a_bit_and_a_capital_b_a_byte():
    assert find_link("8Gb/s").bytes_per_s * 8 == find_link("8GB/s").bytes_per_s
    with pytest.raises(InputError, match=r"No link named 'Ethernet 50 GB/s'\. Close names: Ethernet 50 Gb/s"):
        find_link("Ethernet 50 GB/s")


@pytest.mark.parametrize("gbit", [1, 10, 25, 40, 50])
def test_a_plain_rate_below_100_gbit_is_taken_for_ethernet_and_says_that_this_is_a_guess(gbit):
    plain, row = find_link(f"{gbit}Gb/s"), LINKS[f"Ethernet {gbit} Gb/s"]
    assert (plain.bytes_per_s, plain.latency_s, plain.is_shared) == (row.bytes_per_s, row.latency_s, row.is_shared)
    assert plain.achievable == pytest.approx(row.achievable)
    assert (plain.source, plain.notes) == ("guess", "a plain rate, taken for Ethernet with TCP")


def test_a_plain_rate_that_tcp_could_not_fill_is_taken_for_rdma():
    assert find_link("99Gb/s").sustained_bytes_per_s == pytest.approx(5e9)
    assert find_link("100Gb/s").sustained_bytes_per_s == pytest.approx(0.9 * 12.5e9)
    assert find_link("100Gb/s").notes == "a plain rate, taken for RDMA (RoCE)"
    assert find_link("Ethernet 100 Gb/s").sustained_bytes_per_s == pytest.approx(5e9)


def test_a_plain_rate_inside_a_node_is_taken_for_pcie():
    inside = find_link_inside("12GB/s")
    assert (inside.bytes_per_s, inside.latency_s, inside.achievable) == (12e9, 5.7e-6, 0.76)
    assert inside.source == "guess"
    assert find_link_inside("NVLink2") is LINKS["NVLink2"]


rates = st.floats(min_value=0.001, max_value=10_000).map(lambda rate: float(f"{rate:.6g}"))


@given(slower=rates, faster=rates)
def test_a_faster_plain_rate_never_sustains_less(slower, faster):
    slower, faster = sorted((slower, faster))
    slow, fast = (find_link(f"{rate}Gb/s").sustained_bytes_per_s for rate in (slower, faster))
    assert slow <= fast * (1 + 1e-12)


@given(rate=rates, unit=st.sampled_from(["Mb/s", "Gb/s", "GB/s", "Tb/s"]))
def test_the_name_of_a_plain_link_means_that_link(rate, unit):
    link = find_link(f"{rate}{unit}")
    assert find_link(link.name) == link


@given(name=st.sampled_from(sorted(LINKS)), n=st.integers(2, 64))
def test_several_of_a_link_have_its_rate_together_and_its_delay(name, n):
    several = find_link(f"{n}x{name}")
    assert several.bytes_per_s == n * LINKS[name].bytes_per_s
    assert (several.latency_s, several.achievable) == (LINKS[name].latency_s, LINKS[name].achievable)
    assert find_link(several.name) == several


UNKNOWN = "Write a rate such as '50Gb/s' or '6GB/s', or a name of the table of links (InfiniBand HDR, PCIe4 x8)."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0Gb/s", "'0Gb/s': the rate of a link should be a number above 0."),
        ("-5Gb/s", "'-5Gb/s': the rate of a link should be a number above 0."),
        ("nanGb/s", "'nanGb/s': the rate of a link should be a number above 0."),
        ("infGB/s", "'infGB/s': the rate of a link should be a number above 0."),
        ("1e999Gb/s", "'1e999Gb/s': the rate of a link should be a number above 0."),
        ("0xEFA 100 Gb/s", "'0xEFA 100 Gb/s': the number of links should be at least 1, not 0."),
        ("", f"No link named ''. {UNKNOWN}"),
        ("50", f"No link named '50'. {UNKNOWN}"),
        ("fast", f"No link named 'fast'. {UNKNOWN}"),
        ("InfiniBand SDR", "No link named 'InfiniBand SDR'. Close names: InfiniBand NDR, InfiniBand HDR, "),
    ],
)
def test_words_that_name_no_link(text, sentence):
    with pytest.raises(InputError) as caught:
        find_link(text)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("device", "name", "gb_per_s"),
    [
        ("T4", "PCIe3 x16", 15.754),
        ("V100-PCIe-16GB", "PCIe3 x16", 15.754),
        ("P100-SXM2-16GB", "NVLink1", 80),
        ("V100-SXM2-32GB", "NVLink2", 150),
        ("A100-SXM4-80GB", "NVLink3", 300),
        ("A100-PCIe-80GB", "PCIe4 x16", 31.508),  # bridges join two cards at most
        ("RTX-3090", "PCIe4 x16 through the host", 31.508),
        ("H100-SXM5-80GB", "NVLink4", 450),
        ("H100-NVL-94GB", "PCIe5 x16", 63.015),
        ("H200-SXM", "NVLink4", 450),
        ("B200", "NVLink5", 900),
        ("H800-SXM5-80GB", "NVLink4", 200),
        ("GB200", "NVLink5", 900),
        ("RTX-PRO-6000-Server", "PCIe5 x16", 63.015),
        ("GH200-96GB", "PCIe5 x16", 63.015),  # what its NVLink joins depends on the machine
        ("MI300X", "Infinity Fabric MI300X", 448),
        ("MI355X", "Infinity Fabric MI355X", 537.5),
    ],
)
def test_what_joins_eight_of_a_device_in_one_node(device, name, gb_per_s):
    link = link_inside(find_device(device), 8)
    assert (link.name, link.bytes_per_s) == (name, gb_per_s * 1e9)


@pytest.mark.parametrize("device", [device for device in all_devices() if device.kind == "gpu"], ids=lambda d: d.name)
def test_every_gpu_of_the_table_has_a_link(device):
    assert link_inside(device, 2).sustained_bytes_per_s > 3e9


def test_geforce_cards_exchange_through_the_host():
    two, eight = (link_inside(find_device("RTX-3090"), n) for n in (2, 8))
    assert two.name == "PCIe4 x16 through the host"
    assert two.sustained_bytes_per_s == pytest.approx(3.3e9)
    assert eight.sustained_bytes_per_s < 0.6 * two.sustained_bytes_per_s
    assert link_inside(find_device("RTX-6000-Ada"), 2).name == "PCIe4 x16"


@pytest.mark.parametrize(
    "device", [device for device in all_devices() if device.kind == "accelerator"], ids=lambda d: d.name
)
def test_what_joins_accelerators_is_not_guessed(device):
    with pytest.raises(InputError, match=f"What joins 4 of '{device.name}' in a node is not known"):
        link_inside(device, 4)


def test_what_joins_devices_without_any_data_on_it_is_not_guessed():
    cpu = find_device("generic-cpu")
    assert link_inside(cpu, 1).notes == "not used"
    with pytest.raises(InputError) as caught:
        link_inside(cpu, 2)
    assert str(caught.value) == (
        "What joins 2 of 'generic-cpu' in a node is not known: name the link inside a node (such as 'PCIe4 x16'), "
        "or give pcie_gen in your device file."
    )


def test_every_column_is_explained_beside_the_table():
    text = (DATA / "README.md").read_text(encoding="utf-8")
    section = text.split("## links.csv")[1].split("\n## ")[0]
    assert [column for column in ROWS[0] if f"`{column}`" not in section] == []
