"""Finding a device by the names that people give it."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import UnknownDeviceError
from traincast.hardware.catalog import all_devices, find_device, matching_devices

DEVICES = all_devices()


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("T4", "T4"),
        ("t4", "T4"),
        (" Tesla T4 ", "T4"),
        ("rtx3090", "RTX-3090"),
        ("RTX 3090", "RTX-3090"),
        ("3090", "RTX-3090"),
        ("GeForce RTX 3090", "RTX-3090"),
        ("a10g", "A10G"),
        ("a10", "A10"),
        ("K80", "K80-die"),
        ("m60", "M60-die"),
        ("mi250", "MI250-GCD"),
        ("1080 ti", "GTX-1080Ti"),
        ("a6000", "RTX-A6000"),
        ("v100_pcie_32gb", "V100-PCIe-32GB"),
        ("v100-sxm2-32gb", "V100-SXM2-32GB"),
        ("NVIDIA_A100_80GB_PCIe", "A100-PCIe-80GB"),
        ("h100-nvl", "H100-NVL-94GB"),
        ("h100 sxm5", "H100-SXM5-80GB"),
        ("NVIDIA H200", "H200-SXM"),
        ("rtx3080", "RTX-3080"),
        ("H200-SXM5-141GB", "H200-SXM"),
        ("H200-NVL-141GB", "H200-NVL"),
        ("NVIDIA H100 SXM", "H100-SXM5-80GB"),
        ("NVIDIA H100 80GB HBM3", "H100-SXM5-80GB"),
        ("H100-SXM5-96GB-HBM2e-500W", "H100-SXM5-96GB-HBM2e-500W"),
        ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"),
        ("NVIDIA GeForce RTX 4090", "RTX-4090"),
        ("NVIDIA B200", "B200"),
        ("NVIDIA B200 SXM", "B200"),
        ("B200-SXM6", "B200"),
        ("NVIDIA B300 SXM6 AC", "B300"),
        ("GB200 NVL72", "GB200"),
        ("NVIDIA GH200 480GB", "GH200-96GB"),
        ("NVIDIA H20", "H20-SXM5-96GB"),
        ("h800", "H800-SXM5-80GB"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000-Server"),
        ("rtx pro 6000 max-q", "RTX-PRO-6000-MaxQ"),
        ("AMD Instinct MI300X", "MI300X"),
        ("NVIDIA A16", "A16-die"),
        ("Google TPU v5e", "TPU-v5e"),
        ("TPU v6 lite", "TPU-v6e"),
        ("AWS Trainium2", "Trainium2"),
        ("gaudi3", "Gaudi-3"),
        ("Apple M3 Ultra", "M3-Ultra-512GB"),
        ("m4 max", "M4-Max-128GB"),
    ],
)
def test_names_that_mean_one_device(given_name, name):
    assert find_device(given_name).name == name


@pytest.mark.parametrize(
    ("given_name", "names"),
    [
        ("p100", "P100-PCIe-16GB or P100-SXM2-16GB"),
        ("v100", "V100-PCIe-16GB, V100-PCIe-32GB, V100-SXM2-16GB, V100-SXM2-32GB or V100-SXM3-32GB"),
        ("Tesla V100", "V100-PCIe-16GB, V100-PCIe-32GB, V100-SXM2-16GB, V100-SXM2-32GB or V100-SXM3-32GB"),
        ("v100-16gb", "V100-PCIe-16GB or V100-SXM2-16GB"),
        ("a100", "A100-PCIe-40GB, A100-SXM4-40GB, A100-PCIe-80GB or A100-SXM4-80GB"),
        ("a100-80gb", "A100-PCIe-80GB or A100-SXM4-80GB"),
        ("h100", "H100-PCIe-80GB, H100-SXM5-80GB or H100-NVL-94GB"),
        ("h200", "H200-SXM or H200-NVL"),
        ("H200-141GB", "H200-SXM or H200-NVL"),
        ("NVIDIA A100 SXM", "A100-SXM4-40GB or A100-SXM4-80GB"),
        ("A100-SXM4", "A100-SXM4-40GB or A100-SXM4-80GB"),
        ("A800", "A800-SXM4-80GB or A800-PCIe-80GB"),
        ("rtx-pro-6000", "RTX-PRO-6000-Workstation or RTX-PRO-6000-Server"),
        ("RTX PRO 6000 Blackwell", "RTX-PRO-6000-Workstation or RTX-PRO-6000-Server"),
        ("rtx6000", "Quadro-RTX-6000 or RTX-6000-Ada"),
    ],
)
def test_a_name_that_could_mean_several_lists_them(given_name, names):
    with pytest.raises(UnknownDeviceError) as caught:
        find_device(given_name)
    assert str(caught.value) == f"'{given_name}' could mean {names}: name one of them."


@pytest.mark.parametrize("given_name", ["rtx2080", "rtx-2080-super", "titan", "ada", "16gb", "sxm", ""])
def test_a_name_is_never_stretched_to_another_product(given_name):
    """The desktop RTX 2080 is not in the table, and its laptop version would be a quiet guess."""
    with pytest.raises(UnknownDeviceError, match=f"No device named '{given_name}'"):
        find_device(given_name)


def test_an_unknown_name_is_answered_with_close_ones_and_what_to_do():
    with pytest.raises(UnknownDeviceError) as caught:
        find_device("A100-SXM3-80GB")
    message = str(caught.value)
    assert message.startswith("No device named 'A100-SXM3-80GB'. Close names: A100-SXM4-80GB")
    assert message.endswith("'traincast devices' lists all 86; add your own in a device file.")


@given(device=st.sampled_from(DEVICES), data=st.data())
def test_case_and_separators_never_matter(device, data):
    separator = data.draw(st.sampled_from(["-", " ", "_", "", "--", " - "]))
    spelling = data.draw(st.sampled_from([str.lower, str.upper, str.title, str]))(device.name)
    assert find_device(spelling.replace("-", separator)) == device


@given(device=st.sampled_from(DEVICES), data=st.data())
def test_every_alias_finds_its_device(device, data):
    assert find_device(data.draw(st.sampled_from([device.name, *device.aliases]))) is device


@given(text=st.text(max_size=20))
def test_any_text_finds_a_device_or_is_refused(text):
    with contextlib.suppress(UnknownDeviceError):
        assert find_device(text) in DEVICES


def test_filters_narrow_the_list():
    assert [d.name for d in matching_devices(DEVICES, text="v100", min_memory_bytes=32 * 2**30)] == [
        "V100-PCIe-32GB",
        "V100-SXM2-32GB",
        "V100-SXM3-32GB",
    ]
    assert {d.vendor for d in matching_devices(DEVICES, vendor="amd")} == {"AMD"}
    assert {d.arch for d in matching_devices(DEVICES, arch="cdna 2")} == {"CDNA2"}
    assert matching_devices(DEVICES, text="geforce rtx 3090")[0].name == "RTX-3090"
    assert matching_devices(DEVICES) == DEVICES


NEW_CARD = """
[[device]]
name = "My-Card"
aliases = ["mc"]
fp32_tflop_per_s = 50
memory_gib = 48
memory_gb_per_s = 1000

[[device]]
name = "t4"
fp32_tflop_per_s = 4
memory_gib = 15
memory_gb_per_s = 300
fp16_dense_tflop_per_s = 0
"""


def test_a_device_file_adds_devices_and_replaces_those_of_the_same_name(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(NEW_CARD)
    assert len(all_devices(path)) == 87
    assert find_device("my card", devices_file=path).memory_bytes == 48 * 2**30
    assert find_device("MC", devices_file=path).name == "My-Card"
    assert find_device("T4", devices_file=path).peak_flop_per_s("amp-fp16") == 4e12
    assert find_device("T4").peak_flop_per_s("fp32") == 8.1e12
    with pytest.raises(UnknownDeviceError, match="lists all 87"):
        find_device("nothing", devices_file=path)


def test_which_socket_a_card_sits_in_may_be_left_out():
    assert find_device("H100 SXM").name == "H100-SXM5-80GB"
    assert find_device("a100-sxm-40gb").name == "A100-SXM4-40GB"
    with pytest.raises(UnknownDeviceError, match="could mean A100-SXM4-40GB or A100-SXM4-80GB"):
        find_device("A100 SXM")
