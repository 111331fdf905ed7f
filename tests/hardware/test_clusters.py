"""Clusters: in words, and with a part of their devices in use."""

import contextlib
import math
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError, TraincastError, UnknownDeviceError
from traincast.hardware.catalog import all_devices
from traincast.hardware.cluster_text import find_cluster
from traincast.hardware.link_table import find_link
from traincast.hardware.machines import all_machines


@pytest.mark.parametrize(
    ("text", "device", "placement", "inside", "between"),
    [
        ("T4", "T4", (1,), "PCIe3 x16", None),
        ("1xT4", "T4", (1,), "PCIe3 x16", None),
        ("4xT4", "T4", (4,), "PCIe3 x16", None),
        (" 4 x tesla t4 ", "T4", (4,), "PCIe3 x16", None),
        ("8xV100-SXM2-16GB", "V100-SXM2-16GB", (8,), "NVLink2", None),
        ("2x4xT4@50Gb/s", "T4", (4, 4), "PCIe3 x16", "50 Gb/s"),
        ("2x4xT4 @ 6 GB/s", "T4", (4, 4), "PCIe3 x16", "6 GB/s"),
        ("3x1xRTX-3090@Ethernet 10 Gb/s", "RTX-3090", (1, 1, 1), "PCIe4 x16", "Ethernet 10 Gb/s"),
        ("2x8xA100-SXM4-80GB@8xInfiniBand-HDR", "A100-SXM4-80GB", (8, 8), "NVLink3", "8x InfiniBand HDR"),
        ("1x4xT4@50Gb/s", "T4", (4,), "PCIe3 x16", None),
        ("p3.16xlarge", "V100-SXM2-16GB", (8,), "NVLink2", None),
        ("2xP3.16XLARGE", "V100-SXM2-16GB", (8, 8), "NVLink2", "Ethernet 25 Gb/s"),
        ("2xp3.16xlarge@100Gb/s", "V100-SXM2-16GB", (8, 8), "NVLink2", "100 Gb/s"),
        ("2xgpu_8x_a100@50Gb/s", "A100-SXM4-40GB", (8, 8), "NVSwitch2", "50 Gb/s"),
        ("dgx-a100", "A100-SXM4-80GB", (8,), "NVSwitch2", None),
        ("3 of p3.8xlarge", "V100-SXM2-16GB", (3,), "NVLink2", None),
        ("6 of 2x4xT4@50Gb/s", "T4", (4, 2), "PCIe3 x16", "50 Gb/s"),
    ],
)
def test_words_for_a_cluster(text, device, placement, inside, between):
    cluster = find_cluster(text)
    assert (cluster.device.name, cluster.placement, cluster.inside.name) == (device, placement, inside)
    assert (cluster.between.name if cluster.between else None) == between
    assert cluster.name == text.strip()


@pytest.mark.parametrize(
    ("text", "n_nodes", "gbit_per_s", "link"),
    [
        ("64xH100-SXM5-80GB", 8, 3200, "8x InfiniBand NDR"),
        ("16xA100-SXM4-80GB", 2, 1600, "8x InfiniBand HDR"),
        ("16xV100-SXM2-16GB", 2, 400, "4x InfiniBand EDR"),
        ("16xB200", 2, 3200, "8x RoCE 400 Gb/s"),
        ("512xT4", 64, 100, "Ethernet 100 Gb/s"),
        ("16xA100-SXM4-80GB@800Gb/s", 2, 800, "800 Gb/s"),
        ("16xRTX-3090@Ethernet 25 Gb/s", 2, 25, "Ethernet 25 Gb/s"),
    ],
)
def test_more_devices_than_a_node_holds_are_nodes_of_eight_on_a_link_that_is_told(text, n_nodes, gbit_per_s, link):
    cluster = find_cluster(text)
    assert cluster.placement == (8,) * n_nodes
    assert cluster.between.name == link
    assert cluster.between.bytes_per_s == gbit_per_s * 1e9 / 8
    assert f"'{text}' is taken for {n_nodes} nodes of 8 devices, joined by {link} " in cluster.assumption
    written = cluster.assumption.split("as in '")[1].split("'")[0]
    same = find_cluster(written)
    assert (same.placement, same.inside, same.assumption) == (cluster.placement, cluster.inside, "")
    assert same.between.bytes_per_s == cluster.between.bytes_per_s
    assert same.between.latency_s == pytest.approx(cluster.between.latency_s)


