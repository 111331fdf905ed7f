"""Cluster files of users' own: what is accepted, and one clear sentence for what is not."""

import contextlib
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import FileFormatError, InputError, TraincastError
from traincast.hardware.catalog import find_device
from traincast.hardware.cluster import Cluster
from traincast.hardware.cluster_file import read_cluster_file
from traincast.hardware.cluster_text import find_cluster

RACK = """
device = "T4"
devices_per_node = 4
n_nodes = 2
between = "25Gb/s"
"""

LAB = """
name = "our lab"
device = "RTX-3090"
n_nodes = 3
devices_per_node = 2
node_price_usd_per_hour = 1.5
price_source = "our bookkeeping"
price_date = 2026-11-01
region = "basement"

[inside]
name = "bridge"
gb_per_s = 50
latency_us = 4
achievable = 0.8

[between]
gb_per_s = 1.2
latency_us = 35.5
achievable = 1
is_shared = true
source = "iperf3"
notes = "measured"
"""


@pytest.fixture
def write(tmp_path):
    def write(content):
        path = tmp_path / "mine.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_a_file_with_links_by_name_is_what_its_words_would_be(write):
    path = write(RACK)
    assert read_cluster_file(path) == replace(find_cluster("2x4xT4@25Gb/s"), name=str(path))
    assert find_cluster(str(path)) == read_cluster_file(path)
    assert find_cluster(f"3 of {path}").placement == (3,)
    assert find_cluster(str(path), link="PCIe3 x8").inside.name == "PCIe3 x8"


def test_a_file_may_hold_measured_links_and_a_price(write):
    lab = read_cluster_file(write(LAB))
    assert (lab.name, lab.device, lab.placement) == ("our lab", find_device("RTX-3090"), (2, 2, 2))
    assert (lab.inside.name, lab.inside.bytes_per_s, lab.inside.latency_s) == ("bridge", 50e9, 4e-6)
    assert (lab.between.name, lab.between.sustained_bytes_per_s) == ("1.2 GB/s", pytest.approx(1.2e9))
    assert (lab.between.latency_s, lab.between.is_shared) == (pytest.approx(35.5e-6), True)
    assert (lab.between.source, lab.between.notes) == ("iperf3", "measured")
    assert lab.price_usd_per_hour == 4.5
    assert (lab.price_source, lab.price_date, lab.region) == ("our bookkeeping", "2026-11-01", "basement")


def test_one_node_needs_no_link_between_nodes(write):
    one = read_cluster_file(write('device = "T4"\ndevices_per_node = 4\ninside = "PCIe3 x8"'))
    assert (one.placement, one.between, one.inside.name) == ((4,), None, "PCIe3 x8")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (RACK.replace('device = "T4"\n', ""), "device is missing."),
        (RACK.replace("devices_per_node = 4", ""), "devices_per_node is missing."),
        (RACK.replace('between = "25Gb/s"', ""), "between is missing, the link between its 2 nodes."),
        (RACK + "nodes = 3", "unknown key 'nodes'. Close names: n_nodes."),
        (RACK + "zzz = 3", "unknown key 'zzz'. Known are name, device, n_nodes, devices_per_node, inside, between,"),
        (RACK.replace("= 2", '= "2"'), "n_nodes should be a whole number, not '2'."),
        (RACK.replace("= 2", "= true"), "n_nodes should be a whole number, not True."),
        (RACK.replace("= 2", "= 0"), "n_nodes should be from 1 to 1,000,000, not 0."),
        (RACK.replace("= 4", "= -4"), "devices_per_node should be from 1 to 1,000,000, not -4."),
        (RACK.replace("= 4", "= 1.5"), "devices_per_node should be a whole number, not 1.5."),
        (RACK.replace('"T4"', "4"), "device should be text, not 4."),
        (RACK.replace('"T4"', '"v100"'), "'v100' could mean V100-PCIe-16GB, V100-PCIe-32GB, V100-SXM2-16GB,"),
        (RACK.replace('"25Gb/s"', "25"), "between should be the name of a link, a rate or a table, not 25."),
        (RACK.replace('"25Gb/s"', '"0Gb/s"'), "'0Gb/s': the rate of a link should be a number above 0."),
        (RACK + "node_price_usd_per_hour = 0", "node_price_usd_per_hour should be above 0, not 0; leave out what is"),
        (RACK + "node_price_usd_per_hour = -1.5", "node_price_usd_per_hour should be above 0, not -1.5; leave out"),
        (RACK + "node_price_usd_per_hour = nan", "node_price_usd_per_hour should be a finite number."),
        (RACK + f"node_price_usd_per_hour = 1{'0' * 400}", "node_price_usd_per_hour should be a finite number."),
        (RACK + 'price_date = ["x"]', "price_date should be text or a date, not ['x']."),
        (RACK + 'price_date = "soon"', "price_date is 'soon', not a day such as 2026-11-16."),
        (RACK + "price_date = 2099-01-01", "price_date is 2099-01-01, more than a year ahead"),
        (RACK + 'name = " "', "A cluster needs a name."),
        (LAB.replace("gb_per_s = 50", "gb_per_s = 0"), "Link 'bridge': bytes_per_s should be above 0, not 0.0."),
        (LAB.replace("gb_per_s = 50", "gbs = 50"), "inside: unknown key 'gbs'. Known are name, gb_per_s, latency_us,"),
        (LAB.replace("gb_per_s = 50", ""), "inside: gb_per_s is missing."),
        (LAB.replace("latency_us = 35.5", "latency_us = inf"), "between: latency_us should be a finite number."),
        (LAB.replace("= true", "= 1"), "between: is_shared should be true or false, not 1."),
        (LAB.replace("= 0.8", "= 80"), "Link 'bridge': achievable should be above 0 and at most 1, not 80."),
    ],
)
def test_a_file_that_cannot_be_right_is_explained_in_one_sentence(write, text, words):
    path = write(text)
    with pytest.raises(FileFormatError) as caught:
        read_cluster_file(path)
    assert str(caught.value).startswith(f"Cluster file '{path}': {words}")
    assert "\n" not in str(caught.value)


def test_files_that_are_no_toml_at_all(write, tmp_path):
    with pytest.raises(FileFormatError, match="' is not TOML: "):
        read_cluster_file(write("device ="))
    with pytest.raises(FileFormatError, match="' is not TOML: it is nested too deeply"):
        read_cluster_file(write("device = " + "[" * 5000))
    with pytest.raises(FileFormatError, match="' is not TOML: it has a whole number of thousands of digits"):
        read_cluster_file(write("n_nodes = " + "9" * 5000))
    with pytest.raises(FileFormatError, match=r"' is not UTF-8 text: save it as"):
        read_cluster_file(write(b"\x80"))
    with pytest.raises(InputError, match=r"^Cluster file '.*none\.TOML' cannot be read: No such file or directory\.$"):
        find_cluster(str(tmp_path / "none.TOML"))
    with pytest.raises(InputError, match="cannot be read: embedded null"):
        find_cluster("a\0.toml")


@given(content=st.binary(max_size=200))
def test_any_bytes_are_read_or_refused_but_never_crash(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("clusters") / "a.toml"
    path.write_bytes(content)
    with contextlib.suppress(TraincastError):
        assert isinstance(read_cluster_file(path), Cluster)
