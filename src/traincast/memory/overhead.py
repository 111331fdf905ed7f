"""What a device reports on top of the tensors: context, workspaces, and what the allocator rounds up and splinters.

The allocator follows from PyTorch's source; the context is one figure fitted to runs on one GPU (lab/refit/memory.py);
the rest are allowances, chosen in the light of what others report. They are shown apart from the tracked bytes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.hardware.device import Device
from traincast.memory.shares import ALL_OF_IT, Shares
from traincast.memory.timeline import Alive, alive_at, alive_of
from traincast.trace.graph import Graph, Ints
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.structure import once_per_structure
from traincast.trace.traffic import tensor_bytes
from traincast.units import MIB

# The CUDA context with the kernels that a step loads. Reports: 200 to 1,000 MB by version and card, about 300 MB
# before any kernel since CUDA 11.7 (pytorch/pytorch issues 28113, 28394, 107667). Part of it is stacks and queues of
# every multiprocessor: so much is fitted, the rest is the smallest report. Without a device, or on one whose
# multiprocessors are not known, a choice between the reports.
_CONTEXT_BYTES = {"gpu": 450 * MIB, "cpu": 250 * MIB}
CONTEXT_BASE_BYTES = 200 * MIB
CONTEXT_BYTES_PER_SM = 12_020_000  # `python -m lab.refit.memory`
# What PyTorch allocates for cuBLAS: 8,519,680 bytes (discuss.pytorch.org topic 178671); 32 MiB is what NVIDIA
# recommends on Hopper and PyTorch follows (pytorch/pytorch pull request 120925).
_CUBLAS_BYTES, _CUBLAS_NEW_BYTES = 8_519_680, 32 * MIB
_NEW_ARCHITECTURES = ("Hopper", "Blackwell")
# PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.h): blocks are multiples of 512 bytes; up to 1 MiB they
# come from segments of 2 MiB, below 10 MiB from segments of 20 MiB; larger ones have their own, in multiples of 2 MiB.
_BLOCK_BYTES = 512
_SMALL_BYTES, _LARGE_BYTES = MIB, 10 * MIB
_SEGMENT_BYTES = (2 * MIB, 20 * MIB)
# What it cannot use again beyond that is a guess.
_FRAGMENTED_FRACTION = 0.04


@dataclass(frozen=True, slots=True, kw_only=True)
class Overhead:
    """Bytes beside the tensors."""

    context_bytes: int
    workspace_bytes: int
    rounding_bytes: int  # blocks are rounded up
    fragmented_bytes: int  # what the allocator keeps and cannot use

    @property
    def allocator_bytes(self) -> int:
        return self.rounding_bytes + self.fragmented_bytes

    @property
    def total_bytes(self) -> int:
        return self.context_bytes + self.workspace_bytes + self.allocator_bytes


def reported_bytes(graph: Graph, batch_size: int, *, device: Device | None, shares: Shares = ALL_OF_IT) -> int:
    """What the device is expected to report at the peak of a lowered step: its tensors and the allowance."""
    alive = alive_at(graph, batch_size, shares)
    return alive.peak_bytes + overhead_of(graph, batch_size, device=device, alive=alive).total_bytes


def overhead_of(graph: Graph, batch_size: int, *, device: Device | None, alive: Alive | None = None) -> Overhead:
    """The allowance for a lowered step on a device; without one, on a GPU of no particular kind.

    `alive` is what `alive_at` says of the same step, where that is known already.
    """
    kind = device.kind if device is not None else "gpu"
    if kind == "cpu":
        return Overhead(context_bytes=_CONTEXT_BYTES["cpu"], workspace_bytes=0, rounding_bytes=0, fragmented_bytes=0)
    is_new = device is not None and device.arch in _NEW_ARCHITECTURES
    cublas = _CUBLAS_NEW_BYTES if is_new else _CUBLAS_BYTES
    rounding, fragmented = _allocator_bytes(graph, alive or alive_at(graph, batch_size))
    return Overhead(
        context_bytes=context_bytes(device),
        workspace_bytes=cublas + _convolution_workspace_bytes(graph, batch_size),
        rounding_bytes=rounding,
        fragmented_bytes=fragmented,
    )


def context_bytes(device: Device | None) -> int:
    """What a process of PyTorch holds on a GPU before its first tensor."""
    if device is None or device.n_sm is None or device.vendor != "NVIDIA":
        return _CONTEXT_BYTES["gpu"]
    return CONTEXT_BASE_BYTES + CONTEXT_BYTES_PER_SM * device.n_sm


def _convolution_workspace_bytes(graph: Graph, batch_size: int) -> int:
    """cuDNN's fast algorithms want scratch space of about the size of what a convolution writes: the largest one."""
    written = _find_written(graph)
    return int(tensor_bytes(graph, np.array([batch_size]))[0, written].max()) if len(written) else 0


@once_per_structure
def _find_written(graph: Graph) -> Ints:
    """The first output of every convolution."""
    wanted = (OpKind.CONVOLUTION, OpKind.CONVOLUTION_BACKWARD)
    ops = np.array([op for op, kind in enumerate(op_kinds(graph)) if kind in wanted], dtype=np.int64)
    first: Ints = graph.op_outputs.values[graph.op_outputs.start[ops]]
    return first


def _allocator_bytes(graph: Graph, alive: Alive) -> tuple[int, int]:
    """Rounding of every block that is alive at the peak, and what the allocator holds beyond them.

    Blocks come from three pools by size, in segments of 2 MiB, of 20 MiB, or of their own; what one pool has, the
    others cannot use, so that each is as large as at its own peak.
    """
    peak, sizes = alive.peak_op, alive.sizes
    is_alive = (alive.alloc <= peak) & (graph.storage_free > peak)
    rounding = int((-sizes[is_alive] % _BLOCK_BYTES).sum())
    blocks = sizes + -sizes % _BLOCK_BYTES
    pools = (blocks <= _SMALL_BYTES, (blocks > _SMALL_BYTES) & (blocks < _LARGE_BYTES), blocks >= _LARGE_BYTES)
    of_pool = np.array([np.where(pool, blocks, 0) for pool in pools])
    of_pool[2] += -of_pool[2] % _SEGMENT_BYTES[0]
    most = alive_of(graph, of_pool, alive.alloc).max(axis=1, initial=0)
    segments = np.array([*_SEGMENT_BYTES, 1])
    reserved = int((most + -most % segments).sum())
    moving = int(sizes[is_alive & (alive.alloc >= 0)].sum())
    held = alive.peak_bytes + rounding
    return rounding, max(reserved - held, 0) + int(_FRAGMENTED_FRACTION * moving)