@pytest.mark.parametrize("text", ["T4", "8xT4", "8xH100-SXM5-80GB", "1x16xV100-SXM2-32GB", "dgx-2"])
def test_what_fits_a_node_or_is_said_to_be_one_is_one(text):
    cluster = find_cluster(text)
    assert (cluster.n_nodes, cluster.between, cluster.assumption) == (1, None, "")


@pytest.mark.parametrize(
    ("text", "placement"),
    [
        ("64xGB200", (64,)),
        ("72xGB200", (72,)),
        ("144xGB200@3200Gb/s", (72, 72)),
        ("512xGB200@3200Gb/s", (64,) * 8),
    ],
)
def test_a_rack_joins_72_of_gb200_in_one_nvlink_domain(text, placement):
    cluster = find_cluster(text)
    assert cluster.placement == placement
    assert cluster.inside.name == "NVLink5"


def test_processes_on_a_cpu_share_one_machine_however_many_they_are():
    assert find_cluster("12xgeneric-cpu", link="10GB/s").placement == (12,)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("12xH100-SXM5-80GB", "12 devices do not fill nodes of 8. Ask for 8 or 16, or write .*'2x6xH100-SXM5-80GB@"),
        ("13xT4", "Ask for 8 or 16, or write .*'13x1xT4@100Gb/s', or '1x13xT4' for one large node"),
        ("146xGB200", "146 devices do not fill nodes of 72. Ask for 144 or 216, or write .*'73x2xGB200@|what joins"),
        ("16xRTX-3090", "what joins nodes of RTX-3090 is not known: write .*'2x8xRTX-3090@100Gb/s'"),
    ],
)
def test_devices_that_do_not_fill_nodes_or_whose_network_nobody_knows_are_refused(text, words):
    with pytest.raises(InputError, match=words):
        find_cluster(text)


def test_two_nodes_of_four_t4_on_50_gigabit():
    cluster = find_cluster("2x4xT4@50Gb/s")
    assert (cluster.n_devices, cluster.n_nodes, cluster.devices_per_node, cluster.n_nodes_max) == (8, 2, 4, 2)
    assert cluster.between.bytes_per_s == 6.25e9
    assert cluster.price_usd_per_hour is None


def test_a_dgx_1_has_150_gigabytes_per_second_a_direction_between_its_gpus():
    assert find_cluster("dgx-1-v100-32gb").inside.bytes_per_s == 150e9


def test_a_rented_cluster_costs_its_nodes():
    assert find_cluster("p2.8xlarge").price_usd_per_hour == 7.2
    assert find_cluster("2xp2.8xlarge").price_usd_per_hour == 14.4
    assert find_cluster("1 of 2xp2.8xlarge").price_usd_per_hour == 7.2  # seven idle devices are paid for


def test_the_link_inside_a_node_can_be_named():
    assert find_cluster("4xT4", link="PCIe3 x8").inside == find_link("PCIe3 x8")
    assert find_cluster("p3.16xlarge", link="PCIe3 x16").inside.name == "PCIe3 x16"
    assert find_cluster("3 of 4xgeneric-cpu", link="20GB/s").inside.bytes_per_s == 20e9
    assert find_cluster("2x4xT4@50Gb/s", link="PCIe3 x8").between.name == "50 Gb/s"


