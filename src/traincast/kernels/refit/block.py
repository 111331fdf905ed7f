"""Measured rows beside the kernels that they ran, ready to be predicted many times with other coefficients."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traincast.hardware.catalog import find_device
from traincast.hardware.host import find_host
from traincast.kernels.ceilings import Ceilings, DeviceFigures, ceilings
from traincast.kernels.coefficients import Coefficients
from traincast.kernels.kernels_of import SIZES
from traincast.kernels.seconds import kernel_seconds, plan_of
from traincast.kernels.ways import Kinds, group_width
from traincast.trace.graph import Floats, Ints

FLAGS = ("work", "item", "is_bf16", "is_winograd", "is_unaligned", "is_masked")


@dataclass(frozen=True, eq=False, slots=True, kw_only=True)
class Kernels:
    """What kernels are, and their sizes. One entry a kernel."""

    work: Ints
    item: Ints  # bytes of an element
    is_bf16: NDArray[np.bool_]
    is_winograd: NDArray[np.bool_]
    is_unaligned: NDArray[np.bool_]
    is_masked: NDArray[np.bool_]
    sizes: dict[str, Floats]

    @property
    def kinds(self) -> Kinds:
        flags = {name: getattr(self, name) for name in FLAGS}
        return Kinds(**flags, group_width=group_width(self.work, self.sizes))

    @property
    def stacked_sizes(self) -> Floats:
        """One row a size, in the order of SIZES."""
        return np.stack([self.sizes[name] for name in SIZES])

    def select(self, chosen: NDArray[Any]) -> Kernels:
        sizes = {name: value[chosen] for name, value in self.sizes.items()}
        return Kernels(**{name: getattr(self, name)[chosen] for name in FLAGS}, sizes=sizes)


@dataclass(frozen=True, eq=False, kw_only=True)
class Block:
    """Rows that share a layout and a tf32 setting. Kernels lie flat; `row` says whose they are, `count` how often.

    `floor_s` is what a measurement of a lone op adds around the work: the call between two events. It adds in full
    (`floor_power` 1) where it was read from rows with next to no work beside it; where those have a kernel of their
    own in it, that would count the kernel twice. `tags` name each row's device, family and so on for splits and
    reports.
    """

    name: str
    kernels: Kernels
    row: Ints
    count: Floats
    device: Ints  # one a kernel, an index into `devices`
    devices: tuple[str, ...]
    observed_s: Floats
    floor_s: Floats
    tags: dict[str, NDArray[Any]]
    layout: str = "nchw"
    tf32: bool = False
    attention: str = "eager"  # whose kernels: PyTorch's own, or the vendor's tuned ones
    floor_power: float = 1.5
    idle_s: float = 0.0  # rest between kernels, in which a board at its power limit recovers
    n_dispatched: Floats | None = None  # ops of a queue of kernels, which hides their dispatch; None: lone calls
    is_cold: NDArray[np.bool_] | None = None  # one a kernel: the cache was cleared before it; None: of no kernel

    @property
    def n_rows(self) -> int:
        return len(self.observed_s)

    def predict(self, coefficients: Coefficients) -> Floats:
        """Seconds of every row."""
        return self.measured_s(self.kernel_seconds(coefficients))

    def measured_s(self, kernel_s: Floats) -> Floats:
        """Seconds of every row, from those of every kernel."""
        device_s = np.bincount(self.row, weights=kernel_s * self.count, minlength=self.n_rows)
        if self.n_dispatched is not None:
            dispatch_s = self.n_dispatched * find_host("torch-eager").forward_dispatch_s
            return np.maximum(device_s, dispatch_s) + self.floor_s
        return (device_s**self.floor_power + self.floor_s**self.floor_power) ** (1 / self.floor_power)

    def kernel_seconds(self, coefficients: Coefficients) -> Floats:
        """Seconds of every kernel, once. Those that many rows run are timed once for all."""
        chosen, place = self._distinct
        return self.with_kernels(chosen)._seconds(coefficients)[place]

    @cached_property
    def _distinct(self) -> tuple[Ints, Ints]:
        """Which kernels differ from all before, and for every kernel its place among these."""
        kernels = self.kernels
        columns = [*(getattr(kernels, name) for name in FLAGS), *kernels.sizes.values(), self.device]
        if self.is_cold is not None:
            columns.append(self.is_cold)
        table = np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)
        rows = table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()
        _, first, place = np.unique(rows, return_index=True, return_inverse=True)
        return first, place

    def _seconds(self, coefficients: Coefficients) -> Floats:
        limits = self._limits(coefficients)
        plan = plan_of(
            self.kernels.kinds, limits, coefficients, layout=self.layout, tf32=self.tf32, attention=self.attention
        )
        return kernel_seconds(plan, self.kernels.stacked_sizes).seconds

    def _limits(self, coefficients: Coefficients) -> Ceilings:
        """Ceilings with one entry a kernel."""
        figures = [DeviceFigures.of(find_device(name)) for name in self.devices]
        columns = {
            field: np.array([getattr(one, field) for one in figures], dtype=float)[self.device]
            for field in DeviceFigures.__dataclass_fields__
        }
        busy_s = np.maximum(self.kernels.sizes["flop"] / columns["simt_flop_per_s"], 1e-9)
        columns["tdp_w"] = columns["tdp_w"] * (1.0 + self.idle_s / busy_s)
        limits = ceilings(DeviceFigures(**columns), coefficients)
        if self.is_cold is None:
            return limits
        return replace(limits, l2_reach_bytes=np.where(self.is_cold, 0.0, limits.l2_reach_bytes))

    def with_kernels(self, chosen: NDArray[Any]) -> Block:
        """Some of the kernels, of the same rows."""
        return replace(
            self,
            kernels=self.kernels.select(chosen),
            row=self.row[chosen],
            count=self.count[chosen],
            device=self.device[chosen],
            is_cold=None if self.is_cold is None else self.is_cold[chosen],
        )

    def take(self, rows: NDArray[np.bool_]) -> Block:
        """Some of the rows."""
        kept = rows[self.row]
        numbers = np.cumsum(rows) - 1
        return replace(
            self,
            kernels=self.kernels.select(kept),
            row=numbers[self.row[kept]],
            count=self.count[kept],
            device=self.device[kept],
            observed_s=self.observed_s[rows],
            floor_s=self.floor_s[rows],
            n_dispatched=None if self.n_dispatched is None else self.n_dispatched[rows],
            is_cold=None if self.is_cold is None else self.is_cold[kept],
            tags={name: values[rows] for name, values in self.tags.items()},
        )


def residuals(block: Block, coefficients: Coefficients) -> Floats:
    """Logarithm of predicted over observed."""
    return np.log(block.predict(coefficients) / block.observed_s)
