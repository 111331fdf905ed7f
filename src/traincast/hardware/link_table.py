"""Links by the names that people give them: rows of links.csv, several of one, or a plain rate."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from traincast.errors import InputError, close_names
from traincast.hardware.device_table import name_key
from traincast.hardware.link import Link
from traincast.report.small_files import shipped_rows
from traincast.units import GIGA, MEGA, TERA

if TYPE_CHECKING:
    from collections.abc import Mapping

    from traincast.hardware.device import Device

_RATE = re.compile(
    r"(?P<number>[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?(?:nan|inf))\s*"
    r"(?P<prefix>[MGTmgt])(?P<unit>[bB]it|b|B)(?:/s|ps)"
)
_SEVERAL = re.compile(r"(?P<n>[-+]?[0-9]{1,9})\s*x\s*(?P<name>[A-Za-z].*)")
_PREFIXES = {"M": MEGA, "G": GIGA, "T": TERA}

# A plain rate says neither protocol nor hardware. Below 100 Gb/s it is taken for Ethernet with TCP, of which NCCL moved
# no more than 4 to 6 GB/s (github.com/NVIDIA/nccl/issues/450); from there on for RDMA, as TCP could not fill it.
_TCP_BYTES_PER_S = 5 * GIGA
_RDMA_FROM_BYTES_PER_S = 100 * GIGA / 8

_NVLINK_OF_ARCH = {
    "Pascal": "NVLink1",
    "Volta": "NVLink2",
    "Ampere": "NVLink3",
    "Hopper": "NVLink4",
    "Blackwell": "NVLink5",
    "CDNA3": "Infinity Fabric MI300X",
    "CDNA4": "Infinity Fabric MI355X",
}
# Of GeForce cards, for two of them and for more (see `_through_host`).
THROUGH_HOST_BYTES_PER_S, THROUGH_HOST_EXPONENT = 3.3 * GIGA, 0.64
_CONSUMER = re.compile(r"(?:RTX|GTX)-\d{4}(?!.*Ada)", re.IGNORECASE)  # GeForce, not professional cards
_BASEBOARD = re.compile(r"(?:^|-)SXM\d*(?:-|$)", re.IGNORECASE)
_LEAST_ON_A_BOARD = 8  # fewer are joined by bridges, which people may not have bought


@lru_cache(maxsize=1)
def all_links() -> tuple[Link, ...]:
    """The table that ships with traincast, in its own order."""
    return tuple(_link(row) for row in shipped_rows("links.csv"))


def find_link(text: str) -> Link:
    """A row of links.csv ('InfiniBand HDR'), several of one ('8x InfiniBand HDR'), or a plain rate ('50Gb/s').

    A small b is a bit and a capital B a byte. What a plain rate reaches is a guess, and its notes say so.
    """
    words = text.strip()
    rows = _by_key()
    row = rows.get(_key(words))
    if row is not None:
        return row
    several = _SEVERAL.fullmatch(words)
    if several is not None and (row := rows.get(_key(several["name"]))) is not None:
        return _several(int(several["n"]), row, words)
    rate = _RATE.fullmatch(words)
    if rate is not None:
        return _plain(words, rate)
    close = close_names(words, (link.name for link in rows.values()))
    raise InputError(
        f"No link named '{text}'.{close} Write a rate such as '50Gb/s' or '6GB/s', or a name of the table of links "
        "(InfiniBand HDR, PCIe4 x8)."
    )


def find_link_inside(text: str) -> Link:
    """As `find_link`, for the link between devices of a node: a plain rate is taken for PCIe, not for a network."""
    link = find_link(text)
    if _RATE.fullmatch(text.strip()) is None:
        return link
    pcie = find_link("PCIe3 x16")
    return replace(
        pcie, name=link.name, bytes_per_s=link.bytes_per_s, source="guess", notes="latency and share are those of PCIe"
    )


def link_inside(device: Device, n_devices: int) -> Link:
    """What joins `n_devices` of this device in one node, by its own data.

    Boards of SXM modules are wired with NVLink. PCIe cards have NVLink bridges between two or four, if any, and are
    taken to be on PCIe with 16 lanes. A device alone has nobody to talk to: any link will do.
    """
    nvlink = (device.nvlink_bytes_per_s or 0) / 2  # a datasheet adds up both directions
    if nvlink > 0 and _is_wired(device):
        name = _NVLINK_OF_ARCH.get(device.arch)
    else:
        nvlink, name = 0, f"PCIe{device.pcie_gen} x16"
    row = _by_key().get(_key(name)) if name else None
    if row is not None and n_devices > 1 and _CONSUMER.match(device.name):
        return _through_host(row, n_devices)
    if row is not None:
        return replace(row, bytes_per_s=nvlink) if nvlink else row
    if n_devices > 1:
        raise InputError(
            f"What joins {n_devices} of '{device.name}' in a node is not known: name the link inside a node "
            "(such as 'PCIe4 x16'), or give pcie_gen in your device file."
        )
    return Link(name="none", bytes_per_s=device.memory_bytes_per_s, latency_s=0, achievable=1, notes="not used")


@lru_cache(maxsize=1)
def _by_key() -> dict[str, Link]:
    return {_key(link.name): link for link in all_links()}


def _is_wired(device: Device) -> bool:
    """Whether it is sold on boards that join it to others; a file that does not say so may have it in the name."""
    if device.nvlink_domain is not None:
        return device.nvlink_domain >= _LEAST_ON_A_BOARD
    return _BASEBOARD.search(device.name) is not None


def _through_host(pcie: Link, n_devices: int) -> Link:
    """GeForce cards may not reach each other's memory: what they exchange passes through that of the host.

    Fitted on NVIDIA's examples on 2 to 8 cards of six kinds (benchmarks/distributed.py --data DIR): 3.3 GB/s with two,
    less with more, whatever the generation of their PCIe.
    """
    reached = THROUGH_HOST_BYTES_PER_S * (2 / n_devices) ** THROUGH_HOST_EXPONENT
    return replace(
        pcie,
        name=f"{pcie.name} through the host",
        achievable=min(pcie.achievable, reached / pcie.bytes_per_s),
        source="fitted: python benchmarks/distributed.py --data DIR",
        notes="no peer access between GeForce cards",
    )


def _key(name: str) -> str:
    """Case does not matter in a name, but it does in 'Gb/s' and 'GB/s'."""
    return name_key(name) + (" in bytes" if "B/s" in name else "")


def _several(n: int, link: Link, text: str) -> Link:
    if n < 1:
        raise InputError(f"'{text}': the number of links should be at least 1, not {n}.")
    return link if n == 1 else replace(link, name=f"{n}x {link.name}", bytes_per_s=n * link.bytes_per_s)


def _plain(text: str, rate: re.Match[str]) -> Link:
    unit = "B" if rate["unit"] == "B" else "b"
    number, prefix = float(rate["number"]), rate["prefix"].upper()
    bytes_per_s = number * _PREFIXES[prefix] / (1 if unit == "B" else 8)
    if not 0 < bytes_per_s < float("inf"):
        raise InputError(f"'{text}': the rate of a link should be a number above 0.")
    is_rdma = bytes_per_s >= _RDMA_FROM_BYTES_PER_S
    like = find_link("RoCE 100 Gb/s" if is_rdma else "Ethernet 10 Gb/s")
    return replace(
        like,
        name=f"{number:.15g} {prefix}{unit}/s",
        bytes_per_s=bytes_per_s,
        achievable=like.achievable if is_rdma else min(like.achievable, _TCP_BYTES_PER_S / bytes_per_s),
        source="guess",
        notes=f"a plain rate, taken for {'RDMA (RoCE)' if is_rdma else 'Ethernet with TCP'}",
    )


def _link(row: Mapping[str, str]) -> Link:
    in_bits = row["gbit_per_s"] != ""
    rate = float(row["gbit_per_s"]) * GIGA / 8 if in_bits else float(row["gb_per_s"]) * GIGA
    return Link(
        name=row["name"],
        bytes_per_s=float(f"{rate:.15g}"),
        latency_s=float(f"{float(row['latency_us']) / MEGA:.15g}"),
        achievable=float(row["achievable"]),
        is_shared=row["is_shared"] == "1",
        source=row["source"],
        notes=row["notes"],
    )