WHOLE = "should be a whole number from 1 to 1,000,000, not"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "2x4xT4",
            "'2x4xT4' has 2 nodes: name the link between them after an @, as in '2x4xT4@50Gb/s' "
            "or '2x4xT4@InfiniBand HDR'.",
        ),
        (
            "4xT4@50Gb/s",
            "'4xT4@50Gb/s' is one node, and @ names the link between nodes: write nodes x devices a node, "
            "as in '2x4xT4@50 Gb/s'.",
        ),
        (
            "T4@50Gb/s",
            "'T4@50Gb/s' is one node, and @ names the link between nodes: write nodes x devices a node, "
            "as in '2x1xT4@50 Gb/s'.",
        ),
        ("0xT4", f"'0xT4': the number of devices {WHOLE} 0."),
        ("-4xT4", f"'-4xT4': the number of devices {WHOLE} -4."),
        ("1.5xT4", f"'1.5xT4': the number of devices {WHOLE} 1.5."),
        ("0x4xT4@1Gb/s", f"'0x4xT4@1Gb/s': the number of nodes {WHOLE} 0."),
        ("2x0xT4@1Gb/s", f"'2x0xT4@1Gb/s': the number of devices a node {WHOLE} 0."),
        ("0xp3.16xlarge", f"'0xp3.16xlarge': the number of nodes {WHOLE} 0."),
        ("0 of T4", f"'0 of T4': the number of devices {WHOLE} 0."),
        ("9000000xT4", f"'9000000xT4': the number of devices {WHOLE} 9000000."),
        ("2x3x4xT4", "'2x3x4xT4' has 3 numbers: write nodes x devices a node, as in '2x4xT4@50Gb/s'."),
        ("", "'' names no device: write 'T4', '4xT4' or '2x4xT4@50Gb/s'."),
        ("4x", "'4x' names no device: write 'T4', '4xT4' or '2x4xT4@50Gb/s'."),
        ("@50Gb/s", "'@50Gb/s' names no device: write 'T4', '4xT4' or '2x4xT4@50Gb/s'."),
        ("2x4xT4@0Gb/s", "'0Gb/s': the rate of a link should be a number above 0."),
        ("2x4xT4@nanGb/s", "'nanGb/s': the rate of a link should be a number above 0."),
        (
            "2x4xp3.16xlarge",
            "'2x4xp3.16xlarge': p3.16xlarge is a whole machine of 8: write '2xp3.16xlarge', "
            "or '8 of 2xp3.16xlarge' to use some of its devices.",
        ),
        (
            "2xgpu_8x_a100",
            "The network of 'gpu_8x_a100' is not known: name it after an @, as in '2xgpu_8x_a100@50Gb/s'.",
        ),
        ("9 of 2x4xT4@1Gb/s", "'2x4xT4@1Gb/s' holds 8 devices (2 nodes of 4), not 9."),
    ],
)
def test_words_that_mean_no_cluster(text, sentence):
    with pytest.raises(InputError) as caught:
        find_cluster(text)
    assert str(caught.value) == sentence


ENDING = "'traincast devices' lists all 86 devices; --devices FILE adds your own."


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "8xp3.16xlrge",
            f"No device or machine named 'p3.16xlrge'. Close names: p3.16xlarge, p2.16xlarge, g3.16xlarge. {ENDING}",
        ),
        ("dgx-1", f"No device or machine named 'dgx-1'. Close names: DGX-1-V100-16GB, DGX-1-V100-32GB. {ENDING}"),
        ("4xabacus", f"No device or machine named 'abacus'. {ENDING}"),
        ("4xp100", "'p100' could mean P100-PCIe-16GB or P100-SXM2-16GB: name one of them."),
    ],
)
def test_a_name_that_leads_nowhere(text, sentence):
    with pytest.raises(UnknownDeviceError) as caught:
        find_cluster(text)
    assert str(caught.value) == sentence


