"""Measured collectives of three public files as rows that can be asked about, or with the reason why not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.accuracy.modern.askable import reason_of
from traincast.kernels.refit.modern.devices import known_device
from traincast.kernels.refit.op_rows import read_rows

COLLECTIVE_FILES = ("collectives_stas.csv.gz", "collectives_vtrain.csv.gz", "collectives_xla.csv.gz")
# The files say which generation of NVLink joins the boards: they are the same for both memory sizes.
_SAME_BOARD = {"A100-SXM4 (NVLink 3 node)": "A100-SXM4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveRow:
    """One collective among devices that NVLink joins.

    `n_bytes` is the whole vector: what a device begins with, and ends with in an all-gather. Several groups of
    `n_devices` may do the same at once.
    """

    file: str
    collective: str  # all_reduce, all_gather, reduce_scatter, all_to_all, collective_permute
    device: str  # as the file writes it
    n_devices: int  # of one group; 0: not told
    n_nodes: int
    n_groups: int
    n_bytes: float
    algorithm: str  # as the file writes it; empty: the library's choice
    seconds: float
    not_asked: str = ""

    @property
    def device_name(self) -> str | None:
        """In the device table; None while it has no such device."""
        return known_device(self._board)

    @property
    def _board(self) -> str:
        return _SAME_BOARD.get(self.device, self.device)

    @property
    def reason(self) -> str:
        return reason_of(self.not_asked, self._board)

    @property
    def place(self) -> str:
        """As a user writes it: one domain of NVLink is one node, however many boards are in it."""
        return f"1x{self.n_devices}x{self.device_name}"


def collective_rows(data: Path) -> dict[str, list[CollectiveRow]]:
    """By file."""
    return {
        file: [collective_row(line, file) for line in read_rows(data / "modern" / file)] for file in COLLECTIVE_FILES
    }


def collective_row(line: Mapping[str, str], file: str) -> CollectiveRow:
    n_nodes = int(line["n_nodes"] or 1)
    groups = re.search(r"(\d+) concurrent groups", line["note"])
    return CollectiveRow(
        file=file,
        collective=line["collective"],
        device=line["device"],
        n_devices=int(line["n_gpus"] or 0),
        n_nodes=n_nodes,
        n_groups=int(groups.group(1)) if groups else 1,
        n_bytes=float(line["bytes"]),
        algorithm=line["algo"],
        seconds=float(line["time_us"] or "nan") * 1e-6,
        not_asked=_why_not(line, n_nodes),
    )


def _why_not(line: Mapping[str, str], n_nodes: int) -> str:
    """The first of these that holds; empty: it can be asked."""
    checks = (
        (n_nodes > 1 and line["interconnect"] == "unknown", "GPU and fabric not told"),
        (line["collective"] == "collective_permute", "who sends to whom is not told"),
        (not line["time_us"], "no time"),
    )
    return next((why for is_so, why in checks if is_so), "")
