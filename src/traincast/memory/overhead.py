"""What a device reports on top of the tensors: context, workspaces, and what the allocator rounds up and splinters.

None of this follows from the model, and none could be measured where this was written. The figures are allowances,
chosen in the light of what others report; they are shown apart from the tracked bytes for that reason.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.hardware.device import Device
from traincast.memory.shares import ALL_OF_IT, Shares
from traincast.memory.timeline import Alive, alive_at
from traincast.trace.graph import Graph, Ints
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.structure import once_per_structure
from traincast.trace.traffic import tensor_bytes
from traincast.units import MIB

# The CUDA context with the kernels that a step loads. Reports: 200 to 1,000 MB by version and card, about 300 MB
# before any kernel since CUDA 11.7 (pytorch/pytorch issues 28113, 28394, 107667). Ours is a choice between.
_CONTEXT_BYTES = {"gpu": 450 * MIB, "cpu": 250 * MIB}
# What PyTorch allocates for cuBLAS: 8,519,680 bytes (discuss.pytorch.org topic 178671); 32 MiB is what NVIDIA
# recommends on Hopper and PyTorch follows (pytorch/pytorch pull request 120925).
_CUBLAS_BYTES, _CUBLAS_NEW_BYTES = 8_519_680, 32 * MIB
_NEW_ARCHITECTURES = ("Hopper", "Blackwell")
# PyTorch's caching allocator rounds every block up to 512 bytes. The fraction that it cannot reuse is a guess.
_BLOCK_BYTES = 512
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
        context_bytes=_CONTEXT_BYTES["gpu"],
        workspace_bytes=cublas + _convolution_workspace_bytes(graph, batch_size),
        rounding_bytes=rounding,
        fragmented_bytes=fragmented,
    )


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
    """Rounding of every block that is alive at the peak, and fragmentation of what comes and goes."""
    peak, sizes = alive.peak_op, alive.sizes
    is_alive = (alive.alloc <= peak) & (graph.storage_free > peak)
    rounding = int((-sizes[is_alive] % _BLOCK_BYTES).sum())
    moving = sizes[is_alive & (alive.alloc >= 0)].sum()
    return rounding, int(rounding + _FRAGMENTED_FRACTION * moving) - rounding
