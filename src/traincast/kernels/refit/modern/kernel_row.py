"""One measured call of a kernel or a few, and many of them as a block that is predicted with any coefficients."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from traincast.kernels.kernels_of import SIZES
from traincast.kernels.refit.block import Block, Kernels
from traincast.kernels.refit.modern.devices import known_device
from traincast.kernels.work import Work
from traincast.trace.graph import Floats

ITEM_BYTES = {"fp8": 1, "mxfp8": 1, "bf16": 2, "fp16": 2, "tf32": 4, "fp32": 4}
NO_DEVICE = "no such device yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One kernel: its kind of work, `b` products of an m x k by a k x n matrix, flop, and the least bytes it moves.

    What is made of bytes has turns as its `b`: rows of a norm, waits of a loss, elements that are taken one by one.
    """

    work: Work
    bytes: float
    item: int
    shape: tuple[float, float, float, float] = (1.0, 1.0, 1.0, 1.0)
    flop: float = 0.0
    around: float = 0.0  # bytes of the kernels around it
    is_bf16: bool = False
    is_unaligned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """A line of a kernel file. `calls` is the work however it is done; `not_asked` says why the code cannot be asked.

    `kept_fraction` is the share of query-key pairs that a mask leaves: flop of attention are those without a mask.
    """

    file: str
    source: str
    kernel: str
    device: str  # as the file writes it
    precision: str
    direction: str  # forward, backward or full
    backend: str
    seconds: float
    calls: tuple[Call, ...]
    shape: str
    not_asked: str = ""
    kept_fraction: float = 1.0
    memory_bytes: float | None = None
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def device_name(self) -> str | None:
        """In the device table; None while it has no such device."""
        return known_device(self.device)

    @property
    def reason(self) -> str:
        """Why no forecast can be asked for; empty where it can."""
        return self.not_asked or ("" if self.device_name else f"{NO_DEVICE}: {self.device}")


def product(m: float, n: float, k: float, *, precision: str, b: float = 1.0) -> Call:
    """A linear layer's product, or `b` products of a batch. What fp8 products make is bf16."""
    item = ITEM_BYTES[precision]
    step = 16 // item
    return Call(
        work=Work.LINEAR if b == 1 else Work.BATCHED,
        shape=(b, m, n, k),
        flop=2.0 * b * m * n * k,
        bytes=b * (item * (m * k + k * n) + max(item, 2) * m * n),
        item=item,
        is_bf16=precision == "bf16",
        is_unaligned=bool(k % step or n % step),
    )


def moved(work: Work, n_bytes: float, *, precision: str, turns: float = 1.0) -> Call:
    """A kernel that is made of bytes."""
    shape = (turns, 1.0, 1.0, 1.0)
    return Call(work=work, bytes=n_bytes, item=ITEM_BYTES[precision], is_bf16=precision == "bf16", shape=shape)


def askable(rows: Sequence[KernelRow]) -> list[KernelRow]:
    """Rows that the code as it is can forecast."""
    return [row for row in rows if not row.reason]


def reasons(rows: Sequence[KernelRow]) -> Counter[str]:
    """How many rows cannot be asked, by why."""
    return Counter(row.reason for row in rows if row.reason)


def ask_anyway(rows: Sequence[KernelRow]) -> list[KernelRow]:
    """Rows of known devices whose work is known, whatever the code has no notion of: for fits that teach it."""
    return [replace(row, not_asked="") for row in rows if row.calls and row.device_name]


def block_of(name: str, rows: Sequence[KernelRow], *, tf32: bool = False, is_cold: bool = False) -> Block:
    """Rows of known devices as a block. The files time the device: no floor of a call is added.

    `is_cold`: the cache was cleared before each timing, so that the first kernel of a row finds nothing in it.
    """
    names = [row.device_name or "" for row in rows]
    devices = tuple(sorted(set(names)))
    calls = [call for row in rows for call in row.calls]
    owner = np.repeat(np.arange(len(rows)), [len(row.calls) for row in rows])
    is_product = np.array([bool(call.flop) for call in calls])
    sizes = {key: np.zeros(len(calls)) for key in SIZES}
    for number, key in enumerate("bmnk"):
        sizes[key] = np.array([call.shape[number] for call in calls])
    sizes["flop"] = np.array([call.flop for call in calls])
    sizes["bytes"] = np.array([call.bytes for call in calls])
    sizes["image"] = np.array([call.around for call in calls])
    false = np.zeros(len(calls), dtype=bool)
    is_first = np.diff(owner, prepend=-1) > 0
    return Block(
        name=name,
        kernels=Kernels(
            work=np.array([int(call.work) for call in calls]),
            item=np.array([call.item for call in calls]),
            is_bf16=np.array([call.is_bf16 for call in calls]),
            is_winograd=false,
            is_unaligned=np.array([call.is_unaligned for call in calls]) & is_product,
            is_masked=np.array([row.kept_fraction < 1.0 for row in rows])[owner],
            sizes=sizes,
        ),
        row=owner,
        count=np.ones(len(calls)),
        device=np.searchsorted(devices, names)[owner],
        devices=devices,
        observed_s=np.array([row.seconds for row in rows]),
        floor_s=np.zeros(len(rows)),
        tags=_tags(rows, names),
        tf32=tf32,
        is_cold=is_first if is_cold else None,
    )


def _tags(rows: Sequence[KernelRow], names: Sequence[str]) -> dict[str, Any]:
    columns = ("file", "source", "kernel", "precision", "direction", "backend", "shape")
    found: dict[str, Any] = {key: np.array([getattr(row, key) for row in rows]) for key in columns}
    found |= {key: np.array([row.tags.get(key, "") for row in rows]) for key in {k for row in rows for k in row.tags}}
    kept: Floats = np.array([row.kept_fraction for row in rows])
    return found | {"device": np.array(names), "kept_fraction": kept}