def test_devices_of_a_file_can_be_named_and_replace_those_of_machines(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(
        '[[device]]\nname = "T4"\nfp32_tflop_per_s = 9\nmemory_gib = 16\nmemory_gb_per_s = 300\npcie_gen = 4\n'
        '[[device]]\nname = "Mine-SXM"\nfp32_tflop_per_s = 9\nmemory_gib = 16\nmemory_gb_per_s = 300\n'
        "nvlink_gb_per_s = 500\n"
    )
    assert find_cluster("2xt4", devices_file=path).inside.name == "PCIe4 x16"
    assert find_cluster("g4dn.12xlarge", devices_file=path).device.fp32_flop_per_s == 9e12
    assert find_cluster("mine-sxm", devices_file=path).n_devices == 1
    with pytest.raises(InputError, match="What joins 2 of 'Mine-SXM' in a node is not known"):
        find_cluster("2xmine-sxm", devices_file=path)


@pytest.mark.parametrize(
    ("n_devices", "placement"), [(1, (1,)), (3, (3,)), (4, (4,)), (6, (4, 2)), (8, (4, 4)), (9, (4, 4, 1))]
)
def test_nodes_are_filled_one_after_the_other(n_devices, placement):
    assert find_cluster("3x4xT4@50Gb/s").take(n_devices).placement == placement


def test_what_is_not_taken_can_be_taken_later():
    whole = find_cluster("2x4xT4@50Gb/s")
    part = whole.take(3)
    assert (part.name, part.n_devices, part.n_nodes, part.between) == ("3 of 2x4xT4@50Gb/s", 3, 1, whole.between)
    assert part.take(6).name == "6 of 2x4xT4@50Gb/s"
    assert part.take(8) == whole


@pytest.mark.parametrize(
    ("text", "n_devices", "sentence"),
    [
        ("2x4xT4@50Gb/s", 9, "'2x4xT4@50Gb/s' holds 8 devices (2 nodes of 4), not 9."),
        ("3 of p3.8xlarge", 5, "'p3.8xlarge' holds 4 devices (one node), not 5."),
        ("T4", 2, "'T4' holds 1 device (one node), not 2."),
        ("T4", 0, "'T4': the number of devices to take should be a whole number, at least 1, not 0."),
        ("T4", -1, "'T4': the number of devices to take should be a whole number, at least 1, not -1."),
        ("T4", 1.0, "'T4': the number of devices to take should be a whole number, at least 1, not 1.0."),
        ("T4", math.nan, "'T4': the number of devices to take should be a whole number, at least 1, not nan."),
    ],
)
def test_a_cluster_does_not_hold_more_than_it_has(text, n_devices, sentence):
    with pytest.raises(InputError) as caught:
        find_cluster(text).take(n_devices)
    assert str(caught.value) == sentence


def test_devices_may_be_spread_unevenly():
    spread = replace(find_cluster("2x4xT4@50Gb/s"), placement=(1, 3), name="1 and 3")
    assert (spread.n_devices, spread.n_nodes) == (4, 2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"name": " "}, "A cluster needs a name."),
        ({"placement": ()}, "placement names 0 nodes where there are 2."),
        ({"placement": (1, 1, 1)}, "placement names 3 nodes where there are 2."),
        ({"placement": (4, 0)}, "each number in placement should be a whole number, at least 1, not 0."),
        ({"placement": (5,)}, "placement puts 5 devices in a node of 4."),
        ({"devices_per_node": 0}, "devices_per_node should be a whole number, at least 1, not 0."),
        ({"n_nodes_max": -2}, "n_nodes_max should be a whole number, at least 1, not -2."),
        ({"between": None}, "several nodes need a link between nodes."),
        ({"n_nodes_max": 1, "placement": (4,)}, "one node has no link between nodes."),
        ({"node_price_usd_per_hour": 0.0}, "node_price_usd_per_hour should be above 0 (None: not known), not 0.0."),
        (
            {"node_price_usd_per_hour": math.nan},
            "node_price_usd_per_hour should be above 0 (None: not known), not nan.",
        ),
    ],
)
def test_a_cluster_that_cannot_be_is_refused(change, words):
    with pytest.raises(InputError) as caught:
        replace(find_cluster("2x4xT4@50Gb/s"), **change)
    assert str(caught.value) in (words, f"Cluster '2x4xT4@50Gb/s': {words}")


gpus = st.sampled_from([device.name for device in all_devices() if device.kind == "gpu"])
machines = st.sampled_from([machine.name for machine in all_machines() if machine.network is not None])
networks = st.one_of(
    st.sampled_from(["InfiniBand HDR", "8x InfiniBand NDR", "Ethernet 25 Gb/s", "4xEFA 100 Gb/s"]),
    st.floats(0.1, 5000).map(lambda rate: f"{rate:.4g}Gb/s"),
)
counts = st.integers(1, 9)
texts = st.one_of(
    gpus,
    st.builds("{}x{}".format, st.integers(1, 8), gpus),
    st.sampled_from(["16xT4", "64xH100-SXM5-80GB", "24xA100-SXM4-80GB@800Gb/s", "1x12xT4"]),
    st.builds("{}x{}x{}@{}".format, counts, counts, gpus, networks),
    machines,
    st.builds("{}x{}".format, counts, machines),
)


@given(text=texts, data=st.data())
def test_the_name_of_a_cluster_or_of_a_part_means_that_cluster(text, data):
    whole = find_cluster(text)
    part = whole.take(data.draw(st.integers(1, whole.n_devices)))
    assert find_cluster(whole.name) == whole
    assert find_cluster(part.name) == part
    assert part.take(whole.n_devices) == whole


@given(text=texts, data=st.data())
def test_a_part_uses_as_few_nodes_as_can_hold_it(text, data):
    whole = find_cluster(text)
    n = data.draw(st.integers(1, whole.n_devices))
    part = whole.take(n)
    assert part.n_devices == n
    assert part.n_nodes == math.ceil(n / whole.devices_per_node)


@given(text=st.text(max_size=30) | st.text("0123456789x@T4 Gb/sof.-", max_size=20))
def test_any_text_means_a_cluster_or_is_refused(text):
    with contextlib.suppress(TraincastError):
        assert find_cluster(text).n_devices >= 1


def test_clusters_are_found_without_heavy_packages():
    code = (
        "import sys; from traincast.hardware.cluster_text import find_cluster; find_cluster('2xp3.16xlarge');"
        "print([m for m in ('numpy', 'scipy', 'pydantic', 'torch', 'plotly', 'rich', 'tomllib') if m in sys.modules])"
    )
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"
