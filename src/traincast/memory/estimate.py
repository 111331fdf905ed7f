"""Peak bytes of a step by kind, whether it fits a device, and the largest batch that does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.hardware.device import Device
from traincast.memory.counts import Count, counts_of
from traincast.memory.overhead import Overhead, overhead_of, reported_bytes
from traincast.memory.timeline import alive_bytes_by_kind
from traincast.trace.check import MAX_BATCH_SIZE, check_batch_size
from traincast.trace.graph import Graph, Ints, Phase, StorageKind
from traincast.trace.lowering.lower import lower
from traincast.trace.settings import Settings
from traincast.trace.trace import Trace

# What people call the kinds; buffers are part of the model, so they go with its weights.
KINDS: dict[str, tuple[StorageKind, ...]] = {
    "weights": (StorageKind.WEIGHT, StorageKind.BUFFER),
    "gradients": (StorageKind.GRADIENT,),
    "optimizer state": (StorageKind.OPTIMIZER_STATE,),
    "inputs": (StorageKind.INPUT,),
    "activations": (StorageKind.ACTIVATION,),
    "temporary": (StorageKind.TEMPORARY,),
}


@dataclass(frozen=True, eq=False, kw_only=True)
class StepMemory:
    """Bytes of one step, at its peak and op by op."""

    model: str
    batch_size: int
    settings: Settings
    target: str
    timeline_bytes: dict[str, Ints]  # kind -> bytes alive during each op
    op_phases: Ints
    peak_op: str
    peak_module: str
    overhead: Overhead
    device: Device | None
    largest_batch_size: int | None  # that fits the device; 0: none does; None: no device was named
    counts: tuple[Count, ...] = ()  # of parameters, gradients, optimizer states and buffers
    assumptions: tuple[str, ...] = ()  # of the capture

    @property
    def peak_index(self) -> int:
        """The op during which most bytes are alive."""
        return int(sum(self.timeline_bytes.values()).argmax())  # type: ignore[union-attr]

    @property
    def peak_bytes(self) -> int:
        """Tracked bytes at the peak, from the lifetimes of all tensors."""
        return sum(self.bytes_by_kind.values())

    @property
    def bytes_by_kind(self) -> dict[str, int]:
        """What is alive at the peak."""
        return {kind: int(series[self.peak_index]) for kind, series in self.timeline_bytes.items()}

    @property
    def peak_phase(self) -> str:
        return Phase(int(self.op_phases[self.peak_index])).name.lower()

    @property
    def total_bytes(self) -> int:
        """What the device is expected to report: the tracked peak and the allowance on top."""
        return self.peak_bytes + self.overhead.total_bytes

    @property
    def allocated_memory_bytes(self) -> int:
        """What PyTorch's allocator hands out at the peak: tensors in whole blocks, and workspaces."""
        return self.peak_bytes + self.overhead.rounding_bytes + self.overhead.workspace_bytes

    @property
    def reserved_memory_bytes(self) -> int:
        """What it has from the driver for that."""
        return self.allocated_memory_bytes + self.overhead.fragmented_bytes

    @property
    def fits(self) -> bool | None:
        """Whether the step fits the device; None without one."""
        return None if self.device is None else self.total_bytes <= self.device.usable_memory_bytes

    def to_dict(self) -> dict[str, object]:
        """What --json prints."""
        return {
            "model": self.model,
            "batch_size": self.batch_size,
            "precision": self.settings.precision,
            "optimizer": self.settings.optimizer,
            "target": self.target,
            "peak_bytes": self.peak_bytes,
            "peak_bytes_by_kind": self.bytes_by_kind,
            "peak_op": self.peak_op,
            "peak_module": self.peak_module,
            "peak_phase": self.peak_phase,
            "context_bytes": self.overhead.context_bytes,
            "workspace_bytes": self.overhead.workspace_bytes,
            "allocator_bytes": self.overhead.allocator_bytes,
            "allocated_memory_bytes": self.allocated_memory_bytes,
            "reserved_memory_bytes": self.reserved_memory_bytes,
            "total_bytes": self.total_bytes,
            "device": None if self.device is None else self.device.name,
            "usable_bytes": None if self.device is None else self.device.usable_memory_bytes,
            "fits": self.fits,
            "largest_batch_size": self.largest_batch_size,
            "counts": {one.kind: {"n": one.n, "bytes": one.bytes} for one in self.counts},
        }

    def _repr_html_(self) -> str:
        from traincast.report.notebook import to_notebook
        from traincast.units import show_bytes

        parts = {**self.bytes_by_kind, "tracked peak": self.peak_bytes}
        parts |= {"context, workspaces, allocator": self.overhead.total_bytes, "total": self.total_bytes}
        notes = []
        if self.device is not None:
            usable = f"{self.device.name} ({show_bytes(self.device.usable_memory_bytes)} to use)"
            notes.append(
                f"It {'fits' if self.fits else 'does not fit'} {usable}; the largest batch that does is "
                f"{self.largest_batch_size:,}."
            )
        title = f"Memory of {self.model}, batch {self.batch_size:,}, at its peak"
        return to_notebook(title, [(name, show_bytes(size)) for name, size in parts.items()], notes=notes)


def step_memory(trace: Trace, batch_size: int, *, settings: Settings, device: Device | None = None) -> StepMemory:
    """The memory of one step, lowered for the device's kind (without a device, for CUDA)."""
    batch_size = check_batch_size(batch_size)
    target = "cpu" if device is not None and device.kind == "cpu" else "cuda"
    settings = settings.resolved()
    graph = lower(trace, target=target, settings=settings)
    by_kind = alive_bytes_by_kind(graph, batch_size)
    peak = int(by_kind.sum(axis=0).argmax())
    return StepMemory(
        model=trace.name,
        batch_size=batch_size,
        settings=settings,
        target=target,
        timeline_bytes={name: by_kind[list(kinds)].sum(axis=0) for name, kinds in KINDS.items()},
        op_phases=graph.op_phase,
        peak_op=graph.name_of(peak),
        peak_module=trace.modules[graph.op_module[peak]].path,
        overhead=overhead_of(graph, batch_size, device=device),
        device=device,
        largest_batch_size=None if device is None else largest_batch_size(graph, device),
        counts=counts_of(trace, graph),
        assumptions=trace.assumptions,
    )


def largest_batch_size(graph: Graph, device: Device) -> int:
    """The largest batch whose step fits; 0 if none does. Bytes never fall with the batch, so bisection finds it."""

    def fits(batch_size: int) -> bool:
        return reported_bytes(graph, batch_size, device=device) <= device.usable_memory_bytes

    if not fits(1):
        return 0
    low, high = 1, 2
    while high <= MAX_BATCH_SIZE and fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return min(low, MAX_BATCH_SIZE)


def timeline_samples(n_ops: int, most: int, *, keep: int) -> Ints:
    """About so many op numbers, evenly spread, for a chart that must show the op `keep`."""
    spread = np.linspace(0, n_ops - 1, min(n_ops, most)).round().astype(np.int64)
    return np.unique(np.append(spread, keep))
