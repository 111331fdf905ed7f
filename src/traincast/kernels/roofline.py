"""The roofline: every op takes as long as its flop at the peak or its bytes at full bandwidth, whichever is longer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traincast.hardware.device import Device
from traincast.kernels.method import OpTimes
from traincast.trace.dtypes import ITEM_BYTES
from traincast.trace.flop import op_flop
from traincast.trace.graph import Floats, Graph, Ints
from traincast.trace.kinds import OpKind, op_kinds
from traincast.trace.traffic import op_bytes


def op_peaks(graph: Graph, device: Device, precision: str) -> Floats:
    """FLOP/s of each op: with fp8 only products of eight-bit operands run at that rate, all others in bf16."""
    if precision != "fp8":
        return np.full(graph.n_ops, device.peak_flop_per_s(precision))
    last = np.where(graph.op_inputs.lengths > 0, graph.op_inputs.start[1:] - 1, 0)
    is_narrow = ITEM_BYTES[graph.tensor_dtype[graph.op_inputs.values[last]]] == 1
    return np.where(is_narrow, device.peak_flop_per_s("fp8"), device.peak_flop_per_s("bf16"))


@dataclass(frozen=True, slots=True)
class Roofline:
    """A bound, not an estimate: no device reaches both of its datasheet figures, so it is nearly always too fast."""

    name: str = "roofline"

    def op_times(self, graph: Graph, device: Device, batch_sizes: Ints, *, precision: str) -> OpTimes:
        compute_s = op_flop(graph, batch_sizes) / op_peaks(graph, device, precision)
        memory_s = op_bytes(graph, batch_sizes) / device.memory_bytes_per_s
        seconds = np.maximum(compute_s, memory_s)
        return OpTimes(
            seconds=seconds,
            compute_s=np.where(compute_s > memory_s, seconds, 0.0),
            log_sd=np.full(graph.n_ops, 0.5),
            error_group=np.zeros(graph.n_ops, dtype=np.int64),
            is_covered=np.array([kind != OpKind.UNCOSTED for kind in op_kinds(graph)]),
        )
